#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/Tensor.h>

namespace aclnn_torch {

// The Functionalize kernel of an in-place operator: `functional` computes the new value out of
// place, and self's wrapper takes it as its value.
template <class Functional>
at::Tensor& replace_by_functional(at::Tensor& self, Functional functional) {
  namespace functionalization = at::functionalization::impl;
  if (!functionalization::isFunctionalTensor(self)) {
    // Already inside: nothing to record.
    const at::AutoDispatchSkipFunctionalize guard;
    self.copy_(functional(self));
    return self;
  }
  functionalization::sync(self);
  const at::Tensor value = [&] {
    const at::AutoDispatchSkipFunctionalize guard;
    return functional(functionalization::from_functional_tensor(self));
  }();
  functionalization::replace_(self, value);
  functionalization::commit_update(self);
  functionalization::sync(self);
  return self;
}

}  // namespace aclnn_torch
