// Callbacks: host functions, and reports to a thread that serves a stream.
#include <pthread.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime_support.h"

// Runs the body on device 0 and checks that it leaves nothing behind.
static void on_device(const std::function<void()>& body) {
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

static uint64_t self() {
  return static_cast<uint64_t>(pthread_self());
}

static void increment(void* counter) {
  ++*static_cast<std::atomic<int>*>(counter);
}
static void open_gate(void* gate) {
  static_cast<Gate*>(gate)->open();
}
static void throws(void*) {
  throw std::runtime_error("from the user's function");
}

// A thread that serves streams until it is stopped.
class Server {
 public:
  Server() : thread_([this] { serve(); }) { started_.wait(); }
  ~Server() {
    end_ = true;
    thread_.join();
  }
  uint64_t id() const { return id_; }

 private:
  void serve() {
    id_ = self();
    started_.open();
    while (!end_) aclrtProcessReport(10);
  }
  Gate started_;
  std::atomic<uint64_t> id_ = 0;
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

TEST(host_functions_run_in_the_stream_s_order) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    std::atomic<int> count = 0;
    int at_the_end = -1;
    CHECK_EQ(aclrtLaunchHostFunc(stream, increment, &count), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchHostFunc(stream, increment, &count), ACL_SUCCESS);
    run_on(stream, [&] { return at_the_end = count, ACL_SUCCESS; });
    CHECK_EQ(count.load(), 0);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(at_the_end, 2);
    CHECK_EQ(aclrtLaunchHostFunc(nullptr, increment, &count), ACL_SUCCESS);
    CHECK_EQ(count.load(), 3);
    CHECK_EQ(aclrtLaunchHostFunc(stream, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchHostFunc(stream, increment, &count), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(a_host_function_that_throws_fails_its_stream) {
  on_device([] {
    const aclrtStream stream = new_stream();
    CHECK_EQ(aclrtLaunchHostFunc(stream, throws, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK(contains(messages(), "exception"));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(callbacks_need_a_thread_that_serves) {
  on_device([] {
    const aclrtStream stream = new_stream();
    std::atomic<int> count = 0;
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, stream),
             ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, nullptr),
             ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
    CHECK_EQ(aclrtUnSubscribeReport(self() + 1, stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtLaunchCallback(nullptr, &count, ACL_CALLBACK_BLOCK, stream),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, static_cast<aclrtCallbackBlockType>(5), stream),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtProcessReport(-2), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(count.load(), 0);
  });
}

TEST(a_callback_runs_on_the_thread_that_serves) {
  on_device([] {
    const aclrtStream stream = new_stream();
    std::atomic<int> count = 0;
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_NO_BLOCK, stream), ACL_SUCCESS);
    // The stream continues although nobody has called the callback yet.
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(count.load(), 0);
    CHECK_EQ(aclrtProcessReport(1000), ACL_SUCCESS);
    CHECK_EQ(count.load(), 1);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_blocking_callback_holds_its_stream_up) {
  on_device([] {
    const aclrtStream stream = new_stream();
    std::atomic<int> count = 0;
    int seen = -1;
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    run_on(stream, [&] { return seen = count, ACL_SUCCESS; });
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(seen, 1);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(the_null_stream_calls_at_once) {
  on_device([] {
    std::atomic<int> count = 0;
    CHECK_EQ(aclrtSubscribeReport(self(), nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, nullptr), ACL_SUCCESS);
    CHECK_EQ(count.load(), 1);
    CHECK_EQ(aclrtUnSubscribeReport(self(), nullptr), ACL_SUCCESS);
  });
}

TEST(unsubscribing_lets_go_of_a_blocked_stream) {
  on_device([] {
    const aclrtStream stream = new_stream();
    std::atomic<int> count = 0;
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(count.load(), 0);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(force_lets_go_of_a_blocked_stream) {
  on_device([] {
    const aclrtStream stream = new_stream();
    std::atomic<int> count = 0;
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(increment, &count, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(count.load(), 0);
  });
}

TEST(a_callback_that_throws_fails_who_waits_for_it) {
  on_device([] {
    const aclrtStream stream = new_stream();
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(throws, nullptr, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(one_server_serves_many_streams) {
  on_device([] {
    constexpr int kStreams = 4, kCallbacks = 100;
    Server server;
    std::atomic<int> count = 0;
    aclrtStream streams[kStreams];
    for (auto& stream : streams) {
      stream = new_stream();
      CHECK_EQ(aclrtSubscribeReport(server.id(), stream), ACL_SUCCESS);
    }
    std::vector<std::thread> threads;
    for (const aclrtStream stream : streams) {
      threads.emplace_back([&count, stream] {
        for (int i = 0; i < kCallbacks; ++i) {
          const auto type = i % 2 == 0 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK;
          CHECK_EQ(aclrtLaunchCallback(increment, &count, type, stream), ACL_SUCCESS);
        }
        Gate last;
        CHECK_EQ(aclrtLaunchCallback(open_gate, &last, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
        last.wait();
        CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK_EQ(count.load(), kStreams * kCallbacks);
    for (const aclrtStream stream : streams) {
      CHECK_EQ(aclrtUnSubscribeReport(server.id(), stream), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
  });
}
