// Memory windows. The host CANN copies data and needs no windows; it only records them.
#include "cann/hccl/windows.h"

#include <map>
#include <mutex>

#include <c10/util/StringUtil.h>

#include "cann/hccl/communicator.h"
#include "cann/hccl/hccl_guard.h"
#include "hccl/hccl.h"
#include "hccl/hcomm_res.h"

namespace aclnn_host::hccl {
namespace {

// Memory that a rank has registered.
struct Window {
  const Communicator* of;  // only compared
  uintptr_t begin;
  uint64_t bytes;

  bool contains(uintptr_t address, size_t count) const {
    return address >= begin && count <= bytes && address - begin <= bytes - count;
  }
};

// The windows of the process, by handle, a number that is never reused.
struct Windows {
  std::mutex mutex;
  std::map<HcclCommSymWindow, Window> by_handle;
  uintptr_t made = 0;

  static void after_fork() noexcept {}
};

Windows& windows() {
  return PerProcess<Windows>::get();
}

}  // namespace

void end_windows(const Communicator& of) {
  const std::lock_guard lock(windows().mutex);
  std::erase_if(windows().by_handle, [&](const auto& entry) { return entry.second.of == &of; });
}

}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;

HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size,
                                  HcclCommSymWindow* winHandle, uint32_t flag) {
  constexpr const char* kApi = "HcclCommSymWinRegister";
  return guarded(kApi, [&] {
    if (addr == nullptr) return null_argument(kApi, "addr");
    if (winHandle == nullptr) return null_argument(kApi, "winHandle");
    HcclResult status = HCCL_SUCCESS;
    const auto of = require_communicator(kApi, comm, &status);
    if (of == nullptr) return status;
    const auto begin = reinterpret_cast<uintptr_t>(addr);
    if (size == 0 || size > UINTPTR_MAX - begin) {
      throw Failure(HCCL_E_PARA, c10::str("size is ", size, ", expected the bytes of a memory"));
    }
    const std::lock_guard lock(windows().mutex);
    auto* const handle = reinterpret_cast<HcclCommSymWindow>(++windows().made);
    windows().by_handle.emplace(handle, Window{of.get(), begin, size});
    *winHandle = handle;
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle) {
  constexpr const char* kApi = "HcclCommSymWinDeregister";
  return guarded(kApi, [&] {
    if (winHandle == nullptr) return null_argument(kApi, "winHandle");
    const std::lock_guard lock(windows().mutex);
    if (windows().by_handle.erase(winHandle) == 1) return HCCL_SUCCESS;
    throw Failure(HCCL_E_PARA, "winHandle is no window of this process, or has ended");
  });
}

HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, HcclCommSymWindow* winHandle,
                             size_t* offset) {
  constexpr const char* kApi = "HcclCommSymWinGet";
  return guarded(kApi, [&] {
    if (ptr == nullptr) return null_argument(kApi, "ptr");
    if (winHandle == nullptr) return null_argument(kApi, "winHandle");
    if (offset == nullptr) return null_argument(kApi, "offset");
    HcclResult status = HCCL_SUCCESS;
    const auto of = require_communicator(kApi, comm, &status);
    if (of == nullptr) return status;
    const auto begin = reinterpret_cast<uintptr_t>(ptr);
    const std::lock_guard lock(windows().mutex);
    for (const auto& [handle, window] : windows().by_handle) {
      if (window.of != of.get() || !window.contains(begin, size)) continue;
      *winHandle = handle;
      *offset = begin - window.begin;
      return HCCL_SUCCESS;
    }
    throw Failure(HCCL_E_NOT_FOUND,
                  c10::str("ptr has ", size, " bytes that lie in no window of the communicator"));
  });
}

HcommResult HcommMemAlloc(void** ptr, size_t size) {
  constexpr const char* kApi = "HcommMemAlloc";
  if (ptr == nullptr) return null_argument(kApi, "ptr");
  return aclrtMalloc(ptr, size, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS ? HCCL_SUCCESS
                                                                          : HCCL_E_MEMORY;
}

HcommResult HcommMemFree(void* ptr) {
  constexpr const char* kApi = "HcommMemFree";
  if (ptr == nullptr) return null_argument(kApi, "ptr");
  return aclrtFree(ptr) == ACL_SUCCESS ? HCCL_SUCCESS : HCCL_E_PARA;
}
