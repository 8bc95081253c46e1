#pragma once

#include "cann/rows/row.h"

// Attention for inference. One definition serves the operators for prompts, for single queries of
// each sequence, and for both.
namespace aclnn_host {

// A tensor or an array without elements counts as absent.
inline bool given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0;
}
inline bool given(const at::OptionalIntArrayRef& array) {
  return array && !array->empty();
}

// Rounds to INT8, to nearest, ties to even; NaN becomes 0.
at::Tensor rounded_to_int8(const at::Tensor& x);

using Lengths = std::optional<std::vector<int64_t>>;
// An absent array is the same as an empty one.
Lengths lengths_of(const at::OptionalIntArrayRef& array);

// Dequantisation of INT8 keys or values: (x + offset) * scale.
struct Antiquantisation {
  const char* scale_name = "antiquantScale";
  const char* offset_name = "antiquantOffset";
  const char* mode_name = "antiquantMode";
  std::optional<at::Tensor> scale = {};
  std::optional<at::Tensor> offset = {};
  int64_t mode = 0;
  bool is_joint = false;  // the mode applies only with a single query for each sequence

  bool is_given() const { return given(scale); }
};

// The blocks of keys that the queries of a block see, as lists of their indices: (batch, heads,
// blocks of queries, blocks of keys). The places after the last index of a list have kNoBlock.
struct ListedBlocks {
  static constexpr int64_t kNoBlock = 65535;
  at::Tensor lists = {};
  std::vector<int64_t> block = {};  // tokens of a block of queries and of keys
};

struct InferenceArguments {
  at::Tensor query = {};
  std::vector<at::Tensor> key = {};
  std::vector<at::Tensor> value = {};
  std::optional<at::Tensor> shift = {};
  std::optional<at::Tensor> mask = {};
  Lengths query_lengths = {};
  Lengths key_lengths = {};
  const char* key_lengths_name = "actualSeqLengthsKv";
  std::optional<at::Tensor> dequant_scale1 = {};
  std::optional<at::Tensor> quant_scale1 = {};
  std::optional<at::Tensor> dequant_scale2 = {};
  std::optional<at::Tensor> quant_scale2 = {};
  std::optional<at::Tensor> quant_offset2 = {};
  Antiquantisation key_antiquant = {};
  Antiquantisation value_antiquant = {};
  std::optional<at::Tensor> block_table = {};
  std::optional<at::Tensor> query_padding = {};
  std::optional<at::Tensor> key_padding = {};
  std::optional<at::Tensor> key_prefix = {};
  std::optional<at::Tensor> value_prefix = {};
  Lengths prefix_length = {};
  std::optional<at::Tensor> query_rope = {};
  std::optional<at::Tensor> key_rope = {};
  int64_t heads = 0;
  int64_t key_heads = 0;  // 0 if there are as many as heads of queries
  double scale = 1;
  int64_t pre_tokens = INT32_MAX;
  int64_t next_tokens = INT32_MAX;
  std::string layout = {};
  std::span<const std::string_view> layouts = {};  // the layouts that the operator accepts
  int64_t sparse_mode = 0;
  int64_t inner_precise = 0;
  int64_t block_size = 0;
  std::optional<ListedBlocks> blocks = {};
  bool sums_have_last = true;  // a last dimension of 1
  // True if a single query for each sequence sees all its keys, whatever the sparse mode.
  bool single_query_sees_all = false;
};

// Collects the arguments that versions of several operators have under the same names.
template <class Version>
InferenceArguments inference_arguments(const Version& row,
                                       std::span<const std::string_view> layouts) {
  InferenceArguments arguments{.query = row.query,
                               .heads = row.numHeads,
                               .key_heads = row.numKeyValueHeads,
                               .scale = row.scaleValue,
                               .layout = row.inputLayout,
                               .layouts = layouts};
  if constexpr (requires { row.key.size(0); }) {
    arguments.key = {row.key};
    arguments.value = {row.value};
  } else {
    arguments.key = row.key;
    arguments.value = row.value;
  }
  if constexpr (requires { arguments.shift = row.pseShift; }) arguments.shift = row.pseShift;
  if constexpr (requires { row.attenMask; }) arguments.mask = row.attenMask;
  if constexpr (requires { row.quantScale1; }) {
    arguments.quant_scale1 = row.quantScale1;
    arguments.quant_scale2 = row.quantScale2;
    arguments.quant_offset2 = row.quantOffset2;
  }
  if constexpr (requires { row.deqScale1; }) {
    arguments.dequant_scale1 = row.deqScale1;
    arguments.dequant_scale2 = row.deqScale2;
  }
  if constexpr (requires { row.preTokens; }) {
    arguments.pre_tokens = row.preTokens;
    arguments.next_tokens = row.nextTokens;
  }
  if constexpr (requires { row.sparseMode; }) arguments.sparse_mode = row.sparseMode;
  if constexpr (requires { row.innerPrecise; }) arguments.inner_precise = row.innerPrecise;
  if constexpr (requires { row.blockSize; }) arguments.block_size = row.blockSize;
  return arguments;
}

// Refuses arguments whose effect the host CANN does not emulate.
void refuse_given(std::initializer_list<std::pair<const char*, bool>> arguments);

// Splits a tensor with the scales of keys and values along its first dimension.
void split_antiquant(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, int64_t mode);

// Computes the attention. With `lse`, also writes the log-sum-exp of the scores: inf for a query
// without keys.
void infer_attention(const InferenceArguments& arguments, Output& out, OptionalOutput* lse);

}  // namespace aclnn_host
