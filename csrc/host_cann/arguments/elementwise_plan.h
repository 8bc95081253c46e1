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

// The iteration order over tensors of one shape: sizes and strides of the dimensions, merged where
// memory allows and sorted so that the output's smallest stride is last.
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

// The plan of an operator that is elementwise in its inputs. Its arguments are one or two inputs
// and the output, or a single tensor that is overwritten. The plan handles any strides, inputs
// broadcast to the output's shape, and inputs and outputs of other dtypes than the kernel's: the
// kernel only sees contiguous elements of its own dtype.
struct ElementwisePlan {
  static constexpr size_t kMaxTensors = Geometry::kMaxTensors;
  static constexpr size_t kMaxCoefficients = 64;

  TensorView tensors[kMaxTensors];
  size_t tensor_count;
  size_t input_count;  // of the kernel
  Geometry geometry;
  ElementwiseKernel kernel;
  aclDataType dtype;  // the kernel's
  // From an input's dtype to the kernel's, and from the kernel's to the output's; null if equal.
  CastFunction casts[kMaxTensors];
  alignas(8) char coefficients[kMaxCoefficients];

  // `dtype` is the kernel's; other inputs are cast to it.
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

  // The kernel's inputs and, at input_count, its output. In place, all are the one tensor.
  const TensorView& operand(size_t i) const { return tensors[std::min(i, tensor_count - 1)]; }

  ElementwisePlan(ElementwiseKernel kernel, aclDataType dtype,
                  std::span<const TensorView* const> arguments);
  void compute_contiguous();
  void compute_strided(int64_t begin, int64_t end) const;
};

// The end of stage 1 of an elementwise operator, after its checks. Needs no workspace.
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
