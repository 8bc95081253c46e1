#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host {
namespace {

constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 4;  // so that sums do not overflow

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

bool is_page_multiple(size_t size) {
  return size > 0 && size <= kLargest && size % page_size() == 0;
}

// The in-memory file that backs all physical memory, so that contents survive unmapping. Offsets
// are never reused: a file has more of them than a machine has memory.
class Pool {
 public:
  Pool() : file_(memfd_create("aclnn_torch device memory", MFD_CLOEXEC)) {}

  // Allocates an offset; false if the system has no memory.
  bool cut(size_t size, off_t* place) {
    const std::lock_guard lock(mutex_);
    const off_t end = end_ + static_cast<off_t>(size);
    if (file_ < 0 || end < end_ || ftruncate(file_, end) != 0) return false;
    *place = end_;
    end_ = end;
    return true;
  }

  void give_back(off_t place, size_t size) noexcept {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place, static_cast<off_t>(size));
  }

  // Maps the memory at the offset over the addresses; inaccessible in strict mode.
  bool map(void* address, size_t size, off_t place) const noexcept {
    const int protection = settings().strict ? PROT_NONE : PROT_READ | PROT_WRITE;
    return mmap(address, size, protection, MAP_SHARED | MAP_FIXED, file_, place) != MAP_FAILED;
  }

  static void after_fork() noexcept {}

 private:
  const int file_;
  std::mutex mutex_;
  off_t end_ = 0;
};

Pool& pool() {
  return PerProcess<Pool>::get();
}

// One piece of physical memory of a device. Lives as long as its handle or a mapping.
struct Physical {
  Physical(int32_t id, size_t bytes, off_t where) : device(id), size(bytes), place(where) {}
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical() {
    pool().give_back(place, size);
    return_device_memory(device, size);
  }

  const int32_t device;
  const size_t size;
  const off_t place;
};

using PhysicalTable = HandleTable<Physical, Object::kPhysicalMemory>;

PhysicalTable& physicals() {
  return PerProcess<PhysicalTable>::get();
}

// A mapping: its length, and a reference to its memory.
struct Mapping {
  size_t size;
  std::shared_ptr<Physical> physical;
};

// A reserved range of addresses, and its mappings by first address.
struct Reservation {
  size_t size;
  std::map<uintptr_t, Mapping> mappings;
};

struct Reservations {
  std::mutex mutex;
  std::map<uintptr_t, Reservation> all;  // by first address
  std::atomic<size_t> count = 0;

  // The reservation that contains the address, or null.
  Reservation* find(uintptr_t address, uintptr_t* begin) {
    auto next = all.upper_bound(address);
    if (next == all.begin()) return nullptr;
    auto& [first, reservation] = *std::prev(next);
    *begin = first;
    return address - first < reservation.size ? &reservation : nullptr;
  }

  static void after_fork() noexcept {}
};

Reservations& reservations() {
  return PerProcess<Reservations>::get();
}

// Reserves addresses without memory: at the given place, which belongs to the process, or anywhere.
void* take_addresses(void* place, size_t size) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED : 0);
  void* const taken = mmap(place, size, PROT_NONE, flags, -1, 0);
  return taken == MAP_FAILED ? nullptr : taken;
}

aclError bad_size(const char* api, size_t size) {
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: size is %zu, expected a multiple of the page size %zu", api, size, page_size());
}

aclError bad_flags(const char* api, uint64_t flags) {
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags is %llu, expected 0", api,
              static_cast<unsigned long long>(flags));
}

}  // namespace

bool is_reserved(const void* address) noexcept {
  auto& state = reservations();
  if (state.count == 0) return false;
  const std::lock_guard lock(state.mutex);
  uintptr_t begin = 0;
  return state.find(reinterpret_cast<uintptr_t>(address), &begin) != nullptr;
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags) {
  constexpr const char* kApi = "aclrtReserveMemAddress";
  return guarded(kApi, [&]() -> aclError {
    if (virPtr == nullptr) return null_argument(kApi, "virPtr");
    if (size == 0 || size > kLargest) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: size is %zu, expected 1 to %zu", kApi, size,
                  kLargest);
    }
    if (alignment != 0 || expectPtr != nullptr) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: alignment is %zu and expectPtr %p, expected 0 and a null pointer", kApi,
                  alignment, expectPtr);
    }
    if (flags > 1) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: flags is %llu, expected 0 (normal pages) or 1 (huge pages)", kApi,
                  static_cast<unsigned long long>(flags));
    }
    const size_t whole = (size + page_size() - 1) / page_size() * page_size();
    void* const begin = take_addresses(nullptr, whole);
    if (begin == nullptr) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  "%s: the host cannot reserve %zu bytes of contiguous address space", kApi, size);
    }
    try {
      auto& state = reservations();
      const std::lock_guard lock(state.mutex);
      state.all.emplace(reinterpret_cast<uintptr_t>(begin), Reservation{whole, {}});
      state.count = state.all.size();
    } catch (...) {
      munmap(begin, whole);
      throw;
    }
    *virPtr = begin;
    return ACL_SUCCESS;
  });
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  constexpr const char* kApi = "aclrtReleaseMemAddress";
  return guarded(kApi, [&]() -> aclError {
    if (virPtr == nullptr) return null_argument(kApi, "virPtr");
    auto& state = reservations();
    const std::lock_guard lock(state.mutex);
    const auto found = state.all.find(reinterpret_cast<uintptr_t>(virPtr));
    if (found == state.all.end()) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: %p is not the beginning of a range of aclrtReserveMemAddress", kApi, virPtr);
    }
    if (!found->second.mappings.empty()) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: memory is mapped in the range of %p; call aclrtUnmapMem first", kApi,
                  virPtr);
    }
    munmap(virPtr, found->second.size);
    state.all.erase(found);
    state.count = state.all.size();
    return ACL_SUCCESS;
  });
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity) {
  constexpr const char* kApi = "aclrtMemGetAllocationGranularity";
  return guarded(kApi, [&]() -> aclError {
    if (prop == nullptr) return null_argument(kApi, "prop");
    if (granularity == nullptr) return null_argument(kApi, "granularity");
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
        option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: option is %d, expected 0 (the least) or 1 (the recommended)", kApi, option);
    }
    *granularity = size_t{2} << 20;
    return ACL_SUCCESS;
  });
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  constexpr const char* kApi = "aclrtMallocPhysical";
  return guarded(kApi, [&]() -> aclError {
    if (handle == nullptr) return null_argument(kApi, "handle");
    if (prop == nullptr) return null_argument(kApi, "prop");
    if (!is_page_multiple(size)) return bad_size(kApi, size);
    if (flags != 0) return bad_flags(kApi, flags);
    if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "%s: location.type is %d, expected the memory of a device; the host CANN "
                  "implements no other",
                  kApi, prop->location.type);
    }
    if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE ||
        prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: handleType is %d and allocationType %d, expected 0 and 0", kApi,
                  prop->handleType, prop->allocationType);
    }
    const auto device = static_cast<int32_t>(prop->location.id);
    if (!is_device(device)) return no_such_device(kApi, device);
    if (const aclError status = take_device_memory(kApi, device, size)) return status;
    off_t place = 0;
    if (!pool().cut(size, &place)) {
      return_device_memory(device, size);
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  "%s: the host cannot allocate %zu bytes for the memory of device %d", kApi, size,
                  device);
    }
    *handle = physicals().insert(std::make_shared<Physical>(device, size, place));
    return ACL_SUCCESS;
  });
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  constexpr const char* kApi = "aclrtFreePhysical";
  return guarded(kApi, [&]() -> aclError {
    if (handle == nullptr) return null_argument(kApi, "handle");
    if (physicals().remove(handle) != nullptr) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %p is not a handle of aclrtMallocPhysical, or was freed", kApi, handle);
  });
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  constexpr const char* kApi = "aclrtMapMem";
  return guarded(kApi, [&]() -> aclError {
    if (virPtr == nullptr) return null_argument(kApi, "virPtr");
    if (handle == nullptr) return null_argument(kApi, "handle");
    if (flags != 0) return bad_flags(kApi, flags);
    const auto physical = physicals().find(handle);
    if (physical == nullptr) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: %p is not a handle of aclrtMallocPhysical, or was freed", kApi, handle);
    }
    if (offset != 0 || size != physical->size) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: offset is %zu and size %zu, expected 0 and %zu; physical memory is mapped "
                  "as a whole",
                  kApi, offset, size, physical->size);
    }
    auto& state = reservations();
    const std::lock_guard lock(state.mutex);
    const auto address = reinterpret_cast<uintptr_t>(virPtr);
    uintptr_t begin = 0;
    Reservation* const reservation = state.find(address, &begin);
    if (reservation == nullptr || size > reservation->size - (address - begin) ||
        address % page_size() != 0) {
      return fail(
          ACL_ERROR_RT_PARAM_INVALID,
          "%s: %zu bytes at %p are not whole pages inside a range of aclrtReserveMemAddress", kApi,
          size, virPtr);
    }
    auto& mappings = reservation->mappings;
    const auto next = mappings.lower_bound(address + size);
    if (next != mappings.begin()) {
      const auto& [first, mapping] = *std::prev(next);
      if (first + mapping.size > address) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "%s: memory is mapped already at %p; call aclrtUnmapMem first", kApi,
                    reinterpret_cast<void*>(first));
      }
    }
    const auto made = mappings.emplace(address, Mapping{size, physical}).first;
    if (!pool().map(virPtr, size, physical->place)) {
      mappings.erase(made);
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot map %zu bytes", kApi, size);
    }
    try {
      add_mapping(address, size, physical->device);
    } catch (...) {
      take_addresses(virPtr, size);
      mappings.erase(made);
      throw;
    }
    return ACL_SUCCESS;
  });
}

aclError aclrtUnmapMem(void* virPtr) {
  constexpr const char* kApi = "aclrtUnmapMem";
  return guarded(kApi, [&]() -> aclError {
    if (virPtr == nullptr) return null_argument(kApi, "virPtr");
    auto& state = reservations();
    const std::lock_guard lock(state.mutex);
    const auto address = reinterpret_cast<uintptr_t>(virPtr);
    uintptr_t begin = 0;
    Reservation* const reservation = state.find(address, &begin);
    const bool known = reservation != nullptr && reservation->mappings.contains(address);
    if (!known) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not the beginning of a mapping", kApi,
                  virPtr);
    }
    const auto mapping = reservation->mappings.find(address);
    remove_mapping(address);
    if (take_addresses(virPtr, mapping->second.size) == nullptr) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot unmap %zu bytes", kApi,
                  mapping->second.size);
    }
    reservation->mappings.erase(mapping);
    return ACL_SUCCESS;
  });
}
