// Limits on the cores that operators may use: per process and device, and per stream. They are
// stored and returned, but have no effect on a host.

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/stream.h"

namespace aclnn_host {
namespace {

constexpr aclrtDevResLimitType kTypes[] = {ACL_RT_DEV_RES_CUBE_CORE, ACL_RT_DEV_RES_VECTOR_CORE};
using Limits = std::array<uint32_t, std::size(kTypes)>;  // 0 without a limit

// The limits that are not stored in a stream object.
struct ResourceLimits {
  std::mutex mutex;
  std::vector<Limits> devices{static_cast<size_t>(settings().devices)};
  Limits null_stream{};
  static void after_fork() noexcept {}
};

ResourceLimits& limits() {
  return PerProcess<ResourceLimits>::get();
}

// The stream whose limits the thread uses, if any.
thread_local bool uses_stream = false;
thread_local aclrtStream used_stream = nullptr;

// The number of cores of a type on the device; 0, with a message, for an unknown type or device.
aclError cores(const char* api, int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: type is %d, expected 0 (cube) or 1 (vector)", api,
                type);
  }
  if (!is_device(device)) return no_such_device(api, device);
  const aclDeviceInfo info = type == ACL_RT_DEV_RES_CUBE_CORE ? ACL_DEVICE_INFO_AI_CORE_NUM
                                                              : ACL_DEVICE_INFO_VECTOR_CORE_NUM;
  int64_t number = 0;
  const aclError status = aclGetDeviceCapability(static_cast<uint32_t>(device), info, &number);
  *value = static_cast<uint32_t>(number);
  return status;
}

aclError check_limit(const char* api, int32_t device, aclrtDevResLimitType type, uint32_t value) {
  uint32_t most = 0;
  if (const aclError status = cores(api, device, type, &most)) return status;
  if (value == 0 || value > most) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: value is %u, expected 1 to %u, the device's cores",
                api, value, most);
  }
  return ACL_SUCCESS;
}

aclError device_limit(const char* api, int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  if (const aclError status = cores(api, device, type, value)) return status;
  auto& state = limits();
  const std::lock_guard lock(state.mutex);
  const uint32_t limit = state.devices[static_cast<size_t>(device)][static_cast<size_t>(type)];
  if (limit != 0) *value = limit;
  return ACL_SUCCESS;
}

// Finds the stream's object, null for the null stream, and its device.
aclError find_stream(const char* api, aclrtStream stream, std::shared_ptr<Stream>* object,
                     int32_t* device) {
  if (stream == nullptr) {
    const auto context = require_context(api);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    *device = context->device;
    return ACL_SUCCESS;
  }
  *object = require_stream(api, stream);
  if (*object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  *device = (*object)->device();
  return ACL_SUCCESS;
}

void set_stream_limit(Stream* object, aclrtDevResLimitType type, uint32_t value) {
  if (object != nullptr) return object->set_limit(type, value);
  auto& state = limits();
  const std::lock_guard lock(state.mutex);
  state.null_stream[static_cast<size_t>(type)] = value;
}

aclError stream_limit(const char* api, aclrtStream stream, aclrtDevResLimitType type,
                      uint32_t* value) {
  std::shared_ptr<Stream> object;
  int32_t device = 0;
  if (const aclError status = find_stream(api, stream, &object, &device)) return status;
  if (const aclError status = device_limit(api, device, type, value)) return status;
  uint32_t limit = 0;
  if (object != nullptr) {
    limit = object->limit(type);
  } else {
    auto& state = limits();
    const std::lock_guard lock(state.mutex);
    limit = state.null_stream[static_cast<size_t>(type)];
  }
  if (limit != 0) *value = limit;
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* kApi = "aclrtSetDeviceResLimit";
  return guarded(kApi, [&]() -> aclError {
    if (const aclError status = check_limit(kApi, deviceId, type, value)) return status;
    auto& state = limits();
    const std::lock_guard lock(state.mutex);
    state.devices[static_cast<size_t>(deviceId)][static_cast<size_t>(type)] = value;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kApi = "aclrtGetDeviceResLimit";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    return device_limit(kApi, deviceId, type, value);
  });
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  constexpr const char* kApi = "aclrtResetDeviceResLimit";
  return guarded(kApi, [&]() -> aclError {
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    auto& state = limits();
    const std::lock_guard lock(state.mutex);
    state.devices[static_cast<size_t>(deviceId)] = {};
    return ACL_SUCCESS;
  });
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* kApi = "aclrtSetStreamResLimit";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Stream> object;
    int32_t device = 0;
    if (const aclError status = find_stream(kApi, stream, &object, &device)) return status;
    if (const aclError status = check_limit(kApi, device, type, value)) return status;
    set_stream_limit(object.get(), type, value);
    return ACL_SUCCESS;
  });
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kApi = "aclrtGetStreamResLimit";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    return stream_limit(kApi, stream, type, value);
  });
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  constexpr const char* kApi = "aclrtResetStreamResLimit";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Stream> object;
    int32_t device = 0;
    if (const aclError status = find_stream(kApi, stream, &object, &device)) return status;
    for (const auto type : kTypes) set_stream_limit(object.get(), type, 0);
    return ACL_SUCCESS;
  });
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  constexpr const char* kApi = "aclrtUseStreamResInCurrentThread";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Stream> object;
    int32_t device = 0;
    if (const aclError status = find_stream(kApi, stream, &object, &device)) return status;
    uses_stream = true;
    used_stream = stream;
    return ACL_SUCCESS;
  });
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  constexpr const char* kApi = "aclrtUnuseStreamResInCurrentThread";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Stream> object;
    int32_t device = 0;
    if (const aclError status = find_stream(kApi, stream, &object, &device)) return status;
    if (used_stream == stream) uses_stream = false;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kApi = "aclrtGetResInCurrentThread";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (uses_stream) return stream_limit(kApi, used_stream, type, value);
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    return device_limit(kApi, context->device, type, value);
  });
}
