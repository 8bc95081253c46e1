// Products of matrices and vectors.

#include <ATen/ops/addbmm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/addmv.h>
#include <ATen/ops/addr.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>

#include "host_cann/aten_ops/row.h"
#include "host_cann/ops/aten.h"
#include "host_cann/ops/convolution/compute_type.h"

using namespace aclnn_host;

namespace {

// How the matrix units of the current product read their operands, as for a convolution: 16-bit
// values are widened to FP32, in which the products are summed, and FP32 values lose bits if
// cubeMathType asks for it.
class MatrixUnits {
 public:
  MatrixUnits(int64_t cube_math_type, const at::Tensor& a, const at::Tensor& b) {
    const Product product = current_product();
    TORCH_CHECK(cube_math_type >= 0 && cube_math_type <= 3, "cubeMathType is ", cube_math_type,
                ", expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16) or 3 "
                "(USE_HF32)");
    const at::ScalarType promoted = c10::promoteTypes(a.scalar_type(), b.scalar_type());
    TORCH_CHECK(is_supported(promoted, product), "the matrices promote to ", promoted,
                ", which the matrix units of this product do not multiply; expected FLOAT16, FLOAT"
                " or (Ascend910B and later) BFLOAT16");
    TORCH_CHECK(promoted != at::kFloat || has_fp32_units(product) || cube_math_type == 1 ||
                    cube_math_type == 2,
                "cubeMathType is ", cube_math_type,
                " with FLOAT matrices, which this product has no matrix units for; pass 1 or 2 to "
                "compute in FLOAT16, or FLOAT16 tensors");
    const ComputeType type =
        compute_type(acl_type(promoted), static_cast<int8_t>(cube_math_type), product);
    dtype_ = promoted == at::kDouble ? at::kDouble : at::kFloat;
    round_input_ = type.round_input;
    round_result_ = type.round_result;
  }

  // An operand as the units read it.
  at::Tensor read(const at::Tensor& operand) const { return rounded(operand, round_input_); }
  // A product as it leaves the units, for what is done with it afterwards.
  at::Tensor result(const at::Tensor& product) const { return rounded(product, round_result_); }
  // An addend, in the type of the sums.
  at::Tensor widen(const at::Tensor& addend) const { return addend.to(dtype_); }

 private:
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
    if (round == nullptr) return tensor.to(dtype_);
    at::Tensor copy = tensor.to(dtype_, /*non_blocking=*/false, /*copy=*/true).contiguous();
    if (copy.is_cpu()) round(copy.mutable_data_ptr<float>(), copy.numel());
    return copy;
  }

  at::ScalarType dtype_;
  RoundingKernel round_input_;
  RoundingKernel round_result_;
};

// Whether two operands are no work for the matrix units.
bool are_integers(const at::Tensor& a, const at::Tensor& b) {
  return at::isIntegralType(a.scalar_type(), /*includeBool=*/true) &&
         at::isIntegralType(b.scalar_type(), /*includeBool=*/true);
}

}  // namespace

ACLNN(Mm, (In, self), (In, mat2), (Out, out), (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, self, mat2);
  out = units.result(at::mm(units.read(self), units.read(mat2)));
}
ACLNN(Matmul, (In, self), (In, mat2), (Out, out), (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, self, mat2);
  out = units.result(at::matmul(units.read(self), units.read(mat2)));
}
ACLNN(BatchMatMul, (In, self), (In, mat2), (Out, out), (int8_t, cubeMathType)) {
  TORCH_CHECK(self.dim() == 3 && mat2.dim() == 3, "self has shape ", self.sizes(),
              " and mat2 has shape ", mat2.sizes(), ", expected three dimensions each");
  const MatrixUnits units(cubeMathType, self, mat2);
  // A batch of one is multiplied with every matrix of the other.
  const int64_t batch = self.size(0) == 1 ? mat2.size(0) : self.size(0);
  const auto batched = [batch](const at::Tensor& x) {
    return x.size(0) == 1 ? x.expand({batch, -1, -1}) : x;
  };
  out = units.result(at::bmm(batched(units.read(self)), batched(units.read(mat2))));
}
ACLNN(Mv, (In, self), (In, vec), (Out, out), (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, self, vec);
  out = units.result(at::mv(units.read(self), units.read(vec)));
}
ACLNN(Dot, (In, self), (In, tensor), (Out, out)) {
  if (are_integers(self, tensor)) {
    out = at::dot(self, tensor);
    return;
  }
  const MatrixUnits units(0, self, tensor);
  out = at::dot(units.read(self), units.read(tensor));
}

// beta self + alpha (product)
ACLNN(Addmm, (In, self), (In, mat1), (In, mat2), (Number, beta), (Number, alpha), (Out, out),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, mat1, mat2);
  out = at::addmm(units.widen(self), units.read(mat1), units.read(mat2), beta, alpha);
}
ACLNN(InplaceAddmm, (InOut, selfRef), (In, mat1), (In, mat2), (Number, beta), (Number, alpha),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, mat1, mat2);
  selfRef = at::addmm(units.widen(selfRef), units.read(mat1), units.read(mat2), beta, alpha);
}
ACLNN(Addmv, (In, self), (In, mat), (In, vec), (Number, alpha), (Number, beta), (Out, out),
      (int8_t, cubeMathType)) {
  if (are_integers(mat, vec)) {
    out = at::addmv(self, mat, vec, beta, alpha);
    return;
  }
  const MatrixUnits units(cubeMathType, mat, vec);
  out = at::addmv(units.widen(self), units.read(mat), units.read(vec), beta, alpha);
}
ACLNN(Baddbmm, (In, self), (In, batch1), (In, batch2), (Number, beta), (Number, alpha), (Out, out),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, batch1, batch2);
  out = at::baddbmm(units.widen(self), units.read(batch1), units.read(batch2), beta, alpha);
}
ACLNN(Addbmm, (In, self), (In, batch1), (In, batch2), (Number, beta), (Number, alpha), (Out, out),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, batch1, batch2);
  out = at::addbmm(units.widen(self), units.read(batch1), units.read(batch2), beta, alpha);
}

// An outer product is no work for the matrix units.
ACLNN(Addr, (In, self), (In, vec1), (In, vec2), (Number, beta), (Number, alpha), (Out, out)) {
  out = at::addr(wide(self), wide(vec1), wide(vec2), beta, alpha);
}
ACLNN(InplaceAddr, (InOut, selfRef), (In, vec1), (In, vec2), (Number, beta), (Number, alpha)) {
  selfRef = at::addr(wide(selfRef), wide(vec1), wide(vec2), beta, alpha);
}

ACLNN(Cdist, (In, x1), (In, x2), (float, p), (int64_t, computeMode), (Out, out)) {
  out = at::cdist(wide(x1), wide(x2), p, computeMode);
}
