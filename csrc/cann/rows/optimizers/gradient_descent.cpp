// Steps of gradient descent and its variants.

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/optimizers/lists.h"
#include "cann/rows/row.h"
#include "cann/rows/rows_in_pieces.h"

namespace aclnn_host::optimizers_gradient_descent_rows {

namespace {

// Checks a decay rate or a power of it.
void check_rate(const char* name, const c10::Scalar& rate) {
  EXPECT(rate.toDouble() >= 0 && rate.toDouble() < 1, name, " is ", rate.toDouble(),
         ", expected at least 0 and less than 1");
}

void check_dims(const at::Tensor& var) {
  EXPECT(var.dim() > 0, "var has no dimensions, expected at least one");
}

}  // namespace

// Optimisers: one step of all parameters.
ACLNN(FusedSgd, (InOuts, paramsRef), (InOuts, gradsRef), (InOuts, momentumBufferListOptionalRef),
      (Optional<In>, gradScaleOptional), (float, weightDecay), (float, momentum), (float, lr),
      (float, dampening), (bool, nesterov), (bool, maximize), (bool, isFirstStep)) {
  expect_params(paramsRef);
  expect_alike("gradsRef", gradsRef, paramsRef);
  if (momentum != 0) {
    expect_alike("momentumBufferListOptionalRef", momentumBufferListOptionalRef, paramsRef);
  } else {
    EXPECT(momentumBufferListOptionalRef.empty(), "momentumBufferListOptionalRef has ",
           momentumBufferListOptionalRef.size(), " tensors, expected none as momentum is 0");
  }
  // In FLOAT: ATen's loop over vectors of 16 bits does not write the parameters.
  const auto [params, grads, momenta] = at::_fused_sgd(
      all_wide(tensors(paramsRef)), all_wide(tensors(gradsRef)),
      all_wide(tensors(momentumBufferListOptionalRef)), weightDecay, momentum, lr, dampening,
      nesterov, maximize, isFirstStep, number("gradScaleOptional", gradScaleOptional));
  write(paramsRef, params);
  write(gradsRef, grads);
  write(momentumBufferListOptionalRef, momenta);
}

ACLNN(ApplyAdadelta, (Floating<In>, var), (Like<Floating<In>>, accum, "var"),
      (Like<Floating<In>>, accumUpdate, "var"), (Number, lr), (Number, rho), (Number, epsilon),
      (Like<Floating<In>>, grad, "var"), (Like<Out>, varOut, "var"), (Like<Out>, accumOut, "var"),
      (Like<Out>, accumUpdateOut, "var")) {
  check_dims(var);
  EXPECT(lr.toDouble() >= 0, "lr is ", lr.toDouble(), ", expected at least 0");
  EXPECT(epsilon.toDouble() > 0, "epsilon is ", epsilon.toDouble(), ", expected more than 0");
  check_rate("rho", rho);
  const double decay = rho.toDouble();
  update_elements<3, 4>(
      {&varOut, &accumOut, &accumUpdateOut}, {var, accum, accumUpdate, grad},
      [&](const std::array<at::Tensor, 4>& of) -> std::array<at::Tensor, 3> {
        const at::Tensor gradient = wide(of[3]);
        const at::Tensor squares = decay * wide(of[1]) + (1 - decay) * gradient.square();
        const at::Tensor update =
            at::sqrt(wide(of[2]) + epsilon) / at::sqrt(squares + epsilon) * gradient;
        const at::Tensor updates = decay * wide(of[2]) + (1 - decay) * update.square();
        return {wide(of[0]) - lr * update, squares, updates};
      });
}

// beta1Power and beta2Power are those of this step. useLocking does not influence the result.
ACLNN(ApplyAdamD, (Floating<In>, var), (Like<Floating<In>>, m, "var"),
      (Like<Floating<In>>, v, "var"), (SameDtype<Floating<In>>, beta1Power, "var"),
      (SameDtype<Floating<In>>, beta2Power, "var"), (SameDtype<Floating<In>>, lr, "var"),
      (SameDtype<Floating<In>>, beta1, "var"), (SameDtype<Floating<In>>, beta2, "var"),
      (SameDtype<Floating<In>>, epsilon, "var"), (Like<Floating<In>>, grad, "var"),
      (Unused<bool>, useLocking, "changes no number"), (bool, useNesterov),
      (Like<Out>, varOut, "var"), (Like<Out>, mOut, "var"), (Like<Out>, vOut, "var")) {
  const at::Tensor power1 = setting("beta1Power", beta1Power);
  const at::Tensor power2 = setting("beta2Power", beta2Power);
  const at::Tensor first = setting("beta1", beta1);
  const at::Tensor second = setting("beta2", beta2);
  const at::Tensor rate = setting("lr", lr) * at::sqrt(1 - power2) / (1 - power1);
  const at::Tensor small = setting("epsilon", epsilon);
  update_elements<3, 4>(
      {&varOut, &mOut, &vOut}, {var, m, v, grad},
      [&](const std::array<at::Tensor, 4>& of) -> std::array<at::Tensor, 3> {
        const at::Tensor gradient = wide(of[3]);
        const at::Tensor mean = first * wide(of[1]) + (1 - first) * gradient;
        const at::Tensor square = second * wide(of[2]) + (1 - second) * gradient * gradient;
        const at::Tensor direction = useNesterov ? mean * first + (1 - first) * gradient : mean;
        return {wide(of[0]) - rate * direction / (small + at::sqrt(square)), mean, square};
      });
}

ACLNN(ApplyAdamax, (Floating<In>, var), (Like<Floating<In>>, m, "var"),
      (Like<Floating<In>>, v, "var"), (Number, beta1Power), (Number, lr), (Number, beta1),
      (Number, beta2), (Number, epsilon), (Like<Floating<In>>, grad, "var"),
      (Like<Out>, varOut, "var"), (Like<Out>, mOut, "var"), (Like<Out>, vOut, "var")) {
  check_dims(var);
  check_rate("beta1Power", beta1Power);
  check_rate("beta1", beta1);
  check_rate("beta2", beta2);
  EXPECT(epsilon.toDouble() >= 0, "epsilon is ", epsilon.toDouble(), ", expected at least 0");
  const double first = beta1.toDouble();
  const double rate = lr.toDouble() / (1 - beta1Power.toDouble());
  update_elements<3, 4>({&varOut, &mOut, &vOut}, {var, m, v, grad},
                        [&](const std::array<at::Tensor, 4>& of) -> std::array<at::Tensor, 3> {
                          const at::Tensor mean = first * wide(of[1]) + (1 - first) * wide(of[3]);
                          const at::Tensor largest =
                              at::maximum(wide(of[2]) * beta2, at::abs(wide(of[3])));
                          return {wide(of[0]) - rate * (mean / (largest + epsilon)), mean, largest};
                        });
}

// Behaviour of ApplyFtrl: var is 0 where the new linear is not above l1, NaN included.
ACLNN(ApplyFtrl, (Floating<InOut>, varRef), (Like<Floating<InOut>>, accumRef, "varRef"),
      (Like<Floating<InOut>>, linearRef, "varRef"), (Like<Floating<In>>, grad, "varRef"),
      (SameDtype<Floating<In>>, lr, "varRef"), (SameDtype<Floating<In>>, l1, "varRef"),
      (SameDtype<Floating<In>>, l2, "varRef"), (SameDtype<Floating<In>>, lrPower, "varRef"),
      (bool, useLocking)) {
  EXPECT(!useLocking, "useLocking is true, expected false");
  const at::Tensor rate = setting("lr", lr);
  const at::Tensor power = -setting("lrPower", lrPower);
  const at::Tensor threshold = setting("l1", l1), twice = 2 * setting("l2", l2);
  update_elements<3, 4>(
      {&varRef, &accumRef, &linearRef}, {varRef, accumRef, linearRef, grad},
      [&](const std::array<at::Tensor, 4>& of) -> std::array<at::Tensor, 3> {
        const at::Tensor gradient = wide(of[3]);
        const at::Tensor squares = wide(of[1]) + gradient * gradient;
        const at::Tensor scale = at::pow(squares, power);
        const at::Tensor linear =
            wide(of[2]) + gradient - (scale - at::pow(wide(of[1]), power)) / rate * wide(of[0]);
        // The result is 0 where linear is NaN, because the kernel selects elements above the
        // threshold.
        const at::Tensor result =
            at::where(at::abs(linear) > threshold,
                      (at::sign(linear) * threshold - linear) / (scale / rate + twice), 0);
        return {result, squares, linear};
      });
}

ACLNN(ApplyGradientDescent, (Floating<InOut>, var), (SameDtype<Floating<In>>, alpha, "var"),
      (Like<Floating<In>>, delta, "var")) {
  check_dims(var);
  const at::Tensor rate = setting("alpha", alpha);
  update_elements<1, 2>({&var}, {var, delta},
                        [&](const std::array<at::Tensor, 2>& of) -> std::array<at::Tensor, 1> {
                          return {wide(of[0]) - rate * wide(of[1])};
                        });
}

}  // namespace aclnn_host::optimizers_gradient_descent_rows
