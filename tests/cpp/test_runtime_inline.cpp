// Inline streams: a created stream's tasks run on the thread that submits them; everything else is
// as with workers.
#include <pthread.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime_support.h"

static const int environment =
    setenv("ACLNN_TORCH_INLINE_STREAMS", "1", 1) + setenv("ACLNN_TORCH_DEVICES", "2", 1);

// Creates a stream of the device, which becomes the thread's.
static aclrtStream stream_of(int32_t device) {
  CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  return stream;
}

static void end(std::initializer_list<aclrtStream> streams) {
  for (aclrtStream stream : streams) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  messages();
}

TEST(a_task_is_done_when_it_was_brought) {
  leaves_nothing([] {
    aclrtStream stream = stream_of(0);
    std::thread::id ran;
    CHECK_EQ(run_on(stream, [&] { return ran = std::this_thread::get_id(), ACL_SUCCESS; }),
             ACL_SUCCESS);
    CHECK(ran == std::this_thread::get_id());
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    end({stream});
    CHECK_EQ(run_on(stream, [] { return ACL_SUCCESS; }), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(a_task_has_its_streams_device_and_the_caller_keeps_his_own) {
  aclrtStream stream = stream_of(1);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  int32_t inside = -1, outside = -1;
  CHECK_EQ(run_on(stream, [&] { return aclrtGetDevice(&inside); }), ACL_SUCCESS);
  CHECK_EQ(aclrtGetDevice(&outside), ACL_SUCCESS);
  CHECK_EQ(inside, 1);
  CHECK_EQ(outside, 0);
  end({stream});
  CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_failure_sticks_and_is_reported_at_synchronisation_with_its_own_text_alone) {
  aclrtStream stream = stream_of(0);
  aclnn_host::fail(ACL_ERROR_FAILURE, "before");
  const auto failing = [] { return aclnn_host::fail(ACL_ERROR_RT_COPY_DATA, "a bad task"); };
  CHECK_EQ(run_on(stream, failing), ACL_SUCCESS);
  CHECK_EQ(messages(), std::string("before"));
  bool ran = false;
  CHECK_EQ(run_on(stream, [&] { return ran = true, ACL_SUCCESS; }), ACL_SUCCESS);
  CHECK(!ran);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    CHECK_EQ(messages(), std::string("a bad task"));
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_COPY_DATA);
    CHECK_EQ(messages(), std::string("a bad task"));
  }
  end({stream});
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(events_are_in_order_and_a_wait_for_one_recorded_later_holds_nobody_up) {
  aclrtStream one = stream_of(0), two = stream_of(1);
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  CHECK_EQ(aclrtStreamWaitEvent(two, event), ACL_SUCCESS);  // never recorded
  CHECK_EQ(aclrtRecordEvent(event, one), ACL_SUCCESS);
  CHECK_EQ(aclrtStreamWaitEvent(two, event), ACL_SUCCESS);
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  CHECK_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
  CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  // Also inside a task: a task that it submits to its own stream runs at once.
  CHECK_EQ(run_on(one,
                  [&] {
                    CHECK_EQ(aclrtRecordEvent(event, one), ACL_SUCCESS);
                    return aclrtStreamWaitEvent(two, event);
                  }),
           ACL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(two), ACL_SUCCESS);
  // An event recorded on a failed stream fails the streams that wait for it, as with workers.
  CHECK_EQ(run_on(one, [] { return ACL_ERROR_RT_COPY_DATA; }), ACL_SUCCESS);
  CHECK_EQ(aclrtRecordEvent(event, one), ACL_SUCCESS);
  CHECK_EQ(aclrtStreamWaitEvent(two, event), ACL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(two), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  end({one, two});
  CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_task_may_end_its_stream_and_may_not_wait_for_it) {
  aclrtStream stream = stream_of(0);
  CHECK_EQ(run_on(stream,
                  [&] {
                    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_PARAM_INVALID);
                    return aclrtDestroyStream(stream);
                  }),
           ACL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

static void count(void* counter) {
  ++*static_cast<int*>(counter);
}

TEST(a_callback_is_called_by_the_thread_that_serves_even_if_that_brings_it) {
  aclrtStream stream = stream_of(0);
  int calls = 0;
  const auto self = static_cast<uint64_t>(pthread_self());
  CHECK_EQ(aclrtSubscribeReport(self, stream), ACL_SUCCESS);
  CHECK_EQ(aclrtLaunchCallback(count, &calls, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  CHECK_EQ(calls, 1);
  CHECK_EQ(aclrtLaunchCallback(count, &calls, ACL_CALLBACK_NO_BLOCK, stream), ACL_SUCCESS);
  CHECK_EQ(calls, 1);
  CHECK_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  CHECK_EQ(calls, 2);
  CHECK_EQ(aclrtUnSubscribeReport(self, stream), ACL_SUCCESS);
  end({stream});
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(tasks_of_one_stream_never_overlap) {
  aclrtStream stream = stream_of(0);
  int running = 0, ran = 0;  // without a lock: there is one stream
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        run_on(stream, [&] {
          CHECK_EQ(++running, 1);
          std::this_thread::yield();
          ++ran;
          return --running, ACL_SUCCESS;
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(ran, 2000);
  end({stream});
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_model_is_executed_by_the_thread_that_asks) {
  leaves_nothing([] {
    aclrtStream stream = stream_of(0);
    std::vector<std::thread::id> ran;
    aclmdlRI model = nullptr;
    CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    run_on(stream, [&] { return ran.push_back(std::this_thread::get_id()), ACL_SUCCESS; });
    CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
    CHECK(ran.empty());
    CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
    CHECK_EQ(ran.size(), size_t{2});
    for (const auto& thread : ran) CHECK(thread == std::this_thread::get_id());
    CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
    end({stream});
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}
