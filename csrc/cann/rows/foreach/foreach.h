#pragma once

#include "cann/rows/engine/memory_range.h"
#include "cann/rows/row.h"

namespace aclnn_host {

template <class... Lists>
void check_lengths(const std::vector<Output>& out, const Lists&... lists) {
  EXPECT(((lists.size() == out.size()) && ...), out.empty() ? "out" : out[0].name(), " has ",
         out.size(), " tensors, expected the number that every list of the call has");
}

// Fills every output with result(i). All lists of a call have one length. Outputs may overlap
// inputs: if one overlaps an input at another position, all results are computed before the first
// assignment. Otherwise each result is written while it is in the cache.
template <class Result, class... Lists>
void for_each(std::vector<Output>& out, Result result, const Lists&... lists) {
  check_lengths(out, lists...);
  if (std::ranges::all_of(out, &Output::may_be_written_early)) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = result(i);
    return;
  }
  std::vector<at::Tensor> results;
  results.reserve(out.size());
  const auto lies_in_output = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() && std::ranges::any_of(out, [&](const Output& output) {
             return memory_range_of(tensor).overlaps(memory_range_of(output));
           });
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const at::Tensor of_i = result(i);  // may be an input itself, if it is only copied
    results.push_back(lies_in_output(of_i) ? of_i.clone() : of_i);
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = results[i];
}

// for_each for tensors of one type.
template <class Result, class... Lists>
void for_each_of_one_type(std::vector<Output>& out, Result result, const Lists&... lists) {
  const auto checked = [&](size_t i) {
    const at::ScalarType dtype = out[0]->scalar_type();
    EXPECT(out[i]->scalar_type() == dtype && ((lists[i].scalar_type() == dtype) && ...),
           "the tensors ", i, " of the lists have different dtypes, expected ", dtype,
           " for all of them; cast them");
    return result(i);
  };
  for_each(out, checked, lists...);
}

// for_each for elementwise functions of ATen with results of type(i): into(i, destination) may
// write a result directly to the output's memory.
template <class Type, class Result, class Into, class... Lists>
void for_each_elementwise(std::vector<Output>& out, Type type, Result result, Into into,
                          const Lists&... lists) {
  if (!std::ranges::all_of(out, &Output::may_be_written_early)) {
    return for_each(out, result, lists...);
  }
  check_lengths(out, lists...);
  for (size_t i = 0; i < out.size(); ++i) {
    const at::IntArrayRef shape = out[i]->sizes();
    if (!((lists[i].sizes() == shape) && ...)) {
      out[i] = result(i);
      continue;
    }
    out[i].write(
        type(i), shape, Output::Reads::kSameElement, [&] { return result(i); },
        [&](at::Tensor& destination) { into(i, destination); });
  }
}

// The outputs as tensors, to read them.
inline std::vector<at::Tensor> tensors(const std::vector<Output>& outputs) {
  return {outputs.begin(), outputs.end()};
}

}  // namespace aclnn_host
