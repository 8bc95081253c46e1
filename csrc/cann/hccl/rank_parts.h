#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace aclnn_host::hccl {

// The parts of a buffer, in bytes: one for each rank.
struct Parts {
  char* data;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;
  size_t element;

  std::span<char> operator()(uint32_t rank) const {
    return {data + displacements[rank] * element, counts[rank] * element};
  }
};

// The values of an array of `count` elements, such as one for each rank.
std::vector<uint64_t> values_of(const char* argument, const void* values, size_t count);

// The displacements of contiguous parts.
std::vector<uint64_t> in_a_row(const std::vector<uint64_t>& counts);

// The end, in elements, of parts with these sizes at these displacements.
uint64_t end_of(const char* argument, const std::vector<uint64_t>& counts,
                const std::vector<uint64_t>& displacements);

}  // namespace aclnn_host::hccl
