// The checks of aclnnLayerNorm and aclnnLayerNormBackward, in CANN's order;
// docs/emulation/operators.md lists the deviations.
#include "host_cann/ops/layer_norm/layer_norm_checks.h"

#include <algorithm>

namespace aclnn_host::layer_norm {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT16, kAll},
                                {ACL_FLOAT, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
// The gradient's checker uses one set for all products.
constexpr DtypeRule kBackwardTypes[] = {
    {ACL_FLOAT16, kAll}, {ACL_FLOAT, kAll}, {ACL_BF16, kAll}, {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;

const Dims& shape_of(Argument argument) {
  return argument.tensor->view.shape;
}

void check_rank(Checks& checks, Argument argument) {
  if (argument.tensor != nullptr) checks.rank_at_most(argument, kMaxRank);
}

void check_dtype(Checks& checks, Argument argument, DtypeRules rules) {
  if (argument.tensor != nullptr) checks.dtype_in(argument, rules);
}

// Requires weight and bias to have input's dtype, or FLOAT.
void check_weight_dtype(Checks& checks, Argument weight, Argument input, DtypeRules rules) {
  if (weight.tensor == nullptr) return;
  checks.dtype_in(weight, rules);
  if (checks.ok() && weight.tensor->view.dtype != ACL_FLOAT) checks.same_dtype(weight, input);
}

// Checks the number of normalised dimensions.
void check_normalized_rank(Checks& checks, Argument input, const aclIntArray& shape) {
  checks.require(shape.size >= 1 && shape.size <= kMaxRank,
                 "normalizedShape has %llu sizes, expected 1 to %llu",
                 static_cast<unsigned long long>(shape.size),
                 static_cast<unsigned long long>(kMaxRank));
  if (!checks.ok() || shape_of(input).size() >= shape.size) return;
  checks.require(false,
                 "input has shape %s, expected at least %llu dimensions, as many as "
                 "normalizedShape has sizes",
                 shape_text(shape_of(input)).c_str(), static_cast<unsigned long long>(shape.size));
}

// Requires the last dimensions of `argument`, or all of a weight's, to be the normalised ones.
void check_normalized(Checks& checks, Argument argument, const aclIntArray& shape, bool all) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims expected(shape.values.get(), shape.size);
  const Dims& given = shape_of(argument);
  const bool fits = (all ? given.size() == shape.size : given.size() >= shape.size) &&
                    Dims(given.end() - shape.size, shape.size) == expected;
  if (fits) return;
  checks.require(false, "%s has shape %s, expected %s%s as normalizedShape has", argument.name,
                 shape_text(given).c_str(), all ? "" : "last dimensions ",
                 shape_text(expected).c_str());
}

void check_count(Checks& checks, Argument argument, int64_t count, const char* what) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const int64_t given = element_count(shape_of(argument)).value_or(-1);
  if (given == count) return;
  checks.require(false, "%s has shape %s, expected %lld elements, one for every %s", argument.name,
                 shape_text(shape_of(argument)).c_str(), static_cast<long long>(count), what);
}

// Ascend950 checks the shape of a non-empty mean or rstd: input's, with 1 in place of every
// normalised size.
void check_statistic(Checks& checks, Argument argument, Argument input, const aclIntArray& shape) {
  if (!checks.ok() || checks.product() != Product::kAscend950) return;
  if (argument.tensor == nullptr || element_count(shape_of(argument)) == 0) return;
  Dims expected = shape_of(input);
  std::fill_n(expected.begin() + (expected.size() - shape.size), shape.size, int64_t{1});
  if (shape_of(argument) == expected) return;
  checks.require(false,
                 "%s has shape %s, expected %s: input's, with 1 in place of the normalised sizes; "
                 "reshape it",
                 argument.name, shape_text(shape_of(argument)).c_str(),
                 shape_text(expected).c_str());
}

// Rows and columns of input; -1 if the count overflows. addressable() refuses such sizes, unless
// the other count is 0 and there is nothing to compute.
Counts rows_and_columns(Argument input, const aclIntArray& shape) {
  const Dims& sizes = shape_of(input);
  const uint64_t rows = sizes.size() - shape.size;
  return {element_count(Dims(sizes.begin(), rows)).value_or(-1),
          element_count(Dims(sizes.begin() + rows, shape.size)).value_or(-1)};
}

// What both functions check of input, weight and bias.
void check_normalized_tensors(Checks& checks, Argument input, Argument weight, Argument bias,
                              const aclIntArray& shape) {
  check_normalized_rank(checks, input, shape);
  check_normalized(checks, input, shape, false);
  check_normalized(checks, weight, shape, true);
  check_normalized(checks, bias, shape, true);
}

}  // namespace

Counts check_layer_norm(Checks& checks, const ForwardTensors& tensors,
                        const aclIntArray* normalized_shape) {
  const auto& [input, weight, bias, out, mean, rstd] = tensors;
  checks.not_null(input)
      .not_null("normalizedShape", normalized_shape)
      .not_null(out)
      .dtype_in(input, kTypes);
  if (!checks.ok()) return {};
  check_weight_dtype(checks, weight, input, kTypes);
  check_weight_dtype(checks, bias, input, kTypes);
  if (weight.tensor != nullptr && bias.tensor != nullptr) checks.same_dtype(bias, weight);
  for (const Argument& output : {out, mean, rstd}) check_dtype(checks, output, kTypes);
  for (const Argument& each : {input, out, weight, bias, mean, rstd}) check_rank(checks, each);
  if (!checks.ok()) return {};
  check_normalized_tensors(checks, input, weight, bias, *normalized_shape);
  checks.same_shape(out, input);
  check_statistic(checks, mean, input, *normalized_shape);
  check_statistic(checks, rstd, input, *normalized_shape);
  if (checks.product() == Product::kAscend950 && mean.tensor != nullptr && rstd.tensor != nullptr) {
    checks.same_shape(rstd, mean);
  }
  if (!checks.ok()) return {};
  const Counts counts = rows_and_columns(input, *normalized_shape);
  check_count(checks, mean, counts.rows, "row");
  check_count(checks, rstd, counts.rows, "row");
  for (const Argument& each : {input, weight, bias, out, mean, rstd}) checks.addressable(each);
  return counts;
}

Counts check_layer_norm_backward(Checks& checks, const BackwardTensors& tensors,
                                 const aclIntArray* normalized_shape,
                                 const aclBoolArray* output_mask) {
  const auto& [grad_out, input, mean, rstd, weight, bias, gradients] = tensors;
  checks.not_null(grad_out)
      .not_null(input)
      .not_null("normalizedShape", normalized_shape)
      .not_null(mean)
      .not_null(rstd)
      .not_null("outputMask", output_mask);
  if (!checks.ok()) return {};
  checks.require(output_mask->size == 3, "outputMask has %llu values, expected 3",
                 static_cast<unsigned long long>(output_mask->size));
  if (!checks.ok()) return {};
  // The requested gradients.
  Argument asked[3];
  for (size_t i = 0; i < 3; ++i) {
    const bool is_asked = output_mask->values[i];
    asked[i] = {gradients[i].name, is_asked ? gradients[i].tensor : nullptr};
    if (is_asked) checks.not_null(gradients[i]);
  }
  for (const Argument& each : {grad_out, input, mean, rstd}) {
    check_dtype(checks, each, kBackwardTypes);
  }
  checks.same_dtype(grad_out, input);
  check_weight_dtype(checks, weight, input, kBackwardTypes);
  check_dtype(checks, bias, kBackwardTypes);
  for (const Argument& each : gradients) check_dtype(checks, each, kBackwardTypes);
  for (const Argument& each : {grad_out, input, mean, rstd}) check_rank(checks, each);
  for (const Argument& each : asked) check_rank(checks, each);
  if (!checks.ok()) return {};
  check_normalized_tensors(checks, input, weight, bias, *normalized_shape);
  checks.same_shape(grad_out, input).same_shape(mean, rstd);
  if (!checks.ok()) return {};
  const Counts counts = rows_and_columns(input, *normalized_shape);
  check_count(checks, mean, counts.rows, "row");
  if (asked[0].tensor != nullptr) checks.same_shape(asked[0], input);
  check_count(checks, asked[1], counts.columns, "column");
  check_count(checks, asked[2], counts.columns, "column");
  for (const Argument& each : {grad_out, input, mean, rstd, weight, bias}) {
    checks.addressable(each);
  }
  for (const Argument& each : gradients) checks.addressable(each);
  return counts;
}

}  // namespace aclnn_host::layer_norm
