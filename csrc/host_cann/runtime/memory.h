#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acl/acl_base.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Which side a block of memory plays. Both are memory of the host process.
enum class Side { kHost, kDevice };

// One allocation of aclrtMalloc or aclrtMallocHost, or one mapping of aclrtMapMem.
struct Block {
  uintptr_t begin = 0;
  uint64_t number = 0;  // from 1 on, and never used again: an address may be
  size_t size = 0;      // with the padding, which copies may reach
  size_t asked = 0;     // without: what the program asked for
  size_t mapped = 0;    // bytes mapped, if it came from mmap
  int32_t device = -1;  // of a device block
  Side side = Side::kHost;
  bool is_mapping = false;  // ends with aclrtUnmapMem, and its physical memory counts, not it
  size_t users = 0;         // how many MemoryInUse hold it

  // Whether the range lies wholly inside the block.
  bool contains(uintptr_t address, size_t count) const { return inside(size, address, count); }

  // Whether a tensor may lie there: in what the program asked for, or in the padding, too, if the
  // environment says so.
  bool grants(const void* address, size_t count) const {
    const size_t limit = settings().padding ? size : asked;
    return inside(limit, reinterpret_cast<uintptr_t>(address), count);
  }

  // The function that made it.
  const char* allocator() const {
    return is_mapping ? "aclrtMapMem" : side == Side::kDevice ? "aclrtMalloc" : "aclrtMallocHost";
  }

 private:
  bool inside(size_t limit, uintptr_t address, size_t count) const {
    return address >= begin && count <= limit && address - begin <= limit - count;
  }
};

// The first block that has bytes in common with the range; false if there is none. Mappings that
// touch are one block as far as the range needs it. Takes no lock while there are no blocks at all.
ACLNN_HOST_INTERNAL bool find_block(const void* address, size_t count, Block* block) noexcept;

// The number of the block that an address lies in, its padding included; 0 if there is none.
ACLNN_HOST_INTERNAL uint64_t block_number(const void* address) noexcept;

// Memory that is worked on: who frees one of its blocks waits until that is done, lest a program
// that gives up while a stream still works takes the memory from under it. In strict mode
// (ACLNN_TORCH_STRICT) the pages of device memory can be neither read nor written, so that a host
// program that does is found out; those in use are open.
class ACLNN_HOST_INTERNAL MemoryInUse {
 public:
  MemoryInUse() = default;
  MemoryInUse(const MemoryInUse&) = delete;
  MemoryInUse& operator=(const MemoryInUse&) = delete;
  ~MemoryInUse();

  // Holds the blocks that the range has bytes in; std::bad_alloc if the system cannot open one.
  void add(const void* address, size_t count);

 private:
  std::vector<uintptr_t> blocks_;  // first addresses
};

// Takes the bytes of physical memory from the device, or fails in api's name; and gives them back.
aclError take_device_memory(const char* api, int32_t device, size_t size) noexcept;
void return_device_memory(int32_t device, size_t size) noexcept;
// How many bytes of the device are taken.
size_t device_memory_used(int32_t device) noexcept;

// Makes mapped memory known, as device memory; and forgets the mapping that begins at the address.
void add_mapping(uintptr_t begin, size_t size, int32_t device);
void remove_mapping(uintptr_t begin) noexcept;

}  // namespace aclnn_host
