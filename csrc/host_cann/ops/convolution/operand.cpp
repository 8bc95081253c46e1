#include "host_cann/ops/convolution/operand.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>

#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/kernels/layout.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

// Minimum number of elements that a thread moves or rounds.
constexpr int64_t kGrain = 32768;
// Below this count, ATen costs more than a plain loop.
constexpr int64_t kFew = 4096;

bool has_negative_stride(const TensorView& view) {
  return std::any_of(view.strides.begin(), view.strides.end(),
                     [](int64_t stride) { return stride < 0; });
}

// True if ATen can write to a tensor: its elements certainly do not overlap.
bool is_writable_by_aten(const TensorView& view) {
  for (uint64_t d = 0; d < view.shape.size(); ++d) {
    if (view.strides[d] < 0 || (view.strides[d] == 0 && view.shape[d] > 1)) return false;
  }
  return true;
}

// The strides of a tensor without gaps.
Dims strides_of(const Dims& shape, Layout layout) {
  Dims strides;
  int64_t* const values = strides.resize(shape.size());
  int64_t stride = 1;
  const auto put = [&](uint64_t d) {
    values[d] = stride;
    stride *= shape[d];
  };
  const bool has_channels = shape.size() > 1;
  const bool last = layout == Layout::kChannelsLast;
  const bool outermost = layout == Layout::kChannelsOutermost;
  if (has_channels && last) put(1);
  for (uint64_t d = shape.size(); d-- > 2;) put(d);
  if (has_channels && !last && !outermost) put(1);
  if (shape.size() > 0) put(0);
  if (has_channels && outermost) put(1);
  return strides;
}

int64_t position_count(const Dims& shape) {
  int64_t volume = 1;
  for (uint64_t d = 2; d < shape.size(); ++d) volume *= shape[d];
  return volume;
}

// Copies between channels-first and channels-last, as a matrix transpose per image.
void transpose(const TensorView& from, const TensorView& to, bool to_channels_last) {
  const LayoutKernels& kernels = layout_kernels().find(from.dtype);
  const int64_t channels = from.shape[1];
  const int64_t volume = position_count(from.shape);
  const int64_t rows = to_channels_last ? channels : volume;
  const int64_t columns = to_channels_last ? volume : channels;
  const auto size = static_cast<int64_t>(aclDataTypeSize(from.dtype));
  // Strips of columns, so that a single image also occupies all threads: few whole channels, or
  // many positions, along which the kernel walks each channel.
  const int64_t strip = to_channels_last ? 512 : 32;
  const int64_t strips = divide_up(columns, strip);
  const char* const source = from.data();
  char* const target = to.data();
  at::parallel_for(0, from.shape[0] * strips, std::max<int64_t>(1, kGrain / (strip * rows)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t image = i / strips * rows * columns;
                       const int64_t column = i % strips * strip;
                       kernels.transpose(source + (image + column) * size, columns,
                                         target + (image + column * rows) * size, rows, rows,
                                         std::min(strip, columns - column));
                     }
                   });
}

// True if each channel of an image is ordered and contiguous.
bool has_whole_planes(const TensorView& view) {
  int64_t stride = 1;
  for (uint64_t d = view.shape.size(); d-- > 2;) {
    if (view.shape[d] != 1 && view.strides[d] != stride) return false;
    stride *= view.shape[d];
  }
  return true;
}

// Copies between tensors of one dtype for which has_whole_planes() holds.
void copy_planes(const TensorView& from, const TensorView& to) {
  const auto size = static_cast<int64_t>(aclDataTypeSize(from.dtype));
  const int64_t channels = from.shape[1];
  const int64_t plane = position_count(from.shape);
  const char* const source = from.data();
  char* const target = to.data();
  at::parallel_for(0, from.shape[0] * channels, std::max<int64_t>(1, kGrain / plane),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t n = i / channels;
                       const int64_t c = i % channels;
                       std::memcpy(target + (n * to.strides[0] + c * to.strides[1]) * size,
                                   source + (n * from.strides[0] + c * from.strides[1]) * size,
                                   static_cast<size_t>(plane * size));
                     }
                   });
}

}  // namespace

bool lies(const TensorView& view, Layout layout) {
  if (layout == Layout::kAsGiven) return !has_negative_stride(view);
  const Dims strides = strides_of(view.shape, layout);
  for (uint64_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] != 1 && view.strides[d] != strides[d]) return false;
  }
  return true;
}

bool lies_on_cache_line(const TensorView& view) {
  constexpr uintptr_t kCacheLine = 64;
  return reinterpret_cast<uintptr_t>(view.data()) % kCacheLine == 0;
}

void copy_tensor(const TensorView& from, const TensorView& to) {
  if (element_count(from.shape).value() > kFew) {
    if (from.dtype == to.dtype && position_count(from.shape) > 1 && has_whole_planes(from) &&
        has_whole_planes(to) && is_writable_by_aten(to)) {
      return copy_planes(from, to);
    }
    const bool from_first = lies(from, Layout::kChannelsFirst);
    const bool from_last = lies(from, Layout::kChannelsLast);
    const bool to_first = lies(to, Layout::kChannelsFirst);
    const bool to_last = lies(to, Layout::kChannelsLast);
    const bool same = (from_first && to_first) || (from_last && to_last);
    if (from.dtype == to.dtype && !same && (from_first || from_last) && (to_first || to_last)) {
      return transpose(from, to, to_last);
    }
    if (!has_negative_stride(from) && is_writable_by_aten(to)) {
      aten_tensor(to).copy_(aten_tensor(from));
      return;
    }
  }
  copy_elements(from, to);
}

TensorView dense(const Dims& shape, Layout layout, aclDataType dtype, void* memory) {
  TensorView view;
  view.shape = shape;
  view.strides = strides_of(shape, layout);
  view.dtype = dtype;
  view.storage = memory;
  return view;
}

void round(const TensorView& view, RoundingKernel kernel) {
  // A narrower dtype was rounded when it was written.
  if (kernel == nullptr || view.dtype != ACL_FLOAT) return;
  auto* const values = reinterpret_cast<float*>(view.data());
  at::parallel_for(0, element_count(view.shape).value(), kGrain,
                   [&](int64_t begin, int64_t end) { kernel(values + begin, end - begin); });
}

TensorView within(TensorView view, const Padding& padding) {
  for (uint64_t d = 2; d < view.shape.size(); ++d) {
    view.offset += padding.before[d - 2] * view.strides[d];
    view.shape.begin()[d] -= padding.before[d - 2] + padding.after[d - 2];
  }
  return view;
}

TensorView every(TensorView view, const ConvolutionGeometry::Values& steps) {
  for (uint64_t d = 2; d < view.shape.size(); ++d) {
    view.shape.begin()[d] = divide_up(view.shape[d], steps[d - 2]);
    // A single element may have any stride, and the product could overflow.
    view.strides.begin()[d] = view.shape[d] > 1 ? view.strides[d] * steps[d - 2] : 1;
  }
  return view;
}

Operand::Operand(const TensorView& view, aclDataType dtype, RoundingKernel round, Layout layout,
                 Workspace& workspace, const Padding& padding, Placement placement)
    : dtype_(dtype),
      round_(round),
      padding_(padding),
      in_place_(view.dtype == dtype && round == nullptr && padding == Padding() &&
                lies(view, layout)),
      shape_(view.shape) {
  for (uint64_t d = 2; d < shape_.size(); ++d) {
    shape_.begin()[d] += padding.before[d - 2] + padding.after[d - 2];
  }
  strides_ = in_place_ && layout == Layout::kAsGiven ? view.strides : strides_of(shape_, layout);
  // ATen copies tensors with gaps or in another order.
  const bool is_dense = layout != Layout::kAsGiven || lies(view, Layout::kChannelsFirst) ||
                        lies(view, Layout::kChannelsLast);
  if (is_dense) placement_ = placement;
  if (in_place_ && placement_ == Placement::kAnywhere) return;
  const auto count = static_cast<uint64_t>(element_count(shape_).value_or(0));
  offset_ = workspace.reserve(count * aclDataTypeSize(dtype));
}

bool Operand::is_in_place(const TensorView& view) const {
  return in_place_ && (placement_ == Placement::kAnywhere || lies_on_cache_line(view));
}

TensorView Operand::place(const TensorView& view, void* workspace) const {
  TensorView place;
  place.shape = shape_;
  place.strides = strides_;
  place.dtype = dtype_;
  place.storage = is_in_place(view) ? view.data() : static_cast<char*>(workspace) + offset_;
  return place;
}

TensorView Operand::read(const TensorView& view, void* workspace) const {
  const TensorView all = place(view, workspace);
  if (is_in_place(view)) return all;
  TensorView inside = all;
  if (padding_ != Padding()) {
    std::memset(all.data(), 0, element_count(shape_).value() * aclDataTypeSize(dtype_));
    inside = within(all, padding_);
  }
  copy_tensor(view, inside);
  round(all, round_);
  return all;
}

}  // namespace aclnn_host
