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

// A created stream: a queue and, from the first task on, one worker thread that does its tasks in
// order. Under ACLNN_TORCH_INLINE_STREAMS the threads that bring the tasks do them, one at a time.
// Its first failure sticks: every later synchronisation and query reports it.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(aclrtContext context, int32_t device) : context_(context), device_(device) {}

  aclrtContext context() const noexcept { return context_; }
  int32_t device() const noexcept { return device_; }

  // The stream's id, once it has a handle.
  void set_id(uint64_t id) noexcept { id_ = id; }

  // Queues the task, or does it; 107017, in api's name, once the stream has ended.
  aclError enqueue(const char* api, std::unique_ptr<Task> task);

  // Waits until everything queued before the call is done, and reports the stream's failure.
  aclError synchronize(const char* api, const Deadline& deadline);

  // Whether everything queued is done; returns the stream's failure.
  aclError query(bool* idle);

  // Whether tasks behind a failed one are dropped (from the start so) or run.
  void stop_on_failure(bool stop);

  // Accepts no more tasks; what is queued is done or, if asked to, dropped.
  void close(bool drop) noexcept;

  // Waits for the worker of a closed stream, or who does its tasks inline, unless that is the
  // calling thread.
  void join();

  // In join's place: lets the worker of a closed stream end by itself.
  void detach();

  // The attributes that are remembered.
  aclrtStreamAttrValue attribute(aclrtStreamAttr type);
  void set_attribute(aclrtStreamAttr type, const aclrtStreamAttrValue& value);

  // The cores that operators are limited to; 0 where there is no limit.
  uint32_t limit(aclrtDevResLimitType type);
  void set_limit(aclrtDevResLimitType type, uint32_t value);

  // Whether the thread is the stream's worker.
  bool runs_on(std::thread::id thread) const noexcept { return worker_id_ == thread; }

 private:
  // A task, and the function that brought it.
  struct Launched {
    const char* api;
    std::unique_ptr<Task> task;
  };

  void start_worker();
  void work() noexcept;
  aclError run_inline(const char* api, std::unique_ptr<Task> task);
  void perform(Launched launched, std::unique_lock<std::mutex>& lock) noexcept;
  aclError report(std::unique_lock<std::mutex>& lock);

  const aclrtContext context_;
  const int32_t device_;
  uint64_t id_ = 0;

  std::recursive_mutex inline_;  // held while a task is done inline: a callback may bring another
  std::mutex mutex_;
  std::condition_variable work_;  // a task was queued, or the stream closed
  std::condition_variable done_;  // a task is done
  std::deque<Launched> queue_;
  uint64_t submitted_ = 0;
  uint64_t finished_ = 0;
  bool closed_ = false;
  bool dropping_ = false;
  bool stop_on_failure_ = true;
  std::map<aclrtStreamAttr, aclrtStreamAttrValue> attributes_;
  std::map<aclrtDevResLimitType, uint32_t> limits_;
  aclError status_ = ACL_SUCCESS;
  std::string message_;     // what the failed task said
  bool is_others_ = false;  // the failure is that of another stream, for which the task waited
  std::thread worker_;
  std::atomic<std::thread::id> worker_id_;  // inline: of the thread that does a task now
};

using StreamTable = HandleTable<Stream, Object::kStream>;
inline StreamTable& streams() {
  return PerProcess<StreamTable>::get();
}

// The stream of a handle that is not null; null, with a message in api's name, if there is none.
std::shared_ptr<Stream> require_stream(const char* api, aclrtStream stream);

// The stream's id: a number from 1 on that no other stream gets; 0 is the null stream.
uint64_t stream_id(aclrtStream stream) noexcept;

// Whether the calling thread does the work of a stream, so that another thread goes on meanwhile.
bool is_worker() noexcept;

// Whether the calling thread runs a task of a created stream, as its worker or inline.
bool runs_task() noexcept;

// Says that the task which the calling thread runs fails as another stream has.
void fail_as_another() noexcept;

// Ends the streams whose context has ended, after all their work.
void end_orphaned_streams();

}  // namespace aclnn_host
