// Activations with a quantised result, computed in FP32. If there are groups, rows after the last
// group are computed with its parameters.

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_activation_rows {

namespace {

// ---- SwiGluQuant

// A parameter for each group, or for each column of it. Without groups, the first parameter is
// used.
at::Tensor of_group(const char* name, const at::Tensor& tensor, const OptionalTensor& group,
                    int64_t groups, int64_t size) {
  expect_dtype(name, tensor, at::kFloat);
  expect_dims(name, tensor, 1, 2);
  EXPECT(tensor.size(0) > 0 && (!group || tensor.size(0) == groups) &&
             (tensor.dim() == 1 || tensor.size(1) == size),
         name, " has shape ", tensor.sizes(), ", expected [groups] or [groups, ", size, "]");
  const at::Tensor matrix = tensor.dim() == 1 ? tensor.unsqueeze(1) : tensor;
  return group ? matrix.index_select(0, *group) : matrix.narrow(0, 0, 1);
}

// Quantises the SwiGLU of x. `lists_counts` says that groupIndexOptional has the sizes of the
// groups, not their ends. `row` is the struct of a version.
template <class Version>
void swi_glu_quant(Version& row, bool lists_counts) {
  const at::Tensor& x = row.x;
  const bool dynamic = is_dynamic("quantModeOptional", row.quantModeOptional, "dynamic");
  expect_dims("x", x, 2, 8);
  expect_elements("x", x);
  EXPECT(x.size(-1) <= 8192, "x has ", x.size(-1),
         " elements in its last dimension, expected at most 8192");
  const int64_t size = x.size(-1) / 2;
  const int64_t rows = rows_before(x, x.dim() - 1);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = size;
  expect_values(row.yOut, shape);
  expect_row_scales(row.scaleOut, leading(x));
  at::Tensor result = swiglu(halves(wide(x).reshape({rows, x.size(-1)}), 1, row.activateLeft));
  OptionalTensor group;
  int64_t groups = 1;
  if (row.groupIndexOptional) {
    const at::Tensor& list = *row.groupIndexOptional;
    expect_dtype("groupIndexOptional", list, at::kInt);
    expect_group_list("groupIndexOptional", list);
    groups = list.size(0);
    EXPECT(groups <= rows, "groupIndexOptional has ", groups, " elements, expected at most ", rows,
           ", the rows of x");
    // The sample of the document lists numbers far beyond the rows; such a group ends with them.
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (!lists_counts && has_values(list)) group_ends("groupIndexOptional", list, kMost);
    group =
        group_of_rows(lists_counts ? ends_of_sizes("groupIndexOptional", list, rows) : list, rows);
  }
  EXPECT(row.smoothScalesOptional || dynamic,
         "smoothScalesOptional is null, expected a tensor in static quantisation");
  if (row.smoothScalesOptional) {
    result =
        result * of_group("smoothScalesOptional", *row.smoothScalesOptional, group, groups, size);
  }
  if (!dynamic) {
    if (row.offsetsOptional) {
      expect_shape("offsetsOptional", *row.offsetsOptional, row.smoothScalesOptional->sizes());
      result = result + of_group("offsetsOptional", *row.offsetsOptional, group, groups, size);
    }
    quantize(row.yOut, result.reshape(shape));
    return;
  }
  // The scale multiplies the values; other functions divide by it.
  const at::Tensor scale =
      at::amax(result.abs(), 1, /*keepdim=*/true).reciprocal() * largest_of(row.yOut.dtype());
  quantize(row.yOut, (result * scale).reshape(shape));
  row.scaleOut = scale.reshape(leading(x));
}

}  // namespace

ACLNN(GeluQuant, (Floating<In>, self), (Optional<In>, inputScaleOptional),
      (Like<Optional<In>>, inputOffsetOptional, "inputScaleOptional"), (const char*, approximate),
      (const char*, quantMode), (const char*, roundMode), (int64_t, dstType), (Stored<Out>, y),
      (Optional<Out>, outScaleOptional)) {
  const bool is_static = !is_dynamic("quantMode", quantMode);
  expect_dims("self", self, is_static ? 1 : 2, 8);
  expect_elements("self", self);
  expect_text("approximate", approximate, {"none", "tanh"});
  expect_text("roundMode", roundMode, {"rint"});
  expect_type("dstType", dstType, y, {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_values(y, self.sizes());
  require_given(inputScaleOptional || (!is_static && !inputOffsetOptional),
                "inputScaleOptional is null, expected a tensor in static quantisation and beside "
                "inputOffsetOptional");
  at::Tensor result = at::gelu(wide(self), approximate);
  if (inputScaleOptional) {
    const at::Tensor& scale = *inputScaleOptional;
    if (scale.scalar_type() != at::kFloat) expect_dtype("inputScaleOptional", scale, self);
    EXPECT(scale.dim() == 1 && (scale.size(0) == 1 || scale.size(0) == self.size(-1)),
           "inputScaleOptional has shape ", scale.sizes(), ", expected 1 or ", self.size(-1),
           " elements");
    result = result * wide(scale);
  }
  if (is_static) {
    EXPECT(!outScaleOptional,
           "outScaleOptional is a tensor, expected null as quantMode is \"static\"");
    if (inputOffsetOptional) result = result + wide(*inputOffsetOptional);
    return quantize(y, result);
  }
  require_given(static_cast<bool>(outScaleOptional),
                "outScaleOptional is null, expected a tensor as quantMode is \"dynamic\"");
  expect_row_scales(*outScaleOptional, leading(self));
  outScaleOptional = quantize_rows(y, result);
}

ACLNN_STRUCT(SwiGluQuant, (Floating<In>, x), (Optional<In>, smoothScalesOptional),
             (Optional<In>, offsetsOptional), (Optional<In>, groupIndexOptional),
             (bool, activateLeft), (char*, quantModeOptional), (Stored<Out>, yOut),
             (Out, scaleOut)) {
  EXPECT(smoothScalesOptional && groupIndexOptional,
         "smoothScalesOptional or groupIndexOptional is null, expected tensors");
  expect_type(yOut, {ACL_INT8});
  swi_glu_quant(*this, /*lists_counts=*/false);
}
ACLNN_STRUCT(SwiGluQuantV2, (Floating<In>, x), (Optional<In>, smoothScalesOptional),
             (Optional<In>, offsetsOptional), (Optional<In>, groupIndexOptional),
             (bool, activateLeft), (char*, quantModeOptional), (int64_t, groupListType),
             (int64_t, dstType), (Stored<Out>, yOut), (Out, scaleOut)) {
  expect_one_of("groupListType", groupListType, {0, 1});
  expect_type("dstType", dstType, yOut, {ACL_INT8, ACL_INT4});
  swi_glu_quant(*this, groupListType == 1);
}

}  // namespace aclnn_host::quantized_quantized_activation_rows
