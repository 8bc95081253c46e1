#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/Allocator.h>

namespace aclnn_torch {

// The memory of results and workspaces on CPU. The C library gives large blocks back to the kernel
// when they are freed, and the page faults of fresh ones cost more than most operators; so blocks
// are kept here and used again, in huge pages where they are large enough for that. What is too
// small for it comes from PyTorch's own allocator, and everything does while the limit is 0.
// Thread-safe, in a forked child too.
c10::Allocator& memory_pool();

// Bytes of blocks, or how many they are.
struct MemoryCount {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // the sum of what was added ...
  int64_t freed = 0;      // ... and of what was taken away

  void add(int64_t amount);
  void subtract(int64_t amount);
};

struct MemoryStats {
  MemoryCount allocations;
  MemoryCount allocated_bytes;    // of blocks in use
  MemoryCount reserved_bytes;     // of these and of those kept for use
  int64_t num_reuses = 0;         // allocations that got a block that was kept
  int64_t num_alloc_retries = 0;  // allocations for which the system had memory only without these
  size_t limit_bytes = 0;
};

MemoryStats memory_stats();

// Peaks begin anew at what is current.
void reset_peak_memory_stats();

// Gives every block that is not in use back to the system.
void empty_cache();

// While more bytes than that are reserved, blocks that are not in use go back to the system, those
// first that were used longest ago. What is in use is not limited.
void set_memory_limit(size_t bytes);

}  // namespace aclnn_torch
