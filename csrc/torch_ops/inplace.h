#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

namespace aclnn_torch {

// The ADInplaceOrView kernel of an in-place operator: bumps self's version, in inference mode too,
// so that a backward that saved self detects the change. `run` calls the kernels below.
template <class Run>
at::Tensor& overwrite(at::Tensor& self, Run run) {
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    run();
  }
  torch::autograd::increment_version(self);
  return self;
}

// The Functionalize kernel of an in-place operator: `functional` computes the new value out of
// place, and self's wrapper is set to it.
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
