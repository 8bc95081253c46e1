#include "host_cann/runtime/lost_work.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/unreported_failures.h"

namespace aclnn_host {
namespace {

// A queue whose last call failed.
struct FailedQueue {
  std::thread::id thread;
  int32_t device;
  std::string text;
};

struct FailedQueues {
  std::mutex mutex;
  std::vector<FailedQueue> all;       // in order of failure
  std::atomic<bool> has_any = false;  // checked before every wait
  static void after_fork() noexcept {}
};

// Removes the queues for which wanted(queue) holds.
template <class Wanted>
void erase(Wanted&& wanted) noexcept {
  FailedQueues* const queues = PerProcess<FailedQueues>::find();
  if (queues == nullptr) return;
  const std::lock_guard lock(queues->mutex);
  std::erase_if(queues->all, wanted);
  queues->has_any = !queues->all.empty();
}

// The status of a wait after work was lost.
constexpr aclError kLostWork = ACL_ERROR_RT_AICORE_EXCEPTION;

// True if the calling thread, a queue's, has failed since it last launched work.
thread_local bool has_failed = false;

// A stream's worker inherits the name of the thread that created it, so the name alone is
// ambiguous.
bool is_queue_of_torch_npu() noexcept {
  char name[16];
  return !is_worker() && pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
         std::string_view(name) == "acl_thread";
}

}  // namespace

void note_failure(int status, const char* text) noexcept {
  if (!is_queue_of_torch_npu()) return;
  const int32_t device = current_device();
  if (device < 0) return;  // a thread created by a queue's thread
  try {
    auto& queues = PerProcess<FailedQueues>::get();
    const auto self = std::this_thread::get_id();
    const std::lock_guard lock(queues.mutex);
    const auto is_own = [&](const FailedQueue& queue) { return queue.thread == self; };
    if (std::ranges::any_of(queues.all, is_own)) return;  // only the first failure is reported
    queues.all.push_back(
        {self, device,
         std::string(text) + " (status " + std::to_string(status) +
             "); torch_npu drops all work that follows on npu:" + std::to_string(device) +
             ", so that results would be old memory; restart the process"});
    queues.has_any = true;
    has_failed = true;
    add_unreported(device, 0, nullptr, kLostWork, queues.all.back().text);
  } catch (...) {
    // Out of memory.
  }
}

void note_launch() noexcept {
  if (!has_failed) [[likely]]
    return;
  has_failed = false;
  erase([](const FailedQueue& queue) {
    if (queue.thread != std::this_thread::get_id()) return false;
    mark_reported(kLostWork, queue.text);  // torch_npu recovered from the failure
    return true;
  });
}

aclError or_lost_work(aclError status) noexcept {
  FailedQueues* const queues = PerProcess<FailedQueues>::find();
  if (status != ACL_SUCCESS || queues == nullptr || !queues->has_any) return status;
  try {
    std::unique_lock lock(queues->mutex);
    if (queues->all.empty()) return ACL_SUCCESS;
    const std::string text = queues->all.front().text;
    lock.unlock();
    return fail_again(kLostWork, text);
  } catch (...) {
    return kLostWork;  // no memory for the text
  }
}

void forget_lost_work(int32_t device) noexcept {
  erase([&](const FailedQueue& queue) { return device < 0 || queue.device == device; });
}

}  // namespace aclnn_host
