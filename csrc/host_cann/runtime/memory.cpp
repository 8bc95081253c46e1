#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/profile_hooks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/live_objects.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host {
namespace {

constexpr size_t kAlignment = 512;  // alignment that torch_npu expects of a block
constexpr size_t kGranule = 32;     // sizes are multiples of it, plus one granule of padding
constexpr size_t kPage = 4096;      // page-locked memory consists of whole pages
constexpr size_t kHugePage = size_t{2} << 20;  // alignment and unit of huge-page blocks
constexpr uint32_t kPolicyBits = 0xFF;         // the other bits of a policy are type flags
constexpr uint32_t kPolicyFlags =
    ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | ACL_MEM_ACCESS_USER_SPACE_READONLY;

size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

// Makes a block's pages accessible or inaccessible to the process, in strict mode; false if the
// system refuses.
bool protect(const Block& block, int protection) noexcept {
  if (!settings().strict || block.side != Side::kDevice) return true;
  const size_t size = block.mapped > 0 ? block.mapped : block.size;
  return mprotect(reinterpret_cast<void*>(block.begin), size, protection) == 0;
}

// All blocks, by address. A forked child has the parent's memory, so it keeps this table; the lock
// is taken around fork(), so that the child does not inherit it locked by a thread that it does not
// have. Memory is never allocated, freed, copied or set while the lock is held.
class Blocks {
 public:
  static Blocks& get() {
    static Blocks* const all = new Blocks;  // outlives static destructors
    return *all;
  }

  // Reserves the bytes on the device; false if it has too few.
  bool reserve(int32_t device, size_t size) {
    const std::unique_lock lock(mutex_);
    size_t& used = used_[static_cast<size_t>(device)];
    if (size > settings().device_memory - used) return false;
    used += size;
    return true;
  }

  void release(int32_t device, size_t size) {
    const std::unique_lock lock(mutex_);
    used_[static_cast<size_t>(device)] -= size;
  }

  size_t used(int32_t device) const {
    const std::shared_lock lock(mutex_);
    return used_[static_cast<size_t>(device)];
  }

  void insert(const Block& block) {
    const std::unique_lock lock(mutex_);
    blocks_.emplace(block.begin, block).first->second.number = ++last_number_;
    count_.store(blocks_.size(), std::memory_order_relaxed);
  }

  // Removes the block of that side that begins at the address, once it has no users; false if there
  // is no such block.
  bool remove(const void* address, Side side, Block* block) {
    std::unique_lock lock(mutex_);
    const auto found = find_unused(lock, reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end() || found->second.side != side || found->second.is_mapping) {
      return false;
    }
    *block = found->second;
    erase(found);
    if (side == Side::kDevice) used_[static_cast<size_t>(block->device)] -= block->size;
    return true;
  }

  void remove_mapping(uintptr_t begin) {
    std::unique_lock lock(mutex_);
    const auto found = find_unused(lock, begin);
    if (found != blocks_.end() && found->second.is_mapping) erase(found);
  }

  // Adds a user to each block that overlaps the range, makes blocks without a previous user
  // accessible, and stores their first addresses.
  void hold(uintptr_t address, size_t count, std::vector<uintptr_t>* held) {
    // A caller that holds an address of a block also sees the count that includes it.
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const std::unique_lock lock(mutex_);
    auto next = blocks_.upper_bound(address);
    if (next != blocks_.begin()) --next;
    for (; next != blocks_.end(); ++next) {
      Block& block = next->second;
      if (block.begin >= address && block.begin - address >= count) break;
      if (block.begin + block.size <= address) continue;
      held->push_back(block.begin);
      if (++block.users > 1 || protect(block, PROT_READ | PROT_WRITE)) continue;
      --block.users;
      held->pop_back();
      throw std::bad_alloc();
    }
  }

  // Removes a user from each block, and makes blocks without users inaccessible.
  void let_go(const std::vector<uintptr_t>& held) {
    const std::unique_lock lock(mutex_);
    for (const uintptr_t begin : held) {
      Block& block = blocks_.find(begin)->second;  // a block in use is never removed
      // If memory runs out here, the pages stay accessible; only the detection of a stray access is
      // lost.
      if (--block.users == 0) protect(block, PROT_NONE);
    }
    unused_.notify_all();
  }

  bool find(uintptr_t address, size_t count, Block* block) const {
    // A caller that holds an address of a block also sees the count that includes it.
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    const std::shared_lock lock(mutex_);
    auto next = blocks_.upper_bound(address);
    if (next != blocks_.begin()) {
      const Block& before = std::prev(next)->second;
      if (address - before.begin < before.size) {
        *block = before;
        while (block->is_mapping && !block->contains(address, count) && next != blocks_.end() &&
               continues(*block, next->second)) {
          block->size += next->second.size;
          block->asked += next->second.asked;
          ++next;
        }
        return true;
      }
    }
    if (next == blocks_.end() || next->first - address >= count) return false;
    *block = next->second;
    return true;
  }

 private:
  // True if a mapping begins where another ends.
  static bool continues(const Block& block, const Block& next) {
    return next.is_mapping && next.begin == block.begin + block.size && next.device == block.device;
  }

  // Waits until the block at the address has no users, and returns it; end() if there is none.
  std::map<uintptr_t, Block>::iterator find_unused(std::unique_lock<std::shared_mutex>& lock,
                                                   uintptr_t begin) {
    auto found = blocks_.find(begin);
    while (found != blocks_.end() && found->second.users > 0) {
      unused_.wait(lock);
      found = blocks_.find(begin);
    }
    return found;
  }

  void erase(std::map<uintptr_t, Block>::iterator block) {
    blocks_.erase(block);
    count_.store(blocks_.size(), std::memory_order_relaxed);
  }

  Blocks() : used_(static_cast<size_t>(settings().devices)) {
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, &enter_child);
  }

  // In the child: the lock still counts the parent's waiting threads, and the blocks still count
  // the users of its running threads.
  static void enter_child() {
    auto& self = get();
    self.mutex_.unlock();
    std::construct_at(&self.mutex_);
    std::construct_at(&self.unused_);
    for (auto& [begin, block] : self.blocks_) {
      if (block.users > 0) protect(block, PROT_NONE);
      block.users = 0;
    }
  }

  mutable std::shared_mutex mutex_;
  std::condition_variable_any unused_;  // signals that a block has no users
  std::map<uintptr_t, Block> blocks_;
  std::atomic<size_t> count_ = 0;  // number of blocks, readable without the lock
  uint64_t last_number_ = 0;
  std::vector<size_t> used_;  // bytes per device
};

// Maps memory in huge pages, if the system has any.
void* map_huge(size_t size, size_t* mapped) {
  // One huge page more than needed, so that an aligned range can be cut out.
  const size_t length = round_up(size, kHugePage);
  void* const area = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(area);
  const size_t head =
      round_up(reinterpret_cast<uintptr_t>(area), kHugePage) - reinterpret_cast<uintptr_t>(area);
  if (head > 0) munmap(begin, head);
  munmap(begin + head + length, kHugePage - head);
  madvise(begin + head, length, MADV_HUGEPAGE);
  *mapped = length;
  return begin + head;
}

// Maps memory in separate pages.
void* map_pages(size_t size, size_t* mapped) {
  *mapped = round_up(size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  void* const memory = mmap(nullptr, *mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void give_back(const Block& block) {
  void* const memory = reinterpret_cast<void*>(block.begin);
  if (block.mapped > 0) {
    munmap(memory, block.mapped);
  } else {
    std::free(memory);
  }
}

// Allocates the block's memory from the system, inaccessible in strict mode; false on failure.
bool obtain(Block* block, bool huge) {
  const bool closed = settings().strict && block->side == Side::kDevice;
  void* memory = nullptr;
  if (huge && block->size >= kHugePage) {
    memory = map_huge(block->size, &block->mapped);
  } else if (closed) {
    memory = map_pages(block->size, &block->mapped);
  } else if (posix_memalign(&memory, block->side == Side::kHost ? kPage : kAlignment,
                            block->size) != 0) {
    memory = nullptr;
  }
  block->begin = reinterpret_cast<uintptr_t>(memory);
  if (memory == nullptr) return false;
  if (!closed || protect(*block, PROT_NONE)) return true;
  give_back(*block);
  return false;
}

aclError out_of_device_memory(const char* api, int32_t device, size_t size) {
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
              "%s: device %d is out of memory: %zu bytes requested, %zu of %zu free (environment "
              "variable ACLNN_TORCH_DEVICE_MEMORY)",
              api, device, size, settings().device_memory - Blocks::get().used(device),
              settings().device_memory);
}

aclError no_size(const char* api) {
  return fail(ACL_ERROR_INVALID_PARAM, "%s: size is 0, expected 1 or more bytes", api);
}

aclError allocate(const char* api, void** out, size_t size, size_t padding,
                  aclrtMemMallocPolicy policy) {
  if (out == nullptr) return null_argument(api, "devPtr");
  if (size == 0) return no_size(api);
  const auto bits = static_cast<uint32_t>(policy);
  const uint32_t pages = bits & kPolicyBits;
  if (pages > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P || (bits & ~(kPolicyBits | kPolicyFlags)) != 0) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "%s: policy is 0x%x, expected one of ACL_MEM_MALLOC_ (0 to 7), and bits of 0x%x "
                "(ACL_MEM_TYPE_ and ACL_MEM_ACCESS_) or none",
                api, bits, kPolicyFlags);
  }
  const auto context = require_context(api);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;

  auto& blocks = Blocks::get();
  Block block;
  block.side = Side::kDevice;
  block.device = context->device;
  block.asked = size;
  const bool countable = size <= std::numeric_limits<size_t>::max() / 2;
  block.size = countable ? round_up(size, kGranule) + padding : size;
  if (!countable || !blocks.reserve(block.device, block.size)) {
    return out_of_device_memory(api, block.device, size);
  }
  const bool huge = pages != ACL_MEM_MALLOC_NORMAL_ONLY && pages != ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
  if (!obtain(&block, huge)) {
    blocks.release(block.device, block.size);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "%s: the host cannot allocate %zu bytes for the memory of device %d", api, size,
                block.device);
  }
  try {
    blocks.insert(block);
  } catch (...) {
    blocks.release(block.device, block.size);
    give_back(block);
    throw;
  }
  count_object(Object::kDeviceBlock, 1);
  *out = reinterpret_cast<void*>(block.begin);
  return ACL_SUCCESS;
}

aclError release(const char* api, const char* argument, void* pointer, Side side) {
  if (pointer == nullptr) return null_argument(api, argument);
  Block block;
  if (!Blocks::get().remove(pointer, side, &block)) {
    const char* const allocator = side == Side::kDevice ? "aclrtMalloc" : "aclrtMallocHost";
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %p is not the beginning of a block of %s, or was freed", api, pointer,
                allocator);
  }
  give_back(block);
  count_object(side == Side::kDevice ? Object::kDeviceBlock : Object::kHostBlock, -1);
  return ACL_SUCCESS;
}

}  // namespace

bool find_block(const void* address, size_t count, Block* block) noexcept {
  return Blocks::get().find(reinterpret_cast<uintptr_t>(address), count, block);
}

uint64_t block_number(const void* address) noexcept {
  Block block;
  return find_block(address, 1, &block) ? block.number : 0;
}

void MemoryInUse::add(const void* address, size_t count) {
  if (count == 0) return;
  Blocks::get().hold(reinterpret_cast<uintptr_t>(address), count, &blocks_);
}

MemoryInUse::~MemoryInUse() {
  if (!blocks_.empty()) Blocks::get().let_go(blocks_);
}

aclError take_device_memory(const char* api, int32_t device, size_t size) noexcept {
  return Blocks::get().reserve(device, size) ? ACL_SUCCESS
                                             : out_of_device_memory(api, device, size);
}

void return_device_memory(int32_t device, size_t size) noexcept {
  Blocks::get().release(device, size);
}

size_t device_memory_used(int32_t device) noexcept {
  return Blocks::get().used(device);
}

void add_mapping(uintptr_t begin, size_t size, int32_t device) {
  Block block;
  block.begin = begin;
  block.size = block.asked = size;
  block.device = device;
  block.side = Side::kDevice;
  block.is_mapping = true;
  Blocks::get().insert(block);
}

void remove_mapping(uintptr_t begin) noexcept {
  Blocks::get().remove_mapping(begin);
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  constexpr const char* kApi = "aclrtMalloc";
  const ApiSpan span(kApi);
  return guarded(kApi, [&] { return allocate(kApi, devPtr, size, kGranule, policy); });
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  constexpr const char* kApi = "aclrtMallocAlign32";
  const ApiSpan span(kApi);
  return guarded(kApi, [&] { return allocate(kApi, devPtr, size, 0, policy); });
}

aclError aclrtFree(void* devPtr) {
  constexpr const char* kApi = "aclrtFree";
  const ApiSpan span(kApi);
  return guarded(kApi, [&] { return release(kApi, "devPtr", devPtr, Side::kDevice); });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  constexpr const char* kApi = "aclrtMallocHost";
  const ApiSpan span(kApi);
  return guarded(kApi, [&]() -> aclError {
    if (hostPtr == nullptr) return null_argument(kApi, "hostPtr");
    if (size == 0) return no_size(kApi);
    Block block;
    block.size = block.asked = size;
    if (!obtain(&block, false)) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot allocate %zu bytes", kApi,
                  size);
    }
    try {
      Blocks::get().insert(block);
    } catch (...) {
      give_back(block);
      throw;
    }
    count_object(Object::kHostBlock, 1);
    *hostPtr = reinterpret_cast<void*>(block.begin);
    return ACL_SUCCESS;
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  constexpr const char* kApi = "aclrtFreeHost";
  const ApiSpan span(kApi);
  return guarded(kApi, [&] { return release(kApi, "hostPtr", hostPtr, Side::kHost); });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  constexpr const char* kApi = "aclrtGetMemInfo";
  return guarded(kApi, [&]() -> aclError {
    if (free == nullptr) return null_argument(kApi, "free");
    if (total == nullptr) return null_argument(kApi, "total");
    if (attr < ACL_DDR_MEM || attr > ACL_MEM_P2P_HUGE1G) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: attr is %d, expected 0 (ACL_DDR_MEM) to 17 (ACL_MEM_P2P_HUGE1G)", kApi,
                  attr);
    }
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    *total = settings().device_memory;
    *free = *total - Blocks::get().used(context->device);
    return ACL_SUCCESS;
  });
}
