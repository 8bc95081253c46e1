#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace aclnn_host {

// The memory from the first element of a tensor to its last; empty for a tensor without elements.
struct MemoryRange {
  const char* begin;
  const char* end;

  bool is_empty() const { return begin == end; }
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// The range of a tensor whose strides are not negative.
inline MemoryRange memory_range_of(const at::Tensor& tensor) {
  const auto* const begin = static_cast<const char*>(tensor.const_data_ptr());
  if (tensor.numel() == 0) return {begin, begin};
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {begin, begin + (last + 1) * static_cast<int64_t>(tensor.element_size())};
}

inline bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace aclnn_host
