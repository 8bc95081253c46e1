// Sums, differences, products and combinations of them: multiply-adds, scales and lerps.

#include <ATen/ScalarOps.h>

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_arithmetic_rows {

namespace {

// self + alpha * other and self - alpha * other for 16-bit types: at::add rounds alpha and the
// product to 16 bits; addcmul computes in FLOAT and rounds once.
bool is_scaled_in_16_bits(const at::Tensor& self, const at::Tensor& other,
                          const c10::Scalar& alpha) {
  const bool is_real = alpha.isFloatingPoint() || alpha.isIntegral(/*includeBool=*/false);
  return is_real && alpha.toDouble() != 1 &&
         at::isReducedFloatingType(at::result_type(self, other));
}
at::Tensor one_of_both(const at::Tensor& self, const at::Tensor& other) {
  return at::ones({}, self.options().dtype(at::result_type(self, other)));
}
at::Tensor scaled_sum(const at::Tensor& self, const at::Tensor& other, const c10::Scalar& alpha) {
  if (!is_scaled_in_16_bits(self, other, alpha)) return at::add(self, other, alpha);
  return at::addcmul(self, other, one_of_both(self, other), alpha);
}
void scaled_sum_out(at::Tensor& result, const at::Tensor& self, const at::Tensor& other,
                    const c10::Scalar& alpha) {
  if (is_scaled_in_16_bits(self, other, alpha)) {
    at::addcmul_out(result, self, other, one_of_both(self, other), alpha);
  } else {
    at::add_out(result, self, other, alpha);
  }
}
// self - alpha * other of two BOOL tensors, which at::sub refuses: whether it is not 0.
at::Tensor difference_of_flags(const at::Tensor& self, const at::Tensor& other,
                               const c10::Scalar& alpha) {
  EXPECT(
      alpha.isIntegral(/*includeBool=*/true),
      "alpha has a floating-point dtype, expected an integer or BOOL as self and other are BOOL");
  return at::logical_xor(self, at::logical_and(other, at::scalar_tensor(alpha)));
}
at::Tensor scaled_difference(const at::Tensor& self, const at::Tensor& other,
                             const c10::Scalar& alpha) {
  if (self.scalar_type() == at::kBool || other.scalar_type() == at::kBool) {
    const at::ScalarType type = at::result_type(self, other);
    if (type == at::kBool) return difference_of_flags(self, other, alpha);
    return scaled_difference(self.to(type), other.to(type), alpha);
  }
  if (!is_scaled_in_16_bits(self, other, alpha)) return at::sub(self, other, alpha);
  return at::addcmul(self, other, one_of_both(self, other), -alpha.toDouble());
}
void scaled_difference_out(at::Tensor& result, const at::Tensor& self, const at::Tensor& other,
                           const c10::Scalar& alpha) {
  if (self.scalar_type() == at::kBool || other.scalar_type() == at::kBool) {
    result.copy_(scaled_difference(self, other, alpha));
  } else if (is_scaled_in_16_bits(self, other, alpha)) {
    at::addcmul_out(result, self, other, one_of_both(self, other), -alpha.toDouble());
  } else {
    at::sub_out(result, self, other, alpha);
  }
}
at::Tensor scaled_difference(const at::Tensor& self, const c10::Scalar& other,
                             const c10::Scalar& alpha) {
  return scaled_difference(self, at::native::wrapped_scalar_tensor(other), alpha);
}

// Casts the weight to the type of the tensors, as at::lerp requires.
at::Tensor lerp_by(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight) {
  return at::lerp(self, end, weight.to(self.scalar_type()));
}

// Folds the tensors of a list from the first to the last.
template <class Combine>
at::Tensor combined(const std::vector<at::Tensor>& tensors, Combine combine) {
  EXPECT(!tensors.empty(), "tensors is empty, expected at least one tensor");
  at::Tensor result = wide(tensors[0]);
  for (size_t i = 1; i < tensors.size(); ++i) result = combine(result, wide(tensors[i]));
  return result;
}
at::Tensor sum_of(const std::vector<at::Tensor>& tensors) {
  return combined(tensors, [](const at::Tensor& a, const at::Tensor& b) { return a + b; });
}

// ---- aclnnScale

// The number of dimensions of x, from axis on, that scale covers.
int64_t scaled_dims(const at::Tensor& x, const at::Tensor& scale, int64_t axis, int64_t num_axes,
                    bool from_blob) {
  expect_at_least("numAxes", num_axes, -1);
  if (!from_blob) return scale.dim();
  return num_axes == -1 ? x.dim() - axis : num_axes;
}

// The expected shape of scale and bias: the sizes of x from axis on, then a 1 for each further
// dimension.
std::vector<int64_t> scale_shape(const at::Tensor& x, const at::Tensor& scale, int64_t axis,
                                 int64_t num_axes, bool from_blob) {
  expect_range("axis", axis, -x.dim(), x.dim() - 1, ", a dimension of x");
  if (axis < 0) axis += x.dim();
  const int64_t dims = scaled_dims(x, scale, axis, num_axes, from_blob);
  EXPECT(dims <= x.dim() - axis, "scale is for ", dims, " dimensions of x from ", axis,
         " on, expected at most ", x.dim() - axis);
  const bool is_one = scale.numel() == 1 && scale.dim() <= 1;
  if (is_one && (!from_blob || dims == 0)) return {};
  const at::IntArrayRef expected =
      x.sizes().slice(static_cast<size_t>(axis), static_cast<size_t>(dims));
  EXPECT(dims > 0 && scale.sizes() == expected, "scale has shape ", scale.sizes(), ", expected ",
         dims > 0 ? expected : at::IntArrayRef(1), " by axis and numAxes");
  std::vector<int64_t> shape = expected.vec();
  shape.resize(static_cast<size_t>(x.dim() - axis), 1);
  return shape;
}

// Checks that a factor has one element.
at::Tensor factor(const char* name, const at::Tensor& value) {
  EXPECT(value.numel() == 1, name, " has shape ", value.sizes(), ", expected one element");
  return wide(value).reshape({});
}

// The type of tensors of one shape and floating-point type, undefined for others.
at::ScalarType type_if_alike(const at::Tensor& self, const at::Tensor& tensor1,
                             const at::Tensor& tensor2) {
  const bool is_alike = self.is_floating_point() && tensor1.sizes() == self.sizes() &&
                        tensor2.sizes() == self.sizes() &&
                        tensor1.scalar_type() == self.scalar_type() &&
                        tensor2.scalar_type() == self.scalar_type();
  return is_alike ? self.scalar_type() : at::ScalarType::Undefined;
}

// The dimension of the channels of x.
int64_t channel_dim(const at::Tensor& x, const std::string& data_format) {
  if (data_format.empty()) return x.dim() - 1;
  expect_text("dataFormatOptional", data_format, {"NCHW", "NHWC", "NCDHW", "NDHWC"});
  return data_format.ends_with('C') || x.dim() == 1 ? x.dim() - 1 : 1;
}

}  // namespace

ACLNN(Add, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  WRITE_ELEMENTWISE(out, scaled_sum, self, other, alpha);
}
ACLNN(Adds, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = at::add(wide(self), other, alpha);
}
ACLNN(AddV3, (AnyNumber, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  out = at::add(at::native::wrapped_scalar_tensor(self), wide(other), alpha);
}
ACLNN(InplaceAdd, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  WRITE_ELEMENTWISE(selfRef, scaled_sum, selfRef, other, alpha);
}
ACLNN(InplaceAdds, (InOut, selfRef), (AnyNumber, other), (AnyNumber, alpha)) {
  selfRef = at::add(wide(selfRef), other, alpha);
}
// The result overwrites `other`; selfRef is a number.
ACLNN(InplaceAddV3, (AnyNumber, selfRef), (InOut, other), (AnyNumber, alpha)) {
  other = at::add(at::native::wrapped_scalar_tensor(selfRef), wide(other), alpha);
}
ACLNN(AddRelu, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  out = at::relu(scaled_sum(self, other, alpha));
}
ACLNN(InplaceAddRelu, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  selfRef = at::relu(scaled_sum(selfRef, other, alpha));
}

ACLNN(Sub, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  WRITE_ELEMENTWISE(out, scaled_difference, self, other, alpha);
}
ACLNN(Subs, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = scaled_difference(wide(self), other, alpha);
}
ACLNN(InplaceSub, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  WRITE_ELEMENTWISE(selfRef, scaled_difference, selfRef, other, alpha);
}
ACLNN(InplaceSubs, (InOut, selfRef), (AnyNumber, other), (AnyNumber, alpha)) {
  selfRef = scaled_difference(wide(selfRef), other, alpha);
}
ACLNN(Rsub, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  const bool is_self = self.scalar_type() == at::kBool;
  EXPECT(!is_self && other.scalar_type() != at::kBool, is_self ? "self" : "other",
         " has dtype BOOL, expected one of numbers; cast the tensor");
  out = scaled_difference(other, self, alpha);
}
ACLNN(Rsubs, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = at::rsub(wide(self), other, alpha);
}

ACLNN(AssignSub, (In, var), (Like<In>, value, "var"), (Like<Out>, varOut, "var")) {
  varOut = at::sub(var, value);
}

ACLNN(Mul, (In, self), (In, other), (Out, out)) {
  WRITE_ELEMENTWISE(out, at::mul, self, other);
}
ACLNN_BINARY_OF(In, AnyNumber, Muls, at::mul)
ACLNN(InplaceMul, (InOut, selfRef), (In, other)) {
  WRITE_ELEMENTWISE(selfRef, at::mul, selfRef, other);
}
ACLNN_INPLACE_BINARY_OF(InOut, AnyNumber, Muls, at::mul)

// The product is 0 where y is 0, whatever x is.
ACLNN(MulNoNan, (Floating<In>, x), (SameDtype<Floating<In>>, y, "x"), (SameDtype<Out>, z, "x")) {
  z = at::mul(x, y).masked_fill(y == 0, 0);
}

ACLNN(Abs, (In, self), (Out, out)) {
  out = self.scalar_type() == at::kBool ? self : at::abs(self);
}
ACLNN_ELEMENTWISE(Neg, at::neg)

// out = function(self, tensor1, tensor2, value)
#define WRITE_TERNARY(out, function, self, tensor1, tensor2, value)                       \
  out.write(                                                                              \
      type_if_alike(self, tensor1, tensor2), shape_of(self), Output::Reads::kSameElement, \
      [&] { return function(self, tensor1, tensor2, value); },                            \
      [&](at::Tensor& result) { function##_out(result, self, tensor1, tensor2, value); })
ACLNN(Addcmul, (In, self), (In, tensor1), (In, tensor2), (AnyNumber, value), (Out, out)) {
  WRITE_TERNARY(out, at::addcmul, self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcmul, (InOut, selfRef), (In, tensor1), (In, tensor2), (AnyNumber, value)) {
  WRITE_TERNARY(selfRef, at::addcmul, selfRef, tensor1, tensor2, value);
}
ACLNN(Addcdiv, (In, self), (In, tensor1), (In, tensor2), (AnyNumber, value), (Out, out)) {
  WRITE_TERNARY(out, at::addcdiv, self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcdiv, (InOut, selfRef), (In, tensor1), (In, tensor2), (AnyNumber, value)) {
  WRITE_TERNARY(selfRef, at::addcdiv, selfRef, tensor1, tensor2, value);
}

ACLNN(AxpyV2, (In, self), (SameShape<In>, other, "self"), (In, alpha), (Out, out)) {
  out = wide(self) + factor("alpha", alpha) * wide(other);
}
ACLNN(FusedMulAddN, (In, x1), (Like<In>, x2, "x1"), (SameDtype<In>, x3, "x1"),
      (Like<Out>, y, "x1")) {
  y = wide(x1) * factor("x3", x3) + wide(x2);
}

ACLNN(AddMatMatElements, (Floating<In>, a), (Like<Floating<In>>, b, "a"),
      (Like<Floating<In>>, c, "a"), (Number, alpha), (Number, beta), (Like<Out>, cOut, "a")) {
  cOut = wide(c) * beta + alpha * (wide(a) * wide(b));
}
ACLNN(AddMatMatElementsPlus, (Floating<In>, c), (SameDtype<Floating<In>>, a, "c"),
      (SameDtype<Floating<In>>, b, "c"), (SameDtype<Floating<In>>, beta, "c"),
      (SameDtype<Floating<In>>, alpha, "c"), (SameDtype<Out>, cOut, "c")) {
  cOut = wide(c) * factor("beta", beta) + factor("alpha", alpha) * (wide(a) * wide(b));
}

ACLNN(Lerp, (In, self), (In, end), (In, weight), (Out, out)) {
  out = lerp_by(self, end, weight);
}
ACLNN(Lerps, (In, self), (In, end), (AnyNumber, weight), (Out, out)) {
  out = at::lerp(self, end, weight);
}
ACLNN(InplaceLerp, (InOut, selfRef), (In, end), (In, weight)) {
  selfRef = lerp_by(selfRef, end, weight);
}
ACLNN(InplaceLerps, (InOut, selfRef), (In, end), (AnyNumber, weight)) {
  selfRef = at::lerp(selfRef, end, weight);
}

// The channels are the last dimension of x, or the second one by dataFormatOptional.
ACLNN(BiasAdd, (In, x), (SameDtype<In>, bias, "x"), (char*, dataFormatOptional),
      (Like<Out>, out, "x")) {
  expect_dims("x", x, 1, 8);
  const int64_t channels = channel_dim(x, dataFormatOptional);
  expect_shape("bias", bias, {x.size(channels)});
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(channels)] = x.size(channels);
  out = at::add(x, bias.reshape(shape));
}

ACLNN(MaskedScale, (Floating<In>, self), (SameShape<In>, mask, "self"), (float, scale),
      (SameDtype<Out>, out, "self")) {
  EXPECT(!mask.is_complex(), "mask has dtype ", dtype_text(mask.scalar_type()),
         ", expected FLOAT, FLOAT16, INT8 or UINT8");
  const at::Tensor x = wide(self);
  out = at::mul(at::mul(x, mask.to(x.scalar_type())), c10::Scalar(scale.value()));
}
// scale and bias cover the dimensions of x from axis on: numAxes of them (-1 for all) with
// scaleFromBlob, else as many as scale has.
ACLNN(Scale, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (SameDtype<Optional<In>>, bias, "x"), (int64_t, axis), (int64_t, numAxes),
      (bool, scaleFromBlob), (SameDtype<Out>, y, "x")) {
  const std::vector<int64_t> shape = scale_shape(x, scale, axis, numAxes, scaleFromBlob);
  at::Tensor result = at::mul(wide(x), wide(scale).reshape(shape));
  if (bias) {
    expect_shape("bias", *bias, scale.sizes());
    result = at::add(result, wide(*bias).reshape(shape));
  }
  y = result;
}

// ---- sums and extremes of lists

// An empty list leaves out unchanged.
ACLNN(AddN, (SameDtype<Ins>, tensors, "out"), (Out, out)) {
  if (tensors.empty()) return;
  for (const at::Tensor& tensor : tensors) expect_shape("tensors", tensor, tensors[0].sizes());
  out = sum_of(tensors);
}

ACLNN(Sum, (SameDtype<Ins>, tensors, "out"), (Out, out)) {
  out = sum_of(tensors);
}
// The tensors are broadcast, added from the first to the last, and rounded once.
ACLNN(SumV2, (SameDtype<Ins>, tensors, "out"), (Out, out)) {
  out = sum_of(tensors);
}

ACLNN(MaxN, (SameDtype<Ins>, tensors, "out"), (Out, out)) {
  out = combined(tensors, at::maximum);
}
ACLNN(MinN, (SameDtype<Ins>, tensors, "out"), (Out, out)) {
  out = combined(tensors, at::minimum);
}

}  // namespace aclnn_host::elementwise_arithmetic_rows
