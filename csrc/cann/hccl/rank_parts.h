#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace aclnn_host::hccl {

// Parts of a buffer, in bytes: one for each rank.
struct Parts {
  char* data;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;
  size_t element;

  std::span<char> operator()(uint32_t rank) const {
    return {data + displacements[rank] * element, counts[rank] * element};
  }
};

// The values of an array with so many of them, such as one for each rank.
std::vector<uint64_t> values_of(const char* argument, const void* values, size_t count);

// Displacements of parts that follow one another.
std::vector<uint64_t> in_a_row(const std::vector<uint64_t>& counts);

// Where parts of so many elements at such displacements end, in elements.
uint64_t end_of(const char* argument, const std::vector<uint64_t>& counts,
                const std::vector<uint64_t>& displacements);

}  // namespace aclnn_host::hccl
