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
                             Output& largest, Output& sum, Output& out);
// Returns the gradient of the sink, if there is one.
std::optional<at::Tensor> write_batched_gradients(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& dy,
    const ForwardPass& forward, const AttentionArguments& arguments, const std::string& layout,
    std::optional<Source> source, Output& dq, Output& dk, Output& dv, OptionalOutput& dshift);

}  // namespace aclnn_host
