// Converts parameters and weights to the forms that quantised products take.

#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/quant_param.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_trans_quant_param_rows {

namespace {

void expect_parameters(const char* name, const at::Tensor& tensor) {
  expect_dtype(name, tensor, at::kFloat);
  expect_dims(name, tensor, 1, 2);
  expect_elements(name, tensor);
}

// The bits of each scale and offset; see quant_param.h. With `rounds`, the scale is rounded to the
// 19 bits that are kept, ties to even, instead of truncated.
void pack_parameters(const at::Tensor& scale, const std::optional<at::Tensor>& offset, bool rounds,
                     Output& out) {
  expect_parameters("scale", scale);
  expect_dtype("out", out, {at::kUInt64, at::kLong});
  constexpr int64_t kKept = 0xFFFFE000;
  at::Tensor bits = scale.view(at::kInt).to(at::kLong).bitwise_and(0xFFFFFFFF);
  if (rounds) {
    const at::Tensor is_odd = bits.bitwise_right_shift(13).bitwise_and(1);
    bits = bits + 0xFFF + is_odd;
  }
  bits = bits.bitwise_and(kKept).bitwise_or(static_cast<int64_t>(kQuantParamIsSet));
  if (offset) {
    expect_parameters("offset", *offset);
    EXPECT(offset->dim() == 1 || offset->size(0) == 1, "offset has shape ", offset->sizes(),
           ", expected (n) or (1, n)");
    EXPECT(scale.dim() == 1 || scale.size(0) == 1, "scale has shape ", scale.sizes(),
           ", expected (n) or (1, n) with an offset");
    const int64_t sizes[] = {scale.numel(), offset->numel()};
    EXPECT(sizes[0] == sizes[1] || sizes[0] == 1 || sizes[1] == 1, "offset has ", sizes[1],
           " elements, expected 1 or ", sizes[0], " as scale has");
    const at::Tensor code = at::clamp(at::nan_to_num(at::round(*offset), 0.0), -256, 255)
                                .to(at::kLong)
                                .bitwise_and(0x1FF)
                                .bitwise_left_shift(37)
                                .flatten();
    bits = bits.flatten().bitwise_or(code);
    if (scale.dim() == 2) bits = bits.unsqueeze(0);
  }
  expect_shape("out", out, bits.sizes());
  out = bits.view(out->scalar_type());
}

// Checks the shape of the result, which holds `per_element` values in an element.
void check_packed_shape(const at::Tensor& weight, const StoredOutput& pack, int64_t per_element) {
  const int64_t multiple = per_element == 1 ? 2 : per_element;
  EXPECT(weight.size(-1) % multiple == 0, "weight has shape ", weight.sizes(),
         ", expected a multiple of ", multiple, " as the last size for weightInt4Pack of ",
         dtype_name(pack.dtype()));
  std::vector<int64_t> expected = weight.sizes().vec();
  expected.back() /= per_element;
  expect_shape("weightInt4Pack", pack, expected);
}

}  // namespace

ACLNN(TransQuantParamV2, (In, scale), (Optional<In>, offset), (Out, out)) {
  pack_parameters(scale, offset, /*rounds=*/false, out);
}
ACLNN(TransQuantParamV3, (In, scale), (Optional<In>, offset), (int64_t, roundMode), (Out, out)) {
  expect_one_of("roundMode", roundMode, {0, 1});
  pack_parameters(scale, offset, roundMode == 1, out);
}

// Of an INT32 element the lowest 4 bits are used.
ACLNN(ConvertWeightToINT4Pack, (In, weight), (Stored<Out>, weightInt4Pack)) {
  expect_dims("weight", weight, 2, 3);
  expect_elements("weight", weight);
  expect_dtype("weight", weight, {at::kInt, at::kFloat});
  const bool is_integer = weight.scalar_type() == at::kInt;
  const aclDataType dtype = weightInt4Pack.dtype();
  if (is_integer) {
    expect_type(weightInt4Pack, {ACL_INT4, ACL_INT32}, " for a weight of INT32");
  } else {
    expect_type(weightInt4Pack, {ACL_FLOAT4_E2M1, ACL_FLOAT}, " for a weight of FLOAT");
  }
  expect_format("weightInt4Pack", {weightInt4Pack, dtype, weightInt4Pack.format()},
                /*or_blocked=*/true);
  const bool is_packed = dtype == ACL_INT32 || dtype == ACL_FLOAT;
  check_packed_shape(weight, weightInt4Pack, is_packed ? 8 : 1);
  if (!is_packed && !is_integer) {
    weightInt4Pack = weight;
    return;
  }
  const at::Tensor codes = is_integer
                               ? weight.bitwise_left_shift(28).bitwise_right_shift(28).to(at::kChar)
                               : float4_codes(weight);
  weightInt4Pack = is_packed ? pack_int4(codes)
                                   .view(weight.scalar_type())
                                   .view(static_cast<const at::Tensor&>(weightInt4Pack).sizes())
                             : codes;
}

}  // namespace aclnn_host::quantized_trans_quant_param_rows
