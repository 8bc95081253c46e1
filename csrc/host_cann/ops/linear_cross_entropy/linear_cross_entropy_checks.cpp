// The checks of CANN's three functions for the cross entropy of a linear layer and of the host's
// own function, in CANN's order; docs/emulation/operators.md lists the deviations.
#include "host_cann/ops/linear_cross_entropy/linear_cross_entropy_checks.h"

#include "acl/acl_base.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host::linear_cross_entropy {
namespace {

constexpr Product kHost = Product::kHost;

constexpr DtypeRule kMatrixTypes[] = {
    {ACL_FLOAT16, Product::kAscend310P},
    {ACL_BF16, Product::kAscend310P},
    {ACL_FLOAT, kHost},
    {ACL_DOUBLE, kHost},
};
constexpr DtypeRule kLogitTypes[] = {
    {ACL_FLOAT, Product::kAscend310P},
    {ACL_FLOAT16, Product::kAscend310P},
    {ACL_BF16, Product::kAscend310P},
    {ACL_DOUBLE, kHost},
};
constexpr DtypeRule kTargetTypes[] = {{ACL_INT32, Product::kAscend310P},
                                      {ACL_INT64, Product::kAscend310P}};
constexpr DtypeRule kFloat[] = {{ACL_FLOAT, Product::kAscend310P}};
constexpr DtypeRule kDouble[] = {{ACL_DOUBLE, kHost}};
constexpr DtypeRule kByte[] = {{ACL_UINT8, Product::kAscend310P}};
constexpr DtypeRule kMaskTypes[] = {{ACL_BOOL, Product::kAscend310P},
                                    {ACL_UINT8, Product::kAscend310P}};
// Of the host's own function, which every product has.
constexpr DtypeRule kHostMatrixTypes[] = {{ACL_FLOAT, Product::kAscend310P},
                                          {ACL_FLOAT16, Product::kAscend310P},
                                          {ACL_BF16, Product::kAscend310P},
                                          {ACL_DOUBLE, Product::kAscend310P}};

// ---- What several functions check ---------------------------------------------------------------

// The dtype of sums and losses: FLOAT, or DOUBLE for DOUBLE.
DtypeRules real_types(Argument argument) {
  return argument.tensor->view.dtype == ACL_DOUBLE ? DtypeRules(kDouble) : DtypeRules(kFloat);
}

int64_t length_of(Argument argument, size_t dimension) {
  return argument.tensor->view.shape[dimension];
}

void require_rank(Checks& checks, Argument argument, uint64_t rank) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims& shape = argument.tensor->view.shape;
  checks.require(shape.size() == rank, "%s has shape %s, expected %s; reshape it", argument.name,
                 shape_text(shape).c_str(), rank == 1 ? "one dimension" : "two dimensions");
}

// `meaning` describes the tensor's contents.
void require_shape(Checks& checks, Argument argument, std::initializer_list<int64_t> shape,
                   const char* meaning) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims expected(shape.begin(), shape.size());
  if (argument.tensor->view.shape == expected) return;
  checks.require(false, "%s has shape %s, expected %s, %s; reshape it", argument.name,
                 shape_text(argument.tensor->view.shape).c_str(), shape_text(expected).c_str(),
                 meaning);
}

void require_classes(Checks& checks, Argument weight) {
  if (!checks.ok()) return;
  checks.require(length_of(weight, 0) > 0, "weight has shape %s, expected at least one row",
                 shape_text(weight.tensor->view.shape).c_str());
}

void require_no_smoothing(Checks& checks, float smoothing) {
  checks.require(smoothing == 0,
                 "labelSmoothing is %g, expected 0; add what smoothing does to the loss yourself",
                 static_cast<double>(smoothing));
}

bool is_a2(Product product) {
  return product == Product::kAscend910B || product == Product::kAscend910_93;
}

// Fails with `status` on a product that does not have the operator.
void require_operator(Checks& checks, bool product_has_it, aclnnStatus status) {
  checks.require_status(
      product_has_it, status,
      "product %s does not have this operator; select Ascend910B, Ascend910_93 or host, which have "
      "it (ACLNN_TORCH_PRODUCT=Ascend910B, or aclnn_torch.set_product(\"Ascend910B\") in Python)",
      product_name(checks.product()));
}

// ---- aclnnFusedLinearOnlineMaxSum ---------------------------------------------------------------

void check_dtypes(Checks& checks, const OnlineMaxSumTensors& tensors) {
  const auto& [input, weight, target, max, sum, predicted, mask, masked, logits] = tensors;
  checks.dtype_in(input, kMatrixTypes).dtype_in(weight, kMatrixTypes);
  checks.dtype_in(target, kTargetTypes).same_dtype(weight, input);
  if (!checks.ok()) return;
  for (const Argument& argument : {max, sum, predicted}) {
    checks.dtype_in(argument, real_types(input));
  }
  checks.dtype_in(mask, kByte).same_dtype(masked, target);
  if (logits.tensor != nullptr) checks.same_dtype(logits, input);
}

void check_shapes(Checks& checks, const OnlineMaxSumTensors& tensors, const Sizes& sizes) {
  const auto& [input, weight, target, max, sum, predicted, mask, masked, logits] = tensors;
  require_classes(checks, weight);
  checks.require(sizes.depth <= 65534 || checks.product() == kHost,
                 "input has rows of %lld elements, expected at most 65534",
                 static_cast<long long>(sizes.depth));
  require_shape(checks, weight, {sizes.classes, sizes.depth}, "rows as long as those of input");
  for (const Argument& argument : {target, max, sum, predicted}) {
    require_shape(checks, argument, {sizes.rows}, "a number for every row of input");
  }
  require_shape(checks, mask, {divide_up(sizes.rows, 8)}, "a bit for every row of input");
  require_shape(checks, masked, {sizes.rows}, "a number for every row of input");
  require_rank(checks, logits, 2);
  require_shape(checks, logits, {sizes.rows, sizes.classes}, "a logit for every row and class");
}

void check_shard(Checks& checks, const Shard& shard) {
  checks.require(shard.begin >= 0, "vocabStartIndex is %lld, expected 0 or more",
                 static_cast<long long>(shard.begin));
  checks.require(shard.end >= shard.begin,
                 "vocabEndIndex is %lld, expected vocabStartIndex (%lld) or more",
                 static_cast<long long>(shard.end), static_cast<long long>(shard.begin));
}

// ---- aclnnFusedCrossEntropyLossWithMaxSum -------------------------------------------------------

void check_dtypes(Checks& checks, const LossTensors& tensors) {
  const auto& [max, sum, predicted, input, weight, logits, loss, softmax] = tensors;
  if (!checks.ok()) return;
  const bool is_double = max.tensor->view.dtype == ACL_DOUBLE && checks.product() == kHost;
  const DtypeRules real = is_double ? DtypeRules(kDouble) : DtypeRules(kFloat);
  for (const Argument& argument : {max, sum, predicted, loss}) checks.dtype_in(argument, real);
  if (logits.tensor == nullptr) return;
  checks.dtype_in(logits, is_double ? DtypeRules(kDouble) : DtypeRules(kLogitTypes));
  checks.require(
      is_double || logits.tensor->view.dtype != ACL_DOUBLE,
      "vocabParallelLogitsOptional has dtype DOUBLE, expected logitsMax to have it, too; "
      "cast one of them");
  checks.dtype_in(softmax, real);
}

void check_shapes(Checks& checks, const LossTensors& tensors) {
  const auto& [max, sum, predicted, input, weight, logits, loss, softmax] = tensors;
  require_rank(checks, max, 1);
  checks.same_shape(sum, max).same_shape(predicted, max).same_shape(loss, max);
  if (logits.tensor == nullptr) return;
  require_rank(checks, logits, 2);
  checks.same_shape(softmax, logits);
}

// What CANN finds out after the checks of its interface.
void check_inside(Checks& checks, const LossTensors& tensors) {
  const Argument &max = tensors.max, &logits = tensors.logits;
  if (!checks.ok()) return;
  require_operator(checks, checks.product() >= Product::kAscend910B, ACLNN_ERR_INNER);
  const bool has_logits = logits.tensor != nullptr;
  const int64_t rows = length_of(max, 0);
  if (checks.ok() && has_logits) {
    checks.require_status(length_of(logits, 0) == rows, ACLNN_ERR_INNER_NULLPTR,
                          "vocabParallelLogitsOptional has shape %s, expected %lld rows, as many "
                          "as logitsMax has elements; reshape it",
                          shape_text(logits.tensor->view.shape).c_str(),
                          static_cast<long long>(rows));
  }
  if (checks.ok() && checks.product() == Product::kAscend950) {
    checks.require_status(rows > 0 && (!has_logits || length_of(logits, 1) > 0),
                          ACLNN_ERR_INNER_NULLPTR,
                          "logitsMax has %lld elements, expected no empty tensor on Ascend950",
                          static_cast<long long>(rows));
  }
}

// ---- aclnnFusedLinearCrossEntropyLossGrad -------------------------------------------------------

void check_present(Checks& checks, const GradientTensors& tensors) {
  checks.require_present(
      tensors.softmax.tensor != nullptr ||
          (tensors.max.tensor != nullptr && tensors.sum.tensor != nullptr),
      "softmaxOptional is null, expected it, or logitsMaxOptional and sumExpLogitsOptional");
  const auto& [grad, input, weight, mask, masked, max, sum, softmax, input_grad, weight_grad] =
      tensors;
  const std::initializer_list<Argument> needed = {grad,   input,      weight,     mask,
                                                  masked, input_grad, weight_grad};
  for (const Argument& argument : needed) checks.not_null(argument);
}

void check_dtypes(Checks& checks, const GradientTensors& tensors) {
  const auto& [grad, input, weight, mask, masked, max, sum, softmax, input_grad, weight_grad] =
      tensors;
  checks.dtype_in(input, kMatrixTypes);
  if (!checks.ok()) return;
  const DtypeRules real = real_types(input);
  checks.dtype_in(grad, real)
      .dtype_in(weight, kMatrixTypes)
      .dtype_in(mask, kMaskTypes)
      .dtype_in(masked, kTargetTypes);
  for (const Argument& argument : {max, sum, softmax}) {
    if (argument.tensor != nullptr) checks.dtype_in(argument, real);
  }
  checks.same_dtype(weight, input).same_dtype(input_grad, input).same_dtype(weight_grad, input);
}

void check_formats(Checks& checks, std::span<const Argument> tensors) {
  for (const Argument& argument : tensors) {
    if (argument.tensor == nullptr) continue;
    if (checks.product() == kHost) {
      checks.public_format(argument);
    } else {
      checks.format_nd(argument);
    }
  }
}

void check_ranks(Checks& checks, const GradientTensors& tensors) {
  const auto& [grad, input, weight, mask, masked, max, sum, softmax, input_grad, weight_grad] =
      tensors;
  for (const Argument& argument : {grad, mask, masked}) require_rank(checks, argument, 1);
  for (const Argument& argument : {input, weight, input_grad, weight_grad, softmax}) {
    require_rank(checks, argument, 2);
  }
  for (const Argument& argument : {max, sum}) require_rank(checks, argument, 1);
}

// A mask of bits or of BOOLs.
void check_mask(Checks& checks, Argument mask, int64_t rows) {
  if (!checks.ok()) return;
  const bool has_bits = mask.tensor->view.dtype == ACL_UINT8;
  const int64_t bytes = has_bits ? divide_up(rows, 8) : rows;
  const int64_t length = length_of(mask, 0);
  checks.require(has_bits ? length >= bytes : length == bytes,
                 "targetMask has %lld elements, expected %lld, a %s for every row",
                 static_cast<long long>(length), static_cast<long long>(bytes),
                 has_bits ? "bit" : "BOOL");
}

void check_shapes(Checks& checks, const GradientTensors& tensors, const Sizes& sizes) {
  const auto& [grad, input, weight, mask, masked, max, sum, softmax, input_grad, weight_grad] =
      tensors;
  require_shape(checks, input, {sizes.rows, sizes.depth}, "a row for every element of grad");
  checks.require(
      softmax.tensor == nullptr || sizes.classes >= 128 || checks.product() == kHost,
      "weight has %lld rows, expected at least 128 with softmaxOptional; pass logitsMaxOptional "
      "and sumExpLogitsOptional instead",
      static_cast<long long>(sizes.classes));
  require_shape(checks, weight, {sizes.classes, sizes.depth}, "rows as long as those of input");
  check_mask(checks, mask, sizes.rows);
  require_shape(checks, masked, {sizes.rows}, "a number for every element of grad");
  require_shape(checks, softmax, {sizes.rows, sizes.classes}, "one for every row and class");
  for (const Argument& argument : {max, sum}) {
    require_shape(checks, argument, {sizes.rows}, "a number for every element of grad");
  }
  require_shape(checks, input_grad, {sizes.rows, sizes.depth}, "as input has");
  require_shape(checks, weight_grad, {sizes.classes, sizes.depth}, "as weight has");
}

// What CANN finds out after the checks of its interface.
void check_inside(Checks& checks, const GradientTensors& tensors, const Sizes& sizes) {
  const bool is_empty = sizes.rows == 0 || sizes.classes == 0 || sizes.depth == 0;
  if (!checks.ok() || is_empty || checks.product() == kHost) return;
  require_operator(checks, is_a2(checks.product()), ACLNN_ERR_RUNTIME_ERROR);
  // The limits of its tiling.
  checks.require_status(sizes.depth <= 65535, ACLNN_ERR_INNER_NULLPTR,
                        "input has rows of %lld elements, expected at most 65535",
                        static_cast<long long>(sizes.depth));
  checks.require_status(
      tensors.softmax.tensor == nullptr || (sizes.rows <= 65536 && sizes.classes <= 24560),
      ACLNN_ERR_INNER_NULLPTR,
      "softmaxOptional has shape [%lld, %lld], expected at most [65536, 24560]; pass "
      "logitsMaxOptional and sumExpLogitsOptional instead",
      static_cast<long long>(sizes.rows), static_cast<long long>(sizes.classes));
}

// ---- aclnnHostLinearCrossEntropy ----------------------------------------------------------------

void check_dtypes(Checks& checks, const HostTensors& tensors) {
  const auto& [input, weight, bias, target, class_weights, factors, given_lse, loss, lse,
               input_grad, weight_grad, bias_grad] = tensors;
  checks.dtype_in(input, kHostMatrixTypes).dtype_in(target, kTargetTypes);
  if (!checks.ok()) return;
  const bool is_double = input.tensor->view.dtype == ACL_DOUBLE;
  const DtypeRule real[] = {{is_double ? ACL_DOUBLE : ACL_FLOAT, Product::kAscend310P}};
  for (const Argument& argument : {weight, bias, input_grad, weight_grad, bias_grad}) {
    if (argument.tensor != nullptr) checks.same_dtype(argument, input);
  }
  for (const Argument& argument : {class_weights, factors, given_lse, loss, lse}) {
    if (argument.tensor != nullptr) checks.dtype_in(argument, real);
  }
}

// Checks the part of the vocabulary that weight holds, and the options that need all of it.
void check_vocabulary(Checks& checks, const HostTensors& tensors, const HostOptions& options,
                      const Sizes& sizes) {
  checks.require(options.smoothing >= 0 && options.smoothing <= 1,
                 "labelSmoothing is %g, expected a number from 0 to 1", options.smoothing);
  const int64_t vocabulary = vocabulary_of(options, sizes);
  checks.require(vocabulary >= sizes.classes,
                 "vocabularySize is %lld, expected 0 or at least the %lld rows of weight",
                 static_cast<long long>(vocabulary), static_cast<long long>(sizes.classes));
  if (!checks.ok()) return;
  checks.require(options.first_class >= 0 && options.first_class <= vocabulary - sizes.classes,
                 "firstClass is %lld, expected 0 to %lld, where the %lld rows of weight end with "
                 "the vocabulary of %lld",
                 static_cast<long long>(options.first_class),
                 static_cast<long long>(vocabulary - sizes.classes),
                 static_cast<long long>(sizes.classes), static_cast<long long>(vocabulary));
  const bool is_part = sizes.classes < vocabulary;
  checks.require(
      !is_part || (options.smoothing == 0 && tensors.class_weights.tensor == nullptr),
      "labelSmoothing or classWeights is given, expected neither beside a part of a vocabulary");
}

}  // namespace

Sizes check_online_max_sum(Checks& checks, const OnlineMaxSumTensors& tensors, const Shard& shard) {
  const auto& [input, weight, target, max, sum, predicted, mask, masked, logits] = tensors;
  for (const Argument& argument : {input, weight, target, max, sum, predicted, mask, masked}) {
    checks.not_null(argument);
  }
  check_dtypes(checks, tensors);
  for (const Argument& argument : {input, weight}) require_rank(checks, argument, 2);
  for (const Argument& argument : {target, max, sum, predicted, mask, masked}) {
    require_rank(checks, argument, 1);
  }
  if (!checks.ok()) return {};
  const Sizes sizes{length_of(input, 0), length_of(weight, 0), length_of(input, 1)};
  check_shapes(checks, tensors, sizes);
  check_shard(checks, shard);
  if (sizes.rows > 0) {
    const Product product = checks.product();
    require_operator(checks, is_a2(product) || product == kHost, ACLNN_ERR_INNER);
  }
  const std::initializer_list<Argument> all = {input,     weight, target, max,   sum,
                                               predicted, mask,   masked, logits};
  for (const Argument& argument : all) checks.addressable(argument);
  return sizes;
}

void check_loss(Checks& checks, const LossTensors& tensors, float smoothing) {
  const auto& [max, sum, predicted, input, weight, logits, loss, softmax] = tensors;
  for (const Argument& argument : {max, sum, predicted, loss}) checks.not_null(argument);
  const bool has_logits = logits.tensor != nullptr;
  if (has_logits) checks.not_null(softmax);
  check_dtypes(checks, tensors);
  check_shapes(checks, tensors);
  require_no_smoothing(checks, smoothing);
  check_inside(checks, tensors);
  for (const Argument& argument : {max, sum, predicted, logits, loss}) {
    checks.addressable(argument);
  }
  if (has_logits) checks.addressable(softmax);
}

Sizes check_gradient(Checks& checks, const GradientTensors& tensors, float smoothing) {
  const auto& [grad, input, weight, mask, masked, max, sum, softmax, input_grad, weight_grad] =
      tensors;
  const Argument all[] = {grad, input, weight,  mask,       masked,
                          max,  sum,   softmax, input_grad, weight_grad};
  check_present(checks, tensors);
  check_dtypes(checks, tensors);
  check_formats(checks, all);
  require_no_smoothing(checks, smoothing);
  check_ranks(checks, tensors);
  if (!checks.ok()) return {};
  const Sizes sizes{length_of(grad, 0), length_of(weight, 0), length_of(input, 1)};
  check_shapes(checks, tensors, sizes);
  check_inside(checks, tensors, sizes);
  for (const Argument& argument : all) checks.addressable(argument);
  return sizes;
}

Sizes check_host(Checks& checks, const HostTensors& tensors, const HostOptions& options) {
  const auto& [input, weight, bias, target, class_weights, factors, given_lse, loss, lse,
               input_grad, weight_grad, bias_grad] = tensors;
  const Argument all[] = {input,     weight, bias, target,     class_weights, factors,
                          given_lse, loss,   lse,  input_grad, weight_grad,   bias_grad};
  for (const Argument& argument : {input, weight, target}) checks.not_null(argument);
  if (given_lse.tensor == nullptr) checks.not_null(loss).not_null(lse);
  check_dtypes(checks, tensors);
  for (const Argument& argument : all) {
    if (argument.tensor != nullptr) checks.public_format(argument);
  }
  for (const Argument& argument : {input, weight}) require_rank(checks, argument, 2);
  if (!checks.ok()) return {};
  const Sizes sizes{length_of(input, 0), length_of(weight, 0), length_of(input, 1)};
  require_classes(checks, weight);
  require_shape(checks, weight, {sizes.classes, sizes.depth}, "rows as long as those of input");
  for (const Argument& argument : {bias, class_weights}) {
    require_shape(checks, argument, {sizes.classes}, "a number for every row of weight");
  }
  check_vocabulary(checks, tensors, options, sizes);
  for (const Argument& argument : {target, factors, given_lse, loss, lse}) {
    require_shape(checks, argument, {sizes.rows}, "a number for every row of input");
  }
  require_shape(checks, input_grad, {sizes.rows, sizes.depth}, "as input has");
  require_shape(checks, weight_grad, {sizes.classes, sizes.depth}, "as weight has");
  require_shape(checks, bias_grad, {sizes.classes}, "a number for every row of weight");
  for (const Argument& argument : all) checks.addressable(argument);
  return sizes;
}

}  // namespace aclnn_host::linear_cross_entropy
