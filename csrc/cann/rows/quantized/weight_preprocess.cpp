// Converts the weights of products of FLOAT8 by FLOAT4 to the form that the products read fastest.

#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_weight_preprocess_rows {

namespace {

// An output with the blocks of its transpose, whatever its strides.
struct TransposedStoredOut : Stored<Out> {
  static void add(Preparation& stage, const char* name, C tensor) {
    Stored<Out>::add(stage, name, tensor);
    stage.transpose_blocks();
  }
};

constexpr int64_t kGroup = 32;

// The shape of the scales of groups of 32 rows of the weight; pairs of scales are the last
// dimension.
std::vector<int64_t> scale_shape(at::IntArrayRef weight) {
  std::vector<int64_t> shape = weight.vec();
  shape[shape.size() - 2] = (shape[shape.size() - 2] + 2 * kGroup - 1) / (2 * kGroup);
  shape.push_back(2);
  return shape;
}

}  // namespace

// Takes the only kind of weight that the document supports. weight and weightScale may have any
// strides.
// Behaviour of WeightQuantPreprocess: It writes the format that CANN's kernels read, as published.
// aclnnTransSparse4to2Para writes the pairs of 4 that they read.
ACLNN(WeightQuantPreprocess, (Stored<In>, weight), (Stored<In>, weightScale),
      (Refused<Stored<In>>, weightOffsetOptional, "this kind of weight has none"),
      (Optional<In>, biasOptional), (StoredDtype, xDtype), (StoredDtype, xScaleDtype),
      (int64_t, kGroupSize), (TransposedStoredOut, outWeight), (Stored<Out>, outWeightScale),
      (Refused<Stored<Out>>, outWeightOffsetOptional, "this kind of weight has none"),
      (SameDtype<Optional<Out>>, outBiasOptional, "biasOptional")) {
  expect_type("weight", weight, {ACL_FLOAT4_E2M1});
  expect_type("weightScale", weightScale, {ACL_FLOAT8_E8M0});
  EXPECT(xDtype == ACL_FLOAT8_E4M3FN, "xDtype is ", dtype_name(xDtype), ", expected FLOAT8_E4M3FN");
  EXPECT(xScaleDtype == ACL_FLOAT8_E8M0, "xScaleDtype is ", dtype_name(xScaleDtype),
         ", expected FLOAT8_E8M0");
  expect_one_of("kGroupSize", kGroupSize, {kGroup});
  const at::Tensor& matrix = weight.elements;
  expect_dims("weight", matrix, 2, 3);
  EXPECT(matrix.numel() > 0 && matrix.size(-2) % kGroup == 0, "weight has shape ", matrix.sizes(),
         ", expected elements, and a multiple of ", kGroup, " as the size before the last");
  EXPECT(weight.format == ACL_FORMAT_ND, "weight has format ", static_cast<int>(weight.format),
         ", expected ND (2)");
  expect_shape("weightScale", weightScale.elements, scale_shape(matrix.sizes()));
  expect_type(outWeight, {weight.dtype});
  EXPECT(outWeight.format() == ACL_FORMAT_FRACTAL_NZ_C0_32 ||
             outWeight.format() == ACL_FORMAT_FRACTAL_NZ,
         "outWeight has format ", static_cast<int>(outWeight.format()),
         ", expected FRACTAL_NZ_C0_32 (", static_cast<int>(ACL_FORMAT_FRACTAL_NZ_C0_32), ")");
  expect_type(outWeightScale, {weightScale.dtype});
  EXPECT(!biasOptional || outBiasOptional,
         "outBiasOptional is null, expected a tensor as biasOptional is");
  if (biasOptional) {
    expect_reduced_float("biasOptional", *biasOptional);
    expect_dims("biasOptional", *biasOptional, 1, 2);
    expect_elements("biasOptional", *biasOptional);
  }
  outWeight = matrix;
  outWeightScale = weightScale.elements;
  if (biasOptional) outBiasOptional = *biasOptional;
}

}  // namespace aclnn_host::quantized_weight_preprocess_rows
