#include "host_cann/runtime/callback.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/deadline.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

// A callback that a stream hands to the thread that calls aclrtProcessReport.
struct Report {
  aclrtCallback function;
  void* data;
  aclrtStream stream;
  bool done = false;
  aclError status = ACL_SUCCESS;
};

// The thread that serves each stream, and the callbacks that wait for each thread.
struct Reports {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<aclrtStream, uint64_t> threads;
  std::map<uint64_t, std::deque<std::shared_ptr<Report>>> waiting;
  static void after_fork() noexcept {}
};

Reports& reports() {
  return PerProcess<Reports>::get();
}

// Calls the user's function; an exception makes the task fail.
aclError call(const char* api, void (*function)(void*), void* argument) noexcept {
  try {
    function(argument);
    return ACL_SUCCESS;
  } catch (...) {
    return fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s: the function threw an exception", api);
  }
}

aclError not_subscribed(const char* api) noexcept {
  return fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
              "%s: no thread serves the stream; call aclrtSubscribeReport first", api);
}

class HostFunctionTask final : public Task {
 public:
  HostFunctionTask(aclrtHostFunc function, void* arguments)
      : function_(function), arguments_(arguments) {}
  aclError run() noexcept override { return call("aclrtLaunchHostFunc", function_, arguments_); }

 private:
  const aclrtHostFunc function_;
  void* const arguments_;
};

// Hands a callback to the thread that serves the stream; a blocking one holds the stream until that
// thread has called it. On the null stream the calling thread calls it directly.
class CallbackTask final : public Task {
 public:
  CallbackTask(const Report& report, bool blocks) : report_(report), blocks_(blocks) {}

  aclError run() noexcept override {
    if (report_.stream == nullptr) return call(kApi, report_.function, report_.data);
    return guarded(kApi, [&]() -> aclError {
      auto& state = reports();
      std::unique_lock lock(state.mutex);
      const auto server = state.threads.find(report_.stream);
      if (server == state.threads.end()) return not_subscribed(kApi);
      if (blocks_ && server->second == static_cast<uint64_t>(pthread_self())) {
        lock.unlock();  // inline stream: the calling thread is the server
        return call(kApi, report_.function, report_.data);
      }
      const auto report = std::make_shared<Report>(report_);
      state.waiting[server->second].push_back(report);
      state.changed.notify_all();
      if (!blocks_) return ACL_SUCCESS;
      state.changed.wait(lock, [&] { return report->done; });
      if (report->status == ACL_SUCCESS) return ACL_SUCCESS;
      return fail(report->status, "%s: the callback was cancelled or threw an exception", kApi);
    });
  }

 private:
  static constexpr const char* kApi = "aclrtLaunchCallback";
  const Report report_;  // copied for every run
  const bool blocks_;
};

// Cancels the waiting reports for which wanted(report) holds. The caller holds the lock.
template <class Wanted>
void cancel(Reports& state, Wanted&& wanted) {
  for (auto& [thread, waiting] : state.waiting) {
    std::erase_if(waiting, [&](const std::shared_ptr<Report>& report) {
      if (!wanted(*report)) return false;
      report->done = true;
      report->status = ACL_ERROR_RT_STREAM_NO_CB_REG;
      return true;
    });
  }
  state.changed.notify_all();
}

bool serves_any(const Reports& state, uint64_t thread) {
  for (const auto& [stream, server] : state.threads) {
    if (server == thread) return true;
  }
  return false;
}

}  // namespace

void cancel_reports(aclrtStream stream) {
  auto& state = reports();
  const std::lock_guard lock(state.mutex);
  state.threads.erase(stream);
  cancel(state, [&](const Report& report) { return report.stream == stream; });
}

void cancel_all_reports() noexcept {
  auto& state = reports();
  const std::lock_guard lock(state.mutex);
  state.threads.clear();
  cancel(state, [](const Report&) { return true; });
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  constexpr const char* kApi = "aclrtSubscribeReport";
  return guarded(kApi, [&]() -> aclError {
    if (stream != nullptr && require_stream(kApi, stream) == nullptr) {
      return ACL_ERROR_RT_INVALID_HANDLE;
    }
    auto& state = reports();
    const std::lock_guard lock(state.mutex);
    if (!state.threads.emplace(stream, threadId).second) {
      return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
                  "%s: a thread already serves the stream; call aclrtUnSubscribeReport first",
                  kApi);
    }
    return ACL_SUCCESS;
  });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  constexpr const char* kApi = "aclrtUnSubscribeReport";
  return guarded(kApi, [&]() -> aclError {
    {
      auto& state = reports();
      const std::lock_guard lock(state.mutex);
      const auto server = state.threads.find(stream);
      if (server == state.threads.end()) return not_subscribed(kApi);
      if (server->second != threadId) {
        return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                    "%s: another thread serves the stream; call this function from that thread",
                    kApi);
      }
    }
    cancel_reports(stream);
    return ACL_SUCCESS;
  });
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  constexpr const char* kApi = "aclrtLaunchCallback";
  return guarded(kApi, [&]() -> aclError {
    if (fn == nullptr) return null_argument(kApi, "fn");
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: blockType is %d, expected 0 (ACL_CALLBACK_NO_BLOCK) or 1 "
                  "(ACL_CALLBACK_BLOCK)",
                  kApi, blockType);
    }
    if (stream != nullptr && require_stream(kApi, stream) == nullptr) {
      return ACL_ERROR_RT_INVALID_HANDLE;
    }
    {
      auto& state = reports();
      const std::lock_guard lock(state.mutex);
      if (!state.threads.contains(stream)) return not_subscribed(kApi);
    }
    const bool blocks = blockType == ACL_CALLBACK_BLOCK;
    return submit(kApi, stream,
                  std::make_unique<CallbackTask>(Report{fn, userData, stream}, blocks));
  });
}

aclError aclrtProcessReport(int32_t timeout) {
  constexpr const char* kApi = "aclrtProcessReport";
  return guarded(kApi, [&]() -> aclError {
    if (timeout < kForever) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: timeout is %d, expected milliseconds, or -1 to wait without a limit", kApi,
                  timeout);
    }
    const auto self = static_cast<uint64_t>(pthread_self());
    const Deadline deadline(timeout);
    auto& state = reports();
    std::unique_lock lock(state.mutex);
    auto& waiting = state.waiting[self];
    const bool in_time = deadline.wait(
        state.changed, lock, [&] { return !waiting.empty() || !serves_any(state, self); });
    if (!in_time) {
      return fail(ACL_ERROR_RT_REPORT_TIMEOUT, "%s: no callback came before the timeout", kApi);
    }
    if (waiting.empty()) {
      return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                  "%s: this thread serves no stream; call aclrtSubscribeReport first", kApi);
    }
    aclError first = ACL_SUCCESS;
    while (!waiting.empty()) {
      const auto report = waiting.front();
      waiting.pop_front();
      lock.unlock();
      const aclError status = call(kApi, report->function, report->data);
      lock.lock();
      report->done = true;
      report->status = status;
      state.changed.notify_all();
      if (first == ACL_SUCCESS) first = status;
    }
    return first;
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  constexpr const char* kApi = "aclrtLaunchHostFunc";
  return guarded(kApi, [&]() -> aclError {
    if (fn == nullptr) return null_argument(kApi, "fn");
    return submit(kApi, stream, std::make_unique<HostFunctionTask>(fn, args));
  });
}
