// Every operator through the C interface, with every allocation and every call into the library
// failing once: the n-th of a run, for n = 1, 2, ... until a run has fewer. Each run ends in a
// clean error, or in the right result if the failure was handled; no object is leaked; and the next
// run is right.
#include <thread>
#include <utility>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "check.h"
#include "faults.h"
#include "operators.h"

namespace {

using namespace reliability;

constexpr int64_t kMost = 5000;  // faults of one run: more means an endless loop

// An object of the runtime, released at the end.
struct Owned {
  void* object = nullptr;
  aclError (*destroy)(void*);

  ~Owned() {
    if (object != nullptr) destroy(object);
  }
};

void require(const char* api, aclError status) {
  if (status != ACL_SUCCESS) library().fail(api, status);
}

aclError reset_device(void*) {
  return aclrtResetDevice(0);
}

// A program around one call, with its own device, memory, stream and event. Only part of the inputs
// goes through device memory, enough to check the copies.
void run_on_own_stream(const Call& call) {
  Owned device{nullptr, reset_device};
  Owned stream{nullptr, aclrtDestroyStream};
  Owned event{nullptr, aclrtDestroyEvent};
  Owned block{nullptr, aclrtFree};
  require("aclrtSetDevice", aclrtSetDevice(0));
  device.object = &device;
  require("aclrtCreateStream", aclrtCreateStream(&stream.object));
  require("aclrtCreateEvent", aclrtCreateEvent(&event.object));
  require("aclrtMalloc", aclrtMalloc(&block.object, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  const int64_t sent = 42;
  int64_t received = 0;
  require("aclrtMemcpyAsync", aclrtMemcpyAsync(block.object, 64, &sent, sizeof(sent),
                                               ACL_MEMCPY_HOST_TO_DEVICE, stream.object));
  call.launch(stream.object);
  require("aclrtRecordEvent", aclrtRecordEvent(event.object, stream.object));
  require("aclrtStreamWaitEvent", aclrtStreamWaitEvent(stream.object, event.object));
  require("aclrtSynchronizeStream", aclrtSynchronizeStream(stream.object));
  require("aclrtMemcpy", aclrtMemcpy(&received, sizeof(received), block.object, sizeof(received),
                                     ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_EQ(received, sent);
}

void run_inline(const Call& call) {
  call.launch(nullptr);
}

aclError end_capture(void* stream) {
  aclmdlRI model = nullptr;
  aclmdlRICaptureEnd(stream, &model);
  return model == nullptr ? aclError{ACL_SUCCESS} : aclmdlRIDestroy(model);
}

// The call as a model, captured and executed, after a fork and a join of streams.
void run_captured(const Call& call) {
  Owned device{nullptr, reset_device};
  Owned stream{nullptr, aclrtDestroyStream};
  Owned other{nullptr, aclrtDestroyStream};
  Owned events[] = {{nullptr, aclrtDestroyEvent}, {nullptr, aclrtDestroyEvent}};
  require("aclrtSetDevice", aclrtSetDevice(0));
  device.object = &device;
  require("aclrtCreateStream", aclrtCreateStream(&stream.object));
  require("aclrtCreateStream", aclrtCreateStream(&other.object));
  for (Owned& event : events) {
    require("aclrtCreateEventExWithFlag",
            aclrtCreateEventExWithFlag(&event.object, ACL_EVENT_SYNC));
  }
  Owned model{nullptr, aclmdlRIDestroy};
  {
    Owned capture{nullptr, end_capture};
    require("aclmdlRICaptureBegin",
            aclmdlRICaptureBegin(stream.object, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    capture.object = stream.object;
    require("aclrtRecordEvent", aclrtRecordEvent(events[0].object, stream.object));
    require("aclrtStreamWaitEvent", aclrtStreamWaitEvent(other.object, events[0].object));
    call.launch(other.object);
    require("aclrtRecordEvent", aclrtRecordEvent(events[1].object, other.object));
    require("aclrtStreamWaitEvent", aclrtStreamWaitEvent(stream.object, events[1].object));
    capture.object = nullptr;
    require("aclmdlRICaptureEnd", aclmdlRICaptureEnd(stream.object, &model.object));
  }
  require("aclmdlRIExecuteAsync", aclmdlRIExecuteAsync(model.object, stream.object));
  require("aclrtSynchronizeStream", aclrtSynchronizeStream(stream.object));
  require("aclmdlRIExecute", aclmdlRIExecute(model.object, -1));
}

// A model whose execution fails, with a text that is passed from thread to thread.
void run_failing(const Call&) {
  Owned device{nullptr, reset_device};
  Owned stream{nullptr, aclrtDestroyStream};
  Owned block{nullptr, aclrtFree};
  require("aclrtSetDevice", aclrtSetDevice(0));
  device.object = &device;
  require("aclrtCreateStream", aclrtCreateStream(&stream.object));
  require("aclrtMalloc", aclrtMalloc(&block.object, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  Owned model{nullptr, aclmdlRIDestroy};
  {
    Owned capture{nullptr, end_capture};
    require("aclmdlRICaptureBegin",
            aclmdlRICaptureBegin(stream.object, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    capture.object = stream.object;
    require("aclrtMemsetAsync", aclrtMemsetAsync(block.object, 64, 0, 64, stream.object));
    capture.object = nullptr;
    require("aclmdlRICaptureEnd", aclmdlRICaptureEnd(stream.object, &model.object));
  }
  require("aclrtFree", aclrtFree(std::exchange(block.object, nullptr)));
  CHECK(aclmdlRIExecute(model.object, -1) != ACL_SUCCESS);
}

using Run = void (*)(const Call&);

struct Outcome {
  bool succeeded = false;
  int64_t events = 0;
  std::vector<float> results;
};

// Descriptors that use up all memory left by destroyed ones, so that a new one must allocate. They
// are held to the end of the process: if each run released them, the next one would have to take
// them all, and one more, so that n runs would make n * n of them.
int64_t held_descriptors = 0;

// Makes such descriptors until making one allocates.
template <class Make>
void hold(Make make) {
  for (int64_t allocations = 0; allocations == 0; ++held_descriptors) {
    faults_arm(kFaultAllocation, 0);
    const void* const made = make();
    allocations = faults_disarm();
    CHECK(made != nullptr);
  }
}

void hold_descriptors() {
  const Meta& meta = library().meta();
  hold([&meta] {
    return meta.create_tensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0,
                              nullptr);
  });
  hold([&meta] {
    float value = 0;
    return meta.create_scalar(&value, ACL_FLOAT);
  });
  hold([&meta] { return meta.create_int_array(nullptr, 0); });
  hold([&meta] { return meta.create_bool_array(nullptr, 0); });
}

int64_t live_objects() {
  return aclHostLiveObjects(nullptr) - held_descriptors;
}

// One run on a separate thread, without cached memory of earlier calls.
Outcome run_with_fault(Run run, const Call& call, int kind, int64_t n) {
  Outcome outcome;
  std::thread([&] {
    hold_descriptors();
    faults_arm(kind, n);
    try {
      run(call);
      outcome.succeeded = true;
    } catch (const Error& error) {
      faults_disarm();
      CHECK(error.status() != ACL_SUCCESS);
    } catch (const std::bad_alloc&) {
      // in the client's own memory
    }
    outcome.events = faults_disarm();
  }).join();
  if (outcome.succeeded) outcome.results = call.results();
  return outcome;
}

bool is_right(const Outcome& outcome, const std::vector<float>& expected) {
  return outcome.succeeded && same_bits(outcome.results, expected);
}

// All faults of one kind in one call; returns their number.
int64_t inject(Run run, const Call& call, int kind) {
  const int64_t live = live_objects();
  const std::vector<float> expected = run_with_fault(run, call, kind, 0).results;
  CHECK(!expected.empty());
  for (int64_t n = 1; n <= kMost; ++n) {
    const Outcome outcome = run_with_fault(run, call, kind, n);
    const bool survived = !outcome.succeeded || is_right(outcome, expected);
    const bool left_nothing = live_objects() == live;
    const bool next_works = is_right(run_with_fault(run, call, kind, 0), expected);
    if (!(survived && left_nothing && next_works)) {
      std::fprintf(stderr, "%s, event %lld of kind %d: %s%s%s\n", call.name.c_str(),
                   static_cast<long long>(n), kind, survived ? "" : "a wrong result; ",
                   left_nothing ? "" : "objects are left; ",
                   next_works ? "" : "the next run fails");
      check::failures()++;
      return n;
    }
    if (outcome.events < n) {
      CHECK(outcome.succeeded);
      return n - 1;
    }
  }
  CHECK(false);
  return kMost;
}

void inject_into_all(const char* what, Run run, int kind, int64_t least) {
  int64_t total = 0;
  for (const Call& call : all_calls()) {
    const int64_t faults = inject(run, call, kind);
    CHECK(faults >= least);
    total += faults;
  }
  std::printf("%s: %lld faults injected\n", what, static_cast<long long>(total));
}

constexpr int64_t kAllocations = 2;  // at least a descriptor and an executor

}  // namespace

TEST(calls_on_the_null_stream) {
  // Two descriptors, both stages, synchronisation.
  inject_into_all("calls, null stream", run_inline, kFaultCall, 4);
}

TEST(calls_on_a_stream) {
  inject_into_all("calls, own stream", run_on_own_stream, kFaultCall, 3);
}

TEST(allocations_on_the_null_stream) {
  inject_into_all("allocations, null stream", run_inline, kFaultAllocation, kAllocations);
}

TEST(allocations_on_a_stream) {
  inject_into_all("allocations, own stream", run_on_own_stream, kFaultAllocation, kAllocations);
}

TEST(captured_calls) {
  inject_into_all("calls, captured", run_captured, kFaultCall, 3);
}

TEST(allocations_in_an_execution_that_fails) {
  CHECK(inject(run_failing, all_calls().front(), kFaultAllocation) >= kAllocations);
}

TEST(allocations_in_captures) {
  inject_into_all("allocations, captured", run_captured, kFaultAllocation, kAllocations);
}
