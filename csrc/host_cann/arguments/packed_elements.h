#pragma once

#include <cstdint>

#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// An argument's view; empty if the argument is absent.
inline TensorView view_of(const aclTensor* tensor) {
  if (tensor != nullptr) return tensor->view;
  TensorView empty;
  const int64_t none = 0;
  empty.shape.assign(&none, 1);
  empty.strides.assign(&none, 1);
  return empty;
}

// True if the elements are in order and without gaps.
ACLNN_HOST_INTERNAL bool is_contiguous(const TensorView& view) noexcept;

// Copies a tensor's elements to another tensor of the same shape, cast to its dtype (cast.h lists
// the supported dtypes).
ACLNN_HOST_INTERNAL void copy_elements(const TensorView& from, const TensorView& to);

// A tensor argument in the form that a kernel needs: contiguous, in the compute dtype. Used in
// place if the argument already has that form; otherwise it has a place in the workspace. Every
// call passes the argument again, because its address may have changed since stage 1.
class Packed {
 public:
  Packed() = default;
  Packed(const TensorView& view, aclDataType dtype, Workspace& workspace);

  // Returns the elements of an input.
  const void* read(const TensorView& view, void* workspace) const;
  // Returns where to write an output's elements; finish() then copies them to the tensor.
  void* begin(const TensorView& view, void* workspace) const;
  void finish(const TensorView& view, void* workspace) const;

 private:
  TensorView place(const TensorView& view, void* workspace) const;

  aclDataType dtype_ = ACL_DT_UNDEFINED;
  bool in_place_ = true;
  bool is_number_ = false;  // a single element, handled without the general path
  uint64_t offset_ = 0;
};

}  // namespace aclnn_host
