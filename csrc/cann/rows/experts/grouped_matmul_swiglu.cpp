// Products of groups of rows followed by a quantised SwiGLU: the activated first half of the
// columns times the second half.

#include "cann/rows/engine/stored.h"
#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::experts_grouped_matmul_swiglu_rows {

namespace {

// x (m, k), matrices (k, n) and their scales. Lists have one tensor for all experts, or one for
// each.
struct SwigluQuant {
  StoredTensor x;
  std::vector<StoredTensor> weight;
  std::vector<StoredTensor> weight_scale;
  const char* assist_name;
  std::vector<at::Tensor> assist{};  // corrects the offset of x with an INT4 weight
  StoredTensor x_scale;
  OptionalTensor smooth{};
  at::Tensor group_list;
  int64_t list_type = kGroupEnds;
};

// A weight whose elements, in the order of its shape, are the blocks of FRACTAL_NZ, whatever its
// format.
StoredTensor as_blocked(const StoredTensor& weight) {
  const at::Tensor& elements = weight.elements;
  const bool has_blocks = is_private(weight.format) || elements.dim() > 3 || elements.dim() < 2;
  if (has_blocks) return {elements, weight.dtype, ACL_FORMAT_FRACTAL_NZ};
  const int64_t width = width_of_blocks(weight.dtype);
  EXPECT(elements.size(-2) % 16 == 0 && elements.size(-1) % width == 0, "weight has shape ",
         elements.sizes(), ", expected blocks of 16 rows of ", width, ", or format FRACTAL_NZ");
  return {from_blocks(elements.flatten(), elements.sizes(), ACL_FORMAT_FRACTAL_NZ, width),
          weight.dtype, ACL_FORMAT_FRACTAL_NZ};
}

enum class Scales { kIntegers, kFloat8, kMx };

class SwigluProduct {
 public:
  explicit SwigluProduct(SwigluQuant call)
      : call_(std::move(call)),
        is_one_tensor_(has_all_matrices(call_.weight)),
        matrices_("weight", call_.weight, is_one_tensor_),
        scales_(scales_of(call_)) {
    EXPECT(call_.weight_scale.size() == call_.weight.size(), "weightScale has ",
           call_.weight_scale.size(), " tensors, expected ", call_.weight.size(), " as weight has");
    expect_dims("x", call_.x.elements, 2);
    expect_format("x", call_.x);
    for (const StoredTensor& each : call_.weight) {
      expect_format("weight", each, /*or_blocked=*/true);
    }
    if (call_.x.dtype == ACL_INT32) call_.x.elements = unpacked_rows(call_.x.elements);
    check_scales();
    check_columns();
    for (int64_t i = 0; i < (is_one_tensor_ ? 1 : matrices_.count()); ++i) {
      const int64_t columns = matrices_.at(i, k()).size(1);
      EXPECT(columns == n_, "weight has ", columns, " columns, expected ", n_,
             " as weightScale has");
    }
    if (scales_ == Scales::kIntegers) {
      check_integers();
    } else {
      expect_no_assist();
      expect_absent("smoothScale", call_.smooth);
    }
  }

  Scales scales() const { return scales_; }
  int64_t rows() const { return call_.x.elements.size(0); }
  int64_t k() const { return call_.x.elements.size(1); }
  int64_t n() const { return n_; }
  // True if the scales belong to groups of rows of the matrices.
  bool has_groups() const { return has_groups_; }
  GroupedKind kind() const { return grouped_kind(call_.x.dtype, call_.weight[0].dtype); }

  // The activated rows of all groups, and the end of the last group, after which they are zeros.
  // The products are rounded to `product_type` before the activation.
  struct Activated {
    at::Tensor values;
    int64_t end;
  };
  Activated activated(at::ScalarType product_type) const {
    Activated result{at::zeros({rows(), n_ / 2}, call_.x.elements.options().dtype(at::kDouble)), 0};
    for (const Group& group : groups_of("groupList", call_.group_list, /*is_on_device=*/true,
                                        call_.list_type, matrices_.count(), rows())) {
      result.end = group.begin + group.size;
      if (group.size == 0 || n_ == 0) continue;
      const at::Tensor product = product_of(group).to(product_type).to(at::kDouble);
      const std::vector<at::Tensor> halves = product.chunk(2, 1);
      at::Tensor part = at::silu(halves[0]) * halves[1];
      if (!is_absent(call_.smooth)) part = part * wide(call_.smooth->select(0, group.matrix));
      result.values.narrow(0, group.begin, group.size).copy_(part);
    }
    return result;
  }

 private:
  static Scales scales_of(const SwigluQuant& call) {
    EXPECT(!call.weight.empty(), "weight has no tensors, expected one or more");
    EXPECT(!call.weight_scale.empty(), "weightScale has no tensors, expected one or more");
    const aclDataType x = call.x.dtype, weight = call.weight[0].dtype;
    const bool is_mx = call.weight_scale[0].dtype == ACL_FLOAT8_E8M0;
    const bool has_float4 =
        weight == ACL_FLOAT4_E2M1 && (x == ACL_FLOAT4_E2M1 || x == ACL_FLOAT8_E4M3FN);
    if (is_mx && (has_float4 || (is_float8(x) && is_float8(weight)))) return Scales::kMx;
    if (!is_mx && is_float8(x) && is_float8(weight)) return Scales::kFloat8;
    const bool are_integers =
        x == ACL_INT8 ? weight == ACL_INT8 || is_int4(weight) : is_int4(x) && is_int4(weight);
    EXPECT(!is_mx && are_integers, "x has dtype ", dtype_name(x), ", weight ", dtype_name(weight),
           " and weightScale ", dtype_name(call.weight_scale[0].dtype),
           ", expected INT8 with INT8 or INT4, INT4 for both, FLOAT8 for both, or, with "
           "FLOAT8_E8M0, FLOAT8 or FLOAT4_E2M1");
    return Scales::kIntegers;
  }

  at::Tensor scale(int64_t matrix) const {
    return is_one_tensor_ ? call_.weight_scale[0].elements.select(0, matrix)
                          : call_.weight_scale[static_cast<size_t>(matrix)].elements;
  }

  // The scales of the first matrix determine the number of columns and of groups of rows.
  void check_scales() {
    const int64_t count = matrices_.count();
    EXPECT(!is_one_tensor_ || (call_.weight_scale[0].elements.dim() > 0 &&
                               call_.weight_scale[0].elements.size(0) == count),
           "weightScale has shape ", call_.weight_scale[0].elements.sizes(),
           ", expected scales of ", count, " experts");
    EXPECT(count > 0, "weight has no matrices, expected one or more");
    const at::Tensor first = scale(0);
    const bool may_have_groups = scales_ == Scales::kIntegers && kind() != GroupedKind::kInt8;
    if (scales_ == Scales::kMx) {
      constexpr int64_t kPair = 2 * kMxBlock;
      const int64_t pairs = (k() + kPair - 1) / kPair;
      expect_dims("weightScale of a matrix", first, 3);
      n_ = first.size(1);
      expect_scales({pairs, n_, 2});
      expect_type("xScale", call_.x_scale, {ACL_FLOAT8_E8M0});
      expect_shape("xScale", call_.x_scale.elements, {rows(), pairs, 2});
      return;
    }
    expect_dims("weightScale of a matrix", first, 1, may_have_groups ? 2 : 1);
    n_ = first.size(-1);
    has_groups_ = first.dim() == 2;
    expect_scales(first.sizes().vec());
    const int64_t groups = has_groups_ ? first.size(0) : 1;
    EXPECT(groups > 0 && k() % groups == 0, "weightScale has ", groups,
           " groups, expected a divisor of ", k(), ", the number of columns of x");
    expect_type("xScale", call_.x_scale, {ACL_FLOAT});
    expect_shape("xScale", call_.x_scale.elements, {rows()});
    if (may_have_groups) {
      expect_dtype("weightScale", first, {at::kUInt64, at::kLong});
    } else if (scales_ == Scales::kIntegers) {
      expect_dtype("weightScale", first, {at::kFloat, at::kHalf, at::kBFloat16});
    } else {
      expect_dtype("weightScale", first, {at::kFloat, at::kBFloat16});
    }
  }
  void expect_scales(at::IntArrayRef shape) const {
    for (int64_t i = 0; i < matrices_.count(); ++i) {
      expect_shape("weightScale of a matrix", scale(i), shape);
      if (!is_one_tensor_) {
        expect_type("weightScale", call_.weight_scale[static_cast<size_t>(i)],
                    {call_.weight_scale[0].dtype}, " as its first tensor has");
      }
    }
  }
  void check_columns() const {
    constexpr int64_t kMostColumns = 10240, kMostByInt8 = 65535, kMostByInt4 = 19999;
    const bool has_float4 = call_.x.dtype == ACL_FLOAT4_E2M1;
    const int64_t multiple = has_float4 ? 4 : 2;
    EXPECT(n_ % multiple == 0, "weightScale has ", n_, " columns, expected a multiple of ",
           multiple);
    EXPECT(!has_float4 || (k() % 2 == 0 && k() > 2), "x has ", k(),
           " columns, expected an even number of more than 2 as it is FLOAT4");
    if (scales_ != Scales::kIntegers) return;
    EXPECT(n_ <= kMostColumns, "weightScale has ", n_, " columns, expected at most ", kMostColumns);
    const int64_t most = kind() == GroupedKind::kInt8 ? kMostByInt8 : kMostByInt4;
    EXPECT(k() <= most, "x has ", k(), " columns, expected at most ", most);
  }

  void expect_no_assist() const {
    for (const at::Tensor& each : call_.assist) expect_absent(call_.assist_name, each);
  }
  void check_integers() const {
    const int64_t count = matrices_.count();
    if (kind() == GroupedKind::kInt8ByInt4) {
      EXPECT(call_.assist.size() == call_.weight.size(), call_.assist_name, " has ",
             call_.assist.size(), " tensors, expected ", call_.weight.size(), " as weight is INT4");
      const std::vector<int64_t> shape = is_one_tensor_ ? std::vector{count, n_} : std::vector{n_};
      for (const at::Tensor& each : call_.assist) {
        expect_tensor(call_.assist_name, each, at::kFloat, shape);
      }
    } else {
      expect_no_assist();
    }
    if (is_absent(call_.smooth)) return;
    EXPECT(kind() == GroupedKind::kInt4, "smoothScale is given, expected null as x is INT8");
    expect_dims("smoothScale", *call_.smooth, 1, 2);
    expect_tensor("smoothScale", *call_.smooth, at::kFloat,
                  call_.smooth->dim() == 1 ? std::vector{count} : std::vector{count, n_ / 2});
  }

  // The product of one group.
  at::Tensor product_of(const Group& group) const {
    const at::Tensor x = call_.x.elements.narrow(0, group.begin, group.size);
    const at::Tensor weight = matrices_.at(group.matrix, k());
    const at::Tensor x_scale = call_.x_scale.elements.narrow(0, group.begin, group.size);
    const at::Tensor weight_scale = scale(group.matrix);
    if (scales_ == Scales::kIntegers) {
      OptionalTensor assist;
      if (kind() == GroupedKind::kInt8ByInt4) {
        assist = is_one_tensor_ ? call_.assist[0].select(0, group.matrix)
                                : call_.assist[static_cast<size_t>(group.matrix)];
      }
      return grouped_product(kind(), {x, weight, assist, weight_scale, std::nullopt, std::nullopt,
                                      std::nullopt, x_scale});
    }
    const at::Tensor left = x.to(at::kDouble), right = weight.to(at::kDouble);
    if (scales_ == Scales::kFloat8) {
      return at::mm(left, right) * weight_scale * x_scale.unsqueeze(1);
    }
    const at::Tensor by_rows = spread(x_scale.to(at::kDouble).flatten(1), 1, kMxBlock, k());
    return at::mm(left * by_rows, right * spread_pairs(weight_scale, k()));
  }

  SwigluQuant call_;
  bool is_one_tensor_;
  Matrices matrices_;
  Scales scales_;
  int64_t n_ = 0;
  bool has_groups_ = false;
};

// Rows after those of the groups keep their values.
void write_int8(const SwigluProduct::Activated& activated, const Output& out,
                const Output& out_scale) {
  const at::Tensor values = activated.values.narrow(0, 0, activated.end);
  if (values.numel() == 0) return;
  const at::Tensor scale = at::amax(values.abs(), 1) / 127;
  const auto written = [&activated](const Output& output) {
    return Output(output.name(), output->narrow(0, 0, activated.end), output.is_written());
  };
  written(out) = to_int8(values / scale.unsqueeze(1));
  written(out_scale) = scale;
}

// `out_scale` is an Output or a StoredOutput.
template <class Scale>
void expect_int8_results(const SwigluProduct& product, const Output& out, const Scale& out_scale) {
  expect_tensor("output", out, at::kChar, {product.rows(), product.n() / 2});
  expect_row_scales(out_scale, {product.rows()});
}

// The first versions, which take INT8 in FRACTAL_NZ and INT4. The published check of an offset, an
// outputOffset, and a bias with INT8 only warns: they have no effect. `row` is the struct of a
// version.
template <class Version>
void swiglu_quant(Version& row, const StoredTensor& weight) {
  expect_dtype("x", row.x, at::kChar);
  EXPECT(weight.dtype != ACL_INT8 || is_private(weight.format), "weight has format ",
         static_cast<int>(weight.format), ", expected FRACTAL_NZ (",
         static_cast<int>(ACL_FORMAT_FRACTAL_NZ), ") as it is INT8");
  expect_all_matrices("weight", weight);
  SwigluQuant call{.x = as_stored(row.x),
                   .weight = {weight},
                   .weight_scale = {as_stored(row.weightScale)},
                   .assist_name = "bias",
                   .x_scale = as_stored(row.xScale),
                   .group_list = row.groupList};
  if (row.bias && weight.dtype != ACL_INT8) call.assist = {*row.bias};
  const SwigluProduct product(std::move(call));
  expect_int8_results(product, row.output, row.outputScale);
  write_int8(product.activated(at::kDouble), row.output, row.outputScale);
}

// The type of the product. 28 is none, which the documents' samples for Atlas A2 and A3 pass.
at::ScalarType product_type(int64_t dtype) {
  EXPECT(dtype == 0 || dtype == 1 || dtype == 27 || dtype == 28, "dequantDtype is ", dtype,
         ", expected 0 (FLOAT), 1 (FLOAT16), 27 (BFLOAT16) or 28 (none)");
  if (dtype == 0 || dtype == 28) return at::kDouble;
  return dtype == 1 ? at::kHalf : at::kBFloat16;
}

// The second versions. `row` is the struct of a version.
template <class Version>
void swiglu_quant_lists(Version& row, const std::vector<StoredTensor>& weight) {
  constexpr int64_t kMostGroups = 1024, kByMx = 2;
  const int64_t dequant_mode = row.dequantMode, dequant_dtype = row.dequantDtype;
  StoredOutput &out = row.output, &out_scale = row.outputScale;
  const bool is_int8 = !weight.empty() && weight[0].dtype == ACL_INT8;
  if (!is_int8) expect_absent("bias", row.bias);  // with INT8 the published check only warns
  expect_list_type(row.groupListType);
  const SwigluProduct product({row.x, weight, row.weightScale, "weightAssistMatrix",
                               row.weightAssistMatrix, row.xScale, row.smoothScale, row.groupList,
                               row.groupListType});
  expect_tuning("tuningConfig", row.tuningConfig, product.rows());
  const int64_t mode = product.scales() == Scales::kMx ? kByMx : product.has_groups() ? 1 : 0;
  EXPECT(dequant_mode == mode, "dequantMode is ", dequant_mode, ", expected ", mode,
         " as the dtypes and the shape of weightScale say");
  if (product.scales() == Scales::kIntegers) {
    expect_type(out, {ACL_INT8}, " as x is INT8 or INT4");
    expect_int8_results(product, out, out_scale);
    write_int8(product.activated(product_type(dequant_dtype)), out, out_scale);
    return;
  }
  expect_one_of("quantMode", row.quantMode, {mode}, " as dequantMode");
  EXPECT(row.groupList.numel() <= kMostGroups, "groupList has ", row.groupList.numel(),
         " elements, expected at most ", kMostGroups);
  expect_shape("output", out, {product.rows(), product.n() / 2});
  if (mode == kByMx) {
    expect_one_of("dequantDtype", dequant_dtype, {0}, " (FLOAT)");
    EXPECT(out.dtype() != ACL_FLOAT4_E2M1 || row.x.dtype == ACL_FLOAT4_E2M1,
           "output has dtype FLOAT4_E2M1, expected FLOAT8 as x is");
    const at::Tensor values = product.activated(at::kDouble).values.to(at::kFloat);
    const MxRule rule = mx_rule(values, "roundMode", "rint", out.dtype(), 0, 0, out);
    quantize_mx(values, 1, kMxBlock, rule, out, out_scale);
    return;
  }
  expect_type(out, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_row_scales(out_scale, {product.rows()});
  const auto [values, end] = product.activated(product_type(dequant_dtype));
  out_scale = quantize_rows(out, values, end);
}

}  // namespace

// Behaviour of GroupedMatmulSwigluQuant, GroupedMatmulSwigluQuantWeightNZ: A bias beside weights of
// INT8 has no effect.
ACLNN_STRUCT(GroupedMatmulSwigluQuant, (In, x), (Stored<In>, weight), (Optional<In>, bias),
             (Unused<Optional<In>>, offset, "reserved: CANN warns and does not read it"),
             (In, weightScale), (In, xScale), (In, groupList), (Out, output), (Out, outputScale),
             (Unused<Optional<Out>>, outputOffset, "reserved: CANN warns and leaves it as it is")) {
  swiglu_quant(*this, weight);
}
ACLNN_STRUCT(GroupedMatmulSwigluQuantWeightNZ, (In, x), (Stored<In>, weight), (Optional<In>, bias),
             (Unused<Optional<In>>, offset, "reserved: CANN warns and does not read it"),
             (In, weightScale), (In, xScale), (In, groupList), (Out, output), (Out, outputScale),
             (Unused<Optional<Out>>, outputOffset, "reserved: CANN warns and leaves it as it is")) {
  swiglu_quant(*this, as_blocked(weight));
}

// The second versions take lists, counts, INT4 for both matrices, and FLOAT8 and FLOAT4.
// Behaviour of GroupedMatmulSwigluQuantV2, GroupedMatmulSwigluQuantWeightNzV2: Rows after the last
// group stay as they are in INT8, and are 0 in FLOAT8 and FLOAT4.
// Limit of GroupedMatmulSwigluQuantV2, GroupedMatmulSwigluQuantWeightNzV2: Of the documented types,
// HIFLOAT8 and FLOAT4_E1M2 are not computed.
ACLNN_STRUCT(GroupedMatmulSwigluQuantV2, (Stored<In>, x), (Stored<Ins>, weight),
             (Stored<Ins>, weightScale), (Optional<Ins>, weightAssistMatrix), (Optional<In>, bias),
             (Stored<In>, xScale), (Optional<In>, smoothScale), (In, groupList),
             (int64_t, dequantMode), (int64_t, dequantDtype), (int64_t, quantMode),
             (int64_t, groupListType), (Optional<Ints>, tuningConfig), (Stored<Out>, output),
             (Stored<Out>, outputScale)) {
  swiglu_quant_lists(*this, weight);
}
ACLNN_STRUCT(GroupedMatmulSwigluQuantWeightNzV2, (Stored<In>, x), (Stored<Ins>, weight),
             (Stored<Ins>, weightScale), (Optional<Ins>, weightAssistMatrix), (Optional<In>, bias),
             (Stored<In>, xScale), (Optional<In>, smoothScale), (In, groupList),
             (int64_t, dequantMode), (int64_t, dequantDtype), (int64_t, quantMode),
             (int64_t, groupListType), (Optional<Ints>, tuningConfig), (Stored<Out>, output),
             (Stored<Out>, outputScale)) {
  std::vector<StoredTensor> blocked;
  for (const StoredTensor& each : weight) blocked.push_back(as_blocked(each));
  swiglu_quant_lists(*this, blocked);
}

}  // namespace aclnn_host::experts_grouped_matmul_swiglu_rows
