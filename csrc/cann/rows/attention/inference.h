#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include "cann/rows/row.h"

// The attention of inference: one definition for the operators of the first step (of a prompt), of
// the later steps (of one query for each sequence) and for those that do both.
namespace aclnn_host {

// A tensor without elements is as good as none.
inline bool given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0;
}

// Numbers as INT8 has them: the nearest, of two the even one; NaN is 0.
at::Tensor rounded_to_int8(const at::Tensor& x);

using Lengths = std::optional<std::vector<int64_t>>;
// An absent array and an empty one are the same.
Lengths lengths_of(const at::OptionalIntArrayRef& array);

// How keys or values of INT8 become numbers: (x + offset) * scale.
struct Antiquantisation {
  const char* name = "antiquantScale";  // of the argument that has the scales
  std::optional<at::Tensor> scale = {};
  std::optional<at::Tensor> offset = {};
  int64_t mode = 0;
  bool is_joint = false;  // the mode counts for a single query for each sequence alone

  bool is_given() const { return scale && scale->numel() > 0; }
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
  int64_t key_heads = 0;  // 0 for as many as queries have
  double scale = 1;
  int64_t pre_tokens = INT32_MAX;
  int64_t next_tokens = INT32_MAX;
  std::string layout = {};
  std::string_view layouts = {};  // those that the operator has
  int64_t sparse_mode = 0;
  int64_t inner_precise = 0;
  int64_t block_size = 0;
  // Whether a single query for each sequence sees all its keys, whatever the sparse mode.
  bool single_query_sees_all = false;
};

// Refuses arguments that would change the result in a way that the host CANN does not emulate.
void refuse_given(std::initializer_list<std::pair<const char*, bool>> arguments);

// One of two forms of scales for keys and values: scales that have both, along the first dimension.
void split_antiquant(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, int64_t mode);

// With `lse`, writes the logarithms of the sums of exponentials, too: inf for a query without keys.
void infer_attention(const InferenceArguments& arguments, Output& out, OptionalOutput* lse);

}  // namespace aclnn_host
