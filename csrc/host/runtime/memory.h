#pragma once

#include <cstddef>
#include <cstdint>

#include "visibility.h"

namespace aclnn_host {

// Which side a block of memory plays. Both are memory of the host process.
enum class Side { kHost, kDevice };

// One allocation of aclrtMalloc or aclrtMallocHost.
struct Block {
  uintptr_t begin = 0;
  size_t size = 0;      // with the padding, which belongs to the caller too
  size_t mapped = 0;    // bytes mapped, if it came from mmap
  int32_t device = -1;  // of a device block
  Side side = Side::kHost;

  // Whether the range lies wholly inside the block.
  bool contains(uintptr_t address, size_t count) const {
    return address >= begin && count <= size && address - begin <= size - count;
  }
};

// The first block that has bytes in common with the range; false if there is none. Takes no lock
// while there are no blocks at all.
ACLNN_HOST_INTERNAL bool find_block(const void* address, size_t count, Block* block) noexcept;

}  // namespace aclnn_host
