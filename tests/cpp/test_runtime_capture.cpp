// Capture: the tasks of a stream become a model, which can be executed repeatedly. Written from
// CANN's description of aclmdlRI.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aclnnop/aclnn_elu.h"
#include "runtime_support.h"

using namespace aclnn_host;

namespace {

constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

aclrtEvent new_event(uint32_t flag = ACL_EVENT_SYNC) {
  aclrtEvent event = nullptr;
  CHECK_EQ(flag == ACL_EVENT_EXTERNAL ? aclrtCreateEventWithFlag(&event, flag)
                                      : aclrtCreateEventExWithFlag(&event, flag),
           ACL_SUCCESS);
  return event;
}

void begin(aclrtStream stream, aclmdlRICaptureMode mode = kGlobal) {
  CHECK_EQ(aclmdlRICaptureBegin(stream, mode), ACL_SUCCESS);
}

aclmdlRI end(aclrtStream stream) {
  aclmdlRI model = nullptr;
  CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  CHECK(model != nullptr);
  return model;
}

// Ends a capture that must fail with a text that contains `part`.
void end_fails(aclrtStream stream, aclError expected, const std::string& part) {
  messages();
  aclmdlRI model = &model;
  CHECK_EQ(aclmdlRICaptureEnd(stream, &model), expected);
  CHECK(model == nullptr);
  const std::string text = messages();
  CHECK(text.starts_with("aclmdlRICaptureEnd: ") && contains(text, part));
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), ACL_SUCCESS);
  CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
}

void execute(aclmdlRI model, aclrtStream stream) {
  CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

void destroy(aclmdlRI model) {
  CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

// Submits a task that adds a number to a list.
aclError note(aclrtStream stream, std::vector<int>& list, int number) {
  return run_on(stream, [&list, number] { return list.push_back(number), ACL_SUCCESS; });
}

using Numbers = std::vector<int>;

bool is(const Numbers& got, const Numbers& expected) {
  return got == expected;
}

// Page-locked host memory, which captured copies may use.
struct Pinned {
  explicit Pinned(size_t count) : size(count * sizeof(float)) {
    void* memory = nullptr;
    CHECK_EQ(aclrtMallocHost(&memory, size), ACL_SUCCESS);
    data = static_cast<float*>(memory);
  }
  ~Pinned() { CHECK_EQ(aclrtFreeHost(data), ACL_SUCCESS); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  float& operator[](size_t i) { return data[i]; }

  const size_t size;
  float* data;
};

struct Device {
  explicit Device(size_t count) : size(count * sizeof(float)) {
    void* memory = nullptr;
    CHECK_EQ(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    data = static_cast<float*>(memory);
  }
  ~Device() { CHECK_EQ(aclrtFree(data), ACL_SUCCESS); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const size_t size;
  float* data;
};

// out = scale * self for self > 0, else 0.
aclnnStatus elu(const float* self, float scale, float* out, int64_t count, aclrtStream stream) {
  constexpr int64_t kStride = 1;
  const auto tensor = [&](const float* data) {
    return aclCreateTensor(&count, 1, ACL_FLOAT, &kStride, 0, ACL_FORMAT_ND, &count, 1,
                           const_cast<float*>(data));
  };
  const auto scalar = [](float value) { return aclCreateScalar(&value, ACL_FLOAT); };
  aclTensor* const tensors[] = {tensor(self), tensor(out)};
  aclScalar* const scalars[] = {scalar(0), scalar(scale), scalar(1)};
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnEluGetWorkspaceSize(tensors[0], scalars[0], scalars[1], scalars[2], tensors[1],
                                    &size, &executor),
           OK);
  const aclnnStatus status = aclnnElu(nullptr, size, executor, stream);
  for (const aclTensor* each : tensors) aclDestroyTensor(each);
  for (const aclScalar* each : scalars) aclDestroyScalar(each);
  return status;
}

}  // namespace

TEST(captured_tasks_run_in_executions_alone_and_in_order) {
  with_stream([](aclrtStream stream) {
    Numbers ran;
    note(stream, ran, 0);  // before the capture: runs normally
    begin(stream);
    note(stream, ran, 1);
    note(stream, ran, 2);
    const aclmdlRI model = end(stream);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(is(ran, {0}));
    execute(model, stream);
    CHECK(is(ran, {0, 1, 2}));
    note(stream, ran, 3);
    execute(model, stream);
    CHECK(is(ran, {0, 1, 2, 3, 1, 2}));
    destroy(model);
    note(stream, ran, 4);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(ran.back(), 4);
  });
}

TEST(an_execution_reads_what_the_memory_holds_then) {
  with_stream([](aclrtStream stream) {
    Pinned in(4), out(4);
    Device a(4), b(4);
    begin(stream);
    CHECK_EQ(aclrtMemcpyAsync(a.data, a.size, in.data, in.size, ACL_MEMCPY_HOST_TO_DEVICE, stream),
             ACL_SUCCESS);
    CHECK_EQ(elu(a.data, 2, b.data, 4, stream), OK);
    CHECK_EQ(elu(b.data, 10, b.data, 4, stream), OK);
    CHECK_EQ(
        aclrtMemcpyAsync(out.data, out.size, b.data, b.size, ACL_MEMCPY_DEVICE_TO_HOST, stream),
        ACL_SUCCESS);
    CHECK_EQ(aclrtMemsetAsync(b.data, b.size, 0, b.size, stream), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < 4; ++i) in[i] = static_cast<float>(round) + static_cast<float>(i);
      execute(model, stream);
      for (size_t i = 0; i < 4; ++i) CHECK_EQ(out[i], 20 * in[i]);
      float left = 1;
      CHECK_EQ(aclrtMemcpy(&left, 4, b.data, 4, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
      CHECK_EQ(left, 0.0F);
    }
    destroy(model);
  });
}

TEST(host_functions_and_callbacks_are_called_in_every_execution) {
  with_stream([](aclrtStream stream) {
    int called = 0;
    const auto count = [](void* number) { ++*static_cast<int*>(number); };
    CHECK_EQ(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream), ACL_SUCCESS);
    begin(stream);
    CHECK_EQ(aclrtLaunchHostFunc(stream, count, &called), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchCallback(count, &called, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    CHECK_EQ(called, 0);
    for (int round = 1; round <= 3; ++round) {
      CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
      CHECK_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      CHECK_EQ(called, 2 * round);
    }
    destroy(model);
    CHECK_EQ(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), stream), ACL_SUCCESS);
  });
}

TEST(an_execution_is_in_the_order_of_its_stream) {
  with_stream([](aclrtStream stream) {
    Numbers ran;
    begin(stream);
    note(stream, ran, 7);
    const aclmdlRI model = end(stream);
    Gate gate;
    const aclrtStream other = gated_stream(gate);
    note(other, ran, 1);
    CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
    note(other, ran, 2);
    CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    CHECK(is(ran, {1, 7, 2, 7}));
    CHECK_EQ(aclmdlRIExecuteAsync(model, nullptr), ACL_SUCCESS);  // at once
    CHECK(is(ran, {1, 7, 2, 7, 7}));
    destroy(model);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(a_synchronous_execution_waits_and_reports_the_failure) {
  with_stream([](aclrtStream stream) {
    int runs = 0;
    aclError outcome = ACL_SUCCESS;
    begin(stream);
    run_on(stream, [&] {
      ++runs;
      return outcome == ACL_SUCCESS ? outcome : fail(outcome, "the kernel divided by 0");
    });
    const aclmdlRI model = end(stream);
    CHECK_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
    CHECK_EQ(runs, 1);
    outcome = ACL_ERROR_RT_AICORE_EXCEPTION;
    CHECK_EQ(aclmdlRIExecute(model, 600000), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "divided by 0"));
    outcome = ACL_SUCCESS;
    CHECK_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
    CHECK_EQ(runs, 3);
    for (const int32_t timeout : {0, -2}) {
      CHECK_EQ(aclmdlRIExecute(model, timeout), ACL_ERROR_RT_PARAM_INVALID);
    }
    destroy(model);
  });
}

TEST(a_synchronous_execution_that_is_late_goes_on) {
  with_stream([](aclrtStream stream) {
    Gate begun, gate;
    begin(stream);
    run_on(stream, [&] { return begun.open(), gate.wait(), ACL_SUCCESS; });
    const aclmdlRI model = end(stream);
    CHECK_EQ(aclmdlRIExecute(model, 1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    begun.wait();
    gate.open();
    destroy(model);  // waits for it
  });
}

TEST(a_failure_in_an_execution_fails_its_stream_and_no_later_task_runs) {
  with_stream([](aclrtStream stream) {
    Numbers ran;
    begin(stream);
    note(stream, ran, 1);
    run_on(stream, [] { return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel divided by 0"); });
    note(stream, ran, 2);
    const aclmdlRI model = end(stream);
    const aclrtStream other = new_stream();
    CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "divided by 0"));
    CHECK(is(ran, {1}));
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
    const aclrtStream third = new_stream();  // the model can be executed again
    CHECK_EQ(aclmdlRIExecuteAsync(model, third), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(third), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(is(ran, {1, 1}));
    CHECK_EQ(aclrtDestroyStream(third), ACL_SUCCESS);
    destroy(model);
  });
}

TEST(memory_that_was_freed_fails_the_execution) {
  with_stream([](aclrtStream stream) {
    Device out(4);
    aclmdlRI model = nullptr;
    {
      Device in(4);
      begin(stream);
      CHECK_EQ(elu(in.data, 2, out.data, 4, stream), OK);
      model = end(stream);
    }
    const aclrtStream other = new_stream();
    CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_ERROR_RT_COPY_DATA);
    const std::string text = messages();
    CHECK(text.starts_with("aclnnElu: ") && contains(text, "freed"));
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
    destroy(model);
  });
}

TEST(the_executions_of_a_model_follow_one_another) {
  with_stream([](aclrtStream stream) {
    int inside = 0, most = 0, runs = 0;  // without a lock: one execution at a time
    begin(stream);
    run_on(stream, [&] { return most = std::max(most, ++inside), ACL_SUCCESS; });
    run_on(stream, [&] { return --inside, ++runs, ACL_SUCCESS; });
    const aclmdlRI model = end(stream);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        const aclrtStream own = new_stream();
        for (int j = 0; j < 50; ++j) CHECK_EQ(aclmdlRIExecuteAsync(model, own), ACL_SUCCESS);
        CHECK_EQ(aclrtSynchronizeStream(own), ACL_SUCCESS);
        CHECK_EQ(aclrtDestroyStream(own), ACL_SUCCESS);
        CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK_EQ(most, 1);
    CHECK_EQ(runs, 200);
    destroy(model);
  });
}

TEST(info_names_the_model_that_the_end_returns) {
  with_stream([](aclrtStream stream) {
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
    aclmdlRI early = &status;
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &early), ACL_SUCCESS);
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    CHECK(early == nullptr);
    begin(stream);
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &early), ACL_SUCCESS);
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    CHECK_EQ(aclmdlRIExecuteAsync(early, nullptr), ACL_ERROR_RT_MODEL_CAPTURED);
    CHECK_EQ(aclmdlRIDestroy(early), ACL_ERROR_RT_MODEL_CAPTURED);
    const aclmdlRI model = end(stream);
    CHECK(model == early);
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), ACL_SUCCESS);
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
    destroy(model);
  });
}

TEST(streams_joined_by_events_are_captured_too) {
  with_stream([](aclrtStream stream) {
    const aclrtStream second = new_stream(), third = new_stream();
    const aclrtEvent fork = new_event(), between = new_event(), back = new_event();
    Numbers ran;
    begin(stream);
    note(stream, ran, 1);
    CHECK_EQ(aclrtRecordEvent(fork, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(second, fork), ACL_SUCCESS);
    note(second, ran, 2);
    CHECK_EQ(aclrtRecordEvent(between, second), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(third, between), ACL_SUCCESS);
    note(third, ran, 3);
    for (const aclrtStream each : {second, third}) {
      aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
      CHECK_EQ(aclmdlRICaptureGetInfo(each, &status, nullptr), ACL_SUCCESS);
      CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    }
    CHECK_EQ(aclrtRecordEvent(back, third), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(second, back), ACL_SUCCESS);  // third comes back through second
    CHECK_EQ(aclrtRecordEvent(between, second), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(stream, between), ACL_SUCCESS);
    note(stream, ran, 4);
    aclmdlRI none = nullptr;
    CHECK_EQ(aclmdlRICaptureEnd(second, &none), ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
    const aclmdlRI model = end(stream);
    CHECK(ran.empty());
    for (int i = 0; i < 2; ++i) execute(model, second);
    CHECK(is(ran, {1, 2, 3, 4, 1, 2, 3, 4}));
    destroy(model);
    // The streams and events work as before.
    note(third, ran, 5);
    CHECK_EQ(aclrtRecordEvent(fork, third), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeEvent(fork), ACL_SUCCESS);
    CHECK_EQ(ran.back(), 5);
    for (const aclrtEvent event : {fork, between, back}) aclrtDestroyEvent(event);
    for (const aclrtStream each : {second, third}) aclrtDestroyStream(each);
  });
}

TEST(a_stream_that_is_not_joined_fails_the_end) {
  with_stream([](aclrtStream stream) {
    const aclrtStream second = new_stream();
    const aclrtEvent fork = new_event(), back = new_event();
    Numbers ran;
    const auto captured = [&](bool records, bool waits, bool goes_on) {
      begin(stream);
      aclrtRecordEvent(fork, stream);
      CHECK_EQ(aclrtStreamWaitEvent(second, fork), ACL_SUCCESS);
      note(second, ran, 1);
      if (records) CHECK_EQ(aclrtRecordEvent(back, second), ACL_SUCCESS);
      if (waits) CHECK_EQ(aclrtStreamWaitEvent(stream, back), ACL_SUCCESS);
      if (goes_on) note(second, ran, 2);
      end_fails(stream, ACL_ERROR_RT_STREAM_UNJOINED, "record an event at its end");
    };
    captured(false, false, false);
    captured(true, false, false);
    captured(true, true, true);
    CHECK(ran.empty());
    note(second, ran, 3);  // it is not captured any more
    CHECK_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
    CHECK(is(ran, {3}));
    for (const aclrtEvent event : {fork, back}) aclrtDestroyEvent(event);
    CHECK_EQ(aclrtDestroyStream(second), ACL_SUCCESS);
  });
}

TEST(what_waits_for_a_captured_stream_is_refused_and_the_capture_goes_on) {
  with_stream([](aclrtStream stream) {
    const aclrtEvent event = new_event();
    Numbers ran;
    begin(stream);
    note(stream, ran, 1);
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    messages();
    aclrtStreamStatus status;
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
    const std::string text = messages();
    CHECK(text.starts_with("aclrtSynchronizeStream: "));
    CHECK(contains(text, "after aclmdlRICaptureEnd"));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(1), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_STREAM_CAPTURED);
    aclrtEventRecordedStatus recorded;
    float ms = 0;
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_EVENT_CAPTURED);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, 1), ACL_ERROR_RT_EVENT_CAPTURED);
    CHECK_EQ(aclrtQueryEventStatus(event, &recorded), ACL_ERROR_RT_EVENT_CAPTURED);
    CHECK_EQ(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_EVENT_CAPTURED);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
    const aclrtStream other = new_stream();  // not captured
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    execute(model, stream);
    CHECK(is(ran, {1}));
    destroy(model);
    aclrtDestroyEvent(event);
  });
}

TEST(events_that_captures_do_not_take) {
  with_stream([](aclrtStream stream) {
    const aclrtStream other = new_stream();
    const aclrtEvent outside = new_event(), never = new_event();
    aclrtEvent plain = nullptr;
    CHECK_EQ(aclrtCreateEvent(&plain), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(outside, other), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(plain, other), ACL_SUCCESS);
    begin(stream);
    CHECK_EQ(aclrtStreamWaitEvent(stream, outside), ACL_ERROR_RT_CAPTURE_DEPENDENCY);
    CHECK_EQ(aclrtStreamWaitEvent(stream, never), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(plain, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtStreamWaitEvent(stream, plain), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtResetEvent(plain, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    destroy(end(stream));
    for (const aclrtEvent event : {outside, never, plain}) aclrtDestroyEvent(event);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(captures_beside_one_another_cannot_be_tied) {
  with_stream([](aclrtStream stream) {
    const aclrtStream other = new_stream();
    const aclrtEvent event = new_event();
    begin(stream);
    begin(other);
    CHECK_EQ(aclmdlRICaptureBegin(stream, kGlobal), ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(other, event), ACL_ERROR_STREAM_CAPTURE_CONFLICT);
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), ACL_SUCCESS);
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    Numbers ran;
    CHECK_EQ(note(stream, ran, 1), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    for (const aclrtStream each : {stream, other}) {
      end_fails(each, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "an event of another");
    }
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(two_captures_at_a_time) {
  with_stream([](aclrtStream stream) {
    const aclrtStream other = new_stream();
    Numbers ran;
    begin(stream);
    begin(other);
    note(stream, ran, 1);
    note(other, ran, 2);
    const aclmdlRI first = end(stream);
    note(other, ran, 3);
    CHECK_EQ(aclmdlRIExecuteAsync(first, other), ACL_ERROR_RT_STREAM_CAPTURED);  // no nesting
    const aclmdlRI second = end(other);
    execute(second, stream);
    execute(first, stream);
    CHECK(is(ran, {2, 3, 1}));
    uint32_t ids[2] = {};
    CHECK_EQ(aclmdlRIGetId(first, &ids[0]), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIGetId(second, &ids[1]), ACL_SUCCESS);
    CHECK(ids[0] != ids[1]);
    destroy(first);
    destroy(second);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(synchronous_copies_are_as_the_modes_say) {
  with_stream([](aclrtStream stream) {
    Device block(4);
    float number = 3;
    const auto copy = [&] {
      const aclError status =
          aclrtMemcpy(block.data, block.size, &number, 4, ACL_MEMCPY_HOST_TO_DEVICE);
      CHECK_EQ(aclrtMemset(block.data, block.size, 0, 4), status);
      return status;
    };
    // The calls that a thread may make, by the modes of the capture and of the thread.
    struct Case {
      aclmdlRICaptureMode capture, thread;
      bool captures, allowed;
    };
    const Case cases[] = {
        {kGlobal, kGlobal, true, false},      {kGlobal, kThreadLocal, true, false},
        {kGlobal, kRelaxed, true, true},      {kGlobal, kGlobal, false, false},
        {kGlobal, kThreadLocal, false, true}, {kGlobal, kRelaxed, false, true},
        {kThreadLocal, kGlobal, true, false}, {kThreadLocal, kThreadLocal, true, false},
        {kThreadLocal, kRelaxed, true, true}, {kThreadLocal, kGlobal, false, true},
        {kRelaxed, kGlobal, true, true},      {kRelaxed, kGlobal, false, true},
        {kRelaxed, kThreadLocal, true, true},
    };
    for (const Case& each : cases) {
      const aclError expected =
          each.allowed ? ACL_SUCCESS : aclError{ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT};
      begin(stream, each.capture);
      const auto in_mode = [&] {
        CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        aclmdlRICaptureMode mode = each.thread;
        CHECK_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
        CHECK_EQ(mode, kGlobal);
        CHECK_EQ(copy(), expected);
        CHECK_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
        CHECK_EQ(mode, each.thread);
        CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
        messages();
      };
      each.captures ? in_mode() : std::thread(in_mode).join();
      destroy(end(stream));
      CHECK_EQ(copy(), ACL_SUCCESS);
    }
    aclmdlRICaptureMode unknown = static_cast<aclmdlRICaptureMode>(3);
    CHECK_EQ(aclmdlRICaptureThreadExchangeMode(&unknown), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclmdlRICaptureThreadExchangeMode(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlRICaptureBegin(stream, unknown), ACL_ERROR_RT_PARAM_INVALID);
  });
}

TEST(copies_with_pageable_memory_cannot_be_captured) {
  with_stream([](aclrtStream stream) {
    Device block(4);
    const aclrtStream other = new_stream();
    float number = 3;
    const auto copy = [&](aclrtStream to) {
      return aclrtMemcpyAsync(block.data, block.size, &number, 4, ACL_MEMCPY_HOST_TO_DEVICE, to);
    };
    begin(stream);
    messages();
    CHECK_EQ(copy(stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "aclrtMallocHost"));
    CHECK_EQ(copy(other), ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC);
    destroy(end(stream));
    begin(stream, kRelaxed);
    CHECK_EQ(copy(stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(copy(other), ACL_SUCCESS);
    destroy(end(stream));
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(the_end_is_on_the_thread_of_the_beginning_unless_relaxed) {
  with_stream([](aclrtStream stream) {
    begin(stream);
    std::thread([&] {
      end_fails(stream, ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, "on that thread");
    }).join();
    begin(stream, kRelaxed);
    std::thread([&] { destroy(end(stream)); }).join();
  });
}

// A model that copies numbers to the device, computes three ELUs and copies their results back. The
// second and third ELU are a group. The destructor destroys the model, unless the test has.
struct ModelWithGroup {
  explicit ModelWithGroup(aclrtStream stream) : stream(stream) {
    begin(stream);
    aclrtMemcpyAsync(in.data, in.size, from.data, from.size, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    CHECK_EQ(elu(in.data, 1, a.data, 2, stream), OK);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    CHECK_EQ(elu(in.data, 2, b.data, 2, stream), OK);
    CHECK_EQ(elu(b.data, 2, c.data, 2, stream), OK);
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_SUCCESS);
    size_t at = 0;
    for (const Device* each : {&a, &b, &c}) {
      aclrtMemcpyAsync(&out[at], 8, each->data, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream);
      at += 2;
    }
    model = end(stream);
    from[0] = from[1] = 3;
  }
  ~ModelWithGroup() {
    if (model != nullptr) destroy(model);
    CHECK_EQ(aclrtDestroyStream(updating), ACL_SUCCESS);
  }

  // Executes the model and checks the results of the three ELUs.
  void computes(float in_a, float in_b, float in_c) {
    execute(model, stream);
    const float expected[] = {in_a, in_b, in_c};
    for (size_t i = 0; i < 6; ++i) CHECK_EQ(out[i], expected[i / 2]);
  }

  const aclrtStream stream;
  const aclrtStream updating = new_stream();
  Device in{2}, a{2}, b{2}, c{2};
  Pinned from{2}, out{6};
  aclrtTaskGrp group = nullptr;
  aclmdlRI model = nullptr;
};

TEST(a_group_has_operators_of_one_capture_alone) {
  with_stream([](aclrtStream stream) {
    Device in(2), out(2);
    Pinned from(2), to(2);
    aclrtTaskGrp group = nullptr, none = nullptr;
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
    begin(stream);
    aclrtMemcpyAsync(in.data, in.size, from.data, from.size, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    CHECK_EQ(elu(in.data, 2, out.data, 2, stream), OK);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK_EQ(aclrtMemsetAsync(out.data, out.size, 0, 8, stream),
             ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &none), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    aclrtMemcpyAsync(to.data, to.size, out.data, out.size, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    const aclmdlRI model = end(stream);
    from[0] = from[1] = 3;
    execute(model, stream);
    CHECK(to[0] == 6 && to[1] == 6);
    destroy(model);
  });
}

TEST(groups_of_operators_are_updated_in_place) {
  with_stream([](aclrtStream stream) {
    ModelWithGroup captured(stream);
    const aclrtStream updating = captured.updating;
    const aclrtTaskGrp group = captured.group;
    const Device &in = captured.in, &a = captured.a;
    captured.computes(3, 6, 12);
    begin(updating);
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_ERROR_RT_STREAM_CAPTURED);
    destroy(end(updating));
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureBegin(updating, kGlobal), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(stream, group), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK_EQ(elu(in.data, 5, captured.b.data, 2, updating), OK);
    CHECK_EQ(aclrtMemsetAsync(a.data, a.size, 0, 8, updating), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
    CHECK_EQ(elu(in.data, 7, captured.c.data, 2, updating), OK);
    CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK_EQ(aclrtSynchronizeStream(updating), ACL_SUCCESS);
    captured.computes(3, 15, 21);
  });
}

TEST(an_update_with_another_number_of_operators_changes_nothing) {
  with_stream([](aclrtStream stream) {
    ModelWithGroup captured(stream);
    const aclrtStream updating = captured.updating;
    for (int operators : {1, 3}) {
      CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, captured.group), ACL_SUCCESS);
      for (int i = 0; i < operators; ++i) {
        CHECK_EQ(elu(captured.in.data, 9, captured.b.data, 2, updating), OK);
      }
      messages();
      CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_ERROR_RT_INTERNAL_ERROR);
      CHECK(contains(messages(), "expected 2"));
    }
    captured.computes(3, 6, 12);
  });
}

TEST(an_update_ends_with_its_stream_and_with_its_model) {
  with_stream([](aclrtStream stream) {
    ModelWithGroup captured(stream);
    const aclrtStream updating = captured.updating, other = new_stream();
    const aclrtTaskGrp group = captured.group;
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(other, group), ACL_SUCCESS);
    CHECK_EQ(elu(captured.in.data, 9, captured.b.data, 2, other), OK);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_SUCCESS);
    destroy(std::exchange(captured.model, nullptr));
    CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(a_group_is_recorded_on_one_stream_at_a_time) {
  with_stream([](aclrtStream stream) {
    const aclrtStream second = new_stream();
    const aclrtEvent fork = new_event(), back = new_event();
    Numbers ran;
    begin(stream);
    aclrtRecordEvent(fork, stream);
    aclrtStreamWaitEvent(second, fork);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    CHECK_EQ(note(second, ran, 1), ACL_ERROR_STREAM_TASK_GROUP_INTR);
    aclrtTaskGrp group = &group;
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_ERROR_STREAM_TASK_GROUP_INTR);
    CHECK(group == nullptr);
    aclrtRecordEvent(back, second);
    aclrtStreamWaitEvent(stream, back);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    end_fails(stream, ACL_ERROR_STREAM_TASK_GROUP_STATUS, "aclmdlRICaptureTaskGrpEnd");
    for (const aclrtEvent event : {fork, back}) aclrtDestroyEvent(event);
    CHECK_EQ(aclrtDestroyStream(second), ACL_SUCCESS);
  });
}

TEST(an_update_beside_the_execution_by_an_external_event) {
  with_stream([](aclrtStream stream) {
    const aclrtStream updating = new_stream();
    const aclrtEvent updated = new_event(ACL_EVENT_EXTERNAL);
    Device in(1), out(1);
    Pinned from(1), to(1);
    from[0] = 1;
    aclrtTaskGrp group = nullptr;
    begin(stream);
    aclrtMemcpyAsync(in.data, in.size, from.data, from.size, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    CHECK_EQ(aclrtStreamWaitEvent(stream, updated), ACL_SUCCESS);
    CHECK_EQ(aclrtResetEvent(updated, stream), ACL_SUCCESS);
    aclmdlRICaptureTaskGrpBegin(stream);
    CHECK_EQ(elu(in.data, 0, out.data, 1, stream), OK);
    aclmdlRICaptureTaskGrpEnd(stream, &group);
    aclrtMemcpyAsync(to.data, to.size, out.data, out.size, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    const aclmdlRI model = end(stream);
    for (int round = 1; round <= 3; ++round) {
      CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);  // waits for the update
      CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_SUCCESS);
      CHECK_EQ(elu(in.data, static_cast<float>(round), out.data, 1, updating), OK);
      CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_SUCCESS);
      CHECK_EQ(aclrtRecordEvent(updated, updating), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      CHECK_EQ(to[0], static_cast<float>(round));
    }
    destroy(model);
    CHECK_EQ(aclrtDestroyEvent(updated), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(updating), ACL_SUCCESS);
  });
}

TEST(a_thread_does_not_wait_for_what_it_does_itself_later) {
  with_stream([](aclrtStream stream) {
    const aclrtEvent event = new_event(ACL_EVENT_EXTERNAL);
    begin(stream);
    CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    CHECK_EQ(aclmdlRIExecuteAsync(model, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(contains(messages(), "record the event first"));
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(model, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    destroy(model);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  });
}

TEST(an_external_event_is_recorded_by_every_execution) {
  with_stream([](aclrtStream stream) {
    const aclrtStream other = new_stream();
    const aclrtEvent done = new_event(ACL_EVENT_EXTERNAL);
    Numbers ran;
    begin(stream);
    note(stream, ran, 1);
    CHECK_EQ(aclrtRecordEvent(done, stream), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    CHECK_EQ(aclrtQueryEventStatus(done, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
    execute(model, stream);
    CHECK_EQ(aclrtQueryEventStatus(done, &status), ACL_SUCCESS);
    CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_EQ(aclrtStreamWaitEvent(other, done), ACL_SUCCESS);
    note(other, ran, 2);
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    CHECK(is(ran, {1, 2}));
    destroy(model);
    CHECK_EQ(aclrtDestroyEvent(done), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(an_execution_that_fails_records_its_external_events_with_the_failure) {
  with_stream([](aclrtStream stream) {
    const aclrtStream failing = new_stream();
    const aclrtEvent done = new_event(ACL_EVENT_EXTERNAL);
    begin(stream);
    run_on(stream, [] { return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel divided by 0"); });
    CHECK_EQ(aclrtRecordEvent(done, stream), ACL_SUCCESS);
    const aclmdlRI first = end(stream);
    begin(stream);
    CHECK_EQ(aclrtStreamWaitEvent(stream, done), ACL_SUCCESS);
    const aclmdlRI second = end(stream);
    CHECK_EQ(aclmdlRIExecuteAsync(first, failing), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecute(second, -1), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "divided by 0"));
    // A stream that has failed drops the execution and reports that to its events, too.
    begin(stream);
    CHECK_EQ(aclrtResetEvent(done, stream), ACL_SUCCESS);
    const aclmdlRI reset = end(stream);
    CHECK_EQ(aclmdlRIExecute(reset, -1), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(first, failing), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecute(second, -1), ACL_ERROR_RT_AICORE_EXCEPTION);
    for (const aclmdlRI model : {first, second, reset}) destroy(model);
    CHECK_EQ(aclrtDestroyStream(failing), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(done), ACL_SUCCESS);
  });
}

TEST(destruction_waits_for_executions_and_calls_what_is_registered) {
  with_stream([](aclrtStream stream) {
    int runs = 0;
    begin(stream);
    run_on(stream, [&] { return ++runs, ACL_SUCCESS; });
    const aclmdlRI model = end(stream);
    Gate gate;
    const aclrtStream other = gated_stream(gate);
    for (int i = 0; i < 100; ++i) CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
    int destroyed = 0;
    const auto count = [](void* number) { ++*static_cast<int*>(number); };
    const aclrtCallback other_function = [](void*) {};
    CHECK_EQ(aclmdlRIDestroyRegisterCallback(model, count, &destroyed), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIDestroyRegisterCallback(model, other_function, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIDestroyUnregisterCallback(model, other_function), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIDestroyUnregisterCallback(model, other_function), ACL_ERROR_RT_PARAM_INVALID);
    gate.open();
    destroy(model);
    CHECK_EQ(runs, 100);
    CHECK_EQ(destroyed, 1);
    CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclmdlRIDestroy(model), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(an_execution_cannot_destroy_its_own_model) {
  with_stream([](aclrtStream stream) {
    static aclmdlRI model;
    aclError status = ACL_SUCCESS;
    begin(stream);
    run_on(stream, [&] { return status = aclmdlRIDestroy(model), ACL_SUCCESS; });
    model = end(stream);
    execute(model, stream);
    CHECK_EQ(status, ACL_ERROR_RT_MODEL_RUNNING);
    destroy(model);
  });
}

TEST(a_model_outlives_its_device_and_a_capture_does_not) {
  leaves_nothing([] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    const aclrtStream stream = new_stream(), open = new_stream(), joined = new_stream();
    const aclrtEvent event = new_event();
    Numbers ran;
    begin(stream);
    note(stream, ran, 1);
    const aclmdlRI model = end(stream);
    begin(open);
    note(open, ran, 2);
    aclrtRecordEvent(event, open);
    aclrtStreamWaitEvent(joined, event);
    aclmdlRI unfinished = nullptr;
    CHECK_EQ(aclmdlRICaptureGetInfo(open, nullptr, &unfinished), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(model, nullptr), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclmdlRIDestroy(unfinished), ACL_ERROR_RT_INVALID_HANDLE);
    aclmdlRI none = nullptr;
    CHECK_EQ(aclmdlRICaptureEnd(open, &none), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);  // nothing is captured any more
    CHECK_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
    CHECK(is(ran, {1}));
    destroy(model);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(handles_and_pointers_are_checked) {
  with_stream([](aclrtStream stream) {
    int number = 0;
    aclmdlRI model = nullptr;
    aclrtTaskGrp group = nullptr;
    char name[8] = {};
    uint32_t id = 0;
    const auto call = [](void*) {};
    for (const aclmdlRI handle : {aclmdlRI{nullptr}, aclmdlRI{&number}, aclmdlRI{stream}}) {
      const aclError expected =
          handle == nullptr ? aclError{ACL_ERROR_INVALID_PARAM} : ACL_ERROR_RT_INVALID_HANDLE;
      CHECK_EQ(aclmdlRIExecuteAsync(handle, stream), expected);
      CHECK_EQ(aclmdlRIExecute(handle, -1), expected);
      CHECK_EQ(aclmdlRIDestroy(handle), expected);
      CHECK_EQ(aclmdlRIAbort(handle), expected);
      CHECK_EQ(aclmdlRISetName(handle, "x"), expected);
      CHECK_EQ(aclmdlRIGetName(handle, 8, name), expected);
      CHECK_EQ(aclmdlRIGetId(handle, &id), expected);
      CHECK_EQ(aclmdlRIDestroyRegisterCallback(handle, call, nullptr), expected);
      CHECK_EQ(aclmdlRIDestroyUnregisterCallback(handle, call), expected);
      CHECK_EQ(aclmdlRIDebugPrint(handle), expected);
      CHECK_EQ(aclmdlRIDebugJsonPrint(handle, "x", 0), expected);
      CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(stream, handle), expected);
    }
    for (const aclrtStream handle : {aclrtStream{nullptr}, aclrtStream{&number}}) {
      const aclError expected =
          handle == nullptr ? aclError{ACL_ERROR_INVALID_PARAM} : ACL_ERROR_RT_INVALID_HANDLE;
      aclmdlRICaptureStatus status;
      CHECK_EQ(aclmdlRICaptureBegin(handle, kGlobal), expected);
      CHECK_EQ(aclmdlRICaptureGetInfo(handle, &status, &model), expected);
      CHECK_EQ(aclmdlRICaptureEnd(handle, &model), expected);
      CHECK_EQ(aclmdlRICaptureTaskGrpBegin(handle), expected);
      CHECK_EQ(aclmdlRICaptureTaskGrpEnd(handle, &group), expected);
      CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(handle), expected);
    }
    CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
    begin(stream);
    CHECK_EQ(aclmdlRICaptureEnd(stream, nullptr), ACL_ERROR_INVALID_PARAM);
    model = end(stream);
    CHECK_EQ(aclmdlRIExecuteAsync(model, &number), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclmdlRISetName(model, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlRIGetName(model, 8, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlRIGetName(model, 0, name), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclmdlRIGetId(model, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlRIDestroyRegisterCallback(model, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlRIAbort(model), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    destroy(model);
  });
}

TEST(a_model_has_a_name_and_can_be_written_to_a_file) {
  with_stream([](aclrtStream stream) {
    Device in(2), out(2);
    begin(stream);
    CHECK_EQ(elu(in.data, 1, out.data, 2, stream), OK);
    CHECK_EQ(aclrtMemsetAsync(in.data, in.size, 0, 8, stream), ACL_SUCCESS);
    const aclmdlRI model = end(stream);
    char name[8] = "none";
    CHECK_EQ(aclmdlRIGetName(model, 8, name), ACL_SUCCESS);
    CHECK_EQ(std::string(name), "");
    CHECK_EQ(aclmdlRISetName(model, "decoder step"), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIGetName(model, 8, name), ACL_SUCCESS);
    CHECK_EQ(std::string(name), "decoder");
    CHECK_EQ(aclmdlRIDebugPrint(model), ACL_SUCCESS);
    const std::string path = "/tmp/test_runtime_capture." + std::to_string(getpid()) + ".json";
    CHECK_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), 0), ACL_SUCCESS);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    uint32_t id = 0;
    CHECK_EQ(aclmdlRIGetId(model, &id), ACL_SUCCESS);
    const auto event = [&](const char* function, int task, const char* type) {
      const std::string number = std::to_string(id), time = std::to_string(task);
      return R"(  {"name": ")" + std::string(function) + R"(", "ph": "X", "pid": "model)" + number +
             R"(", "tid": "stream0", "ts": )" + time + R"(, "dur": 1, "args": {"Model Id": )" +
             number + R"(, "Stream Id": 0, "Task Id": )" + time + R"(, "Task Type": ")" + type +
             R"("}})";
    };
    CHECK_EQ(text.str(), "[\n" + event("aclnnElu", 0, "operator") + ",\n" +
                             event("aclrtMemsetAsync", 1, "runtime") + "\n]\n");
    std::remove(path.c_str());
    messages();
    CHECK_EQ(symlink("/nowhere/model.json", path.c_str()), 0);
    CHECK_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "is a symbolic link, which is not followed"));
    std::remove(path.c_str());
    CHECK_EQ(aclmdlRIDebugJsonPrint(model, "/nowhere/model.json", 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "/nowhere/model.json"));
    CHECK_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), 2), ACL_ERROR_RT_PARAM_INVALID);
    destroy(model);
  });
}

TEST(attributes_of_streams) {
  with_stream([](aclrtStream stream) {
    aclrtStreamAttrValue value{};
    for (const aclrtStream each : {stream, aclrtStream{nullptr}}) {
      value.cacheOpInfoSwitch = 1;
      CHECK_EQ(aclrtSetStreamAttribute(each, ACL_STREAM_ATTR_CACHE_OP_INFO, &value), ACL_SUCCESS);
      value.cacheOpInfoSwitch = 7;
      CHECK_EQ(aclrtGetStreamAttribute(each, ACL_STREAM_ATTR_CACHE_OP_INFO, &value), ACL_SUCCESS);
      CHECK_EQ(value.cacheOpInfoSwitch, 1U);
      CHECK_EQ(aclrtGetStreamAttribute(each, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value), ACL_SUCCESS);
      CHECK_EQ(value.userCustomTag, 0U);
    }
    value.failureMode = ACL_CONTINUE_ON_FAILURE;
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_SUCCESS);
    value.failureMode = ACL_STOP_ON_FAILURE;
    CHECK_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_SUCCESS);
    CHECK_EQ(value.failureMode, uint64_t{ACL_CONTINUE_ON_FAILURE});
    value.failureMode = 2;
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, nullptr),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetStreamAttribute(stream, static_cast<aclrtStreamAttr>(6), &value),
             ACL_ERROR_RT_PARAM_INVALID);
  });
}
