// Forks, and the end of a process while work is queued. Each test runs in a child process, which an
// alarm ends if it hangs.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime_support.h"

constexpr unsigned kPatience = 60;  // seconds

// ThreadSanitizer forbids threads in the child of a process with threads, and reports threads that
// are alive when the process ends.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

// AddressSanitizer's allocator (GCC 12's) is not prepared for a fork, as glibc's is: in a child it
// may be locked by a thread that does not exist there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

// Runs the body in a child process, which exits with status 0 if no check fails.
static void in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatience);
    const int before = check::failures();
    body();
    _exit(check::failures() == before ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(a_child_has_none_of_its_parents_streams_and_makes_its_own) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  Gate begun, gate;
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(run_on(stream, [&] { return begun.open(), gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  begun.wait();  // from here on the worker does not allocate
  aclrtEvent event = nullptr;
  void* block = nullptr;
  CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  in_child([&] {
    CHECK_EQ(aclHostLiveObjects("stream"), 0);
    CHECK_EQ(aclHostLiveObjects("event"), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(run_on(nullptr, [] { return ACL_SUCCESS; }), ACL_SUCCESS);
    aclrtStream own = nullptr;
    CHECK_EQ(aclrtCreateStream(&own), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(contains(messages(), "a forked process has none of its parent's devices"));
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&own), ACL_SUCCESS);
    CHECK(own != stream);
    if (!kThreadSanitizer) {
      int ran = 0;
      CHECK_EQ(run_on(own, [&] { return ++ran, ACL_SUCCESS; }), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(own), ACL_SUCCESS);
      CHECK_EQ(ran, 1);
    }
    CHECK_EQ(aclrtDestroyStream(own), ACL_SUCCESS);
    CHECK_EQ(aclrtMemset(block, 64, 1, 64), ACL_SUCCESS);  // memory is copied, not lost
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  gate.open();
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

TEST(a_child_has_none_of_its_parents_models_and_captures) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  aclmdlRI model = nullptr, other = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const auto capture = [&](aclrtStream of, aclmdlRI* result) {
    CHECK_EQ(aclmdlRICaptureBegin(of, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    run_on(of, [] { return ACL_SUCCESS; });
    if (result != nullptr) CHECK_EQ(aclmdlRICaptureEnd(of, result), ACL_SUCCESS);
  };
  capture(stream, &model);
  capture(stream, nullptr);
  in_child([&] {
    CHECK_EQ(aclHostLiveObjects("model"), 0);
    CHECK_EQ(aclmdlRIDestroy(model), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclmdlRICaptureEnd(stream, &other), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);  // nothing is captured
    aclrtStream own = nullptr;
    CHECK_EQ(aclrtCreateStream(&own), ACL_SUCCESS);
    capture(own, &other);
    CHECK(other != model);
    CHECK_EQ(aclmdlRIExecuteAsync(other, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIDestroy(other), ACL_SUCCESS);
  });
  CHECK_EQ(aclmdlRICaptureEnd(stream, &other), ACL_SUCCESS);
  for (const aclmdlRI each : {model, other}) CHECK_EQ(aclmdlRIDestroy(each), ACL_SUCCESS);
  CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

TEST(a_fork_amid_other_threads_calls_does_not_hang_the_child) {
  SKIP_IF(kAddressSanitizer, "AddressSanitizer's own locks may be held at the fork");
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::atomic<bool> end = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&end] {
      CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      while (!end) {
        void* block = nullptr;
        aclrtStream stream = nullptr;
        aclrtEvent event = nullptr;
        CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
        CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
        CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
        CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
        CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
      }
      CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (int round = 0; round < 20; ++round) {
    in_child([] {
      void* block = nullptr;
      aclrtStream stream = nullptr;
      aclrtEvent event = nullptr;
      CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
      CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
      CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    });
  }
  end = true;
  for (auto& thread : threads) thread.join();
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

// Ends a process with work left undone, which its argument selects. It is a new program, because a
// forked child would share the parent's output buffers and sanitizer state.
static int run_self(const char* what) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("RUNTIME_PROCESS_END", what, 1);
    // The emulator that runs this program if the kernel cannot: tests/aarch64.py.
    const char* emulator = std::getenv("ACLNN_TEST_EMULATOR");
    if (emulator != nullptr) {
      execl(emulator, emulator, program_invocation_name, "ends_with_work_queued",
            static_cast<char*>(nullptr));
    }
    execl("/proc/self/exe", "test_runtime_process", "ends_with_work_queued",
          static_cast<char*>(nullptr));
    _exit(99);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  return status;
}

static void sleep_a_little(void*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}
static void sleep_for_ever(void*) {
  std::this_thread::sleep_for(std::chrono::hours(1));
}
static void exit_here(void*) {
  std::exit(7);
}

TEST(ends_with_work_queued) {
  const char* what = std::getenv("RUNTIME_PROCESS_END");
  if (what == nullptr) {  // the parent
    for (const char* end : {"work", "waiting", "callback", "captured", "stuck", "external event",
                            "exit in a callback"}) {
      const bool leaves_a_thread = end[0] == 's' || end[0] == 'e';
      if (kThreadSanitizer && leaves_a_thread) continue;
      const int status = run_self(end);
      CHECK(WIFEXITED(status));
      CHECK_EQ(WEXITSTATUS(status), 7);
    }
    return;
  }
  alarm(kPatience);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr, other = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  if (std::strcmp(what, "work") == 0) {
    for (int i = 0; i < 100000; ++i) aclrtLaunchHostFunc(stream, sleep_a_little, nullptr);
  } else if (std::strcmp(what, "waiting") == 0) {
    aclrtEvent event = nullptr;
    CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    for (int i = 0; i < 1000; ++i) aclrtLaunchHostFunc(stream, sleep_a_little, nullptr);
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(other, event), ACL_SUCCESS);
  } else if (std::strcmp(what, "callback") == 0) {
    CHECK_EQ(aclrtSubscribeReport(1, stream), ACL_SUCCESS);  // a thread that never serves it
    CHECK_EQ(aclrtLaunchCallback(sleep_a_little, nullptr, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  } else if (std::strcmp(what, "captured") == 0) {
    CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    aclrtLaunchHostFunc(stream, sleep_for_ever, nullptr);
  } else if (std::strcmp(what, "external event") == 0) {
    aclrtEvent event = nullptr;  // nobody records it
    aclmdlRI model = nullptr;
    CHECK_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(model, other), ACL_SUCCESS);
  } else if (std::strcmp(what, "stuck") == 0) {
    aclrtLaunchHostFunc(stream, sleep_for_ever, nullptr);
  } else {
    aclrtLaunchHostFunc(stream, exit_here, nullptr);
    for (;;) pause();
  }
  std::exit(check::failures() == 0 ? 7 : 1);
}
