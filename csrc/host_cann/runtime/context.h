#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A context: which device its threads use, and the system parameters set for it.
struct Context {
  explicit Context(int32_t id, bool is_primary) : device(id), primary(is_primary) {}

  const int32_t device;
  const bool primary;  // aclrtSetDevice made it; it ends with the device
  std::mutex mutex;
  std::map<aclSysParamOpt, int64_t> options;  // guarded by mutex
};

using ContextTable = HandleTable<Context, Object::kContext>;
inline ContextTable& contexts() {
  return PerProcess<ContextTable>::get();
}

// The calling thread's context; null, with a message in api's name, when it has none.
std::shared_ptr<Context> require_context(const char* api);

// The handle of the calling thread's context, and how a stream's worker takes over its stream's.
aclrtContext thread_context() noexcept;
void set_thread_context(aclrtContext context) noexcept;

// What ACL_OPT_DETERMINISTIC asks for: of the calling thread's context or, where that says nothing,
// of the process.
ACLNN_HOST_INTERNAL bool wants_determinism();

// Whether the machine has the device, and what a check for it says.
bool is_device(int32_t device) noexcept;
aclError no_such_device(const char* api, int32_t device) noexcept;

}  // namespace aclnn_host
