#pragma once

#include "cann/rows/attention/training.h"
#include "cann/rows/random/philox.h"
#include "cann/rows/row.h"

// Attention of training for sequences of one length, and its gradients. The layout is the order of
// the dimensions of queries, keys and values in memory: "BNSD", "BSND", "BSH" or "SBH".
namespace aclnn_host {

void write_batched_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const AttentionArguments& arguments,
                             const std::string& layout, std::optional<Source> source,
                             Output& largest, Output& sum, Output& out,
                             const RotaryParts& rotary = {});
// Version 4 takes rotary parts for these sizes of heads only.
inline void check_rotary_sizes(int64_t size, int64_t rotary_size) {
  EXPECT(size == 128 && rotary_size == 64, "heads and their rotary parts have ", size, " and ",
         rotary_size, " elements, expected 128 and 64");
}

// The gradients of inputs that a call may lack.
struct BatchedGradients {
  std::optional<at::Tensor> sink = {};
  std::optional<at::Tensor> query_rope = {};
  std::optional<at::Tensor> key_rope = {};
};
BatchedGradients write_batched_gradients(const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& value, const at::Tensor& dy,
                                         const ForwardPass& forward,
                                         const AttentionArguments& arguments,
                                         const std::string& layout, std::optional<Source> source,
                                         Output& dq, Output& dk, Output& dv, OptionalOutput& dshift,
                                         const RotaryParts& rotary = {});

}  // namespace aclnn_host
