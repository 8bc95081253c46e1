// The marks of mstx/ms_tools_ext.h.
#include <set>
#include <string>
#include <utility>

#include "cann/profiling/marks.h"
#include "cann/profiling/recorder.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/per_process.h"
#include "mstx/ms_tools_ext.h"

// A domain, identified by its name. There is one for each name, and it is never destroyed, because
// marks may still use it.
struct mstxDomainRegistration_st {
  std::string name;
};

namespace aclnn_host {
namespace {

constexpr size_t kMostDomains = 1024;

struct Domains {
  struct ByName {
    bool operator()(const mstxDomainRegistration_st& a, const mstxDomainRegistration_st& b) const {
      return a.name < b.name;
    }
  };
  std::mutex mutex;
  std::set<mstxDomainRegistration_st, ByName> domains;
  static void after_fork() noexcept {}
};

// Looks up the name of a domain; false if the handle is not a domain.
bool find_name(mstxDomainHandle_t handle, std::string* name) {
  *name = "default";
  if (handle == nullptr) return true;
  Domains& all = PerProcess<Domains>::get();
  const std::lock_guard lock(all.mutex);
  for (const auto& domain : all.domains) {
    if (&domain != handle) continue;
    *name = domain.name;
    return true;
  }
  return false;
}

// Calls body(mark) if a profile records marks and the arguments are valid. These functions have no
// status: invalid calls are ignored, as in CANN.
template <class Body>
void with_mark(const char* api, const char* type, mstxDomainHandle_t domain, const char* message,
               Body body) {
  if (!is_profiled(kProfileMarks) || message == nullptr) return;
  guarded(api, [&]() -> aclError {
    Mark mark{type, message};
    if (!find_name(domain, &mark.domain)) return ACL_SUCCESS;
    return body(mark);
  });
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

mstxDomainHandle_t mstxDomainCreateA(const char* name) {
  if (name == nullptr) return nullptr;
  mstxDomainHandle_t handle = nullptr;
  guarded("mstxDomainCreateA", [&]() -> aclError {
    Domains& all = PerProcess<Domains>::get();
    const std::lock_guard lock(all.mutex);
    auto found = all.domains.find({name});
    if (found == all.domains.end()) {
      if (all.domains.size() >= kMostDomains) return ACL_SUCCESS;
      found = all.domains.insert({name}).first;
    }
    handle = const_cast<mstxDomainHandle_t>(&*found);  // only a handle: never written to
    return ACL_SUCCESS;
  });
  return handle;
}

void mstxDomainDestroy(mstxDomainHandle_t handle) {}

void mstxDomainMarkA(mstxDomainHandle_t handle, const char* message, aclrtStream stream) {
  constexpr const char* kApi = "mstxDomainMarkA";
  with_mark(kApi, "mark", handle, message,
            [&](const Mark& mark) { return mark_moment(kApi, mark, stream); });
}

mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t handle, const char* message,
                                  aclrtStream stream) {
  constexpr const char* kApi = "mstxDomainRangeStartA";
  mstxRangeId number = MSTX_INVALID_ID;
  with_mark(kApi, "start/end", handle, message, [&](Mark& mark) {
    Range range;
    const aclError status = begin_range(kApi, std::move(mark), stream, &range);
    if (status == ACL_SUCCESS) number = keep_range(std::move(range));
    return status;
  });
  return number;
}

void mstxDomainRangeEnd(mstxDomainHandle_t handle, mstxRangeId id) {
  constexpr const char* kApi = "mstxDomainRangeEnd";
  if (!is_profiled(kProfileMarks)) return;
  guarded(kApi, [&]() -> aclError {
    Range range;
    return take_range(id, &range) ? end_range(kApi, range) : ACL_SUCCESS;
  });
}

void mstxMarkA(const char* message, aclrtStream stream) {
  mstxDomainMarkA(nullptr, message, stream);
}

mstxRangeId mstxRangeStartA(const char* message, aclrtStream stream) {
  return mstxDomainRangeStartA(nullptr, message, stream);
}

void mstxRangeEnd(mstxRangeId id) {
  mstxDomainRangeEnd(nullptr, id);
}

mstxMemHeapHandle_t mstxMemHeapRegister(mstxDomainHandle_t domain, const mstxMemHeapDesc_t* desc) {
  return nullptr;
}

void mstxMemHeapUnregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap) {}

void mstxMemRegionsRegister(mstxDomainHandle_t domain, const mstxMemRegionsRegisterBatch_t* desc) {}

void mstxMemRegionsUnregister(mstxDomainHandle_t domain,
                              const mstxMemRegionsUnregisterBatch_t* desc) {}
