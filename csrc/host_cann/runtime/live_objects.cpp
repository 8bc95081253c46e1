#include "host_cann/runtime/live_objects.h"

#include <array>
#include <atomic>
#include <cstring>

#include "acl/acl_host.h"

namespace aclnn_host {
namespace {

constexpr size_t kKinds = static_cast<size_t>(Object::kCount);

// The names of aclHostLiveObjects, in the order of Object.
constexpr std::array kNames = {"tensor",   "scalar",       "array",       "list",
                               "executor", "device_block", "host_block",  "stream",
                               "event",    "context",      "description", "physical_memory",
                               "model",    "task_group",   "communicator"};
static_assert(kNames.size() == kKinds);

std::atomic<int64_t> counts[kKinds];

}  // namespace

void count_object(Object kind, int64_t change) noexcept {
  counts[static_cast<size_t>(kind)].fetch_add(change, std::memory_order_relaxed);
}

void forget_objects(Object kind) noexcept {
  counts[static_cast<size_t>(kind)].store(0, std::memory_order_relaxed);
}

}  // namespace aclnn_host

using namespace aclnn_host;

int64_t aclHostLiveObjects(const char* kind) {
  int64_t sum = 0;
  for (size_t i = 0; i < kKinds; ++i) {
    const int64_t count = counts[i].load(std::memory_order_relaxed);
    if (kind != nullptr && std::strcmp(kind, kNames[i]) == 0) return count;
    sum += count;
  }
  return kind == nullptr ? sum : -1;
}
