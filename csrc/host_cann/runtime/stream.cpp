// The queue and the worker of a stream, and the submission of tasks.
#include "host_cann/runtime/stream.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <unordered_set>
#include <utility>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/callback.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/unreported_failures.h"

namespace aclnn_host {
namespace {

// At exit, the time to wait for running tasks in milliseconds; a task may never finish.
constexpr int32_t kExitPatience = 2000;

// First failure of the calling thread's tasks on the null stream since its last synchronisation.
thread_local aclError null_stream_status = ACL_SUCCESS;

thread_local bool works_for_a_stream = false;

thread_local int running_tasks = 0;          // nested if a callback launches inline
thread_local bool fails_as_another = false;  // set by the task that runs now

aclError closed(const char* api) noexcept {
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              "%s: the stream was destroyed while work was being queued", api);
}

// Streams with a running worker, even if their handle has ended.
struct Workers {
  std::mutex mutex;
  std::condition_variable gone;
  std::unordered_set<std::shared_ptr<Stream>> running;
  static void after_fork() noexcept {}
};

Workers& workers() {
  return PerProcess<Workers>::get();
}

// At exit: drops queued tasks and waits for running ones, before the static objects that they may
// use are destroyed.
void stop_workers() noexcept {
  try {
    auto& state = workers();
    std::unique_lock lock(state.mutex);
    const auto stopped = state.running;
    lock.unlock();
    const auto self = std::this_thread::get_id();
    size_t own = 0;  // exit() may be called in a callback
    for (const auto& stream : stopped) {
      stream->close(true);
      if (stream->runs_on(self)) own = 1;
    }
    cancel_all_reports();
    lock.lock();
    Deadline(kExitPatience).wait(state.gone, lock, [&] { return state.running.size() <= own; });
    const auto stuck = state.running;
    lock.unlock();
    for (const auto& stream : stopped) {
      if (!stuck.contains(stream)) stream->join();
    }
  } catch (...) {
    // Nothing more can be done.
  }
}

}  // namespace

aclError submit(const char* api, aclrtStream stream, std::unique_ptr<Task> task,
                TaskKind kind) noexcept {
  const LaunchSpan span(api, stream, kind, *task);
  if (stream == nullptr) {
    const aclError status = run_task(*task);
    if (status != ACL_SUCCESS && null_stream_status == ACL_SUCCESS) null_stream_status = status;
    return ACL_SUCCESS;
  }
  const aclError status = guarded(api, [&]() -> aclError {
    const auto target = require_stream(api, stream);
    if (target == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
    if (const auto diverted = divert(api, stream, task, kind)) return *diverted;
    return target->enqueue(api, std::move(task));
  });
  if (status == ACL_SUCCESS) note_launch();
  return status;
}

std::shared_ptr<Stream> require_stream(const char* api, aclrtStream stream) {
  auto object = streams().find(stream);
  if (object == nullptr) {
    fail(ACL_ERROR_RT_INVALID_HANDLE,
         "%s: %p is not a stream of this process: it was destroyed, or its device was reset", api,
         stream);
  }
  return object;
}

aclError take_null_stream_status() noexcept {
  const aclError status = null_stream_status;
  null_stream_status = ACL_SUCCESS;
  return status;
}

bool is_worker() noexcept {
  return works_for_a_stream;
}

bool runs_task() noexcept {
  return running_tasks > 0;
}

void fail_as_another() noexcept {
  fails_as_another = true;
}

uint64_t stream_id(aclrtStream stream) noexcept {
  return StreamTable::number_of(stream);
}

void end_orphaned_streams() {
  const auto ended = streams().remove_if(
      [](const Stream& stream) { return contexts().find(stream.context()) == nullptr; });
  for (const auto& [handle, entry] : ended) end_capture_of(reinterpret_cast<aclrtStream>(handle));
  for (const auto& [handle, entry] : ended)
    entry.object->close(false);  // closes all first: one may wait for another
  for (const auto& [handle, entry] : ended) entry.object->join();
}

aclError Stream::enqueue(const char* api, std::unique_ptr<Task> task) {
  if (settings().inline_streams) return run_inline(api, std::move(task));
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed(api);
    if (!worker_.joinable()) start_worker();
    queue_.push_back({api, std::move(task)});
    ++submitted_;
  }
  work_.notify_one();
  return ACL_SUCCESS;
}

aclError Stream::run_inline(const char* api, std::unique_ptr<Task> task) {
  const std::lock_guard turn(inline_);
  std::unique_lock lock(mutex_);
  if (closed_) return closed(api);
  ++submitted_;
  const aclrtContext callers_context = thread_context();
  const std::string callers_messages = take_messages();
  const std::thread::id outer = worker_id_;  // may be this thread, if a callback launches a task
  set_thread_context(context_);
  worker_id_ = std::this_thread::get_id();
  perform({api, std::move(task)}, lock);
  worker_id_ = outer;
  set_thread_context(callers_context);
  put_messages(callers_messages);
  return ACL_SUCCESS;
}

void Stream::start_worker() {
  [[maybe_unused]] static const int registered = std::atexit(stop_workers);
  auto& state = workers();
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(state.mutex);
    state.running.insert(self);
  }
  try {
    worker_ = std::thread([self] { self->work(); });
  } catch (...) {
    const std::lock_guard lock(state.mutex);
    state.running.erase(self);
    throw;
  }
  worker_id_ = worker_.get_id();
}

// Programs submit a task every few microseconds, and to sleep and be woken takes longer than that.
void Stream::look_for_work(std::unique_lock<std::mutex>& lock) noexcept {
  constexpr auto kPatience = std::chrono::microseconds(50);
  const uint64_t known = submitted_;
  lock.unlock();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (submitted_ == known && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  lock.lock();
}

void Stream::work() noexcept {
  works_for_a_stream = true;
  set_thread_context(context_);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty() && !closed_) look_for_work(lock);
    work_.wait(lock, [&] { return !queue_.empty() || closed_; });
    if (queue_.empty()) break;
    auto launched = std::move(queue_.front());
    queue_.pop_front();
    perform(std::move(launched), lock);
  }
  lock.unlock();

  auto& state = workers();
  const std::lock_guard gone(state.mutex);
  state.running.erase(shared_from_this());
  state.gone.notify_all();
}

// Runs or drops the task. Releases the lock meanwhile, except for an only_tells() task; the caller
// holds it before and after.
void Stream::perform(Launched launched, std::unique_lock<std::mutex>& lock) noexcept {
  auto& task = launched.task;
  const bool forced = dropping_;
  const bool dropped = forced || (status_ != ACL_SUCCESS && stop_on_failure_);
  const bool only_tells = task->only_tells();
  if (!only_tells) lock.unlock();

  aclError status = ACL_SUCCESS;
  std::string message;
  const bool before = std::exchange(fails_as_another, false);
  if (!dropped) {
    ++running_tasks;
    status = run_task(*task);
    --running_tasks;
    message = take_messages();
  } else if (forced) {
    task->abandon(ACL_ERROR_RT_STREAM_ABORT,
                  "aclrtDestroyStreamForce: the stream was destroyed before its work was done");
  } else {
    task->abandon(status_, message_);  // only the thread that runs the tasks writes these
  }
  const bool is_others = std::exchange(fails_as_another, before);
  task.reset();  // releases its resources before waiters see it done

  const bool is_first = status != ACL_SUCCESS && status_ == ACL_SUCCESS;
  // Before a waiter can report it.
  if (is_first) add_unreported(device_, id_, launched.api, status, message);
  if (!only_tells) lock.lock();
  if (is_first) {
    status_ = status;
    message_ = std::move(message);
    is_others_ = is_others;
  }
  if (++finished_ >= awaited_) {
    awaited_ = UINT64_MAX;  // whoever waits for more says so again
    done_.notify_all();
  }
}

aclError Stream::synchronize(const char* api, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (worker_id_ == std::this_thread::get_id()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a callback cannot wait for the stream it runs on",
                api);
  }
  const uint64_t target = submitted_;
  const auto is_done = [&] {
    if (finished_ >= target) return true;
    awaited_ = std::min(awaited_, target);
    return false;
  };
  if (!deadline.wait(done_, lock, is_done)) {
    return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                "%s: the stream did not finish its work before the timeout", api);
  }
  return report(lock);
}

aclError Stream::query(bool* idle) {
  std::unique_lock lock(mutex_);
  *idle = finished_ == submitted_;
  return report(lock);
}

aclError Stream::report(std::unique_lock<std::mutex>& lock) {
  const aclError status = status_;
  if (status == ACL_SUCCESS) return status;
  const std::string message = message_;
  const int32_t device = is_others_ ? -1 : device_;
  lock.unlock();
  return fail_again_on(device, status, message);
}

void Stream::stop_on_failure(bool stop) {
  const std::lock_guard lock(mutex_);
  stop_on_failure_ = stop;
}

void Stream::close(bool drop) noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropping_ = dropping_ || drop;
  }
  work_.notify_one();
}

void Stream::join() {
  {
    const std::lock_guard turn(inline_);
  }
  std::unique_lock lock(mutex_);
  std::thread worker = std::move(worker_);
  lock.unlock();
  if (!worker.joinable()) return;
  if (worker.get_id() == std::this_thread::get_id()) {
    worker.detach();  // called in the stream's own callback: the worker ends later
  } else {
    worker.join();
  }
}

void Stream::detach() {
  const std::lock_guard lock(mutex_);
  if (worker_.joinable()) worker_.detach();
}

aclrtStreamAttrValue Stream::attribute(aclrtStreamAttr type) {
  const std::lock_guard lock(mutex_);
  aclrtStreamAttrValue value{};
  if (type == ACL_STREAM_ATTR_FAILURE_MODE) {
    value.failureMode = stop_on_failure_ ? ACL_STOP_ON_FAILURE : ACL_CONTINUE_ON_FAILURE;
  } else if (const auto found = attributes_.find(type); found != attributes_.end()) {
    value = found->second;
  }
  return value;
}

void Stream::set_attribute(aclrtStreamAttr type, const aclrtStreamAttrValue& value) {
  const std::lock_guard lock(mutex_);
  attributes_[type] = value;
}

uint32_t Stream::limit(aclrtDevResLimitType type) {
  const std::lock_guard lock(mutex_);
  return limits_[type];
}

void Stream::set_limit(aclrtDevResLimitType type, uint32_t value) {
  const std::lock_guard lock(mutex_);
  limits_[type] = value;
}

}  // namespace aclnn_host
