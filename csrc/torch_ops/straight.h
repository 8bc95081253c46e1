#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "torch_ops/autograd.h"
#include "torch_ops/memory_pool.h"

namespace aclnn_torch {

// Whether an operator of these tensors, some of which may be absent, would come straight to the
// CPU: no mode or wrapper is there to see it, no lazy sign or zero is to be written out, and
// neither a graph nor a tangent is recorded.
inline bool goes_straight_to_cpu(std::initializer_list<Tensor> tensors) {
  const auto threads = c10::impl::tls_local_dispatch_key_set();
  c10::DispatchKeySet all = threads.included_;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (torch::autograd::isFwGradDefined(tensor)) return false;
    all = all | tensor.key_set();
  }
  const auto keys = all - threads.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView -
                    c10::autocast_dispatch_keyset -
                    c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
  return keys.highestPriorityTypeId() == c10::DispatchKey::CPU && !at::GradMode::is_enabled();
}

// Whether nothing but its tensor knows the memory, which is of the pool: what came from elsewhere,
// such as a hook that brings saved tensors back, may have owners that torch does not know.
inline bool is_known_to_nobody_else(const c10::Storage& memory) {
  return memory.use_count() == 1 && memory.allocator() == &memory_pool();
}

}  // namespace aclnn_torch
