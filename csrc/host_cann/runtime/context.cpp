#include "host_cann/runtime/context.h"

#include <unistd.h>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

// A handle, not a pointer: another thread may end the context at any time.
thread_local aclrtContext current = nullptr;

// The process that loaded the library; differs from getpid() in a forked child.
const pid_t loaded_by = getpid();

// System parameters of the process.
struct ProcessOptions {
  std::mutex mutex;
  std::map<aclSysParamOpt, int64_t> values;
  static void after_fork() noexcept {}
};

bool is_option(aclSysParamOpt option) {
  return option >= ACL_OPT_DETERMINISTIC && option <= ACL_OPT_ENABLE_KERNEL_EARLY_START;
}

aclError unknown_option(const char* api, aclSysParamOpt option) {
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: opt is %d, expected 0 (ACL_OPT_DETERMINISTIC) to 3 "
              "(ACL_OPT_ENABLE_KERNEL_EARLY_START)",
              api, option);
}

}  // namespace

aclrtContext thread_context() noexcept {
  return current;
}

void set_thread_context(aclrtContext context) noexcept {
  current = context;
}

int32_t current_device() noexcept {
  const auto context = current == nullptr ? nullptr : contexts().find(current);
  return context == nullptr ? -1 : context->device;
}

bool wants_determinism() {
  if (const auto context = current == nullptr ? nullptr : contexts().find(current)) {
    const std::lock_guard lock(context->mutex);
    const auto found = context->options.find(ACL_OPT_DETERMINISTIC);
    if (found != context->options.end()) return found->second != 0;
  }
  auto& options = PerProcess<ProcessOptions>::get();
  const std::lock_guard lock(options.mutex);
  const auto found = options.values.find(ACL_OPT_DETERMINISTIC);
  return found != options.values.end() && found->second != 0;
}

std::shared_ptr<Context> require_context(const char* api) {
  auto context = current == nullptr ? nullptr : contexts().find(current);
  if (context == nullptr) {
    fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: this thread has no device; call aclrtSetDevice first%s",
         api, getpid() == loaded_by ? "" : " (a forked process has none of its parent's devices)");
  }
  return context;
}

bool is_device(int32_t device) noexcept {
  return device >= 0 && device < visible_devices();
}

aclError no_such_device(const char* api, int32_t device) noexcept {
  return fail(ACL_ERROR_RT_INVALID_DEVICEID,
              "%s: device %d does not exist; there are %d (environment variable "
              "ACLNN_TORCH_DEVICES)",
              api, device, visible_devices());
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  constexpr const char* kApi = "aclrtCreateContext";
  return guarded(kApi, [&]() -> aclError {
    if (context == nullptr) return null_argument(kApi, "context");
    if (!is_device(deviceId)) return no_such_device(kApi, deviceId);
    *context = contexts().insert(std::make_shared<Context>(deviceId, false));
    set_thread_context(*context);
    return ACL_SUCCESS;
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  constexpr const char* kApi = "aclrtDestroyContext";
  return guarded(kApi, [&]() -> aclError {
    if (context == nullptr) return null_argument(kApi, "context");
    const auto object = contexts().find(context);
    if (object != nullptr && object->primary) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: the context was made by aclrtSetDevice, expected one of aclrtCreateContext; "
                  "end it with aclrtResetDevice",
                  kApi);
    }
    if (object == nullptr || contexts().remove(context) == nullptr) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: the context does not exist, or was destroyed",
                  kApi);
    }
    end_orphaned_streams();
    return ACL_SUCCESS;
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  constexpr const char* kApi = "aclrtSetCurrentContext";
  return guarded(kApi, [&]() -> aclError {
    if (context == nullptr) return null_argument(kApi, "context");
    if (contexts().find(context) == nullptr) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: the context does not exist, or was destroyed",
                  kApi);
    }
    set_thread_context(context);
    return ACL_SUCCESS;
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  constexpr const char* kApi = "aclrtGetCurrentContext";
  return guarded(kApi, [&]() -> aclError {
    if (context == nullptr) return null_argument(kApi, "context");
    if (current_device() < 0) return ACL_ERROR_RT_CONTEXT_NULL;  // a valid answer, not a failure
    *context = thread_context();
    return ACL_SUCCESS;
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* kApi = "aclrtSetSysParamOpt";
  return guarded(kApi, [&]() -> aclError {
    if (!is_option(opt)) return unknown_option(kApi, opt);
    auto& options = PerProcess<ProcessOptions>::get();
    const std::lock_guard lock(options.mutex);
    options.values[opt] = value;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* kApi = "aclrtGetSysParamOpt";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (!is_option(opt)) return unknown_option(kApi, opt);
    auto& options = PerProcess<ProcessOptions>::get();
    const std::lock_guard lock(options.mutex);
    const auto found = options.values.find(opt);
    *value = found == options.values.end() ? 0 : found->second;
    return ACL_SUCCESS;
  });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* kApi = "aclrtCtxSetSysParamOpt";
  return guarded(kApi, [&]() -> aclError {
    if (!is_option(opt)) return unknown_option(kApi, opt);
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    const std::lock_guard lock(context->mutex);
    context->options[opt] = value;
    return ACL_SUCCESS;
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* kApi = "aclrtCtxGetSysParamOpt";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (!is_option(opt)) return unknown_option(kApi, opt);
    const auto context = require_context(kApi);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    const std::lock_guard lock(context->mutex);
    const auto found = context->options.find(opt);
    if (found == context->options.end()) {
      return fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "%s: option %d was never set in this context",
                  kApi, opt);
    }
    *value = found->second;
    return ACL_SUCCESS;
  });
}
