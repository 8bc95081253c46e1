// Shared by linear_cross_entropy and CANN's three functions, with which it is computed on an NPU.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch::linear_cross_entropy {

using c10::SymInt;
using OptionalTensor = std::optional<Tensor>;

// Two of CANN's functions, as the dispatcher knows them.
using Sums = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using SumsSignature = Sums(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool);
using GradSignature = Two(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                          double, const OptionalTensor&, const OptionalTensor&,
                          const OptionalTensor&);

inline const auto& sums_op() {
  static const auto op = find_operator<SumsSignature>("aclnn::fused_linear_online_max_sum");
  return op;
}

inline const auto& grad_op() {
  static const auto op =
      find_operator<GradSignature>("aclnn::fused_linear_cross_entropy_loss_grad");
  return op;
}

// The dtype of sums and losses.
inline at::ScalarType sum_type(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

inline Tensor like(const Tensor& tensor, c10::SymIntArrayRef sizes) {
  return new_tensor(tensor, sizes, tensor.scalar_type());
}
inline Tensor sum_like(const Tensor& tensor, c10::SymIntArrayRef sizes) {
  return new_tensor(tensor, sizes, sum_type(tensor));
}

inline SymInt size_of(const Tensor& tensor, int64_t dim) {
  return tensor.dim() > dim ? tensor.sym_size(dim) : SymInt(0);  // stage 1 refuses others
}

// The checks of stage 1, as far as a trace knows the sizes.
inline void check_matrices(const char* api, const Tensor& input, const Tensor& weight,
                           const Tensor& target) {
  const auto require = [&](bool condition, const std::string& text) {
    if (!condition) refuse(api, input.device(), text);
  };
  const auto differ = [](const SymInt& a, const SymInt& b) {
    const auto x = a.maybe_as_int(), y = b.maybe_as_int();
    return x && y && *x != *y;
  };
  require(input.dim() == 2,
          "input has shape " + c10::str(input.sym_sizes()) + ", expected [N, D]; reshape it");
  require(weight.dim() == 2 && !differ(weight.sym_size(1), input.sym_size(1)),
          "weight has shape " + c10::str(weight.sym_sizes()) +
              ", expected [C, D], rows as long as those of input, which has shape " +
              c10::str(input.sym_sizes()));
  require(weight.scalar_type() == input.scalar_type(),
          "weight has dtype " + c10::str(weight.scalar_type()) + ", expected " +
              c10::str(input.scalar_type()) + " as input has; cast one of them");
  require(target.dim() == 1 && !differ(target.sym_size(0), input.sym_size(0)),
          "target has shape " + c10::str(target.sym_sizes()) +
              ", expected [N], a number for every row of input, which has shape " +
              c10::str(input.sym_sizes()));
}

template <class... Tensors>
bool have_tangents(const Tensors&... tensors) {
  return (torch::autograd::isFwGradDefined(tensors) || ...);
}

// For operators that exist for authors of custom derivatives.
template <class... Tensors>
void refuse_derivatives(const char* name, const Tensors&... tensors) {
  TORCH_CHECK(!torch::autograd::compute_requires_grad(tensors...) && !have_tangents(tensors...),
              name,
              " has no derivative, and an argument requires a gradient; call "
              "torch.ops.aclnn.linear_cross_entropy, or this in a torch.autograd.Function");
}

}  // namespace aclnn_torch::linear_cross_entropy
