// Steps of the Adam optimiser and its variants, computed in FLOAT.

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/optimizers/lists.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "cann/rows/rows_in_pieces.h"

namespace aclnn_host::optimizers_adam_rows {

namespace {

// The number of a step, from the number of steps before it, as ATen counts.
at::Tensor following(const at::Tensor& step) {
  return step.reshape({}).to(at::kFloat).add(1);
}

// Checks that a list has the length, shapes and types of `like`.
template <class List, class Like>
void expect_list(const char* name, const List& list, const Like& like) {
  EXPECT(list.size() == like.size(), name, " has ", list.size(), " tensors, expected ", like.size(),
         ", as many as paramsRef");
  for (size_t i = 0; i < list.size(); ++i) expect_like(name, list[i], like[i]);
}

// The numbers of the steps, counted from 1, from the first element of each tensor, which counts
// from 0.
std::vector<at::Tensor> following(const std::vector<at::Tensor>& steps, size_t count) {
  EXPECT(steps.size() == count, "stateSteps has ", steps.size(), " tensors, expected ", count,
         ", as many as paramsRef");
  std::vector<at::Tensor> numbers;
  for (const at::Tensor& step : steps) {
    expect_elements("stateSteps", step);
    numbers.push_back(step.reshape({-1}).select(0, 0).to(at::kFloat) + 1);
  }
  return numbers;
}

// Contiguous tensors, as ATen's kernels expect them, in which to change the outputs of a list:
// their own memory if the row may write there, and otherwise copies.
std::vector<at::Tensor> changeable(const std::vector<Output>& outputs) {
  std::vector<at::Tensor> changed;
  changed.reserve(outputs.size());
  for (const Output& out : outputs) {
    const bool is_direct = out.may_be_written_early() && out->is_contiguous();
    changed.push_back(is_direct ? static_cast<const at::Tensor&>(out)
                                : out->clone(at::MemoryFormat::Contiguous));
  }
  return changed;
}

// Quantised moments: indices into an ascending table of 256 numbers, times the largest magnitude of
// each block of elements.
class Quantised {
 public:
  Quantised(const char* name, const Output& indices, const char* map_name, const at::Tensor& map,
            const char* largest_name, const Output& largest, const at::Tensor& like, int64_t block)
      : map_(map), shape_(like.sizes().vec()), block_(block), elements_(like.numel()) {
    expect_tensor(name, indices, at::kByte, like.sizes());
    expect_tensor(map_name, map, at::kFloat, {kSize});
    expect_tensor(largest_name, largest, at::kFloat, {(elements_ + block - 1) / block});
    const at::Tensor flat = static_cast<const at::Tensor&>(indices).reshape({-1}).to(at::kLong);
    values_ =
        map.index_select(0, flat)
            .mul(largest->repeat_interleave(block, 0, elements_padded()).narrow(0, 0, elements_))
            .view(shape_);
  }

  const at::Tensor& values() const { return values_; }

  // Stores new values as the nearest numbers of the table; ties go to the lower index.
  void store(const at::Tensor& values, Output& indices, Output& largest) const {
    const at::Tensor flat = values.reshape({-1});
    const at::Tensor blocks =
        at::constant_pad_nd(flat, {0, elements_padded() - elements_}).view({-1, block_});
    const at::Tensor most = blocks.abs().amax(1);
    const at::Tensor divisors = at::where(most == 0, c10::Scalar(1.0), most);
    const at::Tensor shares =
        (blocks / divisors.unsqueeze(1)).reshape({-1}).narrow(0, 0, elements_);
    const at::Tensor upper = at::bucketize(shares, map_).clamp(1, kSize - 1);
    const at::Tensor lower = upper - 1;
    const at::Tensor is_lower = (shares - map_.index_select(0, lower)).abs() <=
                                (shares - map_.index_select(0, upper)).abs();
    indices = at::where(is_lower, lower, upper).to(at::kByte).view(shape_);
    largest = most;
  }

 private:
  static constexpr int64_t kSize = 256;
  int64_t elements_padded() const { return (elements_ + block_ - 1) / block_ * block_; }

  at::Tensor map_;
  std::vector<int64_t> shape_;
  int64_t block_;
  int64_t elements_;
  at::Tensor values_;
};

}  // namespace

// stateSteps, like step below, is the number of steps before this one.
ACLNN(FusedAdam, (InOuts, paramsRef), (InOuts, gradsRef), (InOuts, expAvgsRef),
      (InOuts, expAvgSqsRef), (InOuts, maxExpAvgSqsRef), (Ins, stateSteps),
      (Optional<In>, gradScaleOptional), (Optional<In>, foundInfOptional), (double, lr),
      (double, beta1), (double, beta2), (double, weightDecay), (double, eps), (bool, amsgrad),
      (bool, maximize)) {
  expect_params(paramsRef);
  expect_alike("gradsRef", gradsRef, paramsRef);
  expect_alike("expAvgsRef", expAvgsRef, paramsRef);
  expect_alike("expAvgSqsRef", expAvgSqsRef, paramsRef);
  if (amsgrad) expect_alike("maxExpAvgSqsRef", maxExpAvgSqsRef, paramsRef);
  const auto params = changeable(paramsRef), grads = changeable(gradsRef);
  const auto means = changeable(expAvgsRef), squares = changeable(expAvgSqsRef);
  const auto largest = amsgrad ? changeable(maxExpAvgSqsRef) : std::vector<at::Tensor>();
  at::_fused_adam_(params, grads, means, squares, largest, following(stateSteps, paramsRef.size()),
                   lr, beta1, beta2, weightDecay, eps, amsgrad, maximize,
                   number("gradScaleOptional", gradScaleOptional),
                   number("foundInfOptional", foundInfOptional));
  write(paramsRef, params);
  write(gradsRef, grads);
  write(expAvgsRef, means);
  write(expAvgSqsRef, squares);
  if (amsgrad) write(maxExpAvgSqsRef, largest);
}

// beta1Power and beta2Power are those of the previous step.
// Behaviour of ApplyAdamW: With amsgrad, vRef becomes the larger one of itself and
// maxGradNormOptional.
ACLNN(ApplyAdamW, (Floating<InOut>, varRef), (Like<Floating<InOut>>, mRef, "varRef"),
      (Like<Floating<InOut>>, vRef, "varRef"), (SameDtype<In>, beta1Power, "varRef"),
      (SameDtype<In>, beta2Power, "varRef"), (SameDtype<In>, lr, "varRef"),
      (SameDtype<In>, weightDecay, "varRef"), (SameDtype<In>, beta1, "varRef"),
      (SameDtype<In>, beta2, "varRef"), (SameDtype<In>, eps, "varRef"),
      (Like<Floating<In>>, grad, "varRef"), (Optional<In>, maxGradNormOptional), (bool, amsgrad),
      (bool, maximize)) {
  require_given(!amsgrad || maxGradNormOptional,
                "amsgrad is true and maxGradNormOptional is null, expected a tensor");
  if (amsgrad) expect_like("maxGradNormOptional", *maxGradNormOptional, varRef);
  const at::Tensor first = setting("beta1", beta1), second = setting("beta2", beta2);
  const at::Tensor rate = setting("lr", lr), decay = setting("weightDecay", weightDecay);
  const at::Tensor power1 = setting("beta1Power", beta1Power) * first;
  const at::Tensor power2 = setting("beta2Power", beta2Power) * second;
  const at::Tensor epsilon = setting("eps", eps);
  const at::Tensor largest = amsgrad ? *maxGradNormOptional : at::Tensor();
  update_elements<3, 5>(
      {&varRef, &mRef, &vRef}, {varRef, mRef, vRef, grad, largest},
      [&](const std::array<at::Tensor, 5>& of) -> std::array<at::Tensor, 3> {
        const at::Tensor variable = wide(of[0]);
        const at::Tensor gradient = maximize ? -wide(of[3]) : wide(of[3]);
        const at::Tensor mean = wide(of[1]) * first + gradient * (1 - first);
        at::Tensor square = wide(of[2]) * second + gradient.square() * (1 - second);
        if (amsgrad) square = at::maximum(square, wide(of[4]));
        const at::Tensor deviation = (square / (1 - power2)).sqrt() + epsilon;
        return {variable - rate * (mean / (1 - power1)) / deviation - rate * decay * variable, mean,
                square};
      });
}
ACLNN(ApplyAdamWV2, (Floating<InOut>, varRef), (SameShape<Floating<InOut>>, mRef, "varRef"),
      (SameShape<Floating<InOut>>, vRef, "varRef"), (Optional<InOut>, maxGradNormOptionalRef),
      (SameShape<Floating<In>>, grad, "varRef"), (In, step), (float, lr), (float, beta1),
      (float, beta2), (float, weightDecay), (float, eps), (bool, amsgrad), (bool, maximize)) {
  require_given(!amsgrad || maxGradNormOptionalRef,
                "amsgrad is true and maxGradNormOptionalRef is null, expected a tensor");
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
  // ATen computes tensors of one 16-bit type in FLOAT, too, and rounds each result once.
  const at::ScalarType type = varRef->scalar_type();
  const bool is_mixed = mRef->scalar_type() != type || vRef->scalar_type() != type ||
                        grad.scalar_type() != type ||
                        (amsgrad && (*maxGradNormOptionalRef)->scalar_type() != type);
  const at::ScalarType computed = is_mixed ? wide(type) : type;
  const auto changeable = [&](const Output& out) {
    if (!is_mixed && out->is_contiguous()) return out.editable();
    return out->to(computed, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  };
  const at::Tensor variable = changeable(varRef), mean = changeable(mRef);
  const at::Tensor square = changeable(vRef);
  std::vector<at::Tensor> largest;
  if (amsgrad) largest.push_back(changeable(*maxGradNormOptionalRef));
  at::_fused_adamw_({variable}, {grad.to(computed).contiguous()}, {mean}, {square}, largest,
                    {following(only_element("step", step))}, lr, beta1, beta2, weightDecay, eps,
                    amsgrad, maximize);
  varRef = variable;
  mRef = mean;
  vRef = square;
  if (amsgrad) maxGradNormOptionalRef = largest[0];
}

// beta1Power and beta2Power are those of this step.
// Deviation of ApplyAdam: m and v are only read, as documented. The vendor's kernel writes them.
ACLNN(ApplyAdam, (Floating<InOut>, varRef), (Like<In>, m, "varRef"), (Like<In>, v, "varRef"),
      (In, beta1Power), (In, beta2Power), (In, lr), (In, beta1), (In, beta2), (In, epsilon),
      (Like<In>, grad, "varRef"), (Unused<bool>, useLocking, "changes no number"),
      (bool, useNesterov)) {
  const at::Tensor first = number("beta1", beta1);
  const at::Tensor second = number("beta2", beta2);
  const at::Tensor rate = number("lr", lr) * (1 - number("beta2Power", beta2Power)).sqrt() /
                          (1 - number("beta1Power", beta1Power));
  const auto small = number("epsilon", epsilon);
  update_elements<1, 4>(
      {&varRef}, {varRef, m, v, grad},
      [&](const std::array<at::Tensor, 4>& of) -> std::array<at::Tensor, 1> {
        const at::Tensor gradient = wide(of[3]);
        const at::Tensor mean = first * wide(of[1]) + (1 - first) * gradient;
        const at::Tensor square = second * wide(of[2]) + (1 - second) * gradient.square();
        const at::Tensor direction = useNesterov ? first * mean + (1 - first) * gradient : mean;
        return {wide(of[0]) - rate * (direction / (square.sqrt() + small))};
      });
}

// stateSteps is the number of steps before this one, as in aclnnFusedAdam. grads are not changed.
ACLNN(FusedAdamw, (InOuts, paramsRef), (Ins, grads), (InOuts, expAvgsRef), (InOuts, expAvgSqsRef),
      (Optional<InOuts>, maxExpAvgSqsRef), (Ins, stateSteps), (Optional<In>, gradScaleOptional),
      (Optional<In>, foundInfOptional), (double, lr), (double, beta1), (double, beta2),
      (double, weightDecay), (double, eps), (bool, amsgrad), (bool, maximize)) {
  expect_params(paramsRef);
  for (const Output& param : paramsRef) {
    EXPECT(at::isFloatingType(param->scalar_type()), "paramsRef has dtype ",
           dtype_text(param->scalar_type()), ", expected a floating-point type");
    expect_dtype(param, paramsRef.front());
  }
  for (const at::Tensor& step : stateSteps) {
    expect_dtype("stateSteps", step, {at::kLong, at::kFloat});
  }
  expect_list("grads", grads, paramsRef);
  expect_list("expAvgsRef", expAvgsRef, paramsRef);
  expect_list("expAvgSqsRef", expAvgSqsRef, paramsRef);
  if (amsgrad) expect_list("maxExpAvgSqsRef", maxExpAvgSqsRef, paramsRef);
  const auto params = changeable(paramsRef), means = changeable(expAvgsRef);
  const auto squares = changeable(expAvgSqsRef);
  const auto largest = amsgrad ? changeable(maxExpAvgSqsRef) : std::vector<at::Tensor>();
  // ATen divides the gradients by the scale in their memory.
  std::vector<at::Tensor> scaled = grads;
  for (at::Tensor& gradient : scaled) {
    gradient =
        gradScaleOptional ? gradient.clone(at::MemoryFormat::Contiguous) : gradient.contiguous();
  }
  at::_fused_adamw_(params, scaled, means, squares, largest,
                    following(stateSteps, paramsRef.size()), lr, beta1, beta2, weightDecay, eps,
                    amsgrad, maximize, number("gradScaleOptional", gradScaleOptional),
                    number("foundInfOptional", foundInfOptional));
  write(paramsRef, params);
  write(expAvgsRef, means);
  write(expAvgSqsRef, squares);
  if (amsgrad) write(maxExpAvgSqsRef, largest);
}

// sRef is the moving average of varRef. Mode 0 adds the decay to the gradient, mode 1 to the step.
// If step has several elements, the first is used.
ACLNN(ApplyFusedEmaAdam, (Floating<In>, grad), (Like<InOut>, varRef, "grad"),
      (Like<InOut>, mRef, "grad"), (Like<InOut>, vRef, "grad"), (Like<InOut>, sRef, "grad"),
      (In, step), (double, lr), (double, emaDecay), (double, beta1), (double, beta2), (double, eps),
      (int64_t, mode), (bool, biasCorrection), (double, weightDecay)) {
  expect_one_of("mode", mode, {0, 1}, ", L2 or AdamW");
  expect_elements("step", step);
  expect_dtype("step", step, at::kLong);
  const at::Tensor count = step.flatten().select(0, 0).to(at::kDouble);
  const auto correction = [&](double beta) { return 1 - at::pow(c10::Scalar(beta), count); };
  const double decay = weightDecay.value(), first = beta1.value(), second = beta2.value();
  update_elements<4, 5>(
      {&varRef, &mRef, &vRef, &sRef}, {varRef, mRef, vRef, sRef, grad},
      [&](const std::array<at::Tensor, 5>& of) -> std::array<at::Tensor, 4> {
        const at::Tensor variable = wide(of[0]);
        const at::Tensor gradient = mode == 0 ? wide(of[4]) + variable * decay : wide(of[4]);
        const at::Tensor mean = wide(of[1]) * first + gradient * (1 - first);
        const at::Tensor square = wide(of[2]) * second + gradient.square() * (1 - second);
        const at::Tensor corrected_mean = biasCorrection ? mean / correction(first) : mean;
        const at::Tensor corrected = biasCorrection ? square / correction(second) : square;
        at::Tensor update = corrected_mean / (corrected.sqrt() + eps.value());
        if (mode == 1) update = update + variable * decay;
        const at::Tensor result = variable - update * lr.value();
        const at::Tensor average = wide(of[3]) * emaDecay.value() + result * (1 - emaDecay.value());
        return {result, mean, square, average};
      });
}

// step is the number of steps before this one, as in aclnnApplyAdamWV2.
ACLNN(ApplyAdamWQuant, (Floating<InOut>, varRef), (Like<In>, grad, "varRef"), (InOut, mRef),
      (InOut, vRef), (In, qmapM), (In, qmapV), (InOut, absmaxMRef), (InOut, absmaxVRef), (In, step),
      (double, lr), (double, beta1), (double, beta2), (double, weightDecay), (double, eps),
      (double, gnormScale), (Unused<char*>, quantModeOptional, "reserved"), (int64_t, blockSize)) {
  expect_one_of("blockSize", blockSize, {256});
  const Quantised m("mRef", mRef, "qmapM", qmapM, "absmaxMRef", absmaxMRef, varRef,
                    blockSize.value());
  const Quantised v("vRef", vRef, "qmapV", qmapV, "absmaxVRef", absmaxVRef, varRef,
                    blockSize.value());
  expect_dtype("step", step, at::kLong);
  const at::Tensor count = only_element("step", step).to(at::kDouble) + 1;
  const double first = beta1.value(), second = beta2.value();
  const at::Tensor gradient = wide(grad) * gnormScale.value();
  const at::Tensor mean = m.values() * first + gradient * (1 - first);
  const at::Tensor square = v.values() * second + gradient.square() * (1 - second);
  const at::Tensor corrected_mean = mean / (1 - at::pow(c10::Scalar(first), count));
  const at::Tensor corrected = square / (1 - at::pow(c10::Scalar(second), count));
  const at::Tensor variable = wide(varRef);
  varRef = variable - corrected_mean / (corrected.sqrt() + eps.value()) * lr.value() -
           variable * (lr.value() * weightDecay.value());
  m.store(mean, mRef, absmaxMRef);
  v.store(square, vRef, absmaxVRef);
}

}  // namespace aclnn_host::optimizers_adam_rows
