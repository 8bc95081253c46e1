// Padding and its gradients. The numbers are (before, after) for each dimension.

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_padding {

namespace {

// Converts paddings to ATen's order, from the last dimension on. They are pairs, or all numbers
// before and then all numbers after.
Integers from_last(const Integers& paddings, bool are_pairs, int64_t dims) {
  const auto count = static_cast<size_t>(dims);
  EXPECT(paddings.size() == 2 * count, "paddings has ", paddings.size(), " numbers, expected ",
         2 * count);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // sums with sizes do not overflow
  check_values("paddings", paddings, -kMost, kMost);
  Integers reversed;
  for (size_t i = count; i-- > 0;) {
    reversed.push_back(are_pairs ? paddings[2 * i] : paddings[i]);
    reversed.push_back(are_pairs ? paddings[2 * i + 1] : paddings[i + count]);
  }
  return reversed;
}

// Removes the zeros of the leading dimensions, which only the mode "constant" can pad.
Integers inner(Integers paddings) {
  while (paddings.size() > 2 && paddings.end()[-1] == 0 && paddings.end()[-2] == 0) {
    paddings.resize(paddings.size() - 2);
  }
  return paddings;
}

enum class Mode { kConstant, kEdge, kReflect };

Mode mode_of(const std::string& mode) {
  expect_text("mode", mode, {"constant", "edge", "reflect", "REFLECT"});
  return mode == "constant" ? Mode::kConstant : mode == "edge" ? Mode::kEdge : Mode::kReflect;
}

// The gradient of x, whose shape is `shape`, from that of the padded tensor.
at::Tensor gradient(const at::Tensor& grads, at::IntArrayRef shape, const Integers& paddings,
                    Mode mode) {
  const at::Tensor x = grads.new_zeros(shape);
  const bool is_edge = mode == Mode::kEdge;
  switch (paddings.size()) {
    case 2:
      return is_edge ? at::replication_pad1d_backward(grads, x, paddings)
                     : at::reflection_pad1d_backward(grads, x, paddings);
    case 4:
      return is_edge ? at::replication_pad2d_backward(grads, x, paddings)
                     : at::reflection_pad2d_backward(grads, x, paddings);
    default:
      EXPECT(paddings.size() == 6, "paddings pads ", paddings.size() / 2,
             " dimensions, expected 1 to 3");
      return is_edge ? at::replication_pad3d_backward(grads, x, paddings)
                     : at::reflection_pad3d_backward(grads, x, paddings);
  }
}

// ATen's modes other than "constant" require one or two dimensions more than are padded.
int64_t padded_rank(int64_t rank, const Integers& paddings) {
  const auto padded = static_cast<int64_t>(paddings.size() / 2);
  return std::min(rank, padded + 2);
}

at::Tensor padded(const at::Tensor& x, const Integers& paddings, Mode mode) {
  if (mode == Mode::kConstant) return at::constant_pad_nd(x, paddings);
  const Integers pads = inner(paddings);
  const int64_t rank = padded_rank(x.dim(), pads);
  const at::Tensor flat = x.dim() > rank ? x.flatten(0, x.dim() - rank) : x;
  const at::Tensor result = at::pad(flat, pads, mode == Mode::kEdge ? "replicate" : "reflect");
  if (x.dim() <= rank) return result;
  Integers shape(x.sizes().begin(), x.sizes().end() - rank + 1);
  shape.insert(shape.end(), result.sizes().begin() + 1, result.sizes().end());
  return result.view(shape);
}

}  // namespace

NAMED_OPERATOR(Pad, (In, x), (HostInts, paddings), (Out, y)) {
  y = padded(x, from_last(paddings, true, x.dim()), Mode::kConstant);
}
NAMED_OPERATOR(MirrorPad, (In, x), (HostInts, paddings), (Out, y), (Attribute<std::string>, mode)) {
  y = padded(x, from_last(paddings, true, x.dim()), mode_of(mode.value_or("REFLECT")));
}
NAMED_OPERATOR(PadV3, (In, x), (HostInts, paddings), (Optional<In>, constant_values), (Out, y),
               (Attribute<std::string>, mode), (Attribute<bool>, paddings_contiguous)) {
  const Integers pads = from_last(paddings, paddings_contiguous.value_or(true), x.dim());
  const Mode kind = mode_of(mode.value_or("constant"));
  const at::Tensor result = padded(x, pads, kind);
  if (kind != Mode::kConstant || !constant_values) {
    y = result;
    return;
  }
  expect_one("constant_values", *constant_values);
  const at::Tensor is_x = padded(at::ones_like(x, at::kBool), pads, kind);
  y = at::where(is_x, result, constant_values->reshape({}));
}
NAMED_OPERATOR(PadV3Grad, (Floating<In>, x), (HostInts, paddings), (Out, y),
               (Attribute<std::string>, mode), (Attribute<bool>, paddings_contiguous)) {
  const Mode kind = mode_of(mode.value_or("reflect"));
  EXPECT(kind != Mode::kConstant, "mode is constant, expected edge or reflect");
  const Integers pads = inner(from_last(paddings, paddings_contiguous.value_or(true), x.dim()));
  const int64_t rank = padded_rank(x.dim(), pads);
  const int64_t leading = x.dim() - rank;
  const auto kept =
      static_cast<size_t>(x.dim()) - std::min(pads.size() / 2, static_cast<size_t>(x.dim()));
  expect_dims("y", y, x.dim());
  EXPECT(x.sizes().slice(0, kept) == y->sizes().slice(0, kept), "x has shape ", x.sizes(),
         ", expected ", y->sizes().slice(0, kept), " in the dimensions that are not padded");
  const auto folded = [&](const at::Tensor& t) { return leading > 0 ? t.flatten(0, leading) : t; };
  y = gradient(folded(x), folded(y).sizes(), pads, kind).view(y->sizes());
}

}  // namespace aclnn_host::named_padding
