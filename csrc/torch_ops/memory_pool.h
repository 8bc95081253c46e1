#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/Allocator.h>

namespace aclnn_torch {

// Allocates results and workspaces on CPU. The C library returns large blocks to the kernel when
// they are freed, and the page faults of fresh memory cost more than most operators; the pool keeps
// blocks and reuses them, in huge pages where they are large enough. Smaller blocks come from
// PyTorch's own allocator, and all do while the limit is 0. Thread-safe, in a forked child too.
c10::Allocator& memory_pool();

// Counts bytes of blocks, or blocks.
struct MemoryCount {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // total added
  int64_t freed = 0;      // total removed

  void add(int64_t amount);
  void subtract(int64_t amount);
};

struct MemoryStats {
  MemoryCount allocations;
  MemoryCount allocated_bytes;    // of blocks in use
  MemoryCount reserved_bytes;     // of blocks in use and of kept blocks
  int64_t num_reuses = 0;         // allocations that reused a kept block
  int64_t num_alloc_retries = 0;  // allocations that succeeded only after kept blocks were freed
  size_t limit_bytes = 0;
};

MemoryStats memory_stats();

// Resets the peaks to the current values.
void reset_peak_memory_stats();

// Returns every unused block to the system.
void empty_cache();

// Above this many reserved bytes, unused blocks are returned to the system, least recently used
// first. Blocks in use are not limited.
void set_memory_limit(size_t bytes);

}  // namespace aclnn_torch
