// Products of matrices and vectors.

#include <cctype>

#include "cann/rows/matmul/matrix_units.h"
#include "cann/rows/row.h"

namespace aclnn_host::matmul_matmul_rows {

namespace {

// Renames the letters of an equation to a, b, c and so on, in the order of their first use.
std::string in_first_letters(std::string equation) {
  std::string letters;
  for (char& letter : equation) {
    if (std::isalpha(static_cast<unsigned char>(letter)) == 0) continue;
    if (letters.find(letter) == std::string::npos) letters += letter;
    letter = static_cast<char>('a' + letters.find(letter));
  }
  return equation;
}

// Two integer operands, which are not computed in the matrix units.
bool are_integers(const at::Tensor& a, const at::Tensor& b) {
  return at::isIntegralType(a.scalar_type(), /*includeBool=*/true) &&
         at::isIntegralType(b.scalar_type(), /*includeBool=*/true);
}

void write_product(const at::Tensor& self, const at::Tensor& mat2, Output& out,
                   int64_t cube_math_type) {
  const MatrixUnits units(cube_math_type, self, mat2);
  units.multiply(
      self, mat2, out, [](const auto& a, const auto& b) { return at::mm(a, b); },
      [](at::Tensor& result, const auto& a, const auto& b) { at::mm_out(result, a, b); });
}

// x with `batch` matrices: a batch of one is multiplied with every matrix of the other operand.
at::Tensor batched(const at::Tensor& x, int64_t batch) {
  return x.size(0) == 1 ? x.expand({batch, -1, -1}) : x;
}

void write_batched_product(const at::Tensor& self, const at::Tensor& mat2, Output& out,
                           int64_t cube_math_type) {
  expect_dims("self", self, 3);
  expect_dims("mat2", mat2, 3);
  const MatrixUnits units(cube_math_type, self, mat2);
  const int64_t batch = self.size(0) == 1 ? mat2.size(0) : self.size(0);
  units.multiply(
      self, mat2, out,
      [&](const auto& a, const auto& b) { return at::bmm(batched(a, batch), batched(b, batch)); },
      [&](at::Tensor& result, const auto& a, const auto& b) {
        at::bmm_out(result, batched(a, batch), batched(b, batch));
      });
}

// An absent factor counts as 1. at::addr accepts BOOL factors for BOOL tensors only, and refuses
// fractions for integers.
at::Tensor outer_sum(const at::Tensor& self, const at::Tensor& vec1, const at::Tensor& vec2,
                     const std::optional<c10::Scalar>& beta,
                     const std::optional<c10::Scalar>& alpha) {
  return at::addr(wide(self), wide(vec1), wide(vec2), beta.value_or(1), alpha.value_or(1));
}

// beta self + alpha (a b). at::addmm on tensors without memory does not look at self's shape.
at::Tensor sum_with_product(const MatrixUnits& units, const at::Tensor& self, const at::Tensor& a,
                            const at::Tensor& b, const c10::Scalar& beta,
                            const c10::Scalar& alpha) {
  return at::addmm(units.widen(self).expand({a.size(0), b.size(1)}), a, b, beta, alpha);
}

}  // namespace

ACLNN(Mm, (Blocked<In>, self), (Blocked<In>, mat2), (Out, out), (int8_t, cubeMathType)) {
  write_product(self, mat2, out, cubeMathType);
}
ACLNN(Matmul, (Blocked<In>, self), (Blocked<In>, mat2), (Out, out), (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, self, mat2);
  units.multiply(
      self, mat2, out, [](const auto& a, const auto& b) { return at::matmul(a, b); },
      [](at::Tensor& result, const auto& a, const auto& b) { at::matmul_out(result, a, b); });
}
ACLNN(MatmulWeightNz, (In, self), (Stored<In>, mat2), (Out, out), (int8_t, cubeMathType)) {
  expect_weight("mat2", mat2);
  write_product(self, mat2.elements, out, without_fp32_add(cubeMathType));
}
ACLNN(BatchMatMul, (Blocked<In>, self), (Blocked<In>, mat2), (Out, out), (int8_t, cubeMathType)) {
  write_batched_product(self, mat2, out, cubeMathType);
}
ACLNN(BatchMatMulWeightNz, (In, self), (Stored<In>, mat2), (Out, out), (int8_t, cubeMathType)) {
  expect_weight("mat2", mat2);
  write_batched_product(self, mat2.elements, out, without_fp32_add(cubeMathType));
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

// alpha (A B) + beta C, with A and B transposed if their flags are not 0.
ACLNN(Gemm, (In, A), (In, B), (In, C), (float, alpha), (float, beta), (int64_t, transA),
      (int64_t, transB), (Out, out), (int8_t, cubeMathType)) {
  expect_dims("A", A, 2);
  expect_dims("B", B, 2);
  const MatrixUnits units(without_fp32_add(cubeMathType), A, B);
  const at::Tensor a = units.read(transA == 0 ? A : A.t());
  const at::Tensor b = units.read(transB == 0 ? B : B.t());
  // at::addmm does not multiply if alpha is 0, and loses the NaN of 0 times an infinity.
  const bool is_zero = alpha == 0;
  out = sum_with_product(units, C, is_zero ? at::mul(a, c10::Scalar(0)) : a, b,
                         c10::Scalar(beta.value()), c10::Scalar(is_zero ? 1 : alpha.value()));
}

ACLNN(Addmm, (In, self), (Blocked<In>, mat1), (Blocked<In>, mat2), (Number, beta), (Number, alpha),
      (Out, out), (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, mat1, mat2);
  out = sum_with_product(units, self, units.read(mat1), units.read(mat2), beta, alpha);
}
ACLNN(AddmmWeightNz, (In, self), (In, mat1), (Stored<In>, mat2), (Number, beta), (Number, alpha),
      (Out, out), (int8_t, cubeMathType)) {
  expect_weight("mat2", mat2);
  const MatrixUnits units(without_fp32_add(cubeMathType), mat1, mat2.elements);
  out = sum_with_product(units, self, units.read(mat1), units.read(mat2.elements), beta, alpha);
}
ACLNN(InplaceAddmm, (InOut, selfRef), (In, mat1), (In, mat2), (Number, beta), (Number, alpha),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, mat1, mat2);
  selfRef = sum_with_product(units, selfRef, units.read(mat1), units.read(mat2), beta, alpha);
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
ACLNN(InplaceBaddbmm, (InOut, selfRef), (In, batch1), (In, batch2), (Number, beta), (Number, alpha),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(without_fp32_add(cubeMathType), batch1, batch2);
  selfRef = at::baddbmm(units.widen(selfRef), units.read(batch1), units.read(batch2), beta, alpha);
}
ACLNN(Addbmm, (In, self), (In, batch1), (In, batch2), (Number, beta), (Number, alpha), (Out, out),
      (int8_t, cubeMathType)) {
  const MatrixUnits units(cubeMathType, batch1, batch2);
  out = at::addbmm(units.widen(self), units.read(batch1), units.read(batch2), beta, alpha);
}
// beta selfRef + alpha (sum of the products). A term with a factor of 0 is ignored.
ACLNN(InplaceAddbmm, (InOut, selfRef), (In, batch1), (In, batch2), (Number, beta), (Number, alpha),
      (int8_t, cubeMathType)) {
  expect_dims("selfRef", selfRef, 2);
  expect_dims("batch1", batch1, 3);
  expect_dims("batch2", batch2, 3);
  const MatrixUnits units(cubeMathType, batch1, batch2);
  const int64_t batch = batch1.size(0) == 1 ? batch2.size(0) : batch1.size(0);
  EXPECT(batch > 0 || selfRef->numel() == 0,
         "batch1 and batch2 have no matrices, expected some because selfRef has elements");
  const at::Tensor result = at::addbmm(units.widen(selfRef), batched(units.read(batch1), batch),
                                       batched(units.read(batch2), batch), beta, alpha);
  const bool ignores_product = alpha.toDouble() == 0 && beta.toDouble() != 0;
  selfRef = ignores_product ? units.widen(selfRef) * beta : result;
}

ACLNN(Ger, (In, self), (In, vec2), (Out, out)) {
  out = at::outer(self, vec2);
}

// An outer product is not computed in the matrix units.
ACLNN(Addr, (In, self), (In, vec1), (In, vec2), (Number, beta), (Number, alpha), (Out, out)) {
  out = at::addr(wide(self), wide(vec1), wide(vec2), beta, alpha);
}
ACLNN(InplaceAddr, (InOut, selfRef), (In, vec1), (In, vec2), (Number, beta), (Number, alpha)) {
  selfRef = at::addr(wide(selfRef), wide(vec1), wide(vec2), beta, alpha);
}
ACLNN(AddrV2, (In, self), (In, vec1), (In, vec2), (Optional<Number>, betaOptional),
      (Optional<Number>, alphaOptional), (Out, out)) {
  out = outer_sum(self, vec1, vec2, betaOptional, alphaOptional);
}
ACLNN(InplaceAddrV2, (InOut, selfRef), (In, vec1), (In, vec2), (Optional<Number>, betaOptional),
      (Optional<Number>, alphaOptional)) {
  expect_dims("selfRef", selfRef, 2);
  selfRef = outer_sum(selfRef, vec1, vec2, betaOptional, alphaOptional);
}

// Two equations are supported, with any letters.
ACLNN(Einsum, (Ins, tensors), (const char*, equation), (SameDtype<Out>, output, "tensors")) {
  EXPECT(tensors.size() == 2, "tensors has ", tensors.size(), " tensors, expected 2");
  expect_dtype("tensors", tensors[1], tensors[0]);
  EXPECT(tensors[0].scalar_type() != at::kBool, "tensors have dtype BOOL, expected numbers");
  expect_elements("tensors[0]", tensors[0]);
  expect_elements("tensors[1]", tensors[1]);
  const std::string renamed = in_first_letters(equation);
  const bool is_outer = renamed == "a,b->ab";
  EXPECT(is_outer || renamed == "abcd,abced->abce", "equation is \"", equation,
         "\", expected \"abcd,abced->abce\" or \"a,b->ab\", of these letters or others");
  expect_dims("tensors[0]", tensors[0], is_outer ? 1 : 4);
  expect_dims("tensors[1]", tensors[1], is_outer ? 1 : 5);
  // Unsigned products and sums have the same bits as signed ones.
  const at::Tensor a = wide(as_movable(tensors[0]));
  const at::Tensor b = wide(as_movable(tensors[1]));
  if (!is_outer) {
    const auto common = a.sizes().slice(0, 3);
    EXPECT(common == b.sizes().slice(0, 3) && a.size(3) == b.size(4), "tensors[1] has shape ",
           b.sizes(), ", expected (a, b, c, e, d) with a, b, c and d of ", a.sizes());
  }
  const at::Tensor result =
      is_outer ? at::mul(a.unsqueeze(1), b) : at::matmul(b, a.unsqueeze(-1)).squeeze(-1);
  const bool is_unsigned = a.scalar_type() != wide(tensors[0].scalar_type());
  output = is_unsigned ? result.view(tensors[0].scalar_type()) : result;
}

}  // namespace aclnn_host::matmul_matmul_rows
