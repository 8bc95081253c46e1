#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "torch_ops/autograd.h"
#include "torch_ops/memory_pool.h"

namespace aclnn_torch {

// True if an operator on these tensors, some of which may be absent, would dispatch directly to the
// CPU kernel: no mode or wrapper intercepts it, no lazy negation or zero must be materialised, and
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

// True if only its tensor owns the memory, which must come from the pool: other memory, such as
// that of a hook that restores saved tensors, may have owners that torch does not know.
inline bool is_known_to_nobody_else(const c10::Storage& memory) {
  return memory.use_count() == 1 && memory.allocator() == &memory_pool();
}

}  // namespace aclnn_torch
