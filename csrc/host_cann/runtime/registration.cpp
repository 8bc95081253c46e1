// Host memory that a program registers for access by devices. Only strict mode needs the
// registration; otherwise devices can access all host memory.
#include "host_cann/runtime/registration.h"

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/per_process.h"

namespace aclnn_host {
namespace {

struct Registrations {
  std::mutex mutex;
  std::map<uintptr_t, uint64_t> sizes;  // by first address

  // True if part of the range is registered.
  bool overlaps(uintptr_t begin, uint64_t size) const {
    const auto next = sizes.lower_bound(begin + size);
    if (next == sizes.begin()) return false;
    const auto& [first, bytes] = *std::prev(next);
    return first + bytes > begin;
  }

  // True if a single registration covers the range.
  bool contains(uintptr_t begin, size_t size) const {
    const auto next = sizes.upper_bound(begin);
    if (next == sizes.begin()) return false;
    const auto& [first, bytes] = *std::prev(next);
    return begin - first < bytes && size <= bytes - (begin - first);
  }

  static void after_fork() noexcept {}
};

Registrations& registrations() {
  return PerProcess<Registrations>::get();
}

// A range that is only page-locked may begin at any address; torch_npu relies on that.
aclError add(const char* api, void* ptr, uint64_t size, bool is_mapped) {
  if (ptr == nullptr) return null_argument(api, "ptr");
  const auto begin = reinterpret_cast<uintptr_t>(ptr);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (is_mapped && begin % page != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: ptr is %p, expected the beginning of a page of %zu bytes", api, ptr,
                static_cast<size_t>(page));
  }
  if (size == 0 || size > std::numeric_limits<uintptr_t>::max() - begin) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: size is %llu, expected 1 or more, and memory there", api,
                static_cast<unsigned long long>(size));
  }
  auto& state = registrations();
  const std::lock_guard lock(state.mutex);
  if (state.overlaps(begin, size)) {
    return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                "%s: a part of the %llu bytes at %p is registered; call aclrtHostUnregister first",
                api, static_cast<unsigned long long>(size), ptr);
  }
  state.sizes.emplace(begin, size);
  return ACL_SUCCESS;
}

}  // namespace

bool is_registered(const void* address, size_t count) noexcept {
  auto& state = registrations();
  const std::lock_guard lock(state.mutex);
  return state.contains(reinterpret_cast<uintptr_t>(address), count);
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  constexpr const char* kApi = "aclrtHostRegister";
  return guarded(kApi, [&]() -> aclError {
    if (devPtr == nullptr) return null_argument(kApi, "devPtr");
    if (type != ACL_HOST_REGISTER_MAPPED) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: type is %d, expected ACL_HOST_REGISTER_MAPPED (0)", kApi, type);
    }
    if (const aclError failure = add(kApi, ptr, size, true)) return failure;
    *devPtr = ptr;
    return ACL_SUCCESS;
  });
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  constexpr const char* kApi = "aclrtHostRegisterV2";
  constexpr uint32_t kFlags = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED;
  return guarded(kApi, [&]() -> aclError {
    if (flag == 0 || (flag & ~kFlags) != 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: flag is %#x, expected ACL_HOST_REG_MAPPED (0x2), ACL_HOST_REG_PINNED "
                  "(0x10000000), or both",
                  kApi, flag);
    }
    return add(kApi, ptr, size, (flag & ACL_HOST_REG_MAPPED) != 0);
  });
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  constexpr const char* kApi = "aclrtHostGetDevicePointer";
  return guarded(kApi, [&]() -> aclError {
    if (pHost == nullptr) return null_argument(kApi, "pHost");
    if (pDevice == nullptr) return null_argument(kApi, "pDevice");
    if (flag != 0)
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag is %u, expected 0", kApi, flag);
    auto& state = registrations();
    const std::lock_guard lock(state.mutex);
    if (!state.contains(reinterpret_cast<uintptr_t>(pHost), 1)) {
      return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
                  "%s: %p is not registered; call aclrtHostRegisterV2 first", kApi, pHost);
    }
    *pDevice = pHost;
    return ACL_SUCCESS;
  });
}

aclError aclrtHostUnregister(void* ptr) {
  constexpr const char* kApi = "aclrtHostUnregister";
  return guarded(kApi, [&]() -> aclError {
    if (ptr == nullptr) return null_argument(kApi, "ptr");
    auto& state = registrations();
    const std::lock_guard lock(state.mutex);
    if (state.sizes.erase(reinterpret_cast<uintptr_t>(ptr)) == 1) return ACL_SUCCESS;
    return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
                "%s: %p is not the beginning of registered memory", kApi, ptr);
  });
}
