#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/clear.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/registration.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

// The required location of one end of a copy.
enum class Place { kHost, kDevice, kEither };

// One end of a copy: a range and its block, if it lies in one.
struct Range {
  const void* address = nullptr;
  size_t count = 0;
  bool in_block = false;
  Block block;

  bool on_device() const { return in_block && block.side == Side::kDevice; }

  // False if the block was freed, which can happen while a copy waits in its stream.
  bool alive() const {
    Block now;
    return !in_block ||
           (find_block(address, count, &now) && (now.number == block.number || is_replayed()) &&
            now.contains(begin(), count));
  }

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(address); }
};

// Finds and checks the range's block: device memory must have been allocated as such, and a range
// must not exceed its block.
aclError resolve(const char* api, const char* argument, const void* address, size_t count,
                 Place place, Range* range) {
  range->address = address;
  range->count = count;
  range->in_block = find_block(address, count, &range->block);
  if (place == Place::kDevice && !range->on_device()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %s is %p, which is not device memory of aclrtMalloc", api, argument, address);
  }
  if (place == Place::kHost && range->on_device()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %s is %p, which is memory of device %d, expected host memory", api, argument,
                address, range->block.device);
  }
  if (range->in_block && !range->block.contains(range->begin(), count)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %s is %p and the call accesses %zu bytes, which reaches outside its block of "
                "%zu bytes at %p",
                api, argument, address, count, range->block.size,
                reinterpret_cast<void*>(range->block.begin));
  }
  return ACL_SUCCESS;
}

// A checked copy.
struct Copy {
  Range dst;
  Range src;
};

// Checks shared by both copies, in CANN's order. count is not 0. If the direction is deduced from
// the addresses, device memory is allowed on a side that the kind calls host.
aclError check_copy(const char* api, void* dst, size_t destMax, const void* src, size_t count,
                    aclrtMemcpyKind kind, aclrtMemcpyKind last_kind, bool finds_direction,
                    Copy* copy) {
  if (dst == nullptr) return null_argument(api, "dst");
  if (src == nullptr) return null_argument(api, "src");
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > last_kind) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: kind is %d, expected 0 to %d of aclrtMemcpyKind", api,
                kind, last_kind);
  }
  if (count > destMax) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: count %zu is more than destMax %zu", api, count,
                destMax);
  }
  const Place host = finds_direction ? Place::kEither : Place::kHost;
  Place to = Place::kDevice;
  Place from = Place::kDevice;
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST: to = from = host; break;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: from = host; break;
    case ACL_MEMCPY_DEVICE_TO_HOST: to = host; break;
    case ACL_MEMCPY_DEFAULT: to = from = Place::kEither; break;
    default: break;
  }
  if (const aclError status = resolve(api, "dst", dst, count, to, &copy->dst)) return status;
  if (const aclError status = resolve(api, "src", src, count, from, &copy->src)) return status;
  if (kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE &&
      copy->dst.block.device != copy->src.block.device) {
    return fail(
        ACL_ERROR_RT_PARAM_INVALID,
        "%s: the kind is a copy within one device, but the memory is of device %d and device %d",
        api, copy->src.block.device, copy->dst.block.device);
  }
  return ACL_SUCCESS;
}

// True for host memory that may be freed before a device reads it.
bool is_pageable(const Range& range) {
  return !range.in_block && !is_registered(range.address, range.count);
}

// Applies the rules of captures to a copy with pageable memory. CANN runs such a copy
// synchronously: it cannot be captured, and on other streams the capture's mode may forbid it.
aclError refuse_pageable(const char* api, const Copy& copy, aclrtStream stream) {
  if (!is_pageable(copy.dst) && !is_pageable(copy.src)) return ACL_SUCCESS;
  if (!is_captured(stream)) return refuse_in_mode(api, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC);
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: the stream is being captured, and %s is %p, which is pageable host memory; "
              "captured copies need memory of aclrtMallocHost",
              api, is_pageable(copy.dst) ? "dst" : "src",
              is_pageable(copy.dst) ? copy.dst.address : copy.src.address);
}

// The failure of work whose memory was freed before it ran.
aclError freed(const char* api, const char* argument) noexcept {
  return fail(
      ACL_ERROR_RT_COPY_DATA,
      "%s: %s was freed before the stream ran the copy; free it after the stream is synchronised",
      api, argument);
}

// Copies the bytes. Rechecks the blocks, which cannot be freed while in use.
aclError move(const char* api, const Copy& copy) {
  MemoryInUse in_use;
  in_use.add(copy.dst.address, copy.dst.count);
  in_use.add(copy.src.address, copy.src.count);
  if (!copy.dst.alive()) return freed(api, "dst");
  if (!copy.src.alive()) return freed(api, "src");
  std::memmove(const_cast<void*>(copy.dst.address), copy.src.address, copy.src.count);
  return ACL_SUCCESS;
}

// Sets the bytes.
aclError set(const char* api, const Range& range, int32_t value) {
  MemoryInUse in_use;
  in_use.add(range.address, range.count);
  if (!range.alive()) return freed(api, "devPtr");
  void* const begin = const_cast<void*>(range.address);
  if (value == 0) {
    clear(begin, range.count);
  } else {
    std::memset(begin, value, range.count);
  }
  return ACL_SUCCESS;
}

class CopyTask final : public Task {
 public:
  // Ordinary host memory may be freed when the call returns, so the source is copied now;
  // page-locked memory (aclrtMallocHost) must stay valid, as on a device.
  CopyTask(const Copy& copy, bool buffered) : copy_(copy) {
    if (!buffered) return;
    buffer_ = std::make_unique_for_overwrite<char[]>(copy.src.count);
    std::memcpy(buffer_.get(), copy.src.address, copy.src.count);
    copy_.src = {buffer_.get(), copy.src.count, false, {}};
  }

  aclError run() noexcept override {
    return guarded(kApi, [&] { return move(kApi, copy_); });
  }

 private:
  static constexpr const char* kApi = "aclrtMemcpyAsync";
  Copy copy_;
  std::unique_ptr<char[]> buffer_;
};

class SetTask final : public Task {
 public:
  SetTask(const Range& range, int32_t value) : range_(range), value_(value) {}

  aclError run() noexcept override {
    return guarded(kApi, [&] { return set(kApi, range_, value_); });
  }

 private:
  static constexpr const char* kApi = "aclrtMemsetAsync";
  const Range range_;
  const int32_t value_;
};

// Checks shared by both memsets. count is not 0.
aclError check_set(const char* api, void* pointer, size_t maxCount, size_t count, Range* range) {
  if (pointer == nullptr) return null_argument(api, "devPtr");
  if (count > maxCount) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: count %zu is more than maxCount %zu", api, count,
                maxCount);
  }
  if (const aclError status = resolve(api, "devPtr", pointer, count, Place::kEither, range)) {
    return status;
  }
  if (range->in_block) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: devPtr is %p, which is not memory of aclrtMalloc or aclrtMallocHost", api,
              pointer);
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  constexpr const char* kApi = "aclrtMemcpy";
  const ApiSpan span(kApi);
  return guarded(kApi, [&]() -> aclError {
    if (count == 0) return ACL_SUCCESS;
    Copy copy;
    if (const aclError status =
            check_copy(kApi, dst, destMax, src, count, kind, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
                       /*finds_direction=*/!settings().strict, &copy)) {
      return status;
    }
    if (const aclError status = refuse_in_mode(kApi, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)) {
      return status;
    }
    const aclError status = move(kApi, copy);
    return copy.src.on_device() ? or_lost_work(status) : status;
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  constexpr const char* kApi = "aclrtMemcpyAsync";
  return guarded(kApi, [&]() -> aclError {
    if (count == 0) return ACL_SUCCESS;
    Copy copy;
    const aclError status =
        check_copy(kApi, dst, destMax, src, count, kind, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE,
                   /*finds_direction=*/false, &copy);
    if (status != ACL_SUCCESS) return status;
    if (const aclError refusal = refuse_pageable(kApi, copy, stream)) return refusal;
    const bool buffered =
        stream != nullptr && (is_pageable(copy.src) || kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE);
    return submit(kApi, stream, std::make_unique<CopyTask>(copy, buffered));
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  constexpr const char* kApi = "aclrtMemset";
  const ApiSpan span(kApi);
  return guarded(kApi, [&]() -> aclError {
    if (count == 0) return ACL_SUCCESS;
    Range range;
    if (const aclError status = check_set(kApi, devPtr, maxCount, count, &range)) return status;
    if (const aclError status = refuse_in_mode(kApi, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)) {
      return status;
    }
    return set(kApi, range, value);
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  constexpr const char* kApi = "aclrtMemsetAsync";
  return guarded(kApi, [&]() -> aclError {
    if (count == 0) return ACL_SUCCESS;
    Range range;
    const aclError status = check_set(kApi, devPtr, maxCount, count, &range);
    if (status != ACL_SUCCESS) return status;
    return submit(kApi, stream, std::make_unique<SetTask>(range, value));
  });
}

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  constexpr const char* kApi = "aclrtCmoAsync";
  return guarded(kApi, [&]() -> aclError {
    if (src == nullptr) return null_argument(kApi, "src");
    if (cmoType != ACL_RT_CMO_TYPE_PREFETCH) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "%s: cmoType is %d, expected 0 (ACL_RT_CMO_TYPE_PREFETCH), the only operation "
                  "that CANN supports",
                  kApi, cmoType);
    }
    Block block;
    if (!find_block(src, size, &block) || block.side != Side::kDevice ||
        !block.contains(reinterpret_cast<uintptr_t>(src), size)) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: the %zu bytes at src are not device memory of one block; pass memory of "
                  "aclrtMalloc",
                  kApi, size);
    }
    if (stream != nullptr && require_stream(kApi, stream) == nullptr) {
      return ACL_ERROR_RT_INVALID_HANDLE;
    }
    return ACL_SUCCESS;
  });
}
