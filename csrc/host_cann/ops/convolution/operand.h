// The tensors of a convolution, converted to the form that an algorithm requires.
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

// True if a tensor has a layout, without gaps.
bool lies(const TensorView& view, Layout layout);

// True if its first element is aligned to a cache line.
bool lies_on_cache_line(const TensorView& view);

// A view of contiguous memory as a tensor.
TensorView dense(const Dims& shape, Layout layout, aclDataType dtype, void* memory);

// Copies a tensor to another of the same shape, cast to its dtype.
void copy_tensor(const TensorView& from, const TensorView& to);

// Rounds the elements of a contiguous FLOAT tensor; does nothing for other dtypes or a null kernel.
void round(const TensorView& view, RoundingKernel kernel);

// A tensor without its padding.
TensorView within(TensorView view, const Padding& padding);

// Strided slice of a tensor's spatial dimensions.
TensorView every(TensorView view, const ConvolutionGeometry::Values& steps);

// The required alignment of an operand.
enum class Placement { kAnywhere, kCacheLine };

// A tensor argument in a given dtype and layout, rounded. Used in place if it already has that
// form; otherwise it has a place in the workspace. Every call passes the argument again, because
// its address may have changed since stage 1: an operand that must begin on a cache line always has
// a place.
class Operand {
 public:
  Operand() = default;
  Operand(const TensorView& view, aclDataType dtype, RoundingKernel round, Layout layout,
          Workspace& workspace, const Padding& padding = {},
          Placement placement = Placement::kAnywhere);

  // The operand's location, without values if it is in the workspace.
  TensorView place(const TensorView& view, void* workspace) const;
  // The same, filled with the values of an input.
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
