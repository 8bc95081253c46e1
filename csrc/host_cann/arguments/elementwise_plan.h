#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "host_cann/arguments/cast.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The order in which the elements of tensors of one shape are walked: sizes and strides of the
// dimensions, merged where memory allows and sorted so that the output's smallest stride is last.
struct Geometry {
  static constexpr int kMaxTensors = 3;
  Dims sizes;
  Dims strides[kMaxTensors];  // in elements
  int64_t count = 0;          // elements
  bool contiguous = false;    // one dimension, every stride 1

  Geometry() = default;
  // The last tensor is the output.
  explicit Geometry(std::span<const TensorView* const> tensors);
};

// The plan of an operator that computes every output element from the input elements at its place.
// Its arguments are one or two inputs and the output, or a single tensor that is overwritten. Any
// strides, inputs that are broadcast to the output's shape, inputs of other types than the
// kernel's, and an output of another are handled here: the kernel only ever sees contiguous
// elements of its own type.
struct ElementwisePlan {
  static constexpr size_t kMaxTensors = Geometry::kMaxTensors;
  static constexpr size_t kMaxCoefficients = 64;

  TensorView tensors[kMaxTensors];
  size_t tensor_count;
  size_t input_count;  // of the kernel
  Geometry geometry;
  ElementwiseKernel kernel;
  aclDataType dtype;  // the kernel's
  // From an input's type to the kernel's, and from that to the output's; null when they are equal.
  CastFunction casts[kMaxTensors];
  alignas(8) char coefficients[kMaxCoefficients];

  // `dtype` is the kernel's, to which inputs of another are cast.
  template <class Coefficients>
  ElementwisePlan(ElementwiseKernel kernel, aclDataType dtype, const Coefficients& values,
                  std::span<const TensorView* const> arguments)
      : ElementwisePlan(kernel, dtype, arguments) {
    static_assert(std::is_trivially_copyable_v<Coefficients>);
    static_assert(sizeof(Coefficients) <= kMaxCoefficients);
    std::memcpy(coefficients, &values, sizeof(values));
  }

  aclnnStatus compute(void* workspace);

  bool is_input(size_t i) const { return i < input_count; }
  bool is_output(size_t i) const { return i == tensor_count - 1; }

 private:
  bool has_casts() const;

  // The kernel's inputs and, at input_count, its output: in place, all are the one tensor.
  const TensorView& operand(size_t i) const { return tensors[std::min(i, tensor_count - 1)]; }

  ElementwisePlan(ElementwiseKernel kernel, aclDataType dtype,
                  std::span<const TensorView* const> arguments);
  void compute_contiguous();
  void compute_strided(int64_t begin, int64_t end) const;
};

// The end of stage 1 of an elementwise operator, once its checks have passed: it needs no
// workspace.
template <class Coefficients>
aclnnStatus make_elementwise_executor(const char* api, ElementwiseKernel kernel, aclDataType dtype,
                                      const Coefficients& coefficients,
                                      std::initializer_list<const aclTensor*> arguments,
                                      uint64_t* workspace_size, aclOpExecutor** executor) {
  const TensorView* tensors[ElementwisePlan::kMaxTensors];
  size_t count = 0;
  for (const aclTensor* argument : arguments) tensors[count++] = &argument->view;
  return make_executor(api, workspace_size, executor, [&](Workspace&) {
    return ElementwisePlan(kernel, dtype, coefficients, {tensors, count});
  });
}

}  // namespace aclnn_host
