// The steps before multi-head latent attention, with INT8 weights: a token is quantised and becomes
// the queries of all heads and the key, which goes to a cache; each has a rotary part and a part
// without position.

#include "cann/rows/attention/fractal_weights.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/integers.h"
#include "cann/rows/quantized/quant_param.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_mla_preprocess_rows {

namespace {

constexpr int64_t kKeySize = 512, kRopeSize = 64, kBoth = kKeySize + kRopeSize;
// CANN's numbers for the cache: keys and rotary parts in one, in two, and in FRACTAL_NZ, where the
// elements of 32 bytes of all tokens of a block follow each other.
constexpr int64_t kJoined = 0, kSplit = 1, kFractalInt8 = 2, kFractal = 3;

// The sizes of a call.
struct Sizes {
  int64_t tokens, hidden, heads, head_size, low_rank;
  int64_t of_head() const { return head_size + kRopeSize; }
};

at::Tensor matrix_of(const char* name, const StoredTensor& weight, at::IntArrayRef shape) {
  expect_type(name, weight, {ACL_INT8},
              "; the document does not say what is computed with floating-point weights");
  const at::Tensor matrix = weight_matrix(name, weight, /*must_be_fractal=*/true);
  expect_shape(name, matrix, shape);
  return matrix;
}

template <class Row>
Sizes sizes_of(const Row& row) {
  expect_dtype("input", row.input, {at::kHalf, at::kBFloat16});
  expect_dims("input", row.input, 2);
  expect_dims("wuk", row.wuk, 3);
  expect_dims("gamma1", row.gamma1, 1);
  const Sizes sizes{row.input.size(0), row.input.size(1), row.wuk.size(0), row.wuk.size(1),
                    row.gamma1.size(0)};
  constexpr int64_t kMostTokens = 256, kLeastHidden = 2048, kMostHidden = 10240, kHiddenStep = 256;
  expect_range("the first dimension of input", sizes.tokens, 0, kMostTokens);
  expect_multiple("the last dimension of input", sizes.hidden, kHiddenStep, kMostHidden);
  expect_at_least("the last dimension of input", sizes.hidden, kLeastHidden);
  constexpr int64_t kMostHeads = 128, kMostHeadSize = 256, kMostLowRank = 4096;
  expect_range("the first dimension of wuk", sizes.heads, 1, kMostHeads);
  expect_multiple("the second dimension of wuk", sizes.head_size, 16, kMostHeadSize);
  expect_multiple("the size of gamma1", sizes.low_rank, 32, kMostLowRank);
  return sizes;
}

template <class Row>
void check_attributes(const Row& row) {
  expect_one_of("qRotaryCoeff", row.qRotaryCoeff, {2});
  expect_one_of("kRotaryCoeff", row.kRotaryCoeff, {2});
  EXPECT(row.transposeWdq, "transposeWdq is false, expected true");
  EXPECT(row.transposeWuq, "transposeWuq is false, expected true");
  EXPECT(row.transposeWuk, "transposeWuk is false, expected true");
  expect_range("cacheMode", row.cacheMode, kJoined, kFractal);
  expect_one_of("quantMode", row.quantMode, {0}, "; the document calls the others not implemented");
  expect_one_of("wdkvSplitCount", row.wdkvSplitCount, {1});
}

void require_in_mode(const char* name, bool is_given, int64_t mode) {
  require_given(is_given, name, " is null, expected a tensor as cacheMode is ", mode);
}

template <class Row>
void check_inputs(const Row& row, const Sizes& sizes) {
  expect_shape("gamma0", row.gamma0, {sizes.hidden});
  expect_shape("beta0", row.beta0, {sizes.hidden});
  expect_shape("quantScale0", row.quantScale0, {1});
  expect_tensor("quantOffset0", row.quantOffset0, at::kChar, {1});
  expect_shape("beta1", row.beta1, {sizes.low_rank});
  expect_shape("quantScale1", row.quantScale1, {1});
  expect_tensor("quantOffset1", row.quantOffset1, at::kChar, {1});
  const at::ScalarType scale = row.input.scalar_type() == at::kHalf ? at::kLong : at::kFloat;
  const int64_t columns = sizes.low_rank + kBoth, query = sizes.heads * sizes.of_head();
  expect_tensor("deScale0", row.deScale0, scale, {columns});
  // An empty tensor stands for no bias.
  expect_dtype("bias0", row.bias0, at::kInt);
  if (row.bias0.numel() > 0) expect_shape("bias0", row.bias0, {columns});
  expect_tensor("deScale1", row.deScale1, scale, {query});
  expect_tensor("bias1", row.bias1, at::kInt, {query});
  expect_shape("gamma2", row.gamma2, {kKeySize});
  expect_shape("cos", row.cos, {sizes.tokens, kRopeSize});
  expect_shape("sin", row.sin, {sizes.tokens, kRopeSize});
  expect_shape("wuk", row.wuk, {sizes.heads, sizes.head_size, kKeySize});
  expect_tensor("slotMapping", row.slotMapping, at::kInt, {sizes.tokens});
  if (row.cacheMode == kFractalInt8) {
    require_in_mode("ctkvScale", row.ctkvScale.has_value(), kFractalInt8);
    require_in_mode("qNopeScale", row.qNopeScale.has_value(), kFractalInt8);
  }
  if (row.ctkvScale) expect_shape("ctkvScale", *row.ctkvScale, {1});
  if (row.qNopeScale) {
    expect_sizes("qNopeScale", *row.qNopeScale, {Size::or_one(sizes.heads)});
  }
}

// Checks one of the caches and the input that is the same tensor.
void check_cache(const char* input_name, const OptionalTensor& input, const Output& cache,
                 at::IntArrayRef shape, at::ScalarType dtype) {
  expect_tensor(cache.name(), cache, dtype, shape);
  if (input) expect_tensor(input_name, *input, dtype, shape);
}

template <class Row>
void check_outputs(const Row& row, const Sizes& sizes) {
  const at::ScalarType dtype = row.input.scalar_type();
  const int64_t mode = row.cacheMode.value();
  const bool is_int8 = mode == kFractalInt8, is_split = mode != kJoined;
  const at::ScalarType key_dtype = is_int8 ? at::kChar : dtype;
  expect_tensor("qOut", row.qOut, key_dtype,
                {sizes.tokens, sizes.heads, is_split ? kKeySize : kBoth});
  const at::Tensor& cache = row.kvCacheOut;
  expect_dims("kvCacheOut", cache, 4);
  const bool is_fractal = mode >= kFractalInt8;
  const int64_t blocks = cache.size(0), block = cache.size(is_fractal ? 2 : 1);
  const auto shape = [&](int64_t size, int64_t width) {
    return is_fractal ? std::vector<int64_t>{blocks, size / width, block, width}
                      : std::vector<int64_t>{blocks, block, 1, size};
  };
  check_cache("kvCache", row.kvCache, row.kvCacheOut,
              shape(is_split ? kKeySize : kBoth, is_int8 ? 32 : 16), key_dtype);
  if (has_values(row.slotMapping)) check_bounds("slotMapping", row.slotMapping, blocks * block, -1);
  if (!is_split) return;
  require_in_mode("qRopeOut", static_cast<bool>(row.qRopeOut), mode);
  require_in_mode("krCacheOut", static_cast<bool>(row.krCacheOut), mode);
  expect_tensor("qRopeOut", *row.qRopeOut, dtype, {sizes.tokens, sizes.heads, kRopeSize});
  check_cache("kvCacheRope", row.kvCacheRope, *row.krCacheOut, shape(kRopeSize, 16), dtype);
}

// Rounds to FLOAT16 and then to INT8, as CANN's kernel does.
at::Tensor to_int8_by_half(const at::Tensor& x) {
  return saturated(at::round(x.to(at::kHalf).to(at::kFloat)), -128, 127);
}
at::Tensor quantised(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& offset) {
  return to_int8_by_half(x * wide(scale).reciprocal() + offset.to(at::kFloat));
}

// The scales of columns; with FLOAT16 they are parameters of aclnnTransQuantParam.
at::Tensor column_scales(const at::Tensor& scales) {
  if (scales.scalar_type() == at::kFloat) return scales;
  if (!has_values(scales)) return at::empty_like(scales, at::kFloat);
  std::vector<float> values;
  for (const int64_t param : integers_in(scales)) {
    values.push_back(scale_of(static_cast<uint64_t>(param)));
  }
  return at::tensor(values);
}
// The product of integers with the transpose of a weight, scaled and rounded to `dtype`.
at::Tensor product(const at::Tensor& integers, const at::Tensor& weight, const at::Tensor& bias,
                   const at::Tensor& scales, at::ScalarType dtype) {
  // DOUBLE sums the products exactly.
  at::Tensor sums = at::matmul(integers.to(at::kDouble), weight.to(at::kDouble).t());
  if (bias.numel() > 0) sums = sums + bias.to(at::kDouble);
  return wide((sums.to(at::kFloat) * column_scales(scales)).to(dtype));
}

// A cache with tokens of (tokens, elements) in their slots.
at::Tensor with_tokens(const Output& cache, const at::Tensor& slots, const at::Tensor& tokens,
                       bool is_fractal) {
  const int64_t size = cache->size(3);
  const at::Tensor parts = tokens.view({tokens.size(0), tokens.size(1) / size, size});
  return is_fractal ? updated(cache, slots, parts, heads_last) : updated(cache, slots, parts);
}

// Writes the key of each token, the first columns of `projected`.
template <class Row>
void write_keys(Row& row, const at::Tensor& projected) {
  const at::Tensor slots = row.slotMapping.to(at::kLong);
  const bool is_fractal = row.cacheMode >= kFractalInt8;
  at::Tensor key =
      rms_normalized(projected.narrow(1, 0, kKeySize), row.gamma2, row.epsilon.value());
  const at::Tensor rope =
      rotated_halves(projected.narrow(1, kKeySize, kRopeSize), wide(row.cos), wide(row.sin));
  if (row.cacheMode == kJoined) {
    row.kvCacheOut = with_tokens(row.kvCacheOut, slots, at::cat({key, rope}, 1), false);
    return;
  }
  if (row.cacheMode == kFractalInt8) {
    key = to_int8_by_half(key * wide(*row.ctkvScale).reciprocal());
  }
  row.kvCacheOut = with_tokens(row.kvCacheOut, slots, key, is_fractal);
  row.krCacheOut = with_tokens(*row.krCacheOut, slots, rope, is_fractal);
}

// Writes the queries of (tokens, heads, elements).
template <class Row>
void write_queries(Row& row, const at::Tensor& heads, int64_t size) {
  at::Tensor query =
      at::matmul(heads.narrow(2, 0, size).transpose(0, 1), wide(row.wuk)).transpose(0, 1);
  const at::Tensor rope = rotated_halves(heads.narrow(2, size, kRopeSize),
                                         wide(row.cos).unsqueeze(1), wide(row.sin).unsqueeze(1));
  if (row.cacheMode == kJoined) {
    row.qOut = at::cat({query, rope}, 2);
    return;
  }
  if (row.cacheMode == kFractalInt8) {
    query = wide(query.to(row.input.scalar_type()));
    query = to_int8_by_half(query * wide(*row.qNopeScale).unsqueeze(1)).to(at::kChar);
  }
  row.qOut = query;
  row.qRopeOut = rope;
}

template <class Row>
void preprocess(Row& row) {
  check_attributes(row);
  const Sizes sizes = sizes_of(row);
  check_inputs(row, sizes);
  check_outputs(row, sizes);
  const at::Tensor down = matrix_of("wdqkv", row.wdqkv, {sizes.low_rank + kBoth, sizes.hidden});
  const at::Tensor up = matrix_of("wuq", row.wuq, {sizes.heads * sizes.of_head(), sizes.low_rank});

  const at::ScalarType dtype = row.input.scalar_type();
  at::Tensor x = wide(row.input);
  if (row.doRmsNorm) x = rms_normalized(x, row.gamma0, row.epsilon.value()) + wide(row.beta0);
  const at::Tensor projected = product(quantised(x, row.quantScale0, row.quantOffset0), down,
                                       row.bias0, row.deScale0, dtype);
  const at::Tensor low_rank =
      rms_normalized(projected.narrow(1, kBoth, sizes.low_rank), row.gamma1, row.epsilon.value()) +
      wide(row.beta1);
  if constexpr (requires { row.qDownOut; }) {
    require_asked("qDownOut", row.qDownOut, "qDownOutFlag", row.qDownOutFlag);
    if (row.qDownOutFlag) {
      expect_tensor("qDownOut", *row.qDownOut, dtype, {sizes.tokens, sizes.low_rank});
      row.qDownOut = low_rank;
    }
  }
  const at::Tensor heads = product(quantised(low_rank, row.quantScale1, row.quantOffset1), up,
                                   row.bias1, row.deScale1, dtype)
                               .unflatten(1, {sizes.heads, sizes.of_head()});
  write_queries(row, heads, sizes.head_size);
  write_keys(row, projected);
}

constexpr const char* kReserved = "reserved; CANN does not read it";

}  // namespace

// Behaviour of MlaPreprocess*: The columns of wdqkv are those of the key, of its rotary part and of
// the query, and results are rounded to the input's type after each product and to FLOAT16 before
// INT8, as in CANN's kernel. kvCacheOut and krCacheOut are the caches; kvCache and kvCacheRope are
// not read. Blocks may have any number and size, and qNopeScale one element for each head. A token
// with slot -1 is not written.
// Limit of MlaPreprocess*: Weights of FLOAT16 and BFLOAT16 are refused with 161002, for which the
// document does not say what is computed.
ACLNN_STRUCT(MlaPreprocess, (Floating<In>, input), (SameDtype<In>, gamma0, "input"),
             (SameDtype<In>, beta0, "input"), (SameDtype<In>, quantScale0, "input"),
             (In, quantOffset0), (Stored<In>, wdqkv), (In, deScale0), (In, bias0),
             (SameDtype<In>, gamma1, "input"), (SameDtype<In>, beta1, "input"),
             (SameDtype<In>, quantScale1, "input"), (In, quantOffset1), (Stored<In>, wuq),
             (In, deScale1), (In, bias1), (SameDtype<In>, gamma2, "input"),
             (SameDtype<In>, cos, "input"), (SameDtype<In>, sin, "input"),
             (SameDtype<In>, wuk, "input"), (Blocked<In>, kvCache),
             (Optional<Blocked<In>>, kvCacheRope), (In, slotMapping),
             (SameDtype<Optional<In>>, ctkvScale, "input"),
             (SameDtype<Optional<In>>, qNopeScale, "input"), (Unused<int64_t>, wdqDim, kReserved),
             (Unused<int64_t>, qRopeDim, kReserved), (Unused<int64_t>, kRopeDim, kReserved),
             (double, epsilon), (int64_t, qRotaryCoeff), (int64_t, kRotaryCoeff),
             (bool, transposeWdq), (bool, transposeWuq), (bool, transposeWuk), (int64_t, cacheMode),
             (int64_t, quantMode), (bool, doRmsNorm), (int64_t, wdkvSplitCount), (Out, qOut),
             (Blocked<InOut>, kvCacheOut), (Optional<Out>, qRopeOut),
             (Optional<Blocked<InOut>>, krCacheOut)) {
  preprocess(*this);
}
// With qDownOutFlag the normalised low-rank queries are an output, too.
ACLNN_STRUCT(
    MlaPreprocessV2, (Floating<In>, input), (SameDtype<In>, gamma0, "input"),
    (SameDtype<In>, beta0, "input"), (SameDtype<In>, quantScale0, "input"), (In, quantOffset0),
    (Stored<In>, wdqkv), (In, deScale0), (In, bias0), (SameDtype<In>, gamma1, "input"),
    (SameDtype<In>, beta1, "input"), (SameDtype<In>, quantScale1, "input"), (In, quantOffset1),
    (Stored<In>, wuq), (In, deScale1), (In, bias1), (SameDtype<In>, gamma2, "input"),
    (SameDtype<In>, cos, "input"), (SameDtype<In>, sin, "input"), (SameDtype<In>, wuk, "input"),
    (Blocked<In>, kvCache), (Optional<Blocked<In>>, kvCacheRope), (In, slotMapping),
    (SameDtype<Optional<In>>, ctkvScale, "input"), (SameDtype<Optional<In>>, qNopeScale, "input"),
    (Unused<int64_t>, wdqDim, kReserved), (Unused<int64_t>, qRopeDim, kReserved),
    (Unused<int64_t>, kRopeDim, kReserved), (double, epsilon), (int64_t, qRotaryCoeff),
    (int64_t, kRotaryCoeff), (bool, transposeWdq), (bool, transposeWuq), (bool, transposeWuk),
    (int64_t, cacheMode), (int64_t, quantMode), (bool, doRmsNorm), (int64_t, wdkvSplitCount),
    (bool, qDownOutFlag), (Out, qOut), (Blocked<InOut>, kvCacheOut), (Optional<Out>, qRopeOut),
    (Optional<Blocked<InOut>>, krCacheOut), (Optional<Out>, qDownOut)) {
  preprocess(*this);
}

}  // namespace aclnn_host::attention_mla_preprocess_rows
