#pragma once

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// Checks that a list of an optimiser has the parameters' shapes, which ATen's kernels assume.
inline void expect_alike(const char* name, const std::vector<Output>& list,
                         const std::vector<Output>& params) {
  EXPECT(list.size() == params.size(), name, " has ", list.size(), " tensors, expected ",
         params.size());
  for (size_t i = 0; i < list.size(); ++i) expect_shape(name, list[i], params[i]->sizes());
}

// Refuses a step without parameters.
inline void expect_params(const std::vector<Output>& params) {
  EXPECT(!params.empty(), "paramsRef has no tensors, expected one or more");
}

// The element of a tensor that has one, as a scalar.
inline at::Tensor only_element(const char* name, const at::Tensor& value) {
  EXPECT(value.numel() == 1, name, " has shape ", value.sizes(), ", expected one element");
  return value.reshape({});
}
// A hyperparameter, in the type of the computation.
inline at::Tensor setting(const char* name, const at::Tensor& value) {
  return wide(only_element(name, value));
}

// A FLOAT tensor of one element.
inline at::Tensor number(const char* name, const at::Tensor& tensor) {
  expect_dtype(name, tensor, at::kFloat);
  return only_element(name, tensor);
}
// One that may be absent; a tensor without elements counts as absent.
inline std::optional<at::Tensor> number(const char* name, const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0 ? std::optional(number(name, *tensor)) : std::nullopt;
}

inline std::vector<at::Tensor> all_wide(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> wider;
  wider.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) wider.push_back(wide(tensor));
  return wider;
}
inline void write(std::vector<Output>& outputs, const std::vector<at::Tensor>& results) {
  for_each(outputs, [&](size_t i) { return results[i]; }, results);
}

}  // namespace aclnn_host
