#include "cann/rows/engine/row_call.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include "acl/acl_base.h"

namespace aclnn_host {

bool Call::computes_alone() const {
  if (at::get_num_threads() != 2) return false;
  constexpr int64_t kMost = int64_t{1} << 16;  // elements of a tensor
  bool has_large_mask = false;
  bool has_numbers = false;  // among the inputs
  for (size_t i = 0; i < views.size(); ++i) {
    const bool is_mask = views[i].dtype == ACL_BOOL && !arguments[i].is_output;
    const bool is_large = element_count(views[i].shape).value_or(kMost + 1) > kMost;
    if (is_large && !is_mask) return false;
    has_large_mask = has_large_mask || is_large;
    has_numbers = has_numbers || (arguments[i].is_input && !is_mask);
  }
  return has_numbers || !has_large_mask;
}

at::Tensor with_memory(const TensorView& view) {
  return is_stored_apart(view) ? load(view) : aten_tensor(view);
}

at::Tensor without_memory(const TensorView& view) {
  if (is_stored_apart(view)) return without_memory(view_of_elements(view));
  return at::empty_strided({view.shape.begin(), view.shape.size()},
                           {view.strides.begin(), view.strides.size()},
                           at::TensorOptions(aten_type(view.dtype)).device(at::kMeta));
}

int64_t span_of(const TensorView& view) {
  const auto extent = extent_of(view);
  return extent ? extent->last - view.offset + 1 : 0;
}

at::Tensor zeros(const TensorView& view) {
  if (is_stored_apart(view)) return zeros(view_of_elements(view));
  void* memory = std::calloc(static_cast<size_t>(std::max<int64_t>(span_of(view), 1)),
                             aclDataTypeSize(view.dtype));
  if (memory == nullptr) throw std::bad_alloc();
  return at::from_blob(memory, {view.shape.begin(), view.shape.size()},
                       {view.strides.begin(), view.strides.size()}, std::free,
                       aten_type(view.dtype));
}

at::Tensor ones(const TensorView& view) {
  if (is_stored_apart(view)) return ones(view_of_elements(view));
  return at::ones({std::max<int64_t>(span_of(view), 1)}, at::TensorOptions(aten_type(view.dtype)))
      .as_strided({view.shape.begin(), view.shape.size()},
                  {view.strides.begin(), view.strides.size()});
}

TensorView shrunken(const TensorView& view) {
  TensorView small = is_stored_apart(view) ? view_of_elements(view) : view;
  int64_t* const shape = small.shape.resize(view.shape.size());
  for (uint64_t i = 0; i < view.shape.size(); ++i) shape[i] = std::min<int64_t>(view.shape[i], 8);
  set_contiguous_strides(small.shape, small.strides);
  small.offset = 0;
  return small;
}

}  // namespace aclnn_host
