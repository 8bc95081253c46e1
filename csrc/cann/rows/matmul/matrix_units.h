#pragma once

#include <ATen/ExpandUtils.h>

#include "cann/rows/row.h"
#include "host_cann/arguments/compute_type.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {

// Emulates the rounding of the current product's matrix units, as for a convolution: 16-bit
// operands are converted to FP32, in which the products are summed, and FP32 operands lose bits if
// cubeMathType allows it. The largest cubeMathType that the operator accepts is `last`.
class MatrixUnits {
 public:
  MatrixUnits(int64_t cube_math_type, const at::Tensor& a, const at::Tensor& b, int64_t last = 3) {
    const Product product = current_product();
    EXPECT(cube_math_type >= 0 && cube_math_type <= last, "cubeMathType is ", cube_math_type,
           ", expected ", cube_math_types_text(last));
    const at::ScalarType promoted = c10::promoteTypes(a.scalar_type(), b.scalar_type());
    EXPECT(is_supported(promoted, product), "the matrices promote to ", promoted,
           ", which the matrix units of this product do not multiply; expected FLOAT16, FLOAT"
           " or (Ascend910B and later) BFLOAT16");
    EXPECT(promoted != at::kFloat || computes_float(cube_math_type, product), "cubeMathType is ",
           cube_math_type,
           " with FLOAT matrices, which this product has no matrix units for; pass 1 or 2 to "
           "compute in FLOAT16, or FLOAT16 tensors");
    const ComputeType type =
        compute_type(acl_type(promoted), static_cast<int8_t>(cube_math_type), product);
    dtype_ = promoted == at::kDouble ? at::kDouble : at::kFloat;
    read_dtype_ = aten_type(type.dtype);
    round_input_ = type.round_input;
    round_result_ = type.round_result;
  }

  // An operand, rounded as on input to the units.
  at::Tensor read(const at::Tensor& operand) const { return rounded(operand, round_input_); }
  // Computes out = a b by multiply(a, b) or multiply_into(destination, a, b), which are functions
  // of ATen, with the operands rounded as on input to the units and the product as on output. If
  // all three are BFLOAT16 and the CPU has instructions for it, the operands are not converted:
  // ATen sums in FLOAT and rounds once, too.
  template <class Multiply, class MultiplyInto>
  void multiply(const at::Tensor& a, const at::Tensor& b, Output& out, Multiply multiply,
                MultiplyInto multiply_into) const {
    const auto is_bfloat16 = [](const at::Tensor& x) { return x.scalar_type() == at::kBFloat16; };
    const bool is_as_it_is = read_dtype_ == at::kBFloat16 && is_bfloat16(a) && is_bfloat16(b) &&
                             is_bfloat16(out) && has_bfloat16_products();
    const at::Tensor left = is_as_it_is ? a : read(a), right = is_as_it_is ? b : read(b);
    if (!is_as_it_is && round_result_ != nullptr) {
      out = result(multiply(left, right));
    } else {
      out.write(
          left.scalar_type(), product_shape(left, right), Output::Reads::kAnyElement,
          [&] { return multiply(left, right); },
          [&](at::Tensor& destination) { multiply_into(destination, left, right); });
    }
  }
  // A product, rounded as on output from the units, for further computations.
  at::Tensor result(const at::Tensor& product) const { return rounded(product, round_result_); }
  // Converts an addend to the type of the sums.
  at::Tensor widen(const at::Tensor& addend) const { return addend.to(dtype_); }

 private:
  // The shape of a product of matrices, or of batches that ATen broadcasts; empty for other
  // operands.
  static std::vector<int64_t> product_shape(const at::Tensor& a, const at::Tensor& b) {
    if (a.dim() < 2 || b.dim() < 2) return {};
    const auto batches = [](const at::Tensor& x) {
      return x.sizes().slice(0, static_cast<size_t>(x.dim()) - 2);
    };
    std::vector<int64_t> shape = at::infer_size(batches(a), batches(b));
    shape.insert(shape.end(), {a.size(-2), b.size(-1)});
    return shape;
  }
  static bool is_supported(at::ScalarType dtype, Product product) {
    switch (dtype) {
      case at::kHalf:
      case at::kFloat: return true;
      case at::kBFloat16: return has_bfloat16(product);
      case at::kDouble: return product == Product::kHost;
      default: return false;
    }
  }
  at::Tensor rounded(const at::Tensor& tensor, RoundingKernel round) const {
    // 16-bit operands need no rounding; FLOAT may lose bits as HF32.
    const bool is_read = tensor.scalar_type() == read_dtype_ && read_dtype_ != at::kFloat;
    if (round == nullptr || is_read) return tensor.to(dtype_);
    at::Tensor copy = tensor.to(dtype_, /*non_blocking=*/false, /*copy=*/true).contiguous();
    if (copy.is_cpu()) round(copy.mutable_data_ptr<float>(), copy.numel());
    return copy;
  }

  at::ScalarType dtype_;       // of the sums
  at::ScalarType read_dtype_;  // of the operands
  RoundingKernel round_input_;
  RoundingKernel round_result_;
};

// Replaces the cubeMathType 4, which requests sums in FP32: here they always are.
inline int64_t without_fp32_add(int64_t cube_math_type) {
  return cube_math_type == 4 ? 0 : cube_math_type;
}

// Checks a weight in FRACTAL_NZ, which aclnnTransMatmulWeight or aclnnNpuFormatCast has converted.
inline void expect_weight(const char* name, const StoredTensor& weight) {
  EXPECT(is_fractal_nz(weight.format), name, " has format ", static_cast<int>(weight.format),
         ", expected FRACTAL_NZ (", static_cast<int>(ACL_FORMAT_FRACTAL_NZ),
         "); convert it with aclnnTransMatmulWeight or aclnnNpuFormatCast");
  EXPECT(weight.dtype == ACL_FLOAT16 || weight.dtype == ACL_BF16 || weight.dtype == ACL_FLOAT, name,
         " has dtype ", dtype_name(weight.dtype), ", expected FLOAT16, BFLOAT16 or FLOAT");
  const int64_t dims = weight.elements.dim();
  EXPECT(dims < 2 || (weight.elements.size(-1) != 1 && weight.elements.size(-2) != 1), name,
         " has shape ", weight.elements.sizes(), ", expected last two dimensions other than 1");
}

}  // namespace aclnn_host
