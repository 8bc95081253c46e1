#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A context: the device that its threads use, and its system parameters.
struct Context {
  explicit Context(int32_t id, bool is_primary) : device(id), primary(is_primary) {}

  const int32_t device;
  const bool primary;  // made by aclrtSetDevice; ends with the device
  std::mutex mutex;
  std::map<aclSysParamOpt, int64_t> options;  // guarded by mutex
};

using ContextTable = HandleTable<Context, Object::kContext>;
inline ContextTable& contexts() {
  return PerProcess<ContextTable>::get();
}

// Returns the calling thread's context; null, with a message in api's name, if it has none.
std::shared_ptr<Context> require_context(const char* api);

// Gets the handle of the calling thread's context, and sets it for a stream's worker.
aclrtContext thread_context() noexcept;
void set_thread_context(aclrtContext context) noexcept;

// The value of ACL_OPT_DETERMINISTIC in the calling thread's context or, if unset there, in the
// process.
ACLNN_HOST_INTERNAL bool wants_determinism();

// True if the machine has the device; and the failure for one that it does not have.
bool is_device(int32_t device) noexcept;
aclError no_such_device(const char* api, int32_t device) noexcept;

}  // namespace aclnn_host
