#pragma once

#include <cstdint>

#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// An argument's view; an absent one has no elements.
inline TensorView view_of(const aclTensor* tensor) {
  if (tensor != nullptr) return tensor->view;
  TensorView empty;
  const int64_t none = 0;
  empty.shape.assign(&none, 1);
  empty.strides.assign(&none, 1);
  return empty;
}

// Whether the elements lie in order and without gaps.
ACLNN_HOST_INTERNAL bool is_contiguous(const TensorView& view) noexcept;

// Copies the elements of one tensor to the places of another of the same shape, cast to its type
// (see cast.h for the types there are).
ACLNN_HOST_INTERNAL void copy_elements(const TensorView& from, const TensorView& to);

// How a kernel sees a tensor argument: its elements in order, in the type the kernel computes
// with. They are used where they lie if they are so already; else they have a place in the
// workspace. Every call names the argument anew, because its address may have been changed since
// stage 1.
class Packed {
 public:
  Packed() = default;
  Packed(const TensorView& view, aclDataType dtype, Workspace& workspace);

  // The elements of an input.
  const void* read(const TensorView& view, void* workspace) const;
  // Where the elements of an output go; finish() then takes them to the tensor.
  void* begin(const TensorView& view, void* workspace) const;
  void finish(const TensorView& view, void* workspace) const;

 private:
  TensorView place(const TensorView& view, void* workspace) const;

  aclDataType dtype_ = ACL_DT_UNDEFINED;
  bool in_place_ = true;
  bool is_number_ = false;  // a single element, which is not worth the machinery of many
  uint64_t offset_ = 0;
};

}  // namespace aclnn_host
