// Quantisation with given scales, also for groups of rows, and dequantisation of INT32.

#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_scaled_quantization_rows {

namespace {

// The checks of QuantMax and GroupedQuantMax, whose FLOAT8 results saturate.
void check_quant_max(const at::Tensor& x, const at::Tensor& scale, const std::string& mode,
                     int64_t dtype, int64_t groups, const StoredOutput& y, const Output& amax) {
  expect_tensor("scale", scale, at::kFloat, {groups});
  expect_text("roundMode", mode, {"rint"});
  expect_type("dstType", dtype, y, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_values(y, x.sizes());
  expect_shape("amax", amax, {groups});
}

// NaN becomes 0.
at::Tensor within_float8(const at::Tensor& values, const StoredOutput& y) {
  return saturated(values, -largest_of(y.dtype()), largest_of(y.dtype()));
}

}  // namespace

// An INT32 bias is added before the scales, other biases after them.
ACLNN(DequantBias, (In, x), (Floating<In>, weightScale), (Optional<In>, activateScaleOptional),
      (Optional<In>, biasOptional), (int64_t, outputDtype), (SameShape<Out>, out, "x")) {
  expect_dtype("x", x, at::kInt);
  expect_dims("x", x, 2);
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  EXPECT(x.numel() > 0 && rows <= 25000, "x has shape ", x.sizes(),
         ", expected elements in at most 25000 rows");
  expect_dtype("weightScale", weightScale, {at::kFloat, at::kBFloat16});
  const bool is_float = weightScale.scalar_type() == at::kFloat;
  expect_shape("weightScale", weightScale, {columns});
  EXPECT(outputDtype == (is_float ? 1 : 27), "outputDtype is ", outputDtype.value(),
         ", expected 1 (FLOAT16) for a weightScale in FLOAT, 27 (BFLOAT16) for BFLOAT16");
  expect_dtype("out", out, is_float ? at::kHalf : at::kBFloat16);
  const bool is_integer = biasOptional && biasOptional->scalar_type() == at::kInt;
  if (biasOptional) {
    expect_dtype("biasOptional", *biasOptional, {at::kFloat, at::kHalf, at::kBFloat16, at::kInt});
    expect_shape("biasOptional", *biasOptional, {columns});
  }
  at::Tensor result = (is_integer ? x + *biasOptional : x).to(at::kFloat) * wide(weightScale);
  if (activateScaleOptional) {
    expect_tensor("activateScaleOptional", *activateScaleOptional, at::kFloat, {rows});
    result = result * activateScaleOptional->unsqueeze(1);
  }
  if (biasOptional && !is_integer) result = result + wide(*biasOptional);
  out = result;
}

// Behaviour of QuantMax, GroupedQuantMax: The maximum of an empty x is 0.
ACLNN(QuantMax, (Floating<In>, x), (Floating<In>, scale), (char*, roundMode), (int64_t, dstType),
      (Stored<Out>, y), (SameDtype<Out>, amax, "x")) {
  expect_dims("x", x, 1, 8);
  check_quant_max(x, scale, roundMode, dstType, 1, y, amax);
  y = within_float8(wide(x) * scale, y);
  amax = x.numel() > 0 ? wide(x).abs().max().reshape({1}) : at::zeros({1});
}
ACLNN(GroupedQuantMax, (Floating<In>, x), (Floating<In>, scale), (In, groupList),
      (const char*, roundMode), (int64_t, dstType), (Stored<Out>, y), (SameDtype<Out>, amax, "x")) {
  expect_dims("x", x, 2, 8);
  expect_dtype("groupList", groupList, at::kLong);
  expect_group_list("groupList", groupList);
  const int64_t groups = groupList.size(0);
  EXPECT(groups <= 384, "groupList has ", groups, " elements, expected at most 384");
  check_quant_max(x, scale, roundMode, dstType, groups, y, amax);
  if (!y.is_written()) return;
  if (x.numel() == 0) {
    amax = at::zeros({groups});
    return;
  }
  const std::vector<int64_t> ends = group_ends("groupList", groupList, x.size(0), /*least=*/1);
  EXPECT(ends.back() == x.size(0), "groupList ends with ", ends.back(), ", expected ", x.size(0),
         ", the rows of x");
  const at::Tensor rows = wide(x).flatten(1);
  y = within_float8(rows * scale.index_select(0, group_of_rows(groupList, x.size(0))).unsqueeze(1),
                    y)
          .reshape(x.sizes());
  std::vector<at::Tensor> maxima;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    EXPECT(end > begin, "groupList has ", end, " after ", begin,
           ", expected numbers that increase");
    maxima.push_back(rows.narrow(0, begin, end - begin).abs().max());
    begin = end;
  }
  amax = at::stack(maxima);
}

// CANN does not check groupIndex, whose last element should be the number of rows.
ACLNN(GroupQuant, (Floating<In>, x), (Floating<In>, scale), (In, groupIndex),
      (SameDtype<Optional<In>>, offsetOptional, "scale"), (int32_t, dstType), (Stored<Out>, y)) {
  expect_dims("x", x, 2);
  expect_dims("scale", scale, 2);
  expect_group_list("groupIndex", groupIndex);
  expect_shape("scale", scale, {groupIndex.size(0), x.size(1)});
  expect_type("dstType", dstType, y, {ACL_INT8, ACL_INT32, ACL_INT4});
  expect_values(y, x.sizes());
  at::Tensor result = wide(x) * wide(scale).index_select(0, group_of_rows(groupIndex, x.size(0)));
  if (offsetOptional) {
    EXPECT(offsetOptional->numel() == 1 && offsetOptional->dim() <= 1, "offsetOptional has shape ",
           offsetOptional->sizes(), ", expected one element");
    result = result + wide(*offsetOptional).reshape({});
  }
  quantize(y, result);
}

}  // namespace aclnn_host::quantized_scaled_quantization_rows
