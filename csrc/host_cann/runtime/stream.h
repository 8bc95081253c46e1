#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/deadline.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {

// A created stream: a queue and one worker thread, started by the first task, that runs its tasks
// in order. Under ACLNN_TORCH_INLINE_STREAMS the submitting threads run them, one at a time. The
// first failure is sticky: every later synchronisation and query reports it.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(aclrtContext context, int32_t device) : context_(context), device_(device) {}

  aclrtContext context() const noexcept { return context_; }
  int32_t device() const noexcept { return device_; }

  // Sets the stream's id, once it has a handle.
  void set_id(uint64_t id) noexcept { id_ = id; }

  // Queues or runs the task; fails with 107017, in api's name, once the stream has ended.
  aclError enqueue(const char* api, std::unique_ptr<Task> task);

  // Waits until all tasks queued before the call are done, and reports the stream's failure.
  aclError synchronize(const char* api, const Deadline& deadline);

  // Tells if all queued tasks are done; returns the stream's failure.
  aclError query(bool* idle);

  // Selects whether tasks after a failed one are dropped (the default) or run.
  void stop_on_failure(bool stop);

  // Accepts no more tasks; queued tasks are run or, if `drop`, dropped.
  void close(bool drop) noexcept;

  // Waits for the worker of a closed stream, or for the thread that runs its tasks inline, unless
  // that is the calling thread.
  void join();

  // Instead of join(): lets the worker of a closed stream end by itself.
  void detach();

  // The stored attributes.
  aclrtStreamAttrValue attribute(aclrtStreamAttr type);
  void set_attribute(aclrtStreamAttr type, const aclrtStreamAttrValue& value);

  // The limit on the cores of operators; 0 without a limit.
  uint32_t limit(aclrtDevResLimitType type);
  void set_limit(aclrtDevResLimitType type, uint32_t value);

  // True if the thread is the stream's worker.
  bool runs_on(std::thread::id thread) const noexcept { return worker_id_ == thread; }

 private:
  // A task, and the function that submitted it.
  struct Launched {
    const char* api;
    std::unique_ptr<Task> task;
  };

  void start_worker();
  void work() noexcept;
  void look_for_work(std::unique_lock<std::mutex>& lock) noexcept;
  aclError run_inline(const char* api, std::unique_ptr<Task> task);
  void perform(Launched launched, std::unique_lock<std::mutex>& lock) noexcept;
  aclError report(std::unique_lock<std::mutex>& lock);

  const aclrtContext context_;
  const int32_t device_;
  uint64_t id_ = 0;

  std::recursive_mutex inline_;  // held while a task runs inline; recursive, as callbacks launch
  std::mutex mutex_;
  std::condition_variable work_;  // signals a queued task or the stream's end
  std::condition_variable done_;  // a task is done for which a thread waits
  std::deque<Launched> queue_;
  std::atomic<uint64_t> submitted_ = 0;  // changes under the lock
  uint64_t finished_ = 0;
  uint64_t awaited_ = UINT64_MAX;  // the least of `finished_` that a thread waits for
  bool closed_ = false;
  bool dropping_ = false;
  bool stop_on_failure_ = true;
  std::map<aclrtStreamAttr, aclrtStreamAttrValue> attributes_;
  std::map<aclrtDevResLimitType, uint32_t> limits_;
  aclError status_ = ACL_SUCCESS;
  std::string message_;     // message of the failed task
  bool is_others_ = false;  // the failure is another stream's that the task waited for
  std::thread worker_;
  std::atomic<std::thread::id> worker_id_;  // inline: the thread that runs a task now
};

using StreamTable = HandleTable<Stream, Object::kStream>;
inline StreamTable& streams() {
  return PerProcess<StreamTable>::get();
}

// Returns the stream of a non-null handle; null, with a message in api's name, if there is none.
std::shared_ptr<Stream> require_stream(const char* api, aclrtStream stream);

// The stream's id: a number from 1 on that is never reused; 0 for the null stream.
uint64_t stream_id(aclrtStream stream) noexcept;

// The first failure of the calling thread's tasks on the null stream since the last call of this.
aclError take_null_stream_status() noexcept;

// True on a stream's worker thread, where other threads continue meanwhile.
bool is_worker() noexcept;

// True while the calling thread runs a task of a created stream, as its worker or inline.
bool runs_task() noexcept;

// Marks the running task's failure as that of another stream.
void fail_as_another() noexcept;

// Finishes and ends the streams whose context has ended.
void end_orphaned_streams();

}  // namespace aclnn_host
