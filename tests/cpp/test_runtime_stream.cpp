// Streams: order, asynchrony, sticky errors, destruction.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime_support.h"

using namespace aclnn_host;

// Runs the body on device 0 and checks that it leaves nothing behind.
static void on_device(const std::function<void()>& body) {
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

static aclError failing() {
  return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel divided by 0");
}

TEST(null_stream_runs_at_once_on_the_calling_thread) {
  leaves_nothing([] {
    std::thread::id ran;
    CHECK_EQ(run_on(nullptr, [&] { return ran = std::this_thread::get_id(), ACL_SUCCESS; }),
             ACL_SUCCESS);
    CHECK(ran == std::this_thread::get_id());
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    CHECK_EQ(aclrtStreamQuery(nullptr, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  });
}

TEST(null_stream_reports_its_first_failure_once_and_to_its_thread) {
  on_device([] {
    CHECK_EQ(run_on(nullptr, failing), ACL_SUCCESS);
    CHECK_EQ(run_on(nullptr, [] { return fail(500000, "a later one"); }), ACL_SUCCESS);
    std::thread([] { CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS); }).join();
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK(contains(messages(), "divided by 0"));
    CHECK_EQ(run_on(nullptr, failing), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    CHECK_EQ(run_on(nullptr, failing), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(nullptr, 0), ACL_ERROR_RT_AICORE_EXCEPTION);
  });
}

TEST(a_stream_keeps_order_and_does_not_hold_the_caller_up) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    std::vector<int> order;  // guarded by the stream's order and the synchronisation
    for (int i = 0; i < 1000; ++i) {
      CHECK_EQ(run_on(stream, [&order, i] { return order.push_back(i), ACL_SUCCESS; }),
               ACL_SUCCESS);
    }
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(order.size(), size_t{1000});
    for (int i = 0; i < 1000; ++i) CHECK_EQ(order[static_cast<size_t>(i)], i);
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(query_is_false_while_the_last_task_runs) {
  on_device([] {
    Gate begun, end;
    const aclrtStream stream = new_stream();
    run_on(stream, [&] { return begun.open(), end.wait(), ACL_SUCCESS; });
    begun.wait();  // nothing is queued any more, one task runs
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    end.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(streams_run_beside_one_another) {
  on_device([] {
    Gate first, second;
    const aclrtStream a = new_stream(), b = new_stream();
    // Each needs the other to be running.
    run_on(a, [&] { return first.open(), second.wait(), ACL_SUCCESS; });
    run_on(b, [&] { return second.open(), first.wait(), ACL_SUCCESS; });
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(a), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(b), ACL_SUCCESS);
  });
}

TEST(a_failure_sticks_and_later_tasks_are_not_run) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    int ran = 0;
    run_on(stream, [&] { return ++ran, ACL_SUCCESS; });
    run_on(stream, failing);
    run_on(stream, [&] { return ++ran, fail(500000, "never said"); });
    gate.open();
    for (int i = 0; i < 2; ++i) {
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK_EQ(messages(), std::string("the kernel divided by 0"));
      CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_AICORE_EXCEPTION);
    }
    CHECK_EQ(ran, 1);
    CHECK_EQ(run_on(stream, [&] { return ++ran, ACL_SUCCESS; }), ACL_SUCCESS);
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
    CHECK_EQ(ran, 1);
    std::thread([&] {
      CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1000), ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK(contains(messages(), "divided by 0"));
    }).join();
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_failure_stays_in_its_stream) {
  on_device([] {
    const aclrtStream bad = new_stream(), good = new_stream();
    run_on(bad, failing);
    int ran = 0;
    run_on(good, [&] { return ++ran, ACL_SUCCESS; });
    CHECK_EQ(aclrtSynchronizeStream(good), ACL_SUCCESS);
    CHECK_EQ(ran, 1);
    CHECK_EQ(aclrtSynchronizeStream(bad), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtDestroyStream(bad), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(good), ACL_SUCCESS);
  });
}

TEST(failure_mode_lets_later_tasks_run) {
  on_device([] {
    const aclrtStream stream = new_stream();
    int ran = 0;
    CHECK_EQ(aclrtSetStreamFailureMode(stream, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), ACL_SUCCESS);
    run_on(stream, failing);
    run_on(stream, [&] { return ++ran, fail(500000, "later"); });
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(ran, 1);
    CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), ACL_SUCCESS);
    run_on(stream, [&] { return ++ran, ACL_SUCCESS; });
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(ran, 1);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(tasks_are_destroyed_where_they_ran_before_they_are_done) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    std::thread::id ran, destroyed;
    std::shared_ptr<void> held(nullptr,
                               [&destroyed](void*) { destroyed = std::this_thread::get_id(); });
    run_on(stream, [&ran, held] { return ran = std::this_thread::get_id(), ACL_SUCCESS; });
    held.reset();  // only the task holds it
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(ran == destroyed);
    CHECK(ran != std::this_thread::get_id());
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(timeouts) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(-2), ACL_ERROR_RT_PARAM_INVALID);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, -1), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(-1), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

// A thread that waits is woken by the task that it waits for, whoever waits for a later one.
TEST(waits_for_several_tasks_end_in_their_order) {
  on_device([] {
    Gate first, second;
    const aclrtStream stream = gated_stream(first);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    std::atomic<int> waiting{0};
    aclError of_first = ACL_ERROR_INTERNAL_ERROR;
    aclError of_second = ACL_ERROR_INTERNAL_ERROR;
    const auto wait = [&](aclError& status) {
      return std::thread([&] {
        ++waiting;
        status = aclrtSynchronizeStream(stream);
      });
    };
    const auto settle = [&](int threads) {
      while (waiting < threads) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it waits
    };
    std::thread waits_for_first = wait(of_first);
    settle(1);
    CHECK_EQ(run_on(stream, [&] { return second.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
    std::thread waits_for_second = wait(of_second);
    settle(2);
    first.open();
    waits_for_first.join();
    CHECK_EQ(of_first, ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    second.open();
    waits_for_second.join();
    CHECK_EQ(of_second, ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(handles_that_are_none) {
  on_device([] {
    int local = 0;
    // Every text begins with the name of the called function.
    const auto refused = [](aclError status, const char* api) {
      CHECK_EQ(status, ACL_ERROR_RT_INVALID_HANDLE);
      CHECK(messages().starts_with(std::string(api) + ": "));
    };
    void* block = nullptr;
    CHECK_EQ(aclrtMalloc(&block, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    aclrtEvent event = nullptr;
    aclrtStreamStatus status;
    CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    const aclrtStream gone = new_stream();
    CHECK_EQ(aclrtDestroyStream(gone), ACL_SUCCESS);
    for (const aclrtStream wrong : {static_cast<aclrtStream>(&local), event, gone}) {
      CHECK_EQ(run_on(wrong, [] { return ACL_SUCCESS; }), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtSynchronizeStream(wrong), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtStreamQuery(wrong, &status), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtDestroyStream(wrong), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtDestroyStreamForce(wrong), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtSetStreamFailureMode(wrong, 0), ACL_ERROR_RT_INVALID_HANDLE);
      messages();
      refused(aclrtRecordEvent(event, wrong), "aclrtRecordEvent");
      refused(aclrtResetEvent(event, wrong), "aclrtResetEvent");
      refused(aclrtStreamWaitEvent(wrong, event), "aclrtStreamWaitEvent");
      refused(aclrtLaunchHostFunc(wrong, [](void*) {}, nullptr), "aclrtLaunchHostFunc");
      refused(aclrtMemsetAsync(block, 8, 0, 8, wrong), "aclrtMemsetAsync");
      refused(aclrtMemcpyAsync(block, 8, &local, 4, ACL_MEMCPY_HOST_TO_DEVICE, wrong),
              "aclrtMemcpyAsync");
    }
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamQuery(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  });
}

TEST(streams_with_a_configuration) {
  on_device([] {
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 8, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 0, 0x1000), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC),
             ACL_SUCCESS);
    CHECK_EQ(run_on(stream, [] { return ACL_SUCCESS; }), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(destroy_waits_for_the_work) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    int ran = 0;
    for (int i = 0; i < 100; ++i) run_on(stream, [&] { return ++ran, ACL_SUCCESS; });
    std::thread opener([&] { gate.open(); });
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(ran, 100);
    opener.join();
    CHECK_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

// Opens a gate when the last task that holds it is destroyed.
static std::shared_ptr<void> opens_at_its_end(Gate& gate) {
  return {nullptr, [&gate](void*) { gate.open(); }};
}

TEST(force_drops_what_has_not_begun) {
  on_device([] {
    Gate queued, all_gone;
    const aclrtStream stream = new_stream();
    int ran = 0;
    auto held = opens_at_its_end(all_gone);
    run_on(stream, [&] {
      queued.wait();
      return ++ran,
             aclrtDestroyStreamForce(stream);  // on the worker, so that this is certainly first
    });
    for (int i = 0; i < 100; ++i) run_on(stream, [&ran, held] { return ++ran, ACL_SUCCESS; });
    held.reset();
    queued.open();
    all_gone.wait();
    CHECK_EQ(ran, 1);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(force_waits_for_the_task_that_has_begun) {
  on_device([] {
    Gate begun, end;
    const aclrtStream stream = new_stream();
    bool finished = false;
    run_on(stream, [&] { return begun.open(), end.wait(), finished = true, ACL_SUCCESS; });
    begun.wait();
    std::thread opener([&] { end.open(); });
    CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
    CHECK(finished);
    opener.join();
  });
}

TEST(a_callback_may_destroy_its_own_stream) {
  on_device([] {
    Gate queued, all_gone;
    const aclrtStream stream = new_stream();
    int ran = 0;
    auto held = opens_at_its_end(all_gone);
    run_on(stream, [&] {
      queued.wait();
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      return ACL_SUCCESS;
    });
    for (int i = 0; i < 10; ++i) run_on(stream, [&ran, held] { return ++ran, ACL_SUCCESS; });
    held.reset();
    queued.open();
    all_gone.wait();
    CHECK_EQ(ran, 10);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(a_callback_that_waits_for_its_own_stream_is_refused) {
  on_device([] {
    const aclrtStream stream = new_stream();
    aclError status = ACL_SUCCESS;
    run_on(stream, [&] { return status = aclrtSynchronizeStream(stream), ACL_SUCCESS; });
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(status, ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_worker_has_its_streams_device) {
  on_device([] {
    const aclrtStream stream = new_stream();
    int32_t device = -1;
    run_on(stream, [&] { return aclrtGetDevice(&device); });
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(device, 0);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(many_threads_feed_many_streams) {
  on_device([] {
    constexpr int kStreams = 4, kThreads = 8, kTasks = 500;
    aclrtStream streams[kStreams];
    int counts[kStreams] = {};  // each guarded by its stream's order
    for (auto& stream : streams) stream = new_stream();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kTasks; ++i) {
          const int s = i % kStreams;
          CHECK_EQ(run_on(streams[s], [&counts, s] { return ++counts[s], ACL_SUCCESS; }),
                   ACL_SUCCESS);
          if (i % 50 == 0) CHECK_EQ(aclrtSynchronizeStream(streams[s]), ACL_SUCCESS);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (auto& stream : streams) CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    for (int count : counts) CHECK_EQ(count, kThreads * kTasks / kStreams);
    for (auto& stream : streams) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(threads_that_race_for_one_stream_s_end) {
  on_device([] {
    for (int round = 0; round < 50; ++round) {
      const aclrtStream stream = new_stream();
      std::atomic<int> ended = 0, accepted = 0, ran = 0;
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 10; ++i) {
            accepted += run_on(stream, [&] { return ++ran, ACL_SUCCESS; }) == ACL_SUCCESS;
          }
          ended += (t % 2 == 0 ? aclrtDestroyStream(stream) : aclrtSynchronizeStream(stream)) ==
                       ACL_SUCCESS &&
                   t % 2 == 0;
        });
      }
      for (auto& thread : threads) thread.join();
      CHECK_EQ(ended.load(), 1);
      CHECK_EQ(ran.load(), accepted.load());
    }
  });
}
