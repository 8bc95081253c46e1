// Sequences and matrices made of numbers only.

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_creation {

namespace {

constexpr int64_t kMostSteps = int64_t{1} << 31;

// The type in which a sequence is computed.
at::TensorOptions options_of(const Output& y) {
  const bool is_integral = at::isIntegralType(y->scalar_type(), false);
  return y->options().dtype(is_integral ? at::kLong : at::kDouble);
}

// begin, begin + step, ..., with the number of elements of y.
at::Tensor range(const Output& y, double begin, double step) {
  expect_dims("y", y, 1);
  const at::Tensor indices = at::arange(y->size(0), options_of(y));
  if (at::isIntegralType(y->scalar_type(), false)) {
    return indices * integer_of("delta", step) + integer_of("start", begin);
  }
  return indices * step + begin;
}

}  // namespace

NAMED_OPERATOR(Range, (HostFloats, start),
               (Unused<HostFloats>, limit, "the number of elements of y says it"),
               (HostFloats, delta), (Out, y)) {
  y = range(y, one_of("start", start), one_of("delta", delta));
}
NAMED_OPERATOR(RangeD, (Unused<In>, x, "holds 0, 1, 2, ..., as many as y has"), (Out, y),
               (Attribute<double>, start),
               (Unused<Attribute<double>>, limit, "the number of elements of y says it"),
               (Attribute<double>, delta)) {
  y = range(y, start.value_or(0), delta.value_or(1));
}
NAMED_OPERATOR(Eye, (Out, y), (Attribute<int64_t>, num_rows), (Attribute<int64_t>, num_columns),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of the output says it")) {
  const int64_t rows = num_rows.value_or(0), columns = num_columns.value_or(rows);
  expect_shape("y", y, {rows, columns});
  y = at::eye(rows, columns, y->options());
}
NAMED_OPERATOR(LinSpace, (HostFloats, start), (HostFloats, stop), (HostInts, num), (Out, output)) {
  const int64_t count = one_of("num", num);
  expect_range("num", count, 0, kMostSteps);
  output = at::linspace(one_of("start", start), one_of("stop", stop), count,
                        output->options().dtype(at::kFloat));
}
NAMED_OPERATOR(LogSpaceD, (Unused<In>, assist, "holds 0, 1, 2, ..., as many as y has"), (Out, y),
               (Attribute<double>, start), (Attribute<double>, end), (Attribute<int64_t>, steps),
               (Attribute<double>, base),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of the output says it")) {
  const int64_t count = steps.value_or(100);
  expect_range("steps", count, 0, kMostSteps);
  y = at::logspace(start.value_or(0), end.value_or(1), count, base.value_or(10),
                   y->options().dtype(at::kFloat));
}

}  // namespace aclnn_host::named_creation
