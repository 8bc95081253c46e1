// Events: order between streams, queries, time, and the propagation of failures.
#include <atomic>
#include <chrono>
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

static aclrtEvent new_event() {
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  return event;
}

// The result of both queries of an event, which must agree.
static bool ready(aclrtEvent event) {
  aclrtEventStatus old_status = ACL_EVENT_STATUS_RESERVED;
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  CHECK_EQ(aclrtQueryEvent(event, &old_status), ACL_SUCCESS);
  CHECK_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
  CHECK_EQ(old_status == ACL_EVENT_STATUS_COMPLETE, status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

TEST(a_query_is_false_while_the_task_before_it_runs) {
  on_device([] {
    Gate begun, end;
    const aclrtStream stream = new_stream();
    const aclrtEvent event = new_event();
    run_on(stream, [&] { return begun.open(), end.wait(), ACL_SUCCESS; });
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    CHECK(!ready(event));
    begun.wait();
    CHECK(!ready(event));
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, 10), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, -2), ACL_ERROR_RT_PARAM_INVALID);
    end.open();
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK(ready(event));
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(who_sees_an_event_done_finds_its_stream_so_far) {
  on_device([] {
    const aclrtStream stream = new_stream();
    const aclrtEvent event = new_event();
    int behind = 0;
    for (int i = 0; i < 20000; ++i) {
      aclrtRecordEvent(event, stream);
      if (i % 2 == 0) {
        aclrtSynchronizeEvent(event);
      } else {
        aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        while (recorded != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
          aclrtQueryEventStatus(event, &recorded);
        }
      }
      aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
      aclrtStreamQuery(stream, &status);
      if (status != ACL_STREAM_STATUS_COMPLETE) ++behind;
    }
    CHECK_EQ(behind, 0);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_stream_waits_for_another) {
  on_device([] {
    Gate gate;
    const aclrtStream producer = gated_stream(gate), consumer = new_stream();
    const aclrtEvent event = new_event();
    int value = 0, seen = -1;
    run_on(producer, [&] { return value = 42, ACL_SUCCESS; });
    CHECK_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    run_on(consumer, [&] { return seen = value, ACL_SUCCESS; });
    aclrtEventWaitStatus waited = ACL_EVENT_WAIT_STATUS_RESERVED;
    CHECK_EQ(aclrtQueryEventWaitStatus(event, &waited), ACL_SUCCESS);
    CHECK_EQ(waited, ACL_EVENT_WAIT_STATUS_NOT_READY);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
    CHECK_EQ(seen, 42);
    CHECK_EQ(aclrtQueryEventWaitStatus(event, &waited), ACL_SUCCESS);
    CHECK_EQ(waited, ACL_EVENT_WAIT_STATUS_COMPLETE);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(producer), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(consumer), ACL_SUCCESS);
  });
}

TEST(the_null_stream_waits_on_the_calling_thread) {
  on_device([] {
    Gate gate;
    const aclrtStream producer = gated_stream(gate);
    const aclrtEvent event = new_event();
    int value = 0;
    run_on(producer, [&] { return value = 42, ACL_SUCCESS; });
    CHECK_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    std::thread opener([&] { gate.open(); });
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_SUCCESS);
    CHECK_EQ(value, 42);
    opener.join();
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    CHECK(ready(event));
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(producer), ACL_SUCCESS);
  });
}

TEST(an_event_never_recorded_holds_nobody_up) {
  on_device([] {
    const aclrtStream stream = new_stream();
    const aclrtEvent event = new_event();
    aclrtEvent ex = nullptr;
    CHECK_EQ(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK(!ready(event));
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    CHECK_EQ(aclrtQueryEventStatus(ex, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(ex), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(an_event_recorded_twice_leaves_earlier_waits_alone) {
  on_device([] {
    Gate first, second;
    const aclrtStream a = gated_stream(first), b = gated_stream(second), consumer = new_stream();
    const aclrtEvent event = new_event();
    CHECK_EQ(aclrtRecordEvent(event, a), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(event, b), ACL_SUCCESS);
    first.open();
    CHECK_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);  // would hang if it waited for b
    CHECK(!ready(event));
    second.open();
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    for (aclrtStream stream : {a, b, consumer}) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(an_event_may_be_destroyed_with_records_and_waits_pending) {
  on_device([] {
    Gate gate;
    const aclrtStream producer = gated_stream(gate), consumer = new_stream();
    const aclrtEvent event = new_event();
    int value = 0, seen = -1;
    run_on(producer, [&] { return value = 42, ACL_SUCCESS; });
    CHECK_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclHostLiveObjects("event"), 0);
    run_on(consumer, [&] { return seen = value, ACL_SUCCESS; });
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
    CHECK_EQ(seen, 42);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDestroyStream(producer), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(consumer), ACL_SUCCESS);
  });
}

TEST(reset_is_in_the_stream_s_order_and_spares_a_later_record) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const aclrtEvent event = new_event();
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtResetEvent(event, stream), ACL_SUCCESS);
    CHECK(ready(event));
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(!ready(event));
    Gate again;
    run_on(stream, [&] { return again.wait(), ACL_SUCCESS; });
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtResetEvent(event, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    again.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(ready(event));
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_failure_travels_with_the_event) {
  on_device([] {
    Gate gate;
    const aclrtStream producer = gated_stream(gate), consumer = new_stream();
    const aclrtEvent event = new_event();
    int ran = 0;
    run_on(producer, [] { return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel broke"); });
    CHECK_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    run_on(consumer, [&] { return ++ran, ACL_SUCCESS; });
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(consumer), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "the kernel broke"));
    CHECK_EQ(ran, 0);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "the kernel broke"));
    aclrtEventRecordedStatus status;
    CHECK_EQ(aclrtQueryEventStatus(event, &status), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(producer), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(consumer), ACL_SUCCESS);
  });
}

TEST(a_stream_ended_by_force_lets_its_waiters_go) {
  on_device([] {
    Gate queued;
    const aclrtStream producer = new_stream(), consumer = new_stream();
    const aclrtEvent event = new_event();
    run_on(producer, [&] { return queued.wait(), aclrtDestroyStreamForce(producer); });
    CHECK_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    queued.open();
    CHECK_EQ(aclrtSynchronizeStream(consumer), ACL_ERROR_RT_STREAM_ABORT);
    CHECK(messages().starts_with("aclrtDestroyStreamForce: "));
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_STREAM_ABORT);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(consumer), ACL_SUCCESS);
  });
}

TEST(elapsed_time_is_in_milliseconds) {
  on_device([] {
    const aclrtStream stream = new_stream();
    const aclrtEvent start = new_event(), end = new_event();
    CHECK_EQ(aclrtRecordEvent(start, stream), ACL_SUCCESS);
    run_on(stream, [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return ACL_SUCCESS;
    });
    CHECK_EQ(aclrtRecordEvent(end, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    float ms = -1;
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_SUCCESS);
    CHECK(ms >= 20 && ms < 20000);
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, start), ACL_SUCCESS);
    CHECK_EQ(ms, 0.0f);
    CHECK_EQ(aclrtEventElapsedTime(&ms, end, start), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL);
    CHECK_EQ(aclrtEventElapsedTime(nullptr, start, end), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyEvent(start), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(elapsed_time_of_events_that_have_none) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const aclrtEvent start = new_event(), end = new_event();
    aclrtEvent timeless = nullptr;
    float ms = -1;
    CHECK_EQ(aclrtCreateEventExWithFlag(&timeless, ACL_EVENT_SYNC), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(start, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(timeless, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, timeless), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK(contains(messages(), "ACL_EVENT_TIME_LINE"));
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK(contains(messages(), "never recorded"));
    CHECK_EQ(aclrtRecordEvent(end, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK(contains(messages(), "not complete"));
    CHECK_EQ(ms, -1.0f);
    gate.open();
    CHECK_EQ(aclrtSynchronizeEvent(end), ACL_SUCCESS);
    CHECK_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_SUCCESS);
    for (aclrtEvent event : {start, end, timeless}) {
      CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(kinds_and_flags) {
  on_device([] {
    aclrtEvent event = nullptr;
    aclrtEventStatus status;
    aclrtEventWaitStatus waited;
    for (uint32_t wrong : {0u, 0x80u, 0xFFFFFFFFu}) {
      CHECK_EQ(aclrtCreateEventWithFlag(&event, wrong), ACL_ERROR_RT_PARAM_INVALID);
      CHECK_EQ(aclrtCreateEventExWithFlag(&event, wrong), ACL_ERROR_RT_PARAM_INVALID);
    }
    // Which function accepts which flag is in the tables of their documents.
    for (uint32_t alone : {ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY, ACL_EVENT_IPC}) {
      const bool ex = alone == ACL_EVENT_IPC;
      const auto create = ex ? aclrtCreateEventExWithFlag : aclrtCreateEventWithFlag;
      const auto other = ex ? aclrtCreateEventWithFlag : aclrtCreateEventExWithFlag;
      CHECK_EQ(other(&event, alone), ACL_ERROR_RT_PARAM_INVALID);
      CHECK_EQ(create(&event, alone | ACL_EVENT_SYNC), ACL_ERROR_RT_PARAM_INVALID);
      CHECK_EQ(create(&event, alone), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtCreateEvent(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), ACL_SUCCESS);
    CHECK_EQ(aclrtQueryEvent(event, &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtQueryEventWaitStatus(event, &waited), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtResetEvent(event, nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
    CHECK_EQ(aclrtResetEvent(event, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  });
}

TEST(handles_that_are_none) {
  on_device([] {
    const aclrtStream stream = new_stream();
    const aclrtEvent gone = new_event();
    CHECK_EQ(aclrtDestroyEvent(gone), ACL_SUCCESS);
    aclrtEventStatus old_status;
    aclrtEventRecordedStatus status;
    aclrtEventWaitStatus waited;
    float ms;
    for (const aclrtEvent wrong : {static_cast<aclrtEvent>(stream), gone}) {
      CHECK_EQ(aclrtDestroyEvent(wrong), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtRecordEvent(wrong, stream), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtResetEvent(wrong, stream), ACL_ERROR_RT_INVALID_HANDLE);
      // Waiting for a destroyed event has no effect.
      CHECK_EQ(aclrtStreamWaitEvent(stream, wrong),
               wrong == gone ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtQueryEvent(wrong, &old_status), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtQueryEventStatus(wrong, &status), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtQueryEventWaitStatus(wrong, &waited), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtSynchronizeEvent(wrong), ACL_ERROR_RT_INVALID_HANDLE);
      CHECK_EQ(aclrtEventElapsedTime(&ms, wrong, wrong), ACL_ERROR_RT_INVALID_HANDLE);
    }
    for (aclError status :
         {aclrtDestroyEvent(nullptr), aclrtRecordEvent(nullptr, stream),
          aclrtStreamWaitEvent(stream, nullptr), aclrtQueryEventStatus(nullptr, &status),
          aclrtSynchronizeEvent(nullptr)}) {
      CHECK_EQ(status, ACL_ERROR_INVALID_PARAM);
    }
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_chain_of_many_streams) {
  on_device([] {
    constexpr int kStreams = 8, kRounds = 100;
    aclrtStream streams[kStreams];
    for (auto& stream : streams) stream = new_stream();
    int value = 0;  // passed from stream to stream, guarded by the events only
    aclrtEvent event = new_event();
    for (int round = 0; round < kRounds; ++round) {
      for (auto& stream : streams) {
        CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
        run_on(stream, [&value] { return ++value, ACL_SUCCESS; });
        CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
      }
    }
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK_EQ(value, kStreams * kRounds);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    for (auto& stream : streams) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(many_threads_share_one_event) {
  on_device([] {
    const aclrtEvent event = new_event();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        const aclrtStream stream = new_stream();
        for (int i = 0; i < 200; ++i) {
          aclrtEventRecordedStatus status;
          CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
          CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
          CHECK_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
          if (i % 20 == 0) CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
        }
        CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
        CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  });
}

TEST(a_stream_that_waits_too_long_fails) {
  on_device([] {
    Gate gate;
    const aclrtStream slow = gated_stream(gate), patient = new_stream(), hasty = new_stream();
    const aclrtEvent event = new_event();
    CHECK_EQ(aclrtRecordEvent(event, slow), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(patient, event), ACL_SUCCESS);
    CHECK_EQ(aclrtSetOpWaitTimeout(1), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(hasty, event), ACL_SUCCESS);
    CHECK_EQ(aclrtSetOpWaitTimeout(0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(hasty), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    CHECK(messages().find("aclrtStreamWaitEvent: the event did not complete") != std::string::npos);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(patient), ACL_SUCCESS);
    for (const aclrtStream stream : {slow, patient, hasty}) {
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  });
}
