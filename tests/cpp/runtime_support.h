// Shared by the tests of the runtime.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "check.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/task.h"

// Blocks tasks until the test opens it, so that no test depends on timing.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// A task that runs a function.
class FunctionTask final : public aclnn_host::Task {
 public:
  explicit FunctionTask(std::function<aclError()> function) : function_(std::move(function)) {}
  aclError run() noexcept override { return function_(); }

 private:
  std::function<aclError()> function_;
};

inline aclError run_on(aclrtStream stream, std::function<aclError()> function) {
  return aclnn_host::submit("a test", stream, std::make_unique<FunctionTask>(std::move(function)));
}

// A stream whose worker waits at the gate.
inline aclrtStream gated_stream(Gate& gate) {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(run_on(stream, [&gate] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  return stream;
}

// The thread's error messages, empty if there are none.
inline std::string messages() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? std::string() : std::string(text);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Checks that the body destroys every object that it creates, and leaves no error message.
inline void leaves_nothing(const std::function<void()>& body) {
  const int64_t before = aclHostLiveObjects(nullptr);
  body();
  CHECK_EQ(aclHostLiveObjects(nullptr), before);
  messages();
}

inline aclrtStream new_stream() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  return stream;
}

// Runs the body on device 0 with a stream, and checks that it leaves nothing behind.
inline void with_stream(const std::function<void(aclrtStream)>& body) {
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    const aclrtStream stream = new_stream();
    body(stream);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}
