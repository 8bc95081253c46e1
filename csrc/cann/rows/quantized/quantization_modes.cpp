#include "cann/rows/quantized/quantization_modes.h"

#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {
namespace {

bool is_pair_of(const QuantizedMatmul& call, bool (*is_type)(aclDataType)) {
  return is_type(call.x1.dtype) && is_type(call.x2.dtype);
}
bool is_int8(aclDataType dtype) {
  return dtype == ACL_INT8;
}
bool is_float4_itself(aclDataType dtype) {
  return dtype == ACL_FLOAT4_E2M1;
}

// x1 as (..., m, k) and x2 as (..., k, n), with unpacked elements.
struct Matrices {
  at::Tensor a;
  at::Tensor b;
  int64_t m() const { return a.size(-2); }
  int64_t k() const { return a.size(-1); }
  int64_t n() const { return b.size(-1); }
};

// Products before Ascend950 limit the length of rows, except with scales of the vector units.
void check_row_length(const QuantizedMatmul& call) {
  const Product product = current_product();
  if (product == Product::kAscend950 || product == Product::kHost) return;
  constexpr int64_t kMost = 65535;
  const bool is_exempt = is_pair_of(call, is_int8) && product != Product::kAscend310P &&
                         !holds_bits(call.x2_scale.elements) && call.x2_scale.elements.dim() == 1;
  for (const StoredTensor* x : {&call.x1, &call.x2}) {
    EXPECT(is_exempt || x->elements.size(-1) <= kMost, x == &call.x1 ? "x1" : "x2", " has shape ",
           x->elements.sizes(), ", expected a last size of at most ", kMost);
  }
}

Matrices matrices_of(const QuantizedMatmul& call) {
  expect_dims("x1", call.x1.elements, 2, 6);
  expect_dims("x2", call.x2.elements, 2, 6);
  expect_format("x1", call.x1);
  expect_format("x2", call.x2, /*or_blocked=*/true);
  EXPECT(!is_int4(call.x1.dtype) || !call.transpose_x1,
         "transposeX1 is true, expected false for x1 of ", dtype_name(call.x1.dtype));
  for (const StoredTensor* x : {&call.x1, &call.x2}) {
    // Two elements of 4 bits share a byte along the dimension that is contiguous in memory.
    const int64_t inner = x->has_columns_first ? -2 : -1;
    EXPECT(
        (x->dtype != ACL_INT4 && x->dtype != ACL_FLOAT4_E2M1) || x->elements.size(inner) % 2 == 0,
        x == &call.x1 ? "x1" : "x2", " has shape ", x->elements.sizes(), ", expected an even ",
        x->has_columns_first ? "last but one" : "last", " size for elements of 4 bits");
  }
  check_row_length(call);
  Matrices result;
  result.a = call.transpose_x1 ? call.x1.elements.transpose(-1, -2) : call.x1.elements;
  if (call.x1.dtype == ACL_INT32) result.a = unpacked_rows(result.a);
  const at::Tensor b = call.transpose_x2 ? call.x2.elements.transpose(-1, -2) : call.x2.elements;
  result.b = unpacked_weight("x2", b, call.x2.dtype, result.k());
  EXPECT(result.b.size(-2) == result.k(), "x2 has ", result.b.size(-2),
         " elements to sum over, expected ", result.k(), " as x1 has");
  expect_batches("x2", result.b, "x1", result.a);
  EXPECT(result.k() > 0, "x1 and x2 have no elements to sum over, expected at least one");
  return result;
}

// Refuses batches.
void expect_matrices(const Matrices& x) {
  expect_dims("x1", x.a, 2);
  expect_dims("x2", x.b, 2);
}

// The product of two floating-point matrices, in DOUBLE.
at::Tensor double_product(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(a.to(at::kDouble), b.to(at::kDouble));
}

// The types that determine those of out and bias, for an error text.
std::string types_of(const QuantizedMatmul& call) {
  return text_of({" for x1 of ", dtype_name(call.x1.dtype), ", x2 of ", dtype_name(call.x2.dtype),
                  " and ", call.names.x2_scale, " of ", dtype_name(call.x2_scale.dtype)});
}
void expect_out(const QuantizedMatmul& call, std::initializer_list<aclDataType> accepted) {
  expect_type("out", acl_type(call.out), accepted, types_of(call).c_str());
}
void expect_bias(const QuantizedMatmul& call, std::initializer_list<aclDataType> accepted) {
  if (!call.bias) return;
  const std::string reason = text_of({types_of(call), " with out of ", call.out});
  expect_type(call.names.bias, acl_type(call.bias->scalar_type()), accepted, reason.c_str());
}
void expect_no_bias(const QuantizedMatmul& call) {
  EXPECT(!call.bias, call.names.bias, " is given, expected null", types_of(call));
}

// A bias is (n), or (1, n) for one matrix, or (batch, 1, n).
void check_bias_shape(const QuantizedMatmul& call, const at::Tensor& product) {
  if (!call.bias) return;
  const at::Tensor& bias = *call.bias;
  const int64_t dims = bias.dim();
  const bool fits =
      dims == 1 || (dims == 2 && product.dim() == 2 && bias.size(0) == 1) ||
      (dims == 3 && product.dim() == 3 && bias.size(0) == product.size(0) && bias.size(1) == 1);
  EXPECT(fits && bias.size(-1) == product.size(-1), call.names.bias, " has shape ", bias.sizes(),
         ", expected (", product.size(-1), ")", product.dim() == 3 ? " or (batch, 1, n)" : "",
         " for a product of shape ", product.sizes());
}

at::Tensor with_bias(const QuantizedMatmul& call, const at::Tensor& product) {
  check_bias_shape(call, product);
  return call.bias ? product + *call.bias : product;
}

// ---- scales of a tensor, channels and tokens

void expect_channels(const char* name, const at::Tensor& scale, int64_t n) {
  EXPECT(scale.dim() == 1 && (scale.size(0) == 1 || scale.size(0) == n), name, " has shape ",
         scale.sizes(), ", expected (1) or (", n, ")");
}

void check_integers(const QuantizedMatmul& call) {
  const bool is_wide = is_pair_of(call, is_int8);
  const bool has_tokens = call.x1_scale.has_value();
  if (holds_bits(call.x2_scale.elements)) {
    EXPECT(!has_tokens || (call.is_blocked && !is_wide), call.names.x1_scale, " has dtype ",
           dtype_name(has_tokens ? call.x1_scale->dtype : ACL_DT_UNDEFINED), ", expected null as ",
           call.names.x2_scale, " has dtype ", dtype_name(call.x2_scale.dtype));
    if (is_wide) {
      expect_out(call, {ACL_FLOAT16, ACL_BF16, ACL_INT8});
    } else {
      expect_out(call, {ACL_FLOAT16});
    }
    return expect_bias(call, {ACL_INT32});
  }
  const bool is_float = call.x2_scale.dtype == ACL_FLOAT;
  expect_type(call.names.x2_scale, call.x2_scale, {ACL_UINT64, ACL_INT64, ACL_FLOAT, ACL_BF16});
  const bool may_lack_tokens = call.is_blocked && !is_wide;
  if (call.names.x1_scale == nullptr && !is_wide) {
    const std::string reason = text_of({" as x1 has dtype ", dtype_name(call.x1.dtype)});
    expect_type(call.names.x2_scale, call.x2_scale, {ACL_UINT64, ACL_INT64}, reason.c_str());
  }
  if (call.out == at::kBFloat16) {
    EXPECT(has_tokens || is_wide || may_lack_tokens, call.names.x1_scale,
           " is null, expected FLOAT for x1 of ", dtype_name(call.x1.dtype), " and ",
           call.names.x2_scale, " of ", dtype_name(call.x2_scale.dtype));
    return expect_bias(call, {ACL_INT32, ACL_BF16, ACL_FLOAT});
  }
  if (call.out == at::kInt && is_wide && !has_tokens) return expect_bias(call, {ACL_INT32});
  if (is_float && (has_tokens || may_lack_tokens)) {
    expect_out(call, {ACL_FLOAT16, ACL_BF16});
    return expect_bias(call, {ACL_INT32, ACL_FLOAT16, ACL_FLOAT});
  }
  if (is_wide && !has_tokens) return expect_out(call, {ACL_BF16, ACL_INT32});
  expect_out(call, {ACL_BF16});
}

void check_floats(const QuantizedMatmul& call) {
  expect_out(call, {ACL_FLOAT16, ACL_BF16, ACL_FLOAT});
  expect_bias(call, {ACL_FLOAT});
  expect_type(call.names.x2_scale, call.x2_scale, {ACL_UINT64, ACL_INT64, ACL_FLOAT},
              " for x1 of FLOAT8");
  const bool has_bits = holds_bits(call.x2_scale.elements);
  EXPECT(call.x1_scale.has_value() != has_bits, call.names.x1_scale, " is ",
         call.x1_scale ? "given" : "null", ", expected ", has_bits ? "null" : "FLOAT", " as ",
         call.names.x2_scale, " has dtype ", dtype_name(call.x2_scale.dtype));
}

// The sums times x2Scale for each column, and x1Scale for each row. A bias is scaled, too, if it is
// INT32, or if the sums are floating-point numbers and x2Scale is given as bits.
at::Tensor by_channels(const QuantizedMatmul& call, const Matrices& x) {
  const bool are_integers = !is_float8(call.x1.dtype);
  are_integers ? check_integers(call) : check_floats(call);
  expect_channels(call.names.x2_scale, call.x2_scale.elements, x.n());
  EXPECT(call.group_size == 0, call.names.group_size, " is ", call.group_size,
         ", expected 0 for scales that are not of groups");
  expect_absent("yOffset", call.y_offset);
  EXPECT(!call.x2_offset || call.out == at::kChar, call.names.x2_offset,
         " is given, expected null for out of ", dtype_text(call.out));
  if (call.x2_offset) {
    expect_dtype(call.names.x2_offset, *call.x2_offset, at::kFloat);
    expect_channels(call.names.x2_offset, *call.x2_offset, x.n());
  }
  at::Tensor sums = are_integers ? exact_product(x.a, x.b) : double_product(x.a, x.b);
  const bool adds_first = call.bias && (are_integers ? call.bias->scalar_type() == at::kInt
                                                     : holds_bits(call.x2_scale.elements));
  check_bias_shape(call, sums);
  if (adds_first) sums.add_(*call.bias);
  if (call.out == at::kInt) return sums;
  if (call.out == at::kChar) return quantized(sums, call.x2_scale.elements, call.x2_offset);
  at::Tensor result = sums.to(at::kDouble);
  result.mul_(decoded_scale(call.x2_scale.elements));
  if (call.x1_scale) {
    const at::Tensor& scale = call.x1_scale->elements;
    expect_dtype(call.names.x1_scale, scale, at::kFloat);
    EXPECT(scale.dim() == 1 && (scale.size(0) == x.m() || (!are_integers && scale.size(0) == 1)),
           call.names.x1_scale, " has shape ", scale.sizes(), ", expected (", x.m(), ")");
    result.mul_(scale.unsqueeze(-1));
  }
  return adds_first ? result : with_bias(call, result);
}

// ---- scales of groups

struct Group {
  int64_t m;
  int64_t n;
  int64_t k;
};

// The sizes of groups; 0 if they follow from the shapes. The upper 16 bits of groupSize have no
// effect (aclnnQuantMatmulV5.md, parameters of the first stage).
Group group_of(const QuantizedMatmul& call) {
  return {(call.group_size >> 32) & 0xFFFF, (call.group_size >> 16) & 0xFFFF,
          call.group_size & 0xFFFF};
}

void expect_group(const QuantizedMatmul& call, int64_t k) {
  const Group group = group_of(call);
  EXPECT(group.m <= 1 && group.n <= 1 && (group.k == k || (group.k == 0 && k == 32)),
         call.names.group_size, " is ", call.group_size, ", which is groups of m, n and k of [",
         group.m, ", ", group.n, ", ", group.k, "], expected [1, 1, ", k, "] or zeros for m and n");
}

int64_t ceil_div(int64_t size, int64_t group) {
  return size / group + (size % group != 0 ? 1 : 0);
}

// Reads scales of groups of k as (..., size, k): from (..., ceil(k / 64), size, 2) or, with
// `k_is_last`, from (..., size, ceil(k / 64), 2).
at::Tensor mx_scale(const char* name, const StoredTensor& scale, const at::Tensor& matrix,
                    int64_t size, int64_t k, bool k_is_last) {
  std::vector<int64_t> expected = matrix.sizes().vec();
  const int64_t pairs = ceil_div(k, 64);
  expected[expected.size() - 2] = k_is_last ? size : pairs;
  expected[expected.size() - 1] = k_is_last ? pairs : size;
  expected.push_back(2);
  expect_shape(name, scale.elements, expected);
  const at::Tensor rows = k_is_last ? scale.elements : scale.elements.transpose(-2, -3);
  return spread(rows.flatten(-2), -1, 32, k);
}

at::Tensor by_mx(const QuantizedMatmul& call, const Matrices& x) {
  EXPECT(call.x1_scale, call.names.x1_scale, " is null, expected FLOAT8_E8M0 as ",
         call.names.x2_scale, " has");
  expect_type(call.names.x1_scale, *call.x1_scale, {ACL_FLOAT8_E8M0}, " as the other scale has");
  expect_type(call.names.x2_scale, call.x2_scale, {ACL_FLOAT8_E8M0}, " as the other scale has");
  const bool is_mixed = call.x1.dtype == ACL_FLOAT8_E4M3FN && is_float4(call.x2.dtype);
  const bool is_float4_pair = is_pair_of(call, is_float4_itself);
  EXPECT(is_mixed || is_float4_pair || is_pair_of(call, is_float8), "x1 has dtype ",
         dtype_name(call.x1.dtype), " and x2 has dtype ", dtype_name(call.x2.dtype),
         ", expected FLOAT8 or FLOAT4_E2M1 for both, or FLOAT8_E4M3FN and FLOAT4_E2M1");
  if (is_mixed) {
    expect_matrices(x);
    expect_out(call, {ACL_FLOAT16, ACL_BF16});
    expect_bias(call, {acl_type(call.out)});
    EXPECT(x.k() % 8 == 0, "x1 has ", x.k(), " columns, expected a multiple of 8");
  } else {
    expect_out(call, {ACL_FLOAT16, ACL_BF16, ACL_FLOAT});
    expect_bias(call, {ACL_FLOAT});
    EXPECT(!is_float4_pair || x.k() > 2, "x1 has ", x.k(), " columns, expected more than 2");
  }
  expect_group(call, 32);
  expect_absent(call.names.x2_offset, call.x2_offset);
  expect_absent("yOffset", call.y_offset);
  const at::Tensor of_a =
      mx_scale(call.names.x1_scale, *call.x1_scale, x.a, x.m(), x.k(), !call.transpose_x1);
  const at::Tensor of_b =
      mx_scale(call.names.x2_scale, call.x2_scale, x.b, x.n(), x.k(), call.transpose_x2);
  const at::Tensor b = x.b.to(at::kDouble) * of_b.transpose(-1, -2);
  return with_bias(call, double_product(x.a.to(at::kDouble) * of_a, b));
}

// Expands the scales of blocks of these sizes to (..., rows, columns) of a matrix.
at::Tensor block_scale(const char* name, const StoredTensor& scale, const at::Tensor& matrix,
                       bool is_transposed, int64_t row_group, int64_t column_group) {
  const at::Tensor blocks = is_transposed ? scale.elements.transpose(-1, -2) : scale.elements;
  std::vector<int64_t> expected = matrix.sizes().vec();
  expected[expected.size() - 2] = ceil_div(matrix.size(-2), row_group);
  expected[expected.size() - 1] = ceil_div(matrix.size(-1), column_group);
  EXPECT(blocks.sizes() == at::IntArrayRef(expected), name, " has shape ", scale.elements.sizes(),
         ", expected ", at::IntArrayRef(expected), is_transposed ? " transposed" : "");
  return spread(spread(blocks.to(at::kDouble), -2, row_group, matrix.size(-2)), -1, column_group,
                matrix.size(-1));
}

// The size of a group; if it is not given, it follows from the size and the number of scales.
int64_t inferred(const char* name, int64_t group, int64_t size, int64_t scales) {
  if (group != 0) return group;
  EXPECT(scales > 0 && size % scales == 0, "groupSize has 0 for ", name, ", and ", size,
         " elements are no multiple of ", scales, " scales; expected one, or a groupSize");
  return size / scales;
}

at::Tensor by_blocks(const QuantizedMatmul& call, const Matrices& x) {
  const bool are_integers = is_pair_of(call, is_int8);
  EXPECT(are_integers || is_pair_of(call, is_float8), "x1 has dtype ", dtype_name(call.x1.dtype),
         " and x2 has dtype ", dtype_name(call.x2.dtype),
         ", expected INT8 or FLOAT8 for scales of blocks");
  if (are_integers) {
    expect_out(call, {ACL_BF16});
    expect_bias(call, {ACL_FLOAT});
  } else {
    expect_out(call, {ACL_FLOAT16, ACL_BF16, ACL_FLOAT});
    expect_no_bias(call);
  }
  expect_absent("yOffset", call.y_offset);
  const at::Tensor& of_a = call.x1_scale->elements;
  const at::Tensor& of_b = call.x2_scale.elements;
  const Group given = group_of(call);
  const Group group{
      inferred("m", given.m, x.m(), of_a.size(call.transpose_x1 ? -1 : -2)),
      inferred("n", given.n, x.n(), of_b.size(call.transpose_x2 ? -2 : -1)),
      inferred("k", given.k, x.k(), of_a.size(call.transpose_x1 ? -2 : -1)),
  };
  EXPECT((group.m == 1 || (group.m == 128 && !are_integers)) && group.n == 128 && group.k == 128,
         "groupSize means groups of m, n and k of [", group.m, ", ", group.n, ", ", group.k,
         "], expected [1, 128, 128] or, for FLOAT8, [128, 128, 128]");
  const at::Tensor a = x.a.to(at::kDouble) * block_scale(call.names.x1_scale, *call.x1_scale, x.a,
                                                         call.transpose_x1, group.m, group.k);
  const at::Tensor b = x.b.to(at::kDouble) * block_scale(call.names.x2_scale, call.x2_scale, x.b,
                                                         call.transpose_x2, group.k, group.n);
  return with_bias(call, double_product(a, b));
}

// x2 with scales and optional offsets of groups of k, and x1 with scales of rows.
at::Tensor by_groups(const QuantizedMatmul& call, const Matrices& x) {
  expect_type("x1", call.x1, {ACL_INT4}, " with an x2Offset of groups");
  expect_type("x2", call.x2, {ACL_INT4}, " with an x2Offset of groups");
  expect_matrices(x);
  expect_out(call, {ACL_FLOAT16, ACL_BF16});
  expect_no_bias(call);
  expect_absent("yOffset", call.y_offset);
  expect_group(call, 256);
  EXPECT(x.k() % 1024 == 0 && x.n() % 256 == 0 && call.transpose_x2, "x2 has shape ",
         call.x2.elements.sizes(), call.transpose_x2 ? "" : " and is not transposed",
         ", expected (n, k) with n a multiple of 256 and k of 1024");
  const int64_t groups[] = {x.k() / 256, x.n()};
  expect_shape(call.names.x1_scale, call.x1_scale->elements, {x.m(), 1});
  expect_shape(call.names.x2_scale, call.x2_scale.elements, groups);
  expect_shape(call.names.x2_offset, *call.x2_offset, groups);
  expect_dtype(call.names.x2_offset, *call.x2_offset, at::kHalf);
  const at::Tensor b = (x.b - spread(call.x2_offset->to(at::kDouble), 0, 256, x.k())) *
                       spread(call.x2_scale.elements, 0, 256, x.k());
  return double_product(x.a, b) * call.x1_scale->elements;
}

// INT8 times INT4. The device splits x1 into signed 4-bit halves, and its sums lack 8 times the
// column sums of x2: the caller passes this as yOffset, which is added.
at::Tensor by_halves(const QuantizedMatmul& call, const Matrices& x) {
  expect_out(call, {ACL_FLOAT16, ACL_BF16});
  expect_no_bias(call);
  expect_absent(call.names.x2_offset, call.x2_offset);
  EXPECT(call.x1_scale && call.y_offset && holds_bits(call.x2_scale.elements),
         "x1Scale or yOffset is null or x2Scale has dtype ", dtype_name(call.x2_scale.dtype),
         ", expected FLOAT, FLOAT and UINT64 or INT64 for x1 of INT8 and x2 of INT32");
  expect_matrices(x);
  constexpr int64_t kLimit = 29576;
  EXPECT(!call.transpose_x1 && x.k() % 2 == 0 && x.k() < kLimit, "x1 has shape ",
         call.x1.elements.sizes(), call.transpose_x1 ? " and is transposed" : "",
         ", expected (m, k) with an even k below ", kLimit);
  const at::Tensor& of_rows = call.x1_scale->elements;
  expect_dtype(call.names.x1_scale, of_rows, at::kFloat);
  EXPECT(of_rows.numel() == x.m() && (of_rows.dim() == 1 || of_rows.dim() == 2) &&
             of_rows.size(0) == x.m(),
         "x1Scale has shape ", of_rows.sizes(), ", expected (", x.m(), ") or (", x.m(), ", 1)");
  expect_tensor("yOffset", *call.y_offset, at::kFloat, {x.n()});
  at::Tensor scale = decoded_scale(call.x2_scale.elements);
  if (scale.dim() == 1) {
    expect_shape(call.names.x2_scale, scale, {x.n()});
    EXPECT(call.group_size == 0, call.names.group_size, " is ", call.group_size,
           ", expected 0 for an x2Scale of one dimension");
  } else {
    expect_group(call, 256);
    EXPECT(x.k() % 256 == 0, "x1 has ", x.k(), " columns, expected a multiple of 256");
    expect_shape(call.names.x2_scale, scale, {x.k() / 256, x.n()});
    scale = spread(scale, 0, 256, x.k());
  }
  const at::Tensor product = double_product(x.a.to(at::kDouble) - 8, x.b.to(at::kDouble) * scale);
  return (product + *call.y_offset) * of_rows.reshape({-1, 1});
}

// FLOAT8 times FLOAT4 with scales of groups, and scales of the result's columns.
at::Tensor by_column_scales(const QuantizedMatmul& call, const Matrices& x) {
  EXPECT(call.x1.dtype == ACL_FLOAT8_E4M3FN && is_float4(call.x2.dtype) && !call.x1_scale,
         "yScale is given, expected null for x1 of ", dtype_name(call.x1.dtype), ", x2 of ",
         dtype_name(call.x2.dtype), call.x1_scale ? " and an x1Scale" : "");
  expect_out(call, {ACL_FLOAT16, ACL_BF16});
  expect_dtype(call.names.x2_scale, call.x2_scale.elements, call.out);
  expect_no_bias(call);
  expect_absent(call.names.x2_offset, call.x2_offset);
  expect_absent("yOffset", call.y_offset);
  expect_group(call, 32);
  expect_matrices(x);
  EXPECT(!call.transpose_x1 && x.k() % 32 == 0, "x1 has shape ", call.x1.elements.sizes(),
         call.transpose_x1 ? " and is transposed" : "",
         ", expected (m, k) with k a multiple of 32");
  EXPECT(holds_bits(*call.y_scale), "yScale has dtype ", dtype_text(call.y_scale->scalar_type()),
         ", expected UINT64 or INT64");
  expect_shape("yScale", *call.y_scale, {1, x.n()});
  const at::Tensor b = x.b.to(at::kDouble) * block_scale(call.names.x2_scale, call.x2_scale, x.b,
                                                         call.transpose_x2, 32, 1);
  return double_product(x.a, b) * decoded_scale(*call.y_scale);
}

bool is_of_groups(const std::optional<StoredTensor>& scale) {
  return scale && scale->dtype == ACL_FLOAT && scale->elements.dim() >= 2;
}

}  // namespace

at::Tensor product_of(const QuantizedMatmul& call) {
  if (call.is_blocked) expect_blocked_matrix("x2", call.x2);
  const Matrices x = matrices_of(call);
  if (call.y_scale && call.y_scale->numel() > 0) return by_column_scales(call, x);
  const bool has_mx = call.x2_scale.dtype == ACL_FLOAT8_E8M0 ||
                      (call.x1_scale && call.x1_scale->dtype == ACL_FLOAT8_E8M0);
  if (has_mx) return by_mx(call, x);
  if (call.x1.dtype == ACL_INT8 && call.x2.dtype == ACL_INT32) return by_halves(call, x);
  if (is_of_groups(call.x1_scale) && is_of_groups(call.x2_scale)) {
    return call.x2_offset ? by_groups(call, x) : by_blocks(call, x);
  }
  EXPECT(is_pair_of(call, is_int8) || is_pair_of(call, is_int4) || is_pair_of(call, is_float8),
         "x1 has dtype ", dtype_name(call.x1.dtype), " and x2 has dtype ",
         dtype_name(call.x2.dtype),
         ", expected INT8 for both, INT4 or INT32 of them for both, or FLOAT8 for both");
  return by_channels(call, x);
}

}  // namespace aclnn_host
