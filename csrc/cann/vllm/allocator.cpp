// The allocator of vllm-ascend's sleep mode. torch_npu allocates blocks through my_malloc and
// my_free; the Python package aclnn_vllm gives a block's memory back while the block keeps its
// address, and gets new memory for it. None of these functions is CANN's.
#include <sys/types.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "acl/acl.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/per_process.h"

#define ACLNN_VLLM_API extern "C" __attribute__((visibility("default")))

namespace aclnn_host::vllm {
namespace {

// What Python knows of a block.
struct Handle {
  uint64_t device;
  uint64_t size;
  uint64_t address;
  uint64_t memory;  // where the handle of its memory is
};

// Python's functions. The first writes the reason where it fails, and returns whether it succeeded.
using Allocated = bool (*)(uint64_t device, uint64_t size, uint64_t address, uint64_t memory,
                           char* reason, size_t reason_size);
using Freed = void (*)(uint64_t address);

struct Block {
  uint64_t device;
  uint64_t size;
  aclrtDrvMemHandle memory;  // null while the block has none
};

struct Allocator {
  std::mutex mutex;                  // not held in Python's functions
  std::map<uint64_t, Block> blocks;  // by address
  Allocated allocated = nullptr;
  Freed freed = nullptr;

  static void after_fork() noexcept {}
};

Allocator& allocator() {
  return PerProcess<Allocator>::get();
}

aclrtPhysicalMemProp properties(uint64_t device) {
  aclrtPhysicalMemProp result = {};
  result.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  result.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  result.memAttr = ACL_HBM_MEM_HUGE;
  result.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  result.location.id = static_cast<uint32_t>(device);
  return result;
}

aclError get_memory(uint64_t address, Block& block) {
  const aclrtPhysicalMemProp of_device = properties(block.device);
  aclrtDrvMemHandle memory = nullptr;
  aclError status = aclrtMallocPhysical(&memory, block.size, &of_device, 0);
  if (status != ACL_SUCCESS) return status;
  status = aclrtMapMem(reinterpret_cast<void*>(address), block.size, 0, memory, 0);
  if (status != ACL_SUCCESS) {
    aclrtFreePhysical(memory);
    return status;
  }
  block.memory = memory;
  return ACL_SUCCESS;
}

aclError give_memory_back(uint64_t address, Block& block) {
  const aclError status = aclrtUnmapMem(reinterpret_cast<void*>(address));
  if (status != ACL_SUCCESS) return status;
  return aclrtFreePhysical(std::exchange(block.memory, nullptr));
}

// The block that begins at the address, or null after fail().
Block* find(const char* api, uint64_t address) {
  auto& blocks = allocator().blocks;
  const auto found = blocks.find(address);
  if (found != blocks.end()) return &found->second;
  fail(ACL_ERROR_INVALID_PARAM,
       "%s: 0x%llx is not the address of a block of my_malloc, or was freed", api,
       static_cast<unsigned long long>(address));
  return nullptr;
}

// The block of a handle, or null after fail().
Block* find(const char* api, const Handle& handle) {
  Block* const block = find(api, handle.address);
  if (block == nullptr) return nullptr;
  const auto memory = reinterpret_cast<uint64_t>(&block->memory);
  if (block->device == handle.device && block->size == handle.size && memory == handle.memory) {
    return block;
  }
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  fail(ACL_ERROR_INVALID_PARAM,
       "%s: the handle is (%llu, %llu, 0x%llx, 0x%llx), expected (%llu, %llu, 0x%llx, 0x%llx)", api,
       number(handle.device), number(handle.size), number(handle.address), number(handle.memory),
       number(block->device), number(block->size), number(handle.address), number(memory));
  return nullptr;
}

// Calls change(block) with the block of a handle.
template <class Change>
aclError with_block(const char* api, const Handle& handle, const Change& change) {
  return guarded(api, [&]() -> aclError {
    const std::lock_guard lock(allocator().mutex);
    Block* const block = find(api, handle);
    return block == nullptr ? aclError{ACL_ERROR_INVALID_PARAM} : change(*block);
  });
}

aclError free_block(const char* api, void* pointer) {
  return guarded(api, [&]() -> aclError {
    auto& state = allocator();
    const std::lock_guard lock(state.mutex);
    const auto address = reinterpret_cast<uint64_t>(pointer);
    Block* const block = find(api, address);
    if (block == nullptr) return ACL_ERROR_INVALID_PARAM;
    if (block->memory != nullptr) {
      if (const aclError status = give_memory_back(address, *block)) return status;
    }
    state.blocks.erase(address);
    return aclrtReleaseMemAddress(pointer);
  });
}

aclError allocate_block(const char* api, ssize_t size, int device, void** pointer) {
  return guarded(api, [&]() -> aclError {
    if (size <= 0) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: size is %zd, expected 1 or more", api, size);
    }
    auto& state = allocator();
    std::unique_lock lock(state.mutex);
    const Allocated allocated = state.allocated;
    if (allocated == nullptr) {
      return fail(ACL_ERROR_UNINITIALIZE,
                  "%s: init_module of vllm_ascend.vllm_ascend_C was not called in this process",
                  api);
    }
    aclrtPhysicalMemProp of_device = properties(static_cast<uint64_t>(device));
    // Its node is made before the address is reserved, so that no exception can lose the address.
    std::map<uint64_t, Block> fresh{{0, {static_cast<uint64_t>(device), 0, nullptr}}};
    size_t granularity = 0;
    aclError status = aclrtMemGetAllocationGranularity(
        &of_device, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity);
    if (status != ACL_SUCCESS) return status;
    const size_t whole = (static_cast<size_t>(size) + granularity - 1) / granularity * granularity;
    status = aclrtReserveMemAddress(pointer, whole, 0, nullptr, 0);
    if (status != ACL_SUCCESS) return status;
    const auto address = reinterpret_cast<uint64_t>(*pointer);
    auto node = fresh.extract(0);
    node.key() = address;
    Block& block = state.blocks.insert(std::move(node)).position->second;
    block.size = whole;
    status = get_memory(address, block);
    if (status != ACL_SUCCESS) {
      state.blocks.erase(address);
      aclrtReleaseMemAddress(*pointer);
      return status;
    }
    lock.unlock();
    char reason[256] = "";
    if (allocated(block.device, block.size, address, reinterpret_cast<uint64_t>(&block.memory),
                  reason, sizeof reason)) {
      return ACL_SUCCESS;
    }
    free_block(api, *pointer);
    return fail(ACL_ERROR_FAILURE, "%s: the first function of init_module raised %s", api, reason);
  });
}

}  // namespace
}  // namespace aclnn_host::vllm

using namespace aclnn_host;
using namespace aclnn_host::vllm;

// Allocates a block for torch_npu, in whole pages of a device, and tells Python. Throws where it
// fails, because torch knows failures of allocators as exceptions.
ACLNN_VLLM_API void* my_malloc(ssize_t size, int device, aclrtStream) {
  constexpr const char* kApi = "my_malloc";
  void* pointer = nullptr;
  const aclError status = allocate_block(kApi, size, device, &pointer);
  if (status == ACL_SUCCESS) return pointer;
  const char* const texts = aclGetRecentErrMsg();  // the last one first
  std::string text = texts != nullptr ? texts : kApi;
  text.resize(std::min(text.find('\n'), text.size()));
  throw std::runtime_error(text + " (status " + std::to_string(status) + ")");
}

// Tells Python, and frees a block of my_malloc, with memory or without. Tensors' destructors call
// it, so that a failure is told by aclGetRecentErrMsg() alone.
ACLNN_VLLM_API void my_free(void* pointer, ssize_t, int, aclrtStream) noexcept {
  constexpr const char* kApi = "my_free";
  const auto address = reinterpret_cast<uint64_t>(pointer);
  auto& state = allocator();
  std::unique_lock lock(state.mutex);
  const bool known = find(kApi, address) != nullptr;
  const Freed freed = state.freed;
  lock.unlock();
  if (!known) return;
  if (freed != nullptr) freed(address);
  free_block(kApi, pointer);
}

// Sets Python's functions; null ones where Python ends.
ACLNN_VLLM_API void aclHostVllmCallbacks(Allocated allocated, Freed freed) {
  auto& state = allocator();
  const std::lock_guard lock(state.mutex);
  state.allocated = allocated;
  state.freed = freed;
}

// Gets memory for a block that has none.
ACLNN_VLLM_API aclError aclHostVllmMap(uint64_t device, uint64_t size, uint64_t address,
                                       uint64_t memory) {
  constexpr const char* kApi = "python_create_and_map";
  return with_block(kApi, {device, size, address, memory}, [&](Block& block) {
    if (block.memory == nullptr) return get_memory(address, block);
    return fail(ACL_ERROR_INVALID_PARAM, "%s: the block at 0x%llx has its memory", kApi,
                static_cast<unsigned long long>(address));
  });
}

// Gives the memory of a block back. The block keeps its address.
ACLNN_VLLM_API aclError aclHostVllmUnmap(uint64_t device, uint64_t size, uint64_t address,
                                         uint64_t memory) {
  constexpr const char* kApi = "python_unmap_and_release";
  return with_block(kApi, {device, size, address, memory}, [&](Block& block) {
    if (block.memory != nullptr) return give_memory_back(address, block);
    return fail(ACL_ERROR_INVALID_PARAM, "%s: the memory of the block at 0x%llx was given back",
                kApi, static_cast<unsigned long long>(address));
  });
}
