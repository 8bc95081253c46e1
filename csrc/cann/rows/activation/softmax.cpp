// Softmax and log-softmax, also of scaled and masked scores.

#include "cann/rows/row.h"
#include "cann/rows/rows_in_pieces.h"

namespace aclnn_host::activation_softmax_rows {

namespace {

// Expands the mask to the shape of the scores; true elements are masked out.
at::Tensor expanded(const at::Tensor& mask, const char* name, const at::Tensor& scores) {
  expect_dims(name, scores, 4);
  expect_dims("mask", mask, 4);
  EXPECT(scores.size(3) >= 1 && scores.size(3) <= 4096, name, " has shape ", scores.sizes(),
         ", expected a last dimension of 1 to 4096");
  expect_dtype("mask", mask, at::kBool);
  return mask.expand_as(scores);
}

// out = function(x, ...), computed into a contiguous output of the type of x.
#define WRITE_ROWS(out, function, x, ...)                                    \
  const at::Tensor of = x;                                                   \
  const bool is_direct = out->is_contiguous();                               \
  out.write(                                                                 \
      is_direct ? of.scalar_type() : at::ScalarType::Undefined, of.sizes(),  \
      Output::Reads::kAnyElement, [&] { return function(of, __VA_ARGS__); }, \
      [&](at::Tensor& result) { function##_out(result, of, __VA_ARGS__); })

void write_log_softmax(const at::Tensor& self, int64_t dim, Output& out) {
  if (has_rows_of_16_bits(self, dim)) {
    const at::Tensor* const room =
        out.room(out->scalar_type(), self.sizes(), Output::Reads::kAnyElement);
    if (room != nullptr && room->is_contiguous()) {
      return write_in_pieces(self, *room, [](const at::Tensor& rows) {
        return at::_log_softmax(wide(rows), 1, false);
      });
    }
  }
  WRITE_ROWS(out, at::_log_softmax, wide(self), dim, false);
}

}  // namespace

ACLNN(Softmax, (Floating<In>, self), (int64_t, dim), (Out, out)) {
  // Of rows of 16 bits ATen rounds the result alone, of columns what it computes on the way, too.
  const bool is_rounded_once =
      has_rows_of_16_bits(self, dim) && out->scalar_type() == self.scalar_type();
  WRITE_ROWS(out, at::_softmax, is_rounded_once ? self : wide(self), dim, false);
}
ACLNN(SoftmaxBackward, (Floating<In>, gradOutput), (SameShape<Floating<In>>, output, "gradOutput"),
      (int64_t, dim), (Out, gradInput)) {
  WRITE_ROWS(gradInput, at::_softmax_backward_data, wide(gradOutput), wide(output), dim,
             wide(output.scalar_type()));
}
// y is the result of the softmax over the last dimension.
ACLNN(SoftmaxGrad, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, dx, "y")) {
  EXPECT(y.dim() > 0, "y has no dimensions, expected at least one");
  const at::Tensor share = (wide(dy) * wide(y)).sum(-1, /*keepdim=*/true);
  dx = wide(y) * (wide(dy) - share);
}
ACLNN(LogSoftmax, (Floating<In>, self), (int64_t, dim), (Out, out)) {
  write_log_softmax(self, dim, out);
}
ACLNN(LogSoftmaxV2, (Floating<In>, self), (int64_t, dim), (Out, out)) {
  write_log_softmax(self, dim, out);
}
ACLNN(LogSoftmaxBackward, (Floating<In>, gradOutput),
      (SameShape<Floating<In>>, output, "gradOutput"), (int64_t, dim), (Out, out)) {
  WRITE_ROWS(out, at::_log_softmax_backward_data, wide(gradOutput), wide(output), dim,
             wide(output.scalar_type()));
}

// Behaviour of ScaledMaskedSoftmax*: A score that is masked counts as -10000, so a row of masked
// scores has equal probabilities.
ACLNN(ScaledMaskedSoftmax, (Floating<In>, x), (In, mask), (double, scale), (bool, fixedTriuMask),
      (Like<Out>, y, "x")) {
  EXPECT(!fixedTriuMask, "fixedTriuMask is true, expected false");
  const at::Tensor left_out = expanded(mask, "x", x);
  y = at::_softmax((wide(x) * scale.value()).masked_fill(left_out, -10000), -1, false);
}
ACLNN(ScaledMaskedSoftmaxBackward, (Like<Floating<In>>, gradOutput, "y"), (Floating<In>, y),
      (In, mask), (double, scale), (bool, fixTriuMask), (Like<Out>, out, "y")) {
  EXPECT(!fixTriuMask, "fixTriuMask is true, expected false");
  const at::Tensor left_out = expanded(mask, "y", y);
  const at::Tensor gradient =
      at::_softmax_backward_data(wide(gradOutput), wide(y), -1, wide(y.scalar_type()));
  out = (gradient * scale.value()).masked_fill(left_out, 0);
}

}  // namespace aclnn_host::activation_softmax_rows
