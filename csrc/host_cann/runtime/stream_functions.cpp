// The functions of AscendCL on streams: making, destroying and synchronising them, and their
// attributes.
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/callback.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/stream.h"

using namespace aclnn_host;

namespace {

constexpr uint32_t kStreamFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC |
                                  ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE |
                                  ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
constexpr uint32_t kLowestPriority = 7;

aclError create(const char* api, aclrtStream* stream) {
  if (stream == nullptr) return null_argument(api, "stream");
  const auto context = require_context(api);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  const auto object = std::make_shared<Stream>(thread_context(), context->device);
  const aclrtStream handle = streams().insert(object);
  object->set_id(stream_id(handle));
  *stream = handle;
  return ACL_SUCCESS;
}

aclError destroy(const char* api, aclrtStream stream, bool force) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (const aclError status = refuse_captured(api, stream)) return status;
  const auto object = streams().remove(stream);
  if (object == nullptr) return require_stream(api, stream), ACL_ERROR_RT_INVALID_HANDLE;
  end_capture_of(stream);
  object->close(force);
  if (force) cancel_reports(stream);
  object->join();
  return ACL_SUCCESS;
}

// Fails for a timeout that is neither -1 nor a number of milliseconds.
aclError bad_timeout(const char* api, int32_t timeout) {
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: timeout is %d, expected milliseconds, or -1 to wait without a limit", api,
              timeout);
}

aclError synchronize_stream(const char* api, aclrtStream stream, int32_t timeout) {
  const ApiSpan span(api);
  if (stream == nullptr) return or_lost_work(take_null_stream_status());
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (const aclError status = refuse_captured(api, stream)) return status;
  return or_lost_work(object->synchronize(api, Deadline(timeout)));
}

aclError synchronize_device(const char* api, int32_t timeout) {
  const ApiSpan span(api);
  const auto context = require_context(api);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (const aclError status = refuse_captured_device(api, context->device)) return status;
  const Deadline deadline(timeout);
  aclError first = take_null_stream_status();
  for (const auto& stream : streams().select(
           [&](const Stream& candidate) { return candidate.device() == context->device; })) {
    const aclError status = stream->synchronize(api, deadline);
    if (first == ACL_SUCCESS) first = status;
  }
  return or_lost_work(first);
}

// `argument` is the mode's name in messages.
aclError set_failure_mode(const char* api, aclrtStream stream, const char* argument,
                          uint64_t mode) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %s is %llu, expected 0 (ACL_CONTINUE_ON_FAILURE) or 1 (ACL_STOP_ON_FAILURE)",
                api, argument, static_cast<unsigned long long>(mode));
  }
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  object->stop_on_failure(mode == ACL_STOP_ON_FAILURE);
  return ACL_SUCCESS;
}

// The attributes of the null stream.
struct NullStream {
  std::mutex mutex;
  std::map<aclrtStreamAttr, aclrtStreamAttrValue> attributes;
  static void after_fork() noexcept {}
};

NullStream& null_stream() {
  return PerProcess<NullStream>::get();
}

bool is_attribute(aclrtStreamAttr type) {
  return type >= ACL_STREAM_ATTR_FAILURE_MODE && type <= ACL_STREAM_ATTR_PRIORITY;
}

aclError unknown_attribute(const char* api, aclrtStreamAttr type) {
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: stmAttrType is %d, expected 1 to 5", api, type);
}

aclError set_attribute(const char* api, aclrtStream stream, aclrtStreamAttr type,
                       const aclrtStreamAttrValue& value) {
  if (stream == nullptr) {
    const std::lock_guard lock(null_stream().mutex);
    null_stream().attributes[type] = value;
    return ACL_SUCCESS;
  }
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  object->set_attribute(type, value);
  return ACL_SUCCESS;
}

aclError get_attribute(const char* api, aclrtStream stream, aclrtStreamAttr type,
                       aclrtStreamAttrValue* value) {
  if (stream == nullptr) {
    const std::lock_guard lock(null_stream().mutex);
    *value = null_stream().attributes[type];
    return ACL_SUCCESS;
  }
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  *value = object->attribute(type);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  constexpr const char* kApi = "aclrtCreateStream";
  return guarded(kApi, [&] { return create(kApi, stream); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  constexpr const char* kApi = "aclrtCreateStreamWithConfig";
  return guarded(kApi, [&]() -> aclError {
    if (priority > kLowestPriority) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: priority is %u, expected 0 (the highest) to %u (the lowest)", kApi, priority,
                  kLowestPriority);
    }
    if ((flag & ~kStreamFlags) != 0) {
      return fail(
          ACL_ERROR_RT_PARAM_INVALID,
          "%s: flag has unknown bits 0x%x, expected bits of 0x%x, those of ACL_STREAM_ flags", kApi,
          flag & ~kStreamFlags, kStreamFlags);
    }
    return create(kApi, stream);
  });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  constexpr const char* kApi = "aclrtDestroyStream";
  return guarded(kApi, [&] { return destroy(kApi, stream, false); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  constexpr const char* kApi = "aclrtDestroyStreamForce";
  return guarded(kApi, [&] { return destroy(kApi, stream, true); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  constexpr const char* kApi = "aclrtSynchronizeStream";
  return guarded(kApi, [&] { return synchronize_stream(kApi, stream, kForever); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  constexpr const char* kApi = "aclrtSynchronizeStreamWithTimeout";
  return guarded(kApi, [&]() -> aclError {
    if (timeout < kForever) return bad_timeout(kApi, timeout);
    return synchronize_stream(kApi, stream, timeout);
  });
}

aclError aclrtSynchronizeDevice(void) {
  constexpr const char* kApi = "aclrtSynchronizeDevice";
  return guarded(kApi, [&] { return synchronize_device(kApi, kForever); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  constexpr const char* kApi = "aclrtSynchronizeDeviceWithTimeout";
  return guarded(kApi, [&]() -> aclError {
    if (timeout < kForever) return bad_timeout(kApi, timeout);
    return synchronize_device(kApi, timeout);
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  constexpr const char* kApi = "aclrtStreamGetId";
  return guarded(kApi, [&]() -> aclError {
    if (streamId == nullptr) return null_argument(kApi, "streamId");
    if (stream != nullptr && require_stream(kApi, stream) == nullptr) {
      return ACL_ERROR_RT_INVALID_HANDLE;
    }
    *streamId = static_cast<int32_t>(stream_id(stream));
    return ACL_SUCCESS;
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  constexpr const char* kApi = "aclrtStreamQuery";
  return guarded(kApi, [&]() -> aclError {
    if (status == nullptr) return null_argument(kApi, "status");
    bool idle = true;  // the null stream is always idle
    aclError failure = ACL_SUCCESS;
    if (stream != nullptr) {
      const auto object = require_stream(kApi, stream);
      if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
      if (const aclError status = refuse_captured(kApi, stream)) return status;
      failure = object->query(&idle);
    }
    failure = or_lost_work(failure);
    *status = idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return failure;
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  constexpr const char* kApi = "aclrtSetStreamFailureMode";
  return guarded(kApi, [&] { return set_failure_mode(kApi, stream, "mode", mode); });
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* kApi = "aclrtSetStreamAttribute";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (!is_attribute(stmAttrType)) return unknown_attribute(kApi, stmAttrType);
    if (stmAttrType == ACL_STREAM_ATTR_FAILURE_MODE) {
      return set_failure_mode(kApi, stream, "value->failureMode", value->failureMode);
    }
    return set_attribute(kApi, stream, stmAttrType, *value);
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* kApi = "aclrtGetStreamAttribute";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (!is_attribute(stmAttrType)) return unknown_attribute(kApi, stmAttrType);
    return get_attribute(kApi, stream, stmAttrType, value);
  });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  constexpr const char* kApi = "aclrtSetStreamOverflowSwitch";
  return guarded(kApi, [&]() -> aclError {
    if (flag > 1) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag is %u, expected 0 or 1", kApi, flag);
    }
    aclrtStreamAttrValue value = {};
    value.overflowSwitch = flag;
    return set_attribute(kApi, stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, value);
  });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  constexpr const char* kApi = "aclrtGetStreamOverflowSwitch";
  return guarded(kApi, [&]() -> aclError {
    if (flag == nullptr) return null_argument(kApi, "flag");
    aclrtStreamAttrValue value = {};
    const aclError status =
        get_attribute(kApi, stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value);
    if (status == ACL_SUCCESS) *flag = value.overflowSwitch;
    return status;
  });
}
