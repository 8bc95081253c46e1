#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acl/acl_base.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// The role of a block. Both kinds are memory of the host process.
enum class Side { kHost, kDevice };

// One allocation of aclrtMalloc or aclrtMallocHost, or one mapping of aclrtMapMem.
struct Block {
  uintptr_t begin = 0;
  uint64_t number = 0;  // counted from 1 and never reused, unlike addresses
  size_t size = 0;      // with the padding, which copies may use
  size_t asked = 0;     // the size that the program requested
  size_t mapped = 0;    // bytes mapped, if it came from mmap
  int32_t device = -1;  // for device blocks
  Side side = Side::kHost;
  // Unmapped by aclrtUnmapMem; its physical memory is counted instead of it.
  bool is_mapping = false;
  size_t users = 0;  // number of MemoryInUse that hold it

  // True if the range lies entirely inside the block.
  bool contains(uintptr_t address, size_t count) const { return inside(size, address, count); }

  // True if a tensor may occupy the range: within the requested size, or also the padding if the
  // environment allows it.
  bool grants(const void* address, size_t count) const {
    const size_t limit = settings().padding ? size : asked;
    return inside(limit, reinterpret_cast<uintptr_t>(address), count);
  }

  // The name of the function that allocated it.
  const char* allocator() const {
    return is_mapping ? "aclrtMapMem" : side == Side::kDevice ? "aclrtMalloc" : "aclrtMallocHost";
  }

 private:
  bool inside(size_t limit, uintptr_t address, size_t count) const {
    return address >= begin && count <= limit && address - begin <= limit - count;
  }
};

// Finds the first block that overlaps the range; false if there is none. Adjacent mappings are
// merged as far as the range needs it. Takes no lock while there are no blocks at all.
ACLNN_HOST_INTERNAL bool find_block(const void* address, size_t count, Block* block) noexcept;

// The number of the block, padding included, that contains an address; 0 if there is none.
ACLNN_HOST_INTERNAL uint64_t block_number(const void* address) noexcept;

// Memory in use by running work. Freeing one of its blocks waits until the work is done, so that a
// program that gives up early does not free memory under a running stream. In strict mode
// (ACLNN_TORCH_STRICT) the pages of device memory are neither readable nor writable, except while
// in use, so that a host program's access is detected.
class ACLNN_HOST_INTERNAL MemoryInUse {
 public:
  MemoryInUse() = default;
  MemoryInUse(const MemoryInUse&) = delete;
  MemoryInUse& operator=(const MemoryInUse&) = delete;
  ~MemoryInUse();

  // Holds the blocks that overlap the range; throws std::bad_alloc if the system refuses access to
  // one.
  void add(const void* address, size_t count);

 private:
  std::vector<uintptr_t> blocks_;  // first addresses
};

// Takes physical memory from the device's total, or fails in api's name; and returns it.
aclError take_device_memory(const char* api, int32_t device, size_t size) noexcept;
void return_device_memory(int32_t device, size_t size) noexcept;
// The number of allocated bytes of the device.
size_t device_memory_used(int32_t device) noexcept;

// Whether an address is in a range of aclrtReserveMemAddress, with memory or without. It takes no
// time where there are no ranges.
ACLNN_HOST_INTERNAL bool is_reserved(const void* address) noexcept;

// Registers a mapping as device memory; and removes the mapping that begins at the address.
void add_mapping(uintptr_t begin, size_t size, int32_t device);
void remove_mapping(uintptr_t begin) noexcept;

}  // namespace aclnn_host
