// Quantisation with scales and offsets from the extremes of tokens, of channels or of the tensor.

#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_dynamic_quantization_rows {

namespace {

// The smoothing scale of the group of each row. groupIndexOptional has the end of each group.
at::Tensor scales_of_rows(const at::Tensor& x, const at::Tensor& smooth, const at::Tensor& groups) {
  expect_dtype("groupIndexOptional", groups, at::kInt);
  EXPECT(groups.dim() == 1 && groups.size(0) > 0 && groups.size(0) <= 1024,
         "groupIndexOptional has shape ", groups.sizes(),
         ", expected one dimension with 1 to 1024 elements");
  expect_shape("smoothScalesOptional", smooth, {groups.size(0), x.size(-1)});
  const int64_t rows = c10::multiply_integers(leading(x));
  if (has_values(groups)) {
    const int64_t end = group_ends("groupIndexOptional", groups, rows).back();
    EXPECT(end == rows, "groupIndexOptional ends with ", end, ", expected ", rows,
           ", the number of rows of x");
  }
  return wide(smooth).index_select(0, group_of_rows(groups, rows)).reshape(x.sizes());
}

at::Tensor smoothed(const at::Tensor& x, const OptionalTensor& smooth, const OptionalTensor& groups,
                    bool per_channel) {
  EXPECT(smooth || !groups,
         "smoothScalesOptional is null, expected a tensor as groupIndexOptional is");
  if (!smooth) return wide(x);
  if (groups) return wide(x) * scales_of_rows(x, *smooth, *groups);
  expect_shape("smoothScalesOptional", *smooth, {x.size(per_channel ? -2 : -1)});
  return wide(x) * (per_channel ? wide(*smooth).unsqueeze(1) : wide(*smooth));
}

struct Mode {
  std::vector<int64_t> dims;         // the reduced dimensions
  std::vector<int64_t> scale_shape;  // of the outputs
};
Mode mode_of(const std::string& name, const at::Tensor& x, const OptionalTensor& groups) {
  Mode mode{{x.dim() - 1}, x.sizes().vec()};
  if (name == "pertoken") {
    mode.scale_shape.pop_back();
    return mode;
  }
  expect_text("quantMode", name, {"pertoken", "pertensor", "perchannel"});
  EXPECT(!groups, "groupIndexOptional is a tensor, expected null as quantMode is \"", name, "\"");
  if (name == "perchannel") {
    mode.dims = {x.dim() - 2};
    mode.scale_shape.erase(mode.scale_shape.end() - 2);
    return mode;
  }
  mode.dims.clear();
  for (int64_t dim = 0; dim < x.dim(); ++dim) mode.dims.push_back(dim);
  mode.scale_shape = {1};
  return mode;
}

void dynamic_quant(const at::Tensor& x, const OptionalTensor& smooth, const OptionalTensor& groups,
                   int64_t dtype, bool is_symmetrical, const std::string& mode_name,
                   StoredOutput& y, Output& scale_out, OptionalOutput& offset_out) {
  expect_dims("x", x, 2, 8);
  expect_type("dstType", dtype, y,
              {ACL_INT8, ACL_INT32, ACL_INT4, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_values(y, x.sizes());
  const Mode mode = mode_of(mode_name, x, groups);
  expect_row_scales(scale_out, mode.scale_shape);
  EXPECT(is_symmetrical != static_cast<bool>(offset_out), "offsetOut is ",
         offset_out ? "a tensor" : "null", " and isSymmetrical is ",
         is_symmetrical ? "true" : "false", ", expected null if and only if it is true");
  if (offset_out) expect_row_scales(*offset_out, mode.scale_shape);
  const at::Tensor values = smoothed(x, smooth, groups, mode_name == "perchannel");
  if (x.numel() == 0) return;
  const double most = largest_of(y.dtype());
  if (is_symmetrical) {
    const at::Tensor scale = at::amax(values.abs(), mode.dims, /*keepdim=*/true) / most;
    quantize(y, values / scale);
    scale_out = scale.reshape(mode.scale_shape);
    return;
  }
  const double least = is_floating(y.dtype()) ? -most : -most - 1;
  const at::Tensor high = at::amax(values, mode.dims, /*keepdim=*/true);
  const at::Tensor scale = (high - at::amin(values, mode.dims, /*keepdim=*/true)) / (most - least);
  const at::Tensor offset = most - high / scale;
  quantize(y, values / scale + offset);
  scale_out = scale.reshape(mode.scale_shape);
  offset_out = offset.reshape(mode.scale_shape);
}

}  // namespace

// Behaviour of DynamicQuant*: Elements are rounded half to even and saturated, to INT8, INT4, eight
// elements of 4 bits in an INT32, FLOAT8_E4M3FN or FLOAT8_E5M2.
// Limit of DynamicQuant*: HIFLOAT8 is refused with 161002.
ACLNN(DynamicQuant, (Floating<In>, x), (SameDtype<Optional<In>>, smoothScalesOptional, "x"),
      (Stored<Out>, yOut), (Out, scaleOut)) {
  OptionalOutput none;
  dynamic_quant(x, smoothScalesOptional, std::nullopt, int64_t{yOut.dtype()},
                /*is_symmetrical=*/true, "pertoken", yOut, scaleOut, none);
}
// Without offsetOut the quantisation is symmetric.
ACLNN(DynamicQuantV2, (Floating<In>, x), (SameDtype<Optional<In>>, smoothScalesOptional, "x"),
      (Optional<In>, groupIndexOptional), (int64_t, dstType), (Stored<Out>, yOut), (Out, scaleOut),
      (Optional<Out>, offsetOut)) {
  dynamic_quant(x, smoothScalesOptional, groupIndexOptional, dstType, !offsetOut, "pertoken", yOut,
                scaleOut, offsetOut);
}
ACLNN(DynamicQuantV3, (In, x), (SameDtype<Optional<In>>, smoothScalesOptional, "x"),
      (Optional<In>, groupIndexOptional), (int64_t, dstType), (bool, isSymmetrical),
      (const char*, quantMode), (Stored<Out>, yOut), (Out, scaleOut), (Optional<Out>, offsetOut)) {
  expect_reduced_float("x", x);
  dynamic_quant(x, smoothScalesOptional, groupIndexOptional, dstType, isSymmetrical, quantMode,
                yOut, scaleOut, offsetOut);
}
// dstTypeMax applies to HIFLOAT8 only.
ACLNN(DynamicQuantV4, (In, x), (SameDtype<Optional<In>>, smoothScalesOptional, "x"),
      (Optional<In>, groupIndexOptional), (int64_t, dstType), (bool, isSymmetrical),
      (const char*, quantMode), (float, dstTypeMax), (Stored<Out>, yOut), (Out, scaleOut),
      (Optional<Out>, offsetOut)) {
  expect_reduced_float("x", x);
  EXPECT(dstTypeMax >= 0.0 && dstTypeMax <= 32768.0, "dstTypeMax is ", dstTypeMax.value(),
         ", expected 0 to 32768");
  dynamic_quant(x, smoothScalesOptional, groupIndexOptional, dstType, isSymmetrical, quantMode,
                yOut, scaleOut, offsetOut);
}

}  // namespace aclnn_host::quantized_dynamic_quantization_rows
