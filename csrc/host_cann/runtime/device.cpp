#include "host_cann/runtime/device.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/float_status.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/unreported_failures.h"

namespace aclnn_host {
namespace {

// The process's state of each device.
struct Devices {
  struct Device {
    int64_t users = 0;               // aclrtSetDevice calls minus aclrtResetDevice calls
    aclrtContext primary = nullptr;  // the context of the threads that called aclrtSetDevice
  };

  std::mutex mutex;
  std::vector<Device> all{static_cast<size_t>(settings().devices)};
  std::set<std::pair<int32_t, int32_t>> peers;  // (device, peer) with access enabled

  static void after_fork() noexcept {}
};

Devices& devices() {
  return PerProcess<Devices>::get();
}

// The longest timeout of an operator on a device, in microseconds.
constexpr uint64_t kLongestOperator = uint64_t{547} * 1000 * 1000;

aclError reset(const char* api, int32_t device, bool force) {
  if (!is_device(device)) return no_such_device(api, device);
  {
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    auto& own = state.all[static_cast<size_t>(device)];
    if (own.users == 0) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: device %d is not set", api, device);
    }
    if (--own.users > 0 && !force) return ACL_SUCCESS;
    own = {};
    contexts().remove_if([&](const Context& context) { return context.device == device; });
  }
  // Outside the lock: a callback that still runs may call aclrtSetDevice, and a thread that sets
  // the device again gets a new context and new streams.
  end_orphaned_streams();
  forget_overflow(device);
  forget_lost_work(device);
  return report_all(device);
}

}  // namespace

aclError end_devices() {
  {
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    for (auto& device : state.all) device = {};
    state.peers.clear();
    contexts().remove_if([](const Context&) { return true; });
  }
  end_orphaned_streams();
  for (int32_t device = 0; device < settings().devices; ++device) forget_overflow(device);
  forget_lost_work(-1);
  return report_all(-1);
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtSetDevice(int32_t deviceId) {
  constexpr const char* kApi = "aclrtSetDevice";
  return guarded(kApi, [&]() -> aclError {
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    read_where_to_write();
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    auto& device = state.all[static_cast<size_t>(deviceId)];
    if (device.primary == nullptr) {
      device.primary = contexts().insert(std::make_shared<Context>(deviceId, true));
    }
    ++device.users;
    set_thread_context(device.primary);
    return ACL_SUCCESS;
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  constexpr const char* kApi = "aclrtResetDevice";
  return guarded(kApi, [&] { return reset(kApi, deviceId, false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  constexpr const char* kApi = "aclrtResetDeviceForce";
  return guarded(kApi, [&] { return reset(kApi, deviceId, true); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  constexpr const char* kApi = "aclrtGetDevice";
  return guarded(kApi, [&]() -> aclError {
    if (deviceId == nullptr) return null_argument(kApi, "deviceId");
    const int32_t device = current_device();
    if (device < 0) return ACL_ERROR_RT_CONTEXT_NULL;  // a valid answer, not a failure
    *deviceId = device;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  constexpr const char* kApi = "aclrtGetDeviceCount";
  return guarded(kApi, [&]() -> aclError {
    if (count == nullptr) return null_argument(kApi, "count");
    *count = static_cast<uint32_t>(visible_devices());
    return ACL_SUCCESS;
  });
}

// A function of the driver: torch_npu counts the devices with it, regardless of the visible ones.
extern "C" ACL_FUNC_VISIBILITY int drvGetDevNum(uint32_t* devices) {
  if (devices == nullptr) return ACL_ERROR_INVALID_PARAM;
  *devices = static_cast<uint32_t>(settings().devices);
  return 0;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  constexpr const char* kApi = "aclrtGetPrimaryCtxState";
  return guarded(kApi, [&]() -> aclError {
    if (active == nullptr) return null_argument(kApi, "active");
    if (flags != nullptr) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: flags is %p, expected a null pointer; it is reserved", kApi,
                  static_cast<void*>(flags));
    }
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    *active = state.all[static_cast<size_t>(deviceId)].primary != nullptr ? 1 : 0;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  constexpr const char* kApi = "aclrtGetDeviceUtilizationRate";
  return guarded(kApi, [&]() -> aclError {
    if (utilizationInfo == nullptr) return null_argument(kApi, "utilizationInfo");
    if (utilizationInfo->utilizationExtend != nullptr) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: utilizationExtend is %p, expected a null pointer; it is reserved", kApi,
                  static_cast<void*>(utilizationInfo->utilizationExtend));
    }
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    const auto used = static_cast<double>(device_memory_used(deviceId));
    const auto all = static_cast<double>(settings().device_memory);
    constexpr int32_t kNone = DEVICE_UTILIZATION_NOT_SUPPORT;
    *utilizationInfo = {kNone, kNone, kNone, static_cast<int32_t>(100 * used / all), nullptr};
    return ACL_SUCCESS;
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  if (runMode == nullptr) return null_argument("aclrtGetRunMode", "runMode");
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  constexpr const char* kApi = "aclrtDeviceCanAccessPeer";
  return guarded(kApi, [&]() -> aclError {
    if (canAccessPeer == nullptr) return null_argument(kApi, "canAccessPeer");
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    if (!is_device(peerDeviceId)) return no_such_device(kApi, peerDeviceId);
    *canAccessPeer = deviceId != peerDeviceId ? 1 : 0;
    return ACL_SUCCESS;
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  constexpr const char* kApi = "aclrtDeviceEnablePeerAccess";
  return guarded(kApi, [&]() -> aclError {
    if (flags != 0)
      return fail(ACL_ERROR_INVALID_PARAM, "%s: flags is %u, expected 0", kApi, flags);
    if (!is_device(peerDeviceId)) return no_such_device(kApi, peerDeviceId);
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    if (context->device == peerDeviceId) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: device %d is the current device, expected another one as its peer", kApi,
                  peerDeviceId);
    }
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    state.peers.emplace(context->device, peerDeviceId);
    return ACL_SUCCESS;
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  constexpr const char* kApi = "aclrtDeviceDisablePeerAccess";
  return guarded(kApi, [&]() -> aclError {
    if (!is_device(peerDeviceId)) return no_such_device(kApi, peerDeviceId);
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    state.peers.erase({context->device, peerDeviceId});
    return ACL_SUCCESS;
  });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  constexpr const char* kApi = "aclrtDevicePeerAccessStatus";
  return guarded(kApi, [&]() -> aclError {
    if (status == nullptr) return null_argument(kApi, "status");
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    if (!is_device(peerDeviceId)) return no_such_device(kApi, peerDeviceId);
    auto& state = devices();
    const std::lock_guard lock(state.mutex);
    *status = state.peers.contains({deviceId, peerDeviceId}) ? 1 : 0;
    return ACL_SUCCESS;
  });
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  if (pid == nullptr) return null_argument("aclrtDeviceGetBareTgid", "pid");
  *pid = getpid();
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  if (actualTimeout == nullptr) {
    return null_argument("aclrtSetOpExecuteTimeOutV2", "actualTimeout");
  }
  *actualTimeout = timeout == 0 ? kLongestOperator : std::min(timeout, kLongestOperator);
  return ACL_SUCCESS;
}
