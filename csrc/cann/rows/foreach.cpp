// Lists of tensors, element by element, and the optimisers that work on them.

#include <ATen/ScalarOps.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/div.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/frac.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/foreach/foreach.h"
#include "cann/rows/row.h"

namespace aclnn_host::foreach_rows {

namespace {

// The number of a step, of how many there were before, as ATen counts them.
at::Tensor following(const at::Tensor& step) {
  return step.reshape({}).to(at::kFloat).add(1);
}

// ATen's kernels trust that the lists of an optimizer have the parameters' shapes.
void expect_alike(const char* name, const std::vector<Output>& list,
                  const std::vector<Output>& params) {
  EXPECT(list.size() == params.size(), name, " has ", list.size(), " tensors, expected ",
         params.size());
  for (size_t i = 0; i < list.size(); ++i) expect_shape(name, list[i], params[i]->sizes());
}

void write(std::vector<Output>& outputs, const std::vector<at::Tensor>& results) {
  for_each(outputs, [&](size_t i) { return results[i]; }, results);
}

}  // namespace

// aclnnForeach<Name>(x, out)
#define UNARY(Name, function)                                                      \
  ACLNN(Foreach##Name, (Ins, x), (Outs, out)) {                                    \
    for_each_elementwise(                                                          \
        out, [&](size_t i) { return x[i].scalar_type(); },                         \
        [&](size_t i) { return at::function(x[i]); },                              \
        [&](size_t i, at::Tensor& place) { at::function##_out(place, x[i]); }, x); \
  }
UNARY(Abs, abs)
UNARY(Acos, acos)
UNARY(Asin, asin)
UNARY(Atan, atan)
UNARY(Cos, cos)
UNARY(Cosh, cosh)
UNARY(Erf, erf)
UNARY(Erfc, erfc)
UNARY(Exp, exp)
UNARY(Expm1, expm1)
UNARY(Log, log)
UNARY(Log10, log10)
UNARY(Log1p, log1p)
UNARY(Log2, log2)
UNARY(Neg, neg)
UNARY(Reciprocal, reciprocal)
UNARY(Sigmoid, sigmoid)
UNARY(Sign, sign)
UNARY(Sin, sin)
UNARY(Sinh, sinh)
UNARY(Sqrt, sqrt)
UNARY(Tan, tan)
UNARY(Tanh, tanh)
#undef UNARY

ACLNN(ForeachCopy, (Ins, x), (Outs, out)) {
  for_each(out, [&](size_t i) { return x[i]; }, x);
}
ACLNN(ForeachZeroInplace, (InOuts, x)) {
  for_each(x, [&](size_t i) { return at::zeros_like(x[i]); });
}
ACLNN(ForeachRoundOffNumberV2, (Ins, x), (Number, roundMode), (Outs, out)) {
  enum Mode { kRound = 1, kFloor = 2, kCeil = 3, kTrunc = 5, kFrac = 7 };
  const int64_t mode = roundMode.toLong();
  for_each(
      out,
      [&](size_t i) {
        switch (mode) {
          case kRound: return at::round(x[i]);
          case kFloor: return at::floor(x[i]);
          case kCeil: return at::ceil(x[i]);
          case kTrunc: return at::trunc(x[i]);
          case kFrac: return at::frac(x[i]);
        }
        EXPECT(false, "roundMode is ", mode,
               ", expected 1 (round), 2 (floor), 3 (ceil), 5 (trunc) or 7 (frac)");
      },
      x);
}

// aclnnForeach<Name>ScalarV2(x, scalar, out) and ...ScalarList(x, scalars, out)
#define WITH_SCALAR(Name, Kind, function)                                                      \
  ACLNN(Foreach##Name##ScalarV2, (Ins, x), (Kind, scalar), (Outs, out)) {                      \
    for_each(out, [&](size_t i) { return at::function(wide(x[i]), scalar); }, x);              \
  }                                                                                            \
  ACLNN(Foreach##Name##ScalarList, (Ins, x), (Kind##s, scalars), (Outs, out)) {                \
    for_each(out, [&](size_t i) { return at::function(wide(x[i]), scalars[i]); }, x, scalars); \
  }
WITH_SCALAR(Pow, Number, pow)
WITH_SCALAR(Maximum, AnyNumber, clamp_min)
WITH_SCALAR(Minimum, AnyNumber, clamp_max)
#undef WITH_SCALAR

// The same of functions that ATen has for tensors, with the scalar as one. It multiplies and
// divides 16-bit numbers by one that it does not round before; for sums they are widened.
#define WRITE_WITH_OPERAND(function, read, scalar)                                  \
  for_each_elementwise(                                                             \
      out, [&](size_t i) { return read(at::result_type(x[i], scalar)); },           \
      [&](size_t i) { return at::function(read(x[i]), scalar); },                   \
      [&](size_t i, at::Tensor& place) {                                            \
        at::function##_out(place, x[i], at::native::wrapped_scalar_tensor(scalar)); \
      },                                                                            \
      x)
#define WITH_OPERAND(Name, function, read)                                         \
  ACLNN(Foreach##Name##ScalarV2, (Ins, x), (AnyNumber, scalar), (Outs, out)) {     \
    WRITE_WITH_OPERAND(function, read, scalar);                                    \
  }                                                                                \
  ACLNN(Foreach##Name##ScalarList, (Ins, x), (AnyNumbers, scalars), (Outs, out)) { \
    check_lengths(out, scalars);                                                   \
    WRITE_WITH_OPERAND(function, read, scalars[i]);                                \
  }
WITH_OPERAND(Add, add, wide)
WITH_OPERAND(Sub, sub, wide)
WITH_OPERAND(Mul, mul, )
WITH_OPERAND(Div, div, )
#undef WITH_OPERAND
#undef WRITE_WITH_OPERAND

// aclnnForeach<Name>List(x1, x2, out)
#define WITH_LIST(Name, function)                                                \
  ACLNN(Foreach##Name##List, (Ins, x1), (Ins, x2), (Outs, out)) {                \
    for_each(out, [&](size_t i) { return at::function(x1[i], x2[i]); }, x1, x2); \
  }
WITH_LIST(Mul, mul)
WITH_LIST(Div, div)
WITH_LIST(Pow, pow)
WITH_LIST(Maximum, maximum)
WITH_LIST(Minimum, minimum)
#undef WITH_LIST

ACLNN(ForeachAddListV2, (Ins, x1), (Ins, x2), (AnyNumber, alpha), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::add(wide(x1[i]), wide(x2[i]), alpha); }, x1, x2);
}
ACLNN(ForeachSubListV2, (Ins, x1), (Ins, x2), (AnyNumber, alpha), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::sub(wide(x1[i]), wide(x2[i]), alpha); }, x1, x2);
}
ACLNN(ForeachLerpScalar, (Ins, x1), (Ins, x2), (AnyNumber, weight), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::lerp(x1[i], x2[i], weight); },
      [&](size_t i, at::Tensor& place) { at::lerp_out(place, x1[i], x2[i], weight); }, x1, x2);
}
ACLNN(ForeachLerpList, (Ins, x1), (Ins, x2), (Ins, weight), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::lerp(x1[i], x2[i], weight[i]); }, x1, x2, weight);
}
ACLNN(ForeachAddcmulScalarV2, (Ins, x1), (Ins, x2), (Ins, x3), (AnyNumber, scalar), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::addcmul(x1[i], x2[i], x3[i], scalar); },
      [&](size_t i, at::Tensor& place) { at::addcmul_out(place, x1[i], x2[i], x3[i], scalar); }, x1,
      x2, x3);
}
ACLNN(ForeachAddcdivScalarV2, (Ins, x1), (Ins, x2), (Ins, x3), (AnyNumber, scalar), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::addcdiv(x1[i], x2[i], x3[i], scalar); },
      [&](size_t i, at::Tensor& place) { at::addcdiv_out(place, x1[i], x2[i], x3[i], scalar); }, x1,
      x2, x3);
}
ACLNN(ForeachPowScalarAndTensor, (Number, scalar), (Ins, x), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::pow(scalar, wide(x[i])); }, x);
}
ACLNN(ForeachNorm, (Ins, x), (Number, scalar), (Outs, out)) {
  const auto norm = [&](size_t i) {
    const at::Tensor result = at::linalg_vector_norm(wide(x[i]), scalar);
    // One element, in any number of dimensions.
    return out[i]->numel() == 1 ? result.view(out[i]->sizes()) : result;
  };
  for_each(out, norm, x);
}

// What a gradient scaler needs: gradients divided by the scale, and whether one of them is inf or
// nan; and the scale for the next step.
ACLNN(ForeachNonFiniteCheckAndUnscale, (InOuts, scaledGrads), (InOut, foundInf), (In, inScale)) {
  for (Output& gradient : scaledGrads) {
    const at::Tensor is_bad = at::isfinite(gradient).all().logical_not();
    foundInf = at::maximum(foundInf, is_bad.to(foundInf->scalar_type()));
    gradient = at::mul(gradient, inScale);
  }
}
ACLNN(AmpUpdateScale, (In, currentScale), (In, growthTracker), (In, foundInf),
      (double, growthFactor), (double, backoffFactor), (int64_t, growthInterval),
      (Out, updatedScaleOut), (Out, updatedGrowthTrackerOut)) {
  const auto [scale, tracker] =
      at::_amp_update_scale(currentScale.to(at::kFloat), growthTracker.to(at::kInt),
                            foundInf.to(at::kFloat), growthFactor, backoffFactor, growthInterval);
  updatedScaleOut = scale;
  updatedGrowthTrackerOut = tracker;
}

// Optimisers: one step of all parameters.
ACLNN(FusedSgd, (InOuts, paramsRef), (InOuts, gradsRef), (InOuts, momentumBufferListOptionalRef),
      (OptionalIn, gradScaleOptional), (float, weightDecay), (float, momentum), (float, lr),
      (float, dampening), (bool, nesterov), (bool, maximize), (bool, isFirstStep)) {
  expect_alike("gradsRef", gradsRef, paramsRef);
  expect_alike("momentumBufferListOptionalRef", momentumBufferListOptionalRef, paramsRef);
  const auto [params, grads, momenta] = at::_fused_sgd(
      tensors(paramsRef), tensors(gradsRef), tensors(momentumBufferListOptionalRef), weightDecay,
      momentum, lr, dampening, nesterov, maximize, isFirstStep, gradScaleOptional);
  write(paramsRef, params);
  write(gradsRef, grads);
  write(momentumBufferListOptionalRef, momenta);
}
// stateSteps, like step below, counts the steps before this one.
ACLNN(FusedAdam, (InOuts, paramsRef), (InOuts, gradsRef), (InOuts, expAvgsRef),
      (InOuts, expAvgSqsRef), (InOuts, maxExpAvgSqsRef), (Ins, stateSteps),
      (OptionalIn, gradScaleOptional), (OptionalIn, foundInfOptional), (double, lr),
      (double, beta1), (double, beta2), (double, weightDecay), (double, eps), (bool, amsgrad),
      (bool, maximize)) {
  expect_alike("gradsRef", gradsRef, paramsRef);
  expect_alike("expAvgsRef", expAvgsRef, paramsRef);
  expect_alike("expAvgSqsRef", expAvgSqsRef, paramsRef);
  if (amsgrad) expect_alike("maxExpAvgSqsRef", maxExpAvgSqsRef, paramsRef);
  EXPECT(stateSteps.size() == paramsRef.size(), "stateSteps has ", stateSteps.size(),
         " tensors, expected ", paramsRef.size());
  std::vector<at::Tensor> steps;
  for (const at::Tensor& step : stateSteps) steps.push_back(following(step));
  const auto [params, grads, means, squares, largest] = at::_fused_adam(
      tensors(paramsRef), tensors(gradsRef), tensors(expAvgsRef), tensors(expAvgSqsRef),
      amsgrad ? tensors(maxExpAvgSqsRef) : std::vector<at::Tensor>(), steps, lr, beta1, beta2,
      weightDecay, eps, amsgrad, maximize, gradScaleOptional, foundInfOptional);
  write(paramsRef, params);
  write(gradsRef, grads);
  write(expAvgsRef, means);
  write(expAvgSqsRef, squares);
  if (amsgrad) write(maxExpAvgSqsRef, largest);
}
ACLNN(ApplyAdamWV2, (FloatInOut, varRef), (FloatInOut, mRef), (FloatInOut, vRef),
      (OptionalInOut, maxGradNormOptionalRef), (FloatIn, grad), (In, step), (float, lr),
      (float, beta1), (float, beta2), (float, weightDecay), (float, eps), (bool, amsgrad),
      (bool, maximize)) {
  require_given(!amsgrad || maxGradNormOptionalRef,
                "amsgrad is true and maxGradNormOptionalRef is null, expected a tensor");
  expect_shape("mRef", mRef, varRef->sizes());
  expect_shape("vRef", vRef, varRef->sizes());
  expect_shape("grad", grad, varRef->sizes());
  if (amsgrad) {
    expect_shape("maxGradNormOptionalRef", *maxGradNormOptionalRef, varRef->sizes());
  }
  // FLOAT, FLOAT16 and BFLOAT16 may be mixed.
  const auto expect_width = [&](const char* name, const at::Tensor& tensor) {
    EXPECT(wide(tensor.scalar_type()) == wide(varRef->scalar_type()), name, " has dtype ",
           dtype_text(tensor.scalar_type()), " beside varRef, which has ",
           dtype_text(varRef->scalar_type()),
           ", expected FLOAT, FLOAT16 or BFLOAT16 for each, or DOUBLE for all");
  };
  expect_width("mRef", mRef);
  expect_width("vRef", vRef);
  expect_width("grad", grad);
  if (amsgrad) expect_width("maxGradNormOptionalRef", *maxGradNormOptionalRef);
  EXPECT(step.numel() == 1, "step has shape ", step.sizes(), ", expected one element");
  std::vector<at::Tensor> largest;
  if (amsgrad) largest.push_back(wide(*maxGradNormOptionalRef));
  const auto [params, grads, means, squares, larger] =
      at::_fused_adamw({wide(varRef)}, {wide(grad)}, {wide(mRef)}, {wide(vRef)}, largest,
                       {following(step)}, lr, beta1, beta2, weightDecay, eps, amsgrad, maximize);
  varRef = params[0];
  mRef = means[0];
  vRef = squares[0];
  if (amsgrad) maxGradNormOptionalRef = larger[0];
}

}  // namespace aclnn_host::foreach_rows
