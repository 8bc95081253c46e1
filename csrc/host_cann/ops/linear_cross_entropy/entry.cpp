// Stage 1 of CANN's three functions for the cross entropy of a linear layer, whose vocabulary may
// be distributed over devices, and of the host's own function for a single device: the checks in
// CANN's order. docs/emulation/operators.md lists the deviations from CANN.
#include "acl/acl_base.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/sizes.h"
#include "host_cann/ops/linear_cross_entropy/plans.h"

namespace aclnn_host {
namespace {

using namespace linear_cross_entropy;

constexpr Product kA2 = Product::kAscend910B;
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

// The dtype of sums and losses: FLOAT, or DOUBLE for DOUBLE.
DtypeRules real_types(const aclTensor* tensor) {
  return tensor->view.dtype == ACL_DOUBLE ? DtypeRules(kDouble) : DtypeRules(kFloat);
}

int64_t size_of(Argument argument, size_t dimension) {
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

void require_no_smoothing(Checks& checks, float smoothing) {
  checks.require(smoothing == 0,
                 "labelSmoothing is %g, expected 0; add what smoothing does to the loss yourself",
                 static_cast<double>(smoothing));
}

constexpr const char* kA2Products =
    "select Ascend910B, Ascend910_93 or host, which have it (ACLNN_TORCH_PRODUCT=Ascend910B, or "
    "aclnn_torch.set_product(\"Ascend910B\") in Python)";

bool is_a2(Product product) {
  return product == kA2 || product == Product::kAscend910_93;
}

// True if BFLOAT16 is multiplied without widening: with a BF16 unit of the CPU, or in plain code.
bool multiplies_bfloat16() {
  return has_bfloat16_products() || current_capability() == Capability::kReference;
}

// The end of stage 1: `plan` makes a plan for DOUBLE or FLOAT.
template <class Plan>
aclnnStatus make_executor_of(const char* api, aclDataType dtype, uint64_t* workspace_size,
                             aclOpExecutor** executor, Plan plan) {
  const auto make = [&]<class Real, class Element>() {
    return make_executor(api, workspace_size, executor, [&](Workspace& workspace) {
      auto made = plan.template operator()<Real, Element>(workspace);
      if (made.writes_nothing()) workspace = Workspace();
      return made;
    });
  };
  if (dtype == ACL_DOUBLE) return make.template operator()<double, double>();
  if (dtype == ACL_BF16 && multiplies_bfloat16())
    return make.template operator()<float, BFloat16>();
  return make.template operator()<float, float>();
}

// On CANN's products, logits and their gradients are 16-bit matrices.
bool rounds(const Checks& checks) {
  return checks.product() != kHost;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;
using namespace aclnn_host::linear_cross_entropy;

aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* target,
    int64_t vocabStartIndex, int64_t vocabEndIndex, aclTensor* logitsMaxLocalOut,
    aclTensor* sumExpLogitsLocalOut, aclTensor* predictedLogitsLocalOut, aclTensor* targetMaskOut,
    aclTensor* maskedTargetOut, aclTensor* vocabParallelLogitsOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedLinearOnlineMaxSum";
  const Argument rows{"input", input}, matrix{"weight", weight}, labels{"target", target};
  const Argument max{"logitsMaxLocalOut", logitsMaxLocalOut};
  const Argument sum{"sumExpLogitsLocalOut", sumExpLogitsLocalOut};
  const Argument predicted{"predictedLogitsLocalOut", predictedLogitsLocalOut};
  const Argument mask{"targetMaskOut", targetMaskOut};
  const Argument masked{"maskedTargetOut", maskedTargetOut};
  const Argument logits{"vocabParallelLogitsOut", vocabParallelLogitsOutOptional};
  const Given given[] = {rows,
                         matrix,
                         labels,
                         Named{"vocabStartIndex", vocabStartIndex},
                         Named{"vocabEndIndex", vocabEndIndex},
                         max,
                         sum,
                         predicted,
                         mask,
                         masked,
                         logits};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    for (const Argument& argument : {rows, matrix, labels, max, sum, predicted, mask, masked}) {
      checks.not_null(argument);
    }
    checks.dtype_in(rows, kMatrixTypes).dtype_in(matrix, kMatrixTypes);
    checks.dtype_in(labels, kTargetTypes).same_dtype(matrix, rows);
    if (!checks.ok()) return checks.status();
    for (const Argument& argument : {max, sum, predicted}) {
      checks.dtype_in(argument, real_types(input));
    }
    checks.dtype_in(mask, kByte).same_dtype(masked, labels);
    if (vocabParallelLogitsOutOptional != nullptr) checks.same_dtype(logits, rows);

    for (const Argument& argument : {rows, matrix}) require_rank(checks, argument, 2);
    for (const Argument& argument : {labels, max, sum, predicted, mask, masked}) {
      require_rank(checks, argument, 1);
    }
    if (!checks.ok()) return checks.status();
    const Sizes sizes{size_of(rows, 0), size_of(matrix, 0), size_of(rows, 1)};
    checks.require(sizes.classes > 0, "weight has shape %s, expected at least one row",
                   shape_text(weight->view.shape).c_str());
    checks.require(sizes.depth <= 65534 || checks.product() == kHost,
                   "input has rows of %lld elements, expected at most 65534",
                   static_cast<long long>(sizes.depth));
    require_shape(checks, matrix, {sizes.classes, sizes.depth}, "rows as long as those of input");
    for (const Argument& argument : {labels, max, sum, predicted}) {
      require_shape(checks, argument, {sizes.rows}, "a number for every row of input");
    }
    require_shape(checks, mask, {divide_up(sizes.rows, 8)}, "a bit for every row of input");
    require_shape(checks, masked, {sizes.rows}, "a number for every row of input");
    require_rank(checks, logits, 2);
    require_shape(checks, logits, {sizes.rows, sizes.classes}, "a logit for every row and class");
    checks.require(vocabStartIndex >= 0, "vocabStartIndex is %lld, expected 0 or more",
                   static_cast<long long>(vocabStartIndex));
    checks.require(vocabEndIndex >= vocabStartIndex,
                   "vocabEndIndex is %lld, expected vocabStartIndex (%lld) or more",
                   static_cast<long long>(vocabEndIndex), static_cast<long long>(vocabStartIndex));
    if (sizes.rows > 0) {
      checks.require_status(is_a2(checks.product()) || checks.product() == kHost, ACLNN_ERR_INNER,
                            "product %s does not have this operator; %s",
                            product_name(checks.product()), kA2Products);
    }
    const std::initializer_list<Argument> arguments = {rows,      matrix, labels, max,   sum,
                                                       predicted, mask,   masked, logits};
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    const aclDataType dtype = input->view.dtype;
    return make_executor_of(
        kApi, dtype, workspaceSize, executor, [&]<class Real, class Element>(Workspace& workspace) {
          return OnlineMaxSumPlan<Real, Element>(
              {input, weight, target, logitsMaxLocalOut, sumExpLogitsLocalOut,
               predictedLogitsLocalOut, targetMaskOut, maskedTargetOut,
               vocabParallelLogitsOutOptional},
              sizes, {vocabStartIndex, vocabEndIndex}, rounds(checks), workspace);
        });
  });
}

ACLNN_STAGE2(FusedLinearOnlineMaxSum)

aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor* logitsMax, const aclTensor* sumExpLogits, const aclTensor* predictedLogits,
    float labelSmoothing, const aclTensor* inputOptional, const aclTensor* weightOptional,
    const aclTensor* vocabParallelLogitsOptional, aclTensor* lossOut, aclTensor* softMaxOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedCrossEntropyLossWithMaxSum";
  const Argument max{"logitsMax", logitsMax}, sum{"sumExpLogits", sumExpLogits};
  const Argument predicted{"predictedLogits", predictedLogits}, loss{"lossOut", lossOut};
  const Argument input{"input", inputOptional}, weight{"weight", weightOptional};
  const Argument logits{"vocabParallelLogits", vocabParallelLogitsOptional};
  const Argument softmax{"softMaxOut", softMaxOutOptional};
  const Given given[] = {max,    sum,    predicted, Named{"labelSmoothing", labelSmoothing},
                         input,  weight, logits,    loss,
                         softmax};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    for (const Argument& argument : {max, sum, predicted, loss}) checks.not_null(argument);
    const bool has_logits = vocabParallelLogitsOptional != nullptr;
    if (has_logits) checks.not_null(softmax);
    if (!checks.ok()) return checks.status();
    const bool is_double = logitsMax->view.dtype == ACL_DOUBLE && checks.product() == kHost;
    const DtypeRules real = is_double ? DtypeRules(kDouble) : DtypeRules(kFloat);
    for (const Argument& argument : {max, sum, predicted, loss}) checks.dtype_in(argument, real);
    if (has_logits) {
      checks.dtype_in(logits, is_double ? DtypeRules(kDouble) : DtypeRules(kLogitTypes));
      checks.require(is_double || logits.tensor->view.dtype != ACL_DOUBLE,
                     "vocabParallelLogitsOptional has dtype DOUBLE, expected logitsMax to have it, "
                     "too; cast one of them");
      checks.dtype_in(softmax, real);
    }
    require_rank(checks, max, 1);
    checks.same_shape(sum, max).same_shape(predicted, max).same_shape(loss, max);
    if (has_logits) {
      require_rank(checks, logits, 2);
      checks.same_shape(softmax, logits);
    }
    require_no_smoothing(checks, labelSmoothing);
    if (!checks.ok()) return checks.status();
    checks.require_status(checks.product() >= kA2, ACLNN_ERR_INNER,
                          "product %s does not have this operator; %s",
                          product_name(checks.product()), kA2Products);
    const int64_t rows = size_of(max, 0);
    if (checks.ok() && has_logits) {
      checks.require_status(size_of(logits, 0) == rows, ACLNN_ERR_INNER_NULLPTR,
                            "vocabParallelLogitsOptional has shape %s, expected %lld rows, as many "
                            "as logitsMax has elements; reshape it",
                            shape_text(logits.tensor->view.shape).c_str(),
                            static_cast<long long>(rows));
    }
    if (checks.ok() && checks.product() == Product::kAscend950) {
      checks.require_status(rows > 0 && (!has_logits || size_of(logits, 1) > 0),
                            ACLNN_ERR_INNER_NULLPTR,
                            "logitsMax has %lld elements, expected no empty tensor on Ascend950",
                            static_cast<long long>(rows));
    }
    for (const Argument& argument : {max, sum, predicted, logits, loss}) {
      checks.addressable(argument);
    }
    if (has_logits) checks.addressable(softmax);
    if (!checks.ok()) return checks.status();

    return make_executor_of(
        kApi, logitsMax->view.dtype, workspaceSize, executor,
        [&]<class Real, class>(Workspace& workspace) {
          return LossPlan<Real>(
              {logitsMax, sumExpLogits, predictedLogits, nullptr, nullptr,
               vocabParallelLogitsOptional, lossOut, has_logits ? softMaxOutOptional : nullptr},
              workspace);
        });
  });
}

ACLNN_STAGE2(FusedCrossEntropyLossWithMaxSum)

aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* input, const aclTensor* weight,
    const aclTensor* targetMask, const aclTensor* maskedTarget, float labelSmoothing,
    const aclTensor* logitsMaxOptional, const aclTensor* sumExpLogitsOptional,
    const aclTensor* softmaxOptional, aclTensor* inputGradOut, aclTensor* weightGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedLinearCrossEntropyLossGrad";
  const Argument gradient{"grad", grad}, rows{"input", input}, matrix{"weight", weight};
  const Argument mask{"targetMask", targetMask}, masked{"maskedTarget", maskedTarget};
  const Argument max{"logitsMax", logitsMaxOptional};
  const Argument sum{"sumExpLogits", sumExpLogitsOptional};
  const Argument softmax{"softmax", softmaxOptional};
  const Argument input_grad{"inputGradOut", inputGradOut};
  const Argument weight_grad{"weightGradOut", weightGradOut};
  const Given given[] = {
      gradient, rows, matrix,  mask,       masked,     Named{"labelSmoothing", labelSmoothing},
      max,      sum,  softmax, input_grad, weight_grad};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const bool has_softmax = softmaxOptional != nullptr;
    checks.require_present(
        has_softmax || (logitsMaxOptional != nullptr && sumExpLogitsOptional != nullptr),
        "softmaxOptional is null, expected it, or logitsMaxOptional and sumExpLogitsOptional");
    const std::initializer_list<Argument> needed = {gradient, rows,       matrix,     mask,
                                                    masked,   input_grad, weight_grad};
    for (const Argument& argument : needed) checks.not_null(argument);
    checks.dtype_in(rows, kMatrixTypes);
    if (!checks.ok()) return checks.status();
    const DtypeRules real = real_types(input);
    checks.dtype_in(gradient, real)
        .dtype_in(matrix, kMatrixTypes)
        .dtype_in(mask, kMaskTypes)
        .dtype_in(masked, kTargetTypes);
    if (has_softmax) {
      checks.dtype_in(softmax, real);
    } else {
      checks.dtype_in(max, real).dtype_in(sum, real);
    }
    checks.same_dtype(matrix, rows).same_dtype(input_grad, rows).same_dtype(weight_grad, rows);
    const std::initializer_list<Argument> with_softmax = {
        gradient, rows, matrix, mask, masked, softmax, input_grad, weight_grad};
    const std::initializer_list<Argument> without = {gradient, rows, matrix,     mask,       masked,
                                                     max,      sum,  input_grad, weight_grad};
    const auto& used = has_softmax ? with_softmax : without;
    if (checks.product() != kHost) {
      for (const Argument& argument : used) checks.format_nd(argument);
    } else {
      for (const Argument& argument : used) checks.public_format(argument);
    }
    require_no_smoothing(checks, labelSmoothing);

    for (const Argument& argument : {gradient, mask, masked}) require_rank(checks, argument, 1);
    for (const Argument& argument : {rows, matrix, input_grad, weight_grad}) {
      require_rank(checks, argument, 2);
    }
    if (has_softmax) {
      require_rank(checks, softmax, 2);
    } else {
      for (const Argument& argument : {max, sum}) require_rank(checks, argument, 1);
    }
    if (!checks.ok()) return checks.status();
    const Sizes sizes{size_of(gradient, 0), size_of(matrix, 0), size_of(rows, 1)};
    require_shape(checks, rows, {sizes.rows, sizes.depth}, "a row for every element of grad");
    checks.require(!has_softmax || sizes.classes >= 128 || checks.product() == kHost,
                   "weight has %lld rows, expected at least 128 with softmaxOptional; pass "
                   "logitsMaxOptional and sumExpLogitsOptional instead",
                   static_cast<long long>(sizes.classes));
    require_shape(checks, matrix, {sizes.classes, sizes.depth}, "rows as long as those of input");
    if (checks.ok()) {
      const bool has_bits = targetMask->view.dtype == ACL_UINT8;
      const int64_t bytes = has_bits ? divide_up(sizes.rows, 8) : sizes.rows;
      const int64_t length = size_of(mask, 0);
      checks.require(has_bits ? length >= bytes : length == bytes,
                     "targetMask has %lld elements, expected %lld, a %s for every row",
                     static_cast<long long>(length), static_cast<long long>(bytes),
                     has_bits ? "bit" : "BOOL");
    }
    require_shape(checks, masked, {sizes.rows}, "a number for every element of grad");
    if (has_softmax) {
      require_shape(checks, softmax, {sizes.rows, sizes.classes}, "one for every row and class");
    } else {
      for (const Argument& argument : {max, sum}) {
        require_shape(checks, argument, {sizes.rows}, "a number for every element of grad");
      }
    }
    require_shape(checks, input_grad, {sizes.rows, sizes.depth}, "as input has");
    require_shape(checks, weight_grad, {sizes.classes, sizes.depth}, "as weight has");
    const bool is_empty = sizes.rows == 0 || sizes.classes == 0 || sizes.depth == 0;
    if (checks.ok() && !is_empty && checks.product() != kHost) {
      checks.require_status(is_a2(checks.product()), ACLNN_ERR_RUNTIME_ERROR,
                            "product %s does not have this operator; %s",
                            product_name(checks.product()), kA2Products);
      // The limit of its tiling.
      checks.require_status(sizes.depth <= 65535, ACLNN_ERR_INNER_NULLPTR,
                            "input has rows of %lld elements, expected at most 65535",
                            static_cast<long long>(sizes.depth));
      checks.require_status(
          !has_softmax || (sizes.rows <= 65536 && sizes.classes <= 24560), ACLNN_ERR_INNER_NULLPTR,
          "softmaxOptional has shape [%lld, %lld], expected at most [65536, "
          "24560]; pass logitsMaxOptional and sumExpLogitsOptional instead",
          static_cast<long long>(sizes.rows), static_cast<long long>(sizes.classes));
    }
    for (const Argument& argument : used) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    const aclDataType dtype = input->view.dtype;
    return make_executor_of(
        kApi, dtype, workspaceSize, executor, [&]<class Real, class Element>(Workspace& workspace) {
          return GradientPlan<Real, Element>({grad, input, weight, targetMask, maskedTarget,
                                              has_softmax ? nullptr : logitsMaxOptional,
                                              has_softmax ? nullptr : sumExpLogitsOptional,
                                              softmaxOptional, inputGradOut, weightGradOut},
                                             sizes, rounds(checks), workspace);
        });
  });
}

ACLNN_STAGE2(FusedLinearCrossEntropyLossGrad)

aclnnStatus aclnnHostLinearCrossEntropyGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* biasOptional,
    const aclTensor* target, const aclTensor* classWeightsOptional,
    const aclTensor* factorsOptional, const aclTensor* lseOptional, int64_t ignoreIndex,
    double labelSmoothing, int64_t firstClass, int64_t vocabularySize, aclTensor* lossOut,
    aclTensor* lseOut, aclTensor* inputGradOutOptional, aclTensor* weightGradOutOptional,
    aclTensor* biasGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnHostLinearCrossEntropy";
  constexpr DtypeRule kTypes[] = {{ACL_FLOAT, Product::kAscend310P},
                                  {ACL_FLOAT16, Product::kAscend310P},
                                  {ACL_BF16, Product::kAscend310P},
                                  {ACL_DOUBLE, Product::kAscend310P}};
  const Argument rows{"input", input}, matrix{"weight", weight}, bias{"bias", biasOptional};
  const Argument labels{"target", target}, class_weights{"classWeights", classWeightsOptional};
  const Argument factors{"factors", factorsOptional};
  const Argument given_lse{"lse", lseOptional}, loss{"lossOut", lossOut}, lse{"lseOut", lseOut};
  const Argument input_grad{"inputGradOut", inputGradOutOptional};
  const Argument weight_grad{"weightGradOut", weightGradOutOptional};
  const Argument bias_grad{"biasGradOut", biasGradOutOptional};
  const std::initializer_list<Argument> arguments = {
      rows,      matrix, bias, labels,     class_weights, factors,
      given_lse, loss,   lse,  input_grad, weight_grad,   bias_grad};
  const Given given[] = {rows,
                         matrix,
                         bias,
                         labels,
                         class_weights,
                         factors,
                         given_lse,
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"firstClass", firstClass},
                         Named{"vocabularySize", vocabularySize},
                         loss,
                         lse,
                         input_grad,
                         weight_grad,
                         bias_grad};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    for (const Argument& argument : {rows, matrix, labels}) checks.not_null(argument);
    if (lseOptional == nullptr) checks.not_null(loss).not_null(lse);
    checks.dtype_in(rows, kTypes).dtype_in(labels, kTargetTypes);
    if (!checks.ok()) return checks.status();
    const DtypeRule real[] = {
        {input->view.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT, Product::kAscend310P}};
    for (const Argument& argument : {matrix, bias, input_grad, weight_grad, bias_grad}) {
      if (argument.tensor != nullptr) checks.same_dtype(argument, rows);
    }
    for (const Argument& argument : {class_weights, factors, given_lse, loss, lse}) {
      if (argument.tensor != nullptr) checks.dtype_in(argument, real);
    }
    for (const Argument& argument : arguments) {
      if (argument.tensor != nullptr) checks.public_format(argument);
    }
    for (const Argument& argument : {rows, matrix}) require_rank(checks, argument, 2);
    if (!checks.ok()) return checks.status();
    const Sizes sizes{size_of(rows, 0), size_of(matrix, 0), size_of(rows, 1)};
    checks.require(sizes.classes > 0, "weight has shape %s, expected at least one row",
                   shape_text(weight->view.shape).c_str());
    require_shape(checks, matrix, {sizes.classes, sizes.depth}, "rows as long as those of input");
    for (const Argument& argument : {bias, class_weights}) {
      require_shape(checks, argument, {sizes.classes}, "a number for every row of weight");
    }
    checks.require(labelSmoothing >= 0 && labelSmoothing <= 1,
                   "labelSmoothing is %g, expected a number from 0 to 1", labelSmoothing);
    const int64_t vocabulary = vocabularySize == 0 ? sizes.classes : vocabularySize;
    checks.require(vocabulary >= sizes.classes,
                   "vocabularySize is %lld, expected 0 or at least the %lld rows of weight",
                   static_cast<long long>(vocabulary), static_cast<long long>(sizes.classes));
    if (!checks.ok()) return checks.status();
    checks.require(firstClass >= 0 && firstClass <= vocabulary - sizes.classes,
                   "firstClass is %lld, expected 0 to %lld, where the %lld rows of weight end with "
                   "the vocabulary of %lld",
                   static_cast<long long>(firstClass),
                   static_cast<long long>(vocabulary - sizes.classes),
                   static_cast<long long>(sizes.classes), static_cast<long long>(vocabulary));
    const bool is_part = sizes.classes < vocabulary;
    checks.require(!is_part || (labelSmoothing == 0 && classWeightsOptional == nullptr),
                   "labelSmoothing or classWeights is given, expected neither beside a part of a "
                   "vocabulary");
    for (const Argument& argument : {labels, factors, given_lse, loss, lse}) {
      require_shape(checks, argument, {sizes.rows}, "a number for every row of input");
    }
    require_shape(checks, input_grad, {sizes.rows, sizes.depth}, "as input has");
    require_shape(checks, weight_grad, {sizes.classes, sizes.depth}, "as weight has");
    require_shape(checks, bias_grad, {sizes.classes}, "a number for every row of weight");
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    const aclDataType dtype = input->view.dtype;
    return make_executor_of(
        kApi, dtype, workspaceSize, executor, [&]<class Real, class Element>(Workspace& workspace) {
          return HostPlan<Real, Element>(
              {input, weight, biasOptional, target, classWeightsOptional, factorsOptional,
               lseOptional, lseOptional == nullptr ? lossOut : nullptr,
               lseOptional == nullptr ? lseOut : nullptr, inputGradOutOptional,
               weightGradOutOptional, biasGradOutOptional},
              sizes, {ignoreIndex, labelSmoothing, firstClass, vocabulary}, workspace);
        });
  });
}

ACLNN_STAGE2(HostLinearCrossEntropy)
