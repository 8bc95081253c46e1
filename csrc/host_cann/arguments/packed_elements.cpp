#include "host_cann/arguments/packed_elements.h"

#include <cstring>

#include "host_cann/arguments/cast.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

void copy_kernel(const void* element_size, const void* from, const void*, void* to, int64_t n,
                 bool) {
  std::memcpy(to, from, static_cast<size_t>(n) * *static_cast<const size_t*>(element_size));
}

}  // namespace

bool is_contiguous(const TensorView& view) noexcept {
  if (element_count(view.shape) == 0) return true;  // its other sizes may overflow
  Dims strides;
  set_contiguous_strides(view.shape, strides);
  for (uint64_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] != 1 && view.strides[d] != strides[d]) return false;
  }
  return true;
}

void copy_elements(const TensorView& from, const TensorView& to) {
  const TensorView* const tensors[] = {&from, &to};
  ElementwisePlan(copy_kernel, from.dtype, aclDataTypeSize(from.dtype), tensors).compute(nullptr);
}

Packed::Packed(const TensorView& view, aclDataType dtype, Workspace& workspace)
    : dtype_(dtype), in_place_(view.dtype == dtype && is_contiguous(view)) {
  if (in_place_) return;
  const auto count = static_cast<uint64_t>(element_count(view.shape).value_or(0));
  is_number_ = count == 1;
  offset_ = workspace.reserve(count * aclDataTypeSize(dtype));
}

TensorView Packed::place(const TensorView& view, void* workspace) const {
  TensorView place;
  place.shape = view.shape;
  set_contiguous_strides(view.shape, place.strides);
  place.dtype = dtype_;
  place.storage = static_cast<char*>(workspace) + offset_;
  return place;
}

const void* Packed::read(const TensorView& view, void* workspace) const {
  if (in_place_) return view.data();
  void* const packed = begin(view, workspace);
  if (is_number_) {
    find_cast(view.dtype, dtype_)(view.data(), packed, 1);
  } else {
    copy_elements(view, place(view, workspace));
  }
  return packed;
}

void* Packed::begin(const TensorView& view, void* workspace) const {
  return in_place_ ? view.data() : static_cast<char*>(workspace) + offset_;
}

void Packed::finish(const TensorView& view, void* workspace) const {
  if (in_place_) return;
  if (is_number_) {
    find_cast(dtype_, view.dtype)(begin(view, workspace), view.data(), 1);
  } else {
    copy_elements(place(view, workspace), view);
  }
}

}  // namespace aclnn_host
