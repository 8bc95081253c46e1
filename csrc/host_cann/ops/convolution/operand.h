// The tensors of a convolution in the form that its computation wants them in.
#pragma once

#include <cstdint>

#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/kernels/rounding.h"
#include "host_cann/ops/convolution/problem.h"

namespace aclnn_host {

// Zeros to put around a tensor's spatial dimensions.
struct Padding {
  ConvolutionGeometry::Values before{};
  ConvolutionGeometry::Values after{};
  bool operator==(const Padding&) const = default;
};

// Whether a tensor's elements lie in a layout, without gaps.
bool lies(const TensorView& view, Layout layout);

// Whether its first element begins one.
bool lies_on_cache_line(const TensorView& view);

// A tensor in memory without gaps.
TensorView dense(const Dims& shape, Layout layout, aclDataType dtype, void* memory);

// Copies a tensor to one of the same shape, cast to its type.
void copy_tensor(const TensorView& from, const TensorView& to);

// Rounds the elements of a tensor without gaps if they are FLOAT; with null, does nothing.
void round(const TensorView& view, RoundingKernel kernel);

// A tensor without its padding.
TensorView within(TensorView view, const Padding& padding);

// Every so many elements of a tensor's spatial dimensions.
TensorView every(TensorView view, const ConvolutionGeometry::Values& steps);

// Where an operand may begin.
enum class Placement { kAnywhere, kCacheLine };

// A tensor argument in a given type and layout, rounded. It is used where it lies if it is so
// already; else it has a place in the workspace. Every call names the argument anew, because its
// address may have been changed since stage 1: an operand that must begin on a cache line has its
// place in any case.
class Operand {
 public:
  Operand() = default;
  Operand(const TensorView& view, aclDataType dtype, RoundingKernel round, Layout layout,
          Workspace& workspace, const Padding& padding = {},
          Placement placement = Placement::kAnywhere);

  // Where the operand is: without values if it is in the workspace.
  TensorView place(const TensorView& view, void* workspace) const;
  // The same with the values of an input.
  TensorView read(const TensorView& view, void* workspace) const;

 private:
  bool is_in_place(const TensorView& view) const;

  aclDataType dtype_ = ACL_DT_UNDEFINED;
  RoundingKernel round_ = nullptr;
  Padding padding_;
  bool in_place_ = true;
  Placement placement_ = Placement::kAnywhere;
  Dims shape_;
  Dims strides_;
  uint64_t offset_ = 0;
};

}  // namespace aclnn_host
