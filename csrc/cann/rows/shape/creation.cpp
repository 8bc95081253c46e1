// Tensors made of numbers, such as ranges. The output determines the number of elements and their
// type.

#include "cann/rows/row.h"

namespace aclnn_host::shape_creation_rows {

namespace {

// Options of the output's type, or of FLOAT for 16-bit types.
at::TensorOptions wide_options(const Output& out) {
  return out->options().dtype(wide(out->scalar_type()));
}

bool is_fraction(const c10::Scalar& number) {
  return number.isFloatingPoint() && number.toDouble() != std::trunc(number.toDouble());
}

}  // namespace

// The document requires the number of elements, but not their shape.
ACLNN(Arange, (Number, start), (Number, end), (Number, step), (Out, out)) {
  const at::Tensor numbers = at::arange(start, end, step, wide_options(out));
  EXPECT(numbers.numel() == out->numel(), "out has ", out->numel(), " elements, expected ",
         numbers.numel());
  out = numbers.view(out->sizes());
}
ACLNN(Range, (Number, start), (Number, end), (Number, step), (Out, out)) {
  // ATen truncates the step of an integer range, and divides by it even if it becomes 0.
  EXPECT(at::isFloatingType(out->scalar_type()) ||
             !(is_fraction(start) || is_fraction(end) || is_fraction(step)),
         "start, end or step has a fraction, and out has dtype ", dtype_text(out->scalar_type()),
         ", expected a floating-point dtype; cast out");
  out = at::range(start, end, step, wide_options(out));
}
ACLNN(Linspace, (Number, start), (Number, end), (int64_t, steps), (Out, out)) {
  out = at::linspace(start, end, steps, wide_options(out));
}
ACLNN(LogSpace, (Number, start), (Number, end), (int64_t, steps), (double, base), (Out, out)) {
  out = at::logspace(start, end, steps, base, wide_options(out));
}

}  // namespace aclnn_host::shape_creation_rows
