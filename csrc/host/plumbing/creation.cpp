// Tensors made of numbers: ranges and the like. The output says how many elements there are, and
// their type.

#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/fill_diagonal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/range.h>

#include "plumbing/plumbing.h"

using namespace aclnn_host;

ACLNN(Arange, (Number, start), (Number, end), (Number, step), (Out, out)) {
  out = at::arange(start, end, step, out->options());
}
ACLNN(Range, (Number, start), (Number, end), (Number, step), (Out, out)) {
  out = at::range(start, end, step, out->options());
}
ACLNN(Linspace, (Number, start), (Number, end), (int64_t, steps), (Out, out)) {
  out = at::linspace(start, end, steps, out->options());
}
ACLNN(LogSpace, (Number, start), (Number, end), (int64_t, steps), (double, base), (Out, out)) {
  out = at::logspace(start, end, steps, base, out->options());
}
ACLNN(Eye, (int64_t, n), (int64_t, m), (Out, out)) {
  out = at::eye(n, m, out->options());
}
ACLNN(InplaceFillDiagonal, (InOut, selfRef), (Number, fillValue), (bool, wrap)) {
  selfRef = selfRef->clone().fill_diagonal_(fillValue, wrap);
}
