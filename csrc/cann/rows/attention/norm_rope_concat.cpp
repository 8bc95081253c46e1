// Queries, keys and values of two sequences, of an image and of a text: both are normalised by
// head, joined, and their first positions rotated.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/turns.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_norm_rope_concat_rows {

namespace {

// CANN's numbers.
constexpr int64_t kNoNorm = 0, kLayerNorm = 1, kAffineLayerNorm = 2, kAffineRmsNorm = 4;
constexpr int64_t kNoRope = 0, kInterleave = 1, kHalf = 2;

bool is_layer_norm(int64_t type) {
  return type == kLayerNorm || type == kAffineLayerNorm;
}
bool is_affine(int64_t type) {
  return type == kAffineLayerNorm || type == kAffineRmsNorm;
}

// Checks the attributes that both functions have, and the sizes of the heads.
template <class Row>
void check_modes(const Row& row, const at::Tensor& like) {
  expect_dtype("query", like, {at::kFloat, at::kHalf, at::kBFloat16});
  expect_dims("query", row.query, 4);
  constexpr int64_t kMostElements = 1024;
  const int64_t size = row.query.size(3);
  EXPECT(size >= 2 && size <= kMostElements && size % 2 == 0, "the last dimension of query is ",
         size, ", expected an even number from 2 to ", kMostElements);
  expect_range("ropeType", row.ropeType, kNoRope, kHalf);
  expect_one_of("concatOrder", row.concatOrder, {0, 1});
}

// Checks that x is (batch, sequence, heads, elements) of query, for another sequence.
void check_tokens(const char* name, const at::Tensor& x, const at::Tensor& query) {
  expect_dims(name, x, 4);
  expect_shape(name, x, {query.size(0), x.size(1), query.size(2), query.size(3)});
}
void check_tokens(const char* name, const OptionalTensor& x, const at::Tensor& query) {
  if (x) check_tokens(name, *x, query);
}
int64_t length_of(const OptionalTensor& x) {
  return x ? x->size(1) : 0;
}

// The type of a norm, with the name of its argument.
struct NormType {
  const char* name;
  int64_t type;
};
// Checks an argument that the type of a norm requires.
void check_needed(const char* name, const OptionalTensor& tensor, at::IntArrayRef shape,
                  bool is_needed, const NormType& by) {
  EXPECT(tensor || !is_needed, name, " is null, expected a tensor as ", by.name, " is ", by.type);
  if (tensor) expect_shape(name, *tensor, shape);
}

// sin and cos are (positions, elements), for the first positions of both joined sequences.
template <class Row>
void check_rope(const Row& row, int64_t queries, int64_t keys) {
  const int64_t most = std::min(queries, keys);
  const auto check = [&](const char* name, const OptionalTensor& part) {
    EXPECT(part || row.ropeType == kNoRope, name, " is null, expected a tensor as ropeType is ",
           row.ropeType.value());
    if (!part) return;
    expect_dims(name, *part, 2);
    const int64_t positions = part->size(0);
    EXPECT(positions >= 1 && positions <= most, name, " has shape ", part->sizes(),
           ", expected 1 to ", most, " positions, those of the shorter joined sequence");
    expect_shape(name, *part, {positions, row.query.size(3)});
  };
  check("ropeSin", row.ropeSin);
  check("ropeCos", row.ropeCos);
  if (row.ropeSin && row.ropeCos) expect_shape("ropeCos", *row.ropeCos, row.ropeSin->sizes());
}

at::Tensor turned(const at::Tensor& x, int64_t rope) {
  return rope == kInterleave ? turned_neighbours(x) : turned_halves(x);
}
// Applies `rotate`, a function of the first positions, cos and sin, to x of (batch, heads,
// positions, elements).
template <class Row, class Rotate>
at::Tensor with_first_rotated(const at::Tensor& x, const Row& row, Rotate rotate) {
  if (row.ropeType == kNoRope) return x;
  const int64_t count = row.ropeSin->size(0);
  const at::Tensor first = rotate(x.narrow(2, 0, count), wide(*row.ropeCos), wide(*row.ropeSin));
  return at::cat({first, x.narrow(2, count, x.size(2) - count)}, 2);
}

// Joins the tokens of image and text, in the order of concatOrder, with the heads first.
at::Tensor joined_heads(const at::Tensor& image, const std::optional<at::Tensor>& text,
                        int64_t order) {
  if (!text) return image.transpose(1, 2);
  const at::Tensor both = order == 0 ? at::cat({image, *text}, 1) : at::cat({*text, image}, 1);
  return both.transpose(1, 2);
}

// ---- forward

// Normalises heads in FLOAT, and writes their means and inverse deviations for the gradient.
class Normalization {
 public:
  Normalization(int64_t type, double epsilon, bool is_training)
      : type_(type), epsilon_(epsilon), saves_(is_training && is_layer_norm(type)) {}

  at::Tensor operator()(const at::Tensor& heads, const OptionalTensor& weight,
                        const OptionalTensor& bias, OptionalOutput& mean,
                        OptionalOutput& rstd) const {
    const at::Tensor x = wide(heads);
    if (type_ == kNoNorm) return x;
    const at::Tensor average = x.mean(-1, /*keepdim=*/true);
    const at::Tensor centred = is_layer_norm(type_) ? x - average : x;
    const at::Tensor inverse = (centred.square().mean(-1, /*keepdim=*/true) + epsilon_).rsqrt();
    if (saves_) {
      save(mean, average);
      save(rstd, inverse);
    }
    const at::Tensor y = centred * inverse;
    if (type_ == kAffineLayerNorm) return y * wide(*weight) + wide(*bias);
    return type_ == kAffineRmsNorm ? y * wide(*weight) : y;
  }

 private:
  static void save(OptionalOutput& out, const at::Tensor& values) {
    if (out) expect_float(*out, values.sizes());
    out = values;
  }

  int64_t type_;
  double epsilon_;
  bool saves_;
};

// Checks the weights and biases of the norms.
template <class Row>
void check_parameters(const Row& row) {
  const int64_t size = row.query.size(3);
  const NormType norm{"normType", row.normType}, added{"normAddedType", row.normAddedType};
  const auto check = [&](const char* name, const OptionalTensor& weight, const char* bias_name,
                         const OptionalTensor& bias, bool has_tokens, const NormType& by) {
    check_needed(name, weight, {size}, has_tokens && is_affine(by.type), by);
    check_needed(bias_name, bias, {size}, has_tokens && by.type == kAffineLayerNorm, by);
  };
  check("normQueryWeight", row.normQueryWeight, "normQueryBias", row.normQueryBias, true, norm);
  check("normKeyWeight", row.normKeyWeight, "normKeyBias", row.normKeyBias, true, norm);
  check("normAddedQueryWeight", row.normAddedQueryWeight, "normAddedQueryBias",
        row.normAddedQueryBias, row.encoderQuery.has_value(), added);
  check("normAddedKeyWeight", row.normAddedKeyWeight, "normAddedKeyBias", row.normAddedKeyBias,
        row.encoderKey.has_value(), added);
}

template <class Row>
void check_forward(const Row& row) {
  const at::Tensor& query = row.query;
  check_modes(row, query);
  expect_range("normType", row.normType, kNoNorm, kAffineRmsNorm);
  expect_range("normAddedType", row.normAddedType, kNoNorm, kAffineRmsNorm);
  check_tokens("key", row.key, query);
  expect_shape("value", row.value, row.key.sizes());
  check_tokens("encoderQuery", row.encoderQuery, query);
  check_tokens("encoderKey", row.encoderKey, query);
  expect_both_or_none("encoderKey", row.encoderKey.has_value(), "encoderValue",
                      row.encoderValue.has_value());
  if (row.encoderValue) expect_shape("encoderValue", *row.encoderValue, row.encoderKey->sizes());
  check_parameters(row);
  for (const OptionalOutput* out :
       {&row.normQueryMean, &row.normQueryRstd, &row.normKeyMean, &row.normKeyRstd,
        &row.normAddedQueryMean, &row.normAddedQueryRstd, &row.normAddedKeyMean,
        &row.normAddedKeyRstd}) {
    if (*out) expect_dtype((**out).name(), **out, at::kFloat);
  }
  check_rope(row, query.size(1) + length_of(row.encoderQuery),
             row.key.size(1) + length_of(row.encoderKey));
}

// ---- backward

// The gradients for the tokens of image and text, (batch, sequence, heads, elements).
struct Parts {
  at::Tensor image, text;
};
Parts parts_of(const at::Tensor& joined, int64_t image, int64_t order) {
  const at::Tensor tokens = joined.transpose(1, 2);
  const int64_t text = tokens.size(1) - image;
  if (order == 0) return {tokens.narrow(1, 0, image), tokens.narrow(1, image, text)};
  return {tokens.narrow(1, text, image), tokens.narrow(1, 0, text)};
}

struct NormArguments {
  const OptionalTensor& weight;
  const OptionalTensor& mean;
  const OptionalTensor& rstd;
};
struct NormGradients {
  at::Tensor x, weight, bias;
};
NormGradients norm_gradients(const at::Tensor& of_y, const at::Tensor& x, int64_t type,
                             const NormArguments& norm) {
  if (type == kNoNorm) return {of_y, {}, {}};
  const at::Tensor normalized = (wide(x) - *norm.mean) * *norm.rstd;
  const at::Tensor g = type == kAffineLayerNorm ? of_y * wide(*norm.weight) : of_y;
  const auto mean_of = [](const at::Tensor& values) { return values.mean(-1, /*keepdim=*/true); };
  const at::Tensor of_x = *norm.rstd * (g - mean_of(g) - normalized * mean_of(g * normalized));
  const at::IntArrayRef all_but_last{0, 1, 2};
  return {of_x, (of_y * normalized).sum(all_but_last), of_y.sum(all_but_last)};
}

// Checks the arguments of a norm of x.
struct NormNames {
  const char* weight;
  const char* mean;
  const char* rstd;
};
void check_norm(const NormNames& names, const NormArguments& norm, const OptionalTensor& x,
                const NormType& by) {
  if (!x) return;
  const std::vector<int64_t> saved = with_last(x->sizes(), {1});
  check_needed(names.weight, norm.weight, {x->size(3)}, by.type == kAffineLayerNorm, by);
  check_needed(names.mean, norm.mean, saved, by.type != kNoNorm, by);
  check_needed(names.rstd, norm.rstd, saved, by.type != kNoNorm, by);
  if (norm.mean) expect_dtype(names.mean, *norm.mean, at::kFloat);
  if (norm.rstd) expect_dtype(names.rstd, *norm.rstd, at::kFloat);
}

template <class Row>
void check_backward(const Row& row) {
  const at::Tensor& query = row.query;
  check_modes(row, row.gradQueryOutput);
  expect_range("normType", row.normType, kNoNorm, kAffineLayerNorm);
  expect_range("normAddedType", row.normAddedType, kNoNorm, kAffineLayerNorm);
  check_tokens("key", row.key, query);
  check_tokens("encoderQuery", row.encoderQuery, query);
  check_tokens("encoderKey", row.encoderKey, query);
  const int64_t queries = query.size(1) + length_of(row.encoderQuery);
  const int64_t keys = row.key.size(1) + length_of(row.encoderKey);
  const auto joined = [&](int64_t length) {
    return std::vector<int64_t>{query.size(0), query.size(2), length, query.size(3)};
  };
  expect_shape("gradQueryOutput", row.gradQueryOutput, joined(queries));
  expect_shape("gradKeyOutput", row.gradKeyOutput, joined(keys));
  expect_shape("gradValueOutput", row.gradValueOutput, joined(keys));
  check_rope(row, queries, keys);
}

// Writes the gradients of the parameters of a norm that has them.
void write_parameters(const NormGradients& gradients, int64_t type, OptionalOutput& weight,
                      OptionalOutput& bias) {
  if (type != kAffineLayerNorm) return;
  weight = gradients.weight;
  bias = gradients.bias;
}

}  // namespace

// Behaviour of NormRopeConcat, NormRopeConcatBackward: Everything is computed in FLOAT, and each
// result is rounded once. Means and inverse deviations have the shape (batch, sequence, heads, 1),
// and only the layer norms have them, as in CANN's kernel. Those that are not written may have any
// shape.
ACLNN_STRUCT(NormRopeConcat, (Floating<In>, query), (SameDtype<In>, key, "query"),
             (SameDtype<In>, value, "query"), (SameDtype<Optional<In>>, encoderQuery, "query"),
             (SameDtype<Optional<In>>, encoderKey, "query"),
             (SameDtype<Optional<In>>, encoderValue, "query"),
             (SameDtype<Optional<In>>, normQueryWeight, "query"),
             (SameDtype<Optional<In>>, normQueryBias, "query"),
             (SameDtype<Optional<In>>, normKeyWeight, "query"),
             (SameDtype<Optional<In>>, normKeyBias, "query"),
             (SameDtype<Optional<In>>, normAddedQueryWeight, "query"),
             (SameDtype<Optional<In>>, normAddedQueryBias, "query"),
             (SameDtype<Optional<In>>, normAddedKeyWeight, "query"),
             (SameDtype<Optional<In>>, normAddedKeyBias, "query"),
             (SameDtype<Optional<In>>, ropeSin, "query"),
             (SameDtype<Optional<In>>, ropeCos, "query"), (int64_t, normType),
             (int64_t, normAddedType), (int64_t, ropeType), (int64_t, concatOrder), (double, eps),
             (bool, isTraining), (SameDtype<Out>, queryOutput, "query"),
             (SameDtype<Out>, keyOutput, "query"), (SameDtype<Out>, valueOutput, "query"),
             (Optional<Out>, normQueryMean), (Optional<Out>, normQueryRstd),
             (Optional<Out>, normKeyMean), (Optional<Out>, normKeyRstd),
             (Optional<Out>, normAddedQueryMean), (Optional<Out>, normAddedQueryRstd),
             (Optional<Out>, normAddedKeyMean), (Optional<Out>, normAddedKeyRstd)) {
  check_forward(*this);
  const Normalization norm(normType, eps, isTraining), added(normAddedType, eps, isTraining);
  const auto rotate = [&](const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    return x * cos + turned(x, ropeType) * sin;
  };
  const auto output_of = [&](const at::Tensor& image, const OptionalTensor& text) {
    return with_first_rotated(joined_heads(image, text, concatOrder), *this, rotate);
  };
  OptionalTensor text_query, text_key;
  if (encoderQuery) {
    text_query = added(*encoderQuery, normAddedQueryWeight, normAddedQueryBias, normAddedQueryMean,
                       normAddedQueryRstd);
  }
  if (encoderKey) {
    text_key = added(*encoderKey, normAddedKeyWeight, normAddedKeyBias, normAddedKeyMean,
                     normAddedKeyRstd);
  }
  queryOutput = output_of(norm(query, normQueryWeight, normQueryBias, normQueryMean, normQueryRstd),
                          text_query);
  keyOutput = output_of(norm(key, normKeyWeight, normKeyBias, normKeyMean, normKeyRstd), text_key);
  valueOutput = joined_heads(value, encoderValue, concatOrder);
}

ACLNN_STRUCT(NormRopeConcatBackward, (Floating<In>, gradQueryOutput),
             (SameDtype<In>, gradKeyOutput, "gradQueryOutput"),
             (SameDtype<In>, gradValueOutput, "gradQueryOutput"),
             (SameDtype<In>, query, "gradQueryOutput"), (SameDtype<In>, key, "gradQueryOutput"),
             (SameDtype<Optional<In>>, encoderQuery, "gradQueryOutput"),
             (SameDtype<Optional<In>>, encoderKey, "gradQueryOutput"),
             (SameDtype<Optional<In>>, normQueryWeight, "gradQueryOutput"),
             (Optional<In>, normQueryMean), (Optional<In>, normQueryRstd),
             (SameDtype<Optional<In>>, normKeyWeight, "gradQueryOutput"),
             (Optional<In>, normKeyMean), (Optional<In>, normKeyRstd),
             (SameDtype<Optional<In>>, normAddedQueryWeight, "gradQueryOutput"),
             (Optional<In>, normAddedQueryMean), (Optional<In>, normAddedQueryRstd),
             (SameDtype<Optional<In>>, normAddedKeyWeight, "gradQueryOutput"),
             (Optional<In>, normAddedKeyMean), (Optional<In>, normAddedKeyRstd),
             (SameDtype<Optional<In>>, ropeSin, "gradQueryOutput"),
             (SameDtype<Optional<In>>, ropeCos, "gradQueryOutput"), (int64_t, normType),
             (int64_t, normAddedType), (int64_t, ropeType), (int64_t, concatOrder),
             (SameDtype<Out>, gradQuery, "gradQueryOutput"),
             (SameDtype<Out>, gradKey, "gradQueryOutput"),
             (SameDtype<Out>, gradValue, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradEncoderQuery, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradEncoderKey, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradEncoderValue, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormQueryWeight, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormQueryBias, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormKeyWeight, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormKeyBias, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormAddedQueryWeight, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormAddedQueryBias, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormAddedKeyWeight, "gradQueryOutput"),
             (SameDtype<Optional<Out>>, gradNormAddedKeyBias, "gradQueryOutput")) {
  check_backward(*this);
  const NormArguments query_norm{normQueryWeight, normQueryMean, normQueryRstd},
      key_norm{normKeyWeight, normKeyMean, normKeyRstd},
      added_query_norm{normAddedQueryWeight, normAddedQueryMean, normAddedQueryRstd},
      added_key_norm{normAddedKeyWeight, normAddedKeyMean, normAddedKeyRstd};
  const NormType image_type{"normType", normType}, text_type{"normAddedType", normAddedType};
  check_norm({"normQueryWeight", "normQueryMean", "normQueryRstd"}, query_norm, query, image_type);
  check_norm({"normKeyWeight", "normKeyMean", "normKeyRstd"}, key_norm, key, image_type);
  check_norm({"normAddedQueryWeight", "normAddedQueryMean", "normAddedQueryRstd"}, added_query_norm,
             encoderQuery, text_type);
  check_norm({"normAddedKeyWeight", "normAddedKeyMean", "normAddedKeyRstd"}, added_key_norm,
             encoderKey, text_type);
  const auto rotate_back = [&](const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    return x * cos - turned(x * sin, ropeType);
  };
  const auto parts = [&](const at::Tensor& gradient, const at::Tensor& image) {
    return parts_of(with_first_rotated(wide(gradient), *this, rotate_back), image.size(1),
                    concatOrder);
  };
  const Parts of_query = parts(gradQueryOutput, query), of_key = parts(gradKeyOutput, key),
              of_value = parts_of(gradValueOutput, key.size(1), concatOrder);
  const NormGradients image_query = norm_gradients(of_query.image, query, normType, query_norm),
                      image_key = norm_gradients(of_key.image, key, normType, key_norm);
  gradQuery = image_query.x;
  gradKey = image_key.x;
  gradValue = of_value.image;
  write_parameters(image_query, normType, gradNormQueryWeight, gradNormQueryBias);
  write_parameters(image_key, normType, gradNormKeyWeight, gradNormKeyBias);
  if (encoderQuery) {
    const NormGradients text =
        norm_gradients(of_query.text, *encoderQuery, normAddedType, added_query_norm);
    gradEncoderQuery = text.x;
    write_parameters(text, normAddedType, gradNormAddedQueryWeight, gradNormAddedQueryBias);
  }
  if (encoderKey) {
    const NormGradients text =
        norm_gradients(of_key.text, *encoderKey, normAddedType, added_key_norm);
    gradEncoderKey = text.x;
    gradEncoderValue = of_value.text;
    write_parameters(text, normAddedType, gradNormAddedKeyWeight, gradNormAddedKeyBias);
  }
}

}  // namespace aclnn_host::attention_norm_rope_concat_rows
