#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// Refuses targets that are not classes. ATen does not check them in all gradients, which it would
// then write outside of the tensor. Ignored targets may have any value.
inline void check_targets(const at::Tensor& target, int64_t classes, int64_t ignored) {
  if (target.is_cpu()) check_bounds("target", target.masked_select(target != ignored), classes);
}

}  // namespace aclnn_host
