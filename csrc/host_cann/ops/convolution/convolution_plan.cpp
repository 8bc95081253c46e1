#include "host_cann/ops/convolution/convolution_plan.h"

#include <algorithm>

#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/descriptors/trace_algorithm.h"
#include "host_cann/ops/convolution/convolution_checks.h"

namespace aclnn_host {

// ---- aclnnConvolution

ConvolutionPlan::ConvolutionPlan(const aclTensor* input, const aclTensor* weight,
                                 const aclTensor* bias, const aclTensor* output,
                                 const ConvolutionGeometry& geometry, const ComputeType& type,
                                 Product product, Workspace& workspace)
    : geometry(geometry), steps(take_steps(this->geometry, weight->view)), type(type) {
  for (const aclTensor* tensor : {input, weight, bias, output}) {
    if (tensor != nullptr) tensors[tensor_count++] = tensor->view;
  }
  if (is_empty(output->view)) return;
  if (bias != nullptr) {
    round_bias = aclnn_host::round_bias(bias->view, type, geometry.transposed, product);
  }
  if (!is_empty(input->view) && !is_empty(weight->view)) {
    plan_products(workspace);
  } else if (bias != nullptr) {
    this->bias =
        Operand(bias->view, sum_type(type.dtype), round_bias, Layout::kChannelsFirst, workspace);
  }
}

CallerTensors ConvolutionPlan::roles(const TensorView& met) const {
  CallerTensors roles;
  (geometry.transposed ? roles.dst : roles.src) = &met;
  roles.weight = &tensors[1];
  if (has_bias()) roles.bias = &tensors[2];
  roles.round_bias = round_bias;
  roles.image = &output_view();
  return roles;
}

void ConvolutionPlan::plan_products(Workspace& workspace) {
  const TensorView met = every(tensors[0], steps);
  const Problem problem{.sizes = sizes_of(met, tensors[1], output_view(), geometry),
                        .geometry = geometry,
                        .pass = geometry.transposed ? Pass::kBackwardData : Pass::kForward,
                        .is_gradient = false,
                        .channels_last = lies(tensors[0], Layout::kChannelsLast),
                        .dtype = common_type({tensors, tensor_count}, type),
                        .deterministic = wants_same_bits()};
  const Choice choice = choose(problem);
  trace_algorithm("output", choice.name);
  products.emplace(choice, problem, Passes{problem.pass, false}, roles(met), type, workspace);
}

void ConvolutionPlan::compute_products(void* workspace) const {
  const TensorView met = every(tensors[0], steps);
  Results results;
  products->run(roles(met), {.of_image = {tensors, tensor_count - 1}, .of_weight = {}}, results,
                workspace);
  finish(results.image, round_result(type, output_view()), output_view());
}

// Writes the output if there are no products.
void ConvolutionPlan::store_bias(void* workspace) const {
  const TensorView& out = output_view();
  if (!has_bias()) return store_zeros(out);
  TensorView values = bias.read(tensors[2], workspace);
  values.strides = values.shape = out.shape;
  std::fill_n(values.strides.begin(), values.strides.size(), 0);
  values.strides.begin()[1] = 1;
  copy_elements(values, out);
}

aclnnStatus ConvolutionPlan::compute(void* workspace) {
  if (is_empty(output_view())) return OK;
  const AtenScope scope;
  if (products) {
    compute_products(workspace);
  } else {
    store_bias(workspace);
  }
  return OK;
}

// ---- aclnnConvolutionBackward

ConvolutionBackwardPlan::ConvolutionBackwardPlan(const aclTensor* grad_output,
                                                 const aclTensor* input, const aclTensor* weight,
                                                 const Outputs& gradients, const bool* wanted,
                                                 const ConvolutionGeometry& geometry,
                                                 const ComputeType& type, Workspace& workspace)
    : geometry(geometry),
      steps(take_steps(this->geometry, weight->view)),
      type(type),
      has_products(!is_empty(input->view) && !is_empty(weight->view)) {
  for (const aclTensor* tensor : {grad_output, input, weight}) {
    tensors[tensor_count++] = tensor->view;
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    if (wanted[i]) positions[i] = tensor_count;
    tensors[tensor_count++] = gradients[i]->view;
  }
  if (!has_products) return;
  if (wants(2)) grad_bias = ChannelSums(grad_output->view, workspace);
  if (wants(0) || wants(1)) plan_products(workspace);
}

ConvolutionBackwardPlan::Met ConvolutionBackwardPlan::met() const {
  Met met{every(tensors[1], steps), {}};
  if (wants(0)) met.grad_input = every(gradient_view(0), steps);
  return met;
}

CallerTensors ConvolutionBackwardPlan::roles(const Met& met) const {
  CallerTensors roles{.src = &met.input, .dst = &tensors[0], .weight = &tensors[2]};
  if (geometry.transposed) std::swap(roles.src, roles.dst);
  if (wants(0)) roles.image = &met.grad_input;
  if (wants(1)) roles.weight_gradient = &gradient_view(1);
  return roles;
}

void ConvolutionBackwardPlan::plan_products(Workspace& workspace) {
  const Met met = this->met();
  const Pass image = geometry.transposed ? Pass::kForward : Pass::kBackwardData;
  Problem problem{.sizes = sizes_of(met.input, tensors[2], tensors[0], geometry),
                  .geometry = geometry,
                  .pass = image,
                  .is_gradient = true,
                  .channels_last = lies(tensors[1], Layout::kChannelsLast),
                  .dtype = common_type({tensors, kInputs}, type),
                  .deterministic = wants_same_bits()};
  // gradWeight is FLOAT until it is cast; a narrower gradWeight must be written directly.
  if (wants(1) && gradient_view(1).dtype != problem.dtype) problem.dtype = sum_type(type.dtype);
  std::optional<Choice> of_image;
  std::optional<Choice> of_weight;
  if (wants(0)) {
    of_image = choose(problem);
    trace_algorithm("gradInput", of_image->name);
  }
  if (wants(1)) {
    problem.pass = Pass::kBackwardWeight;
    of_weight = choose(problem);
    trace_algorithm("gradWeight", of_weight->name);
  }
  const CallerTensors roles = this->roles(met);
  const auto plan = [&](size_t i, const Choice& choice, const Passes& passes) {
    products[i].emplace(choice, problem, passes, roles, type, workspace);
  };
  if (of_image && of_weight && of_image->is_computed_with(*of_weight)) {
    return plan(0, *of_weight, {image, true});
  }
  if (of_weight) plan(0, *of_weight, {std::nullopt, true});
  if (of_image) plan(1, *of_image, {image, false});
}

void ConvolutionBackwardPlan::compute_products(void* workspace) const {
  const Met met = this->met();
  // A strided gradInput is surrounded by zeros after it was computed.
  const size_t sources = steps == kNoSteps || !wants(0) ? kInputs : positions[0] + 1;
  // All results are computed before any is written: they may share memory with the inputs.
  Results results;
  for (const std::optional<Computation>& some : products) {
    if (!some) continue;
    some->run(roles(met), {.of_image = {tensors, sources}, .of_weight = {tensors, kInputs}},
              results, workspace);
  }
  if (wants(0)) {
    const TensorView& to = gradient_view(0);
    if (steps != kNoSteps) store_zeros(to);
    finish(results.image, round_result(type, to), met.grad_input);
  }
  if (wants(1)) finish(results.weight, nullptr, gradient_view(1));
}

aclnnStatus ConvolutionBackwardPlan::compute(void* workspace) {
  const AtenScope scope;
  if (!has_products) {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (wants(i) && !is_empty(gradient_view(i))) store_zeros(gradient_view(i));
    }
    return OK;
  }
  if (wants(2)) grad_bias.compute(tensors[0], workspace);
  if (wants(0) || wants(1)) compute_products(workspace);
  if (wants(2)) grad_bias.store(gradient_view(2), workspace);
  return OK;
}

}  // namespace aclnn_host
