// Activations with a quantised result, computed in FP32. If there are groups, rows after the last
// group are computed with its parameters.

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/quantized_arguments.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_activation_rows {

namespace {

// ---- SwiGluQuant

struct SwiGlu {
  const at::Tensor& x;
  const OptionalTensor &smooth, &offsets, &groups;
  bool gate_is_left, is_dynamic, counts;
};

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

void swi_glu_quant(const SwiGlu& in, StoredOutput& y, Output& scale_out) {
  expect_dims("x", in.x, 2, 8);
  EXPECT(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  EXPECT(in.x.size(-1) <= 8192, "x has ", in.x.size(-1),
         " elements in its last dimension, expected at most 8192");
  const int64_t size = in.x.size(-1) / 2;
  const int64_t count = rows_before(in.x, in.x.dim() - 1);
  std::vector<int64_t> shape = in.x.sizes().vec();
  shape.back() = size;
  expect_values(y, shape);
  expect_row_scales(scale_out, leading(in.x));
  at::Tensor result =
      swiglu(halves(wide(in.x).reshape({count, in.x.size(-1)}), 1, in.gate_is_left));
  OptionalTensor group;
  if (in.groups) {
    expect_dtype("groupIndexOptional", *in.groups, at::kInt);
    expect_group_list("groupIndexOptional", *in.groups);
    EXPECT(in.groups->size(0) <= count, "groupIndexOptional has ", in.groups->size(0),
           " elements, expected at most ", count, ", the rows of x");
    group = group_of_rows(in.counts ? in.groups->cumsum(0) : *in.groups, count);
  }
  const int64_t groups = in.groups ? in.groups->size(0) : 1;
  EXPECT(in.smooth || in.is_dynamic,
         "smoothScalesOptional is null, expected a tensor in static quantisation");
  if (in.smooth) {
    result = result * of_group("smoothScalesOptional", *in.smooth, group, groups, size);
  }
  if (!in.is_dynamic) {
    if (in.offsets) {
      expect_shape("offsetsOptional", *in.offsets, in.smooth->sizes());
      result = result + of_group("offsetsOptional", *in.offsets, group, groups, size);
    }
    quantize(y, result.reshape(shape));
    return;
  }
  // The scale multiplies the values; other functions divide by it.
  const at::Tensor scale =
      at::amax(result.abs(), 1, /*keepdim=*/true).reciprocal() * largest_of(y.dtype());
  quantize(y, (result * scale).reshape(shape));
  scale_out = scale.reshape(leading(in.x));
}

}  // namespace

ACLNN(GeluQuant, (Floating<In>, self), (Optional<In>, inputScaleOptional),
      (Like<Optional<In>>, inputOffsetOptional, "inputScaleOptional"), (const char*, approximate),
      (const char*, quantMode), (const char*, roundMode), (int64_t, dstType), (Stored<Out>, y),
      (Optional<Out>, outScaleOptional)) {
  expect_mode("quantMode", quantMode);
  const bool is_static = quantMode == "static";
  expect_dims("self", self, is_static ? 1 : 2, 8);
  EXPECT(self.numel() > 0, "self has shape ", self.sizes(), ", expected elements");
  EXPECT(approximate == "none" || approximate == "tanh", "approximate is \"", approximate,
         "\", expected \"none\" or \"tanh\"");
  EXPECT(roundMode == "rint", "roundMode is \"", roundMode, "\", expected \"rint\"");
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
  const auto scale = quantize_rows(y, result);
  if (scale) outScaleOptional = scale->squeeze(-1);
}

ACLNN(SwiGluQuant, (Floating<In>, x), (Optional<In>, smoothScalesOptional),
      (Optional<In>, offsetsOptional), (Optional<In>, groupIndexOptional), (bool, activateLeft),
      (char*, quantModeOptional), (Stored<Out>, yOut), (Out, scaleOut)) {
  EXPECT(smoothScalesOptional && groupIndexOptional,
         "smoothScalesOptional or groupIndexOptional is null, expected tensors");
  expect_quantized(yOut, {ACL_INT8});
  swi_glu_quant({x, smoothScalesOptional, offsetsOptional, groupIndexOptional, activateLeft,
                 is_dynamic(quantModeOptional, "dynamic"), /*counts=*/false},
                yOut, scaleOut);
}
ACLNN(SwiGluQuantV2, (Floating<In>, x), (Optional<In>, smoothScalesOptional),
      (Optional<In>, offsetsOptional), (Optional<In>, groupIndexOptional), (bool, activateLeft),
      (char*, quantModeOptional), (int64_t, groupListType), (int64_t, dstType), (Stored<Out>, yOut),
      (Out, scaleOut)) {
  EXPECT(groupListType == 0 || groupListType == 1, "groupListType is ", groupListType.value(),
         ", expected 0 or 1");
  expect_type("dstType", dstType, yOut, {ACL_INT8, ACL_INT4});
  swi_glu_quant({x, smoothScalesOptional, offsetsOptional, groupIndexOptional, activateLeft,
                 is_dynamic(quantModeOptional, "dynamic"), groupListType == 1},
                yOut, scaleOut);
}

}  // namespace aclnn_host::quantized_quantized_activation_rows
