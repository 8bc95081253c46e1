// Initialisation, devices, contexts and system parameters.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_elu.h"
#include "runtime_support.h"

// Set before anything reads it.
static const int environment =
    setenv("ACLNN_TORCH_DEVICES", "2", 1) + setenv("ACLNN_TORCH_FAILURES", "/proc/self/fd/700", 1);

TEST(init_and_finalize_are_once_each) {
  CHECK_EQ(environment, 0);
  CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  CHECK_EQ(aclInit("/no/such/file.json"), ACL_ERROR_INVALID_FILE);
  CHECK_EQ(aclInit(nullptr), ACL_SUCCESS);
  CHECK_EQ(aclInit(""), ACL_ERROR_REPEAT_INITIALIZE);
  CHECK_EQ(aclFinalize(), ACL_SUCCESS);
  CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  CHECK_EQ(aclInit(""), ACL_SUCCESS);
  CHECK_EQ(aclFinalize(), ACL_SUCCESS);
  messages();
}

// A file with this content, which the destructor removes.
class File {
 public:
  explicit File(const std::string& content) {
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, content.data(), content.size()) == ssize_t(content.size()));
    close(file);
  }
  ~File() { std::remove(path); }

  char path[32] = "/tmp/configuration_XXXXXX";
};

TEST(init_reads_its_configuration) {
  const auto refused = [](const char* path, aclError status, const char* reason) {
    CHECK_EQ(aclInit(path), status);
    const std::string text = messages();
    CHECK(text.starts_with("aclInit: ") && contains(text, path) && contains(text, reason));
  };
  refused("/no/such/file.json", ACL_ERROR_INVALID_FILE, "No such file");
  refused("/tmp", ACL_ERROR_INVALID_FILE, "folder");
  refused("/dev/null", ACL_ERROR_INVALID_FILE, "not a regular file");
  {
    const File secret("{}");
    CHECK_EQ(chmod(secret.path, 0), 0);
    if (geteuid() == 0) {  // root may read it in any case
      CHECK_EQ(aclInit(secret.path), ACL_SUCCESS);
      CHECK_EQ(aclFinalize(), ACL_SUCCESS);
    } else {
      refused(secret.path, ACL_ERROR_INVALID_FILE, "right to read");
    }
  }
  const std::string nine(9, '['), closed(9, ']');
  for (const std::string& bad :
       std::vector<std::string>{" ",           "{",     "}",
                                "{]",          "[1,]",  "{\"a\"}",
                                "{\"a\":}",    "{a:1}", "{\"a\":1,}",
                                "nul",         "01",    "1.",
                                "1e",          "-",     "\"\\x\"",
                                "\"\\u12g4\"", "\"a",   "\"\n\"",
                                "{} {}",       "'a'",   "[[" + nine + closed + "]]"}) {
    refused(File(bad).path, ACL_ERROR_PARSE_FILE, "line 1");
  }
  refused(File("{\n\n  \"a\": x\n}").path, ACL_ERROR_PARSE_FILE, "line 3");
  for (const std::string& good : std::vector<std::string>{
           "", "{}", " {\"dump\": {\"dump_list\": [], \"dump_path\": \"/tmp\"}}\n",
           "[[1, -0.5e+3, 0]]", "{\"a\\\"\\u00e9\": [true, false, null, {}], \"b\": \"\"}",
           "[" + nine + closed + "]"}) {
    CHECK_EQ(aclInit(File(good).path), ACL_SUCCESS);
    CHECK_EQ(aclFinalize(), ACL_SUCCESS);
  }
  CHECK_EQ(messages(), std::string());
}

TEST(a_thread_without_a_device_is_told_so) {
  int32_t device = -7;
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  void* memory = nullptr;
  size_t free = 0, total = 0;
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_EQ(device, -7);
  CHECK_EQ(aclrtGetCurrentContext(&context), ACL_ERROR_RT_CONTEXT_NULL);
  // These two are queries: torch_npu makes them on every thread, and its next error is another one.
  CHECK_EQ(messages(), std::string());
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK(contains(messages(), "aclrtSetDevice"));
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_EQ(aclrtMalloc(&memory, 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  messages();
}

TEST(each_thread_has_its_device) {
  leaves_nothing([] {
    uint32_t count = 0;
    CHECK_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
    CHECK_EQ(count, 2u);
    CHECK_EQ(aclrtSetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(contains(messages(), "ACLNN_TORCH_DEVICES"));
    CHECK_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    std::thread([] {
      int32_t device = -1;
      CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
      CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
      CHECK_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
      CHECK_EQ(device, 1);
      CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
      CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    }).join();
    int32_t device = -1;
    CHECK_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    CHECK_EQ(device, 0);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
  });
}

TEST(reset_counts_and_force_does_not) {
  leaves_nothing([] {
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    std::thread([] { CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS); }).join();
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
    for (int i = 0; i < 3; ++i) CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
    int32_t device = -1;
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  });
}

TEST(reset_waits_for_queued_work_and_spares_other_devices) {
  leaves_nothing([] {
    Gate gate;
    int done = 0;
    aclrtStream other = nullptr;
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    const aclrtStream stream = gated_stream(gate);
    for (int i = 0; i < 100; ++i) run_on(stream, [&done] { return ++done, ACL_SUCCESS; });
    std::thread opener([&gate] { gate.open(); });
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(done, 100);
    opener.join();
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  });
}

TEST(finalize_waits_for_queued_work) {
  leaves_nothing([] {
    CHECK_EQ(aclInit(nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    Gate gate;
    int done = 0;
    const aclrtStream stream = gated_stream(gate);
    for (int i = 0; i < 100; ++i) run_on(stream, [&done] { return ++done, ACL_SUCCESS; });
    std::thread opener([&gate] { gate.open(); });
    CHECK_EQ(aclFinalize(), ACL_SUCCESS);
    CHECK_EQ(done, 100);
    opener.join();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(contexts_switch_the_device) {
  leaves_nothing([] {
    aclrtContext first = nullptr, second = nullptr, current = nullptr;
    CHECK_EQ(aclrtCreateContext(&first, 2), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateContext(&first, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateContext(&second, 1), ACL_SUCCESS);
    CHECK_EQ(aclHostLiveObjects("context"), 2);
    CHECK_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
    CHECK(current == second);
    int32_t device = -1;
    CHECK_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    CHECK_EQ(device, 1);
    CHECK_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
    CHECK_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    CHECK_EQ(device, 0);
    std::thread([&] { CHECK_EQ(aclrtDestroyContext(first), ACL_SUCCESS); }).join();
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSetCurrentContext(first), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDestroyContext(first), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDestroyContext(second), ACL_SUCCESS);
    CHECK_EQ(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM);
  });
}

TEST(a_context_takes_its_streams_along) {
  leaves_nothing([] {
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST(the_device_s_own_context_is_not_destroyed_by_hand) {
  leaves_nothing([] {
    aclrtContext context = nullptr;
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(system_parameters_are_remembered) {
  int64_t value = -1;
  CHECK_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  CHECK_EQ(value, 0);
  CHECK_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  std::thread([&] { aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value); }).join();
  CHECK_EQ(value, 1);
  CHECK_EQ(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(99), 1), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM);

  aclrtContext first = nullptr, second = nullptr;
  CHECK_EQ(aclrtCreateContext(&first, 0), ACL_SUCCESS);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  CHECK_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 3), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateContext(&second, 0), ACL_SUCCESS);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  CHECK_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  CHECK_EQ(value, 3);
  CHECK_EQ(aclrtDestroyContext(first), ACL_SUCCESS);
  CHECK_EQ(aclrtDestroyContext(second), ACL_SUCCESS);
  messages();
}

TEST(what_the_machine_is) {
  aclrtRunMode mode = ACL_DEVICE;
  CHECK_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  CHECK_EQ(mode, ACL_HOST);
  int32_t major = 0, minor = 0, patch = -1;
  CHECK_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  CHECK_EQ(major, 1);
  CHECK_EQ(aclrtGetVersion(&major, nullptr, &patch), ACL_ERROR_INVALID_PARAM);
  int64_t cores = 0;
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_SUCCESS);
  CHECK_EQ(cores, 24);
  CHECK_EQ(aclGetDeviceCapability(2, ACL_DEVICE_INFO_AI_CORE_NUM, &cores),
           ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &cores), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr), ACL_ERROR_INVALID_PARAM);
  messages();
}

TEST(peer_access) {
  leaves_nothing([] {
    int32_t can = -1;
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), ACL_SUCCESS);
    CHECK_EQ(can, 1);
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 0), ACL_SUCCESS);
    CHECK_EQ(can, 0);
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 5), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    int32_t status = -1;
    CHECK_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    CHECK_EQ(status, 0);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    CHECK_EQ(status, 1);
    CHECK_EQ(aclrtDevicePeerAccessStatus(1, 0, &status), ACL_SUCCESS);
    CHECK_EQ(status, 0);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 7), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceDisablePeerAccess(1), ACL_SUCCESS);
    CHECK_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    CHECK_EQ(status, 0);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(devices_are_set_and_reset_from_many_threads) {
  leaves_nothing([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([i] {
        for (int round = 0; round < 50; ++round) {
          const int32_t device = (i + round) % 2;
          int32_t got = -1;
          aclrtStream stream = nullptr;
          CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
          CHECK_EQ(aclrtGetDevice(&got), ACL_SUCCESS);
          CHECK_EQ(got, device);
          CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
          CHECK_EQ(run_on(stream, [] { return ACL_SUCCESS; }), ACL_SUCCESS);
          CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
          CHECK_EQ(aclrtResetDevice(device), ACL_SUCCESS);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

// Runs aclnnElu on one number; returns the status of stage 2.
static aclnnStatus elu(void* self, void* out, aclrtStream stream) {
  const int64_t size = 1;
  float number = 1;
  aclScalar* one = aclCreateScalar(&number, ACL_FLOAT);
  aclTensor* tensors[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    tensors[i] = aclCreateTensor(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1,
                                 i == 0 ? self : out);
  }
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnEluGetWorkspaceSize(tensors[0], one, one, one, tensors[1], &workspace, &executor),
           OK);
  for (const auto* each : tensors) aclDestroyTensor(each);
  aclDestroyScalar(one);
  return aclnnElu(nullptr, 0, executor, stream);
}

TEST(an_operator_on_another_devices_memory_is_an_error_that_names_both) {
  leaves_nothing([] {
    void* memory[2] = {};
    aclrtStream streams[2] = {};
    const float one = 1;
    for (int32_t device = 0; device < 2; ++device) {
      CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
      CHECK_EQ(aclrtCreateStream(&streams[device]), ACL_SUCCESS);
      CHECK_EQ(aclrtMalloc(&memory[device], 4, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      CHECK_EQ(aclrtMemcpy(memory[device], 4, &one, 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    }
    // The stream's device decides, not the calling thread's, which is 1.
    CHECK_EQ(elu(memory[0], memory[0], streams[0]), OK);
    CHECK_EQ(elu(memory[1], memory[1], streams[1]), OK);
    CHECK_EQ(elu(memory[1], memory[1], nullptr), OK);
    for (aclrtStream stream : {streams[0], streams[1], static_cast<aclrtStream>(nullptr)}) {
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    }
    CHECK_EQ(elu(memory[0], memory[1], streams[1]), OK);
    CHECK_EQ(aclrtSynchronizeStream(streams[1]), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(
        messages(),
        std::string("aclnnElu: tensor argument 0 (shape [1]) is in the memory of device 0, but the "
                    "stream belongs to device 1; copy it to the stream's device first"));
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(elu(memory[1], memory[0], nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "tensor argument 1 (shape [1]) is in the memory of device 0"));
    // Copies reach both devices. Device 0 records no failure.
    CHECK_EQ(aclrtMemcpyAsync(memory[0], 4, memory[1], 4, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[0]),
             ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(streams[0]), ACL_SUCCESS);
    // A thread without a device computes on CPU tensors, wherever they are.
    std::thread([&] {
      CHECK_EQ(elu(memory[0], memory[1], nullptr), OK);
      CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    }).join();
    // After a reset the device is in its initial state.
    CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&streams[1]), ACL_SUCCESS);
    CHECK_EQ(elu(memory[1], memory[1], streams[1]), OK);
    CHECK_EQ(aclrtSynchronizeStream(streams[1]), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    for (void* each : memory) CHECK_EQ(aclrtFree(each), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(the_primary_context_lives_from_set_to_reset) {
  uint32_t flags = 7;
  int32_t active = 7;
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, &active), ACL_SUCCESS);
  CHECK_EQ(active, 0);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, &active), ACL_SUCCESS);
  CHECK_EQ(active, 1);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, &active), ACL_SUCCESS);
  CHECK_EQ(active, 0);
  CHECK_EQ(aclrtGetPrimaryCtxState(-1, nullptr, &active), ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, &flags, &active), ACL_ERROR_INVALID_PARAM);
}

// Fails on a new stream of the device and synchronises it, without reading the error.
static aclrtStream failed_stream(int32_t device, const std::string& text) {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  run_on(stream, [text] { return aclnn_host::fail(ACL_ERROR_RT_COPY_DATA, "%s", text.c_str()); });
  Gate gate;
  CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), ACL_SUCCESS);
  run_on(stream, [&gate] { return gate.open(), ACL_SUCCESS; });
  gate.wait();
  return stream;
}

TEST(a_reset_tells_the_failures_that_nobody_was_told_of) {
  messages();
  failed_stream(0, "first");
  CHECK_EQ(aclrtDestroyStream(failed_stream(0, "second")), ACL_SUCCESS);
  const aclrtStream told = failed_stream(0, "third");
  CHECK_EQ(aclrtSynchronizeStream(told), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "third");
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);  // others still use it
  CHECK_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "second\nfirst");  // the newest first
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);

  CHECK_EQ(aclInit(nullptr), ACL_SUCCESS);
  failed_stream(0, "fourth");
  CHECK_EQ(aclFinalize(), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "fourth");
}

TEST(a_failure_that_an_event_tells_is_told) {
  aclrtStream stream = nullptr, other = nullptr;
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  run_on(stream, [] { return aclnn_host::fail(ACL_ERROR_RT_COPY_DATA, "before the event"); });
  CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  CHECK_EQ(aclrtStreamWaitEvent(other, event), ACL_SUCCESS);  // it fails, too, and nobody reads it
  Gate gate;
  CHECK_EQ(aclrtSetStreamFailureMode(other, ACL_CONTINUE_ON_FAILURE), ACL_SUCCESS);
  run_on(other, [&gate] { return gate.open(), ACL_SUCCESS; });
  gate.wait();
  CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "before the event");
  CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_failure_of_another_device_is_not_told_by_the_same_text) {
  messages();
  const aclrtStream other = failed_stream(1, "twice");
  CHECK_EQ(aclrtSynchronizeStream(failed_stream(0, "twice")), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "twice");
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(1), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(messages(), "twice");
}

// The descriptor that ACLNN_TORCH_FAILURES refers to here.
constexpr int kLaunchers = 700;

// Assigns a file to the descriptor.
static void give(int file) {
  CHECK_EQ(dup2(file, kLaunchers), kLaunchers);
  close(file);
}

// Reads and closes the descriptor's file.
static std::string taken() {
  std::string text(4 << 20, '\0');
  const ssize_t length = pread(kLaunchers, text.data(), text.size(), 0);
  close(kLaunchers);
  text.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return text;
}

// Fails on a stream and reads the error; calls the body in between.
static void fail_and_tell(const std::function<void()>& before = [] {}) {
  failed_stream(0, "to the \"launcher\"");
  before();
  CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_COPY_DATA);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

TEST(failures_are_written_into_memory_of_the_launcher_alone) {
  constexpr const char* kName = "aclnn_torch_failures";
  fail_and_tell();  // the descriptor is closed
  give(memfd_create(kName, 0));
  fail_and_tell();
  const std::string lines = taken();
  CHECK(lines.starts_with(R"({"process":)" + std::to_string(getpid()) + R"(,"number":)"));
  CHECK(contains(lines, R"(,"device":0,"stream":)"));
  CHECK(contains(lines, R"(,"call":"a test","status":507052,"text":"to the \"launcher\""})"
                        "\n"));
  CHECK(lines.ends_with(R"(,"told":true})"
                        "\n"));

  give(memfd_create("another", 0));
  fail_and_tell();
  CHECK_EQ(taken(), "");
  char folder[] = "/tmp/aclnn_failures_XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/memfd:" + kName + " (deleted)";
  give(open(path.c_str(), O_CREAT | O_RDWR, 0600));
  fail_and_tell();
  CHECK_EQ(taken(), "");
  unlink(path.c_str());
  CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
  const int pipe = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  give(dup(pipe));
  fail_and_tell();
  pollfd ended{pipe, POLLIN, 0};
  CHECK_EQ(poll(&ended, 1, 0), 0);  // it had no writer, whose end would be seen
  close(pipe);
  taken();
  unlink(path.c_str());
  rmdir(folder);
}

TEST(the_launchers_memory_is_bounded_and_has_room_to_tell) {
  constexpr off_t kMost = 1 << 20;
  constexpr const char* kName = "aclnn_torch_failures";
  const auto grow = [](off_t size) { CHECK_EQ(ftruncate(kLaunchers, size), 0); };
  give(memfd_create(kName, 0));
  grow(kMost - 1);
  fail_and_tell();
  CHECK(contains(taken(), "launcher"));
  give(memfd_create(kName, 0));
  grow(kMost);
  fail_and_tell();
  CHECK(!contains(taken(), "launcher"));
  give(memfd_create(kName, 0));
  fail_and_tell([&] { grow(kMost); });
  CHECK(taken().ends_with(R"(,"told":true})"
                          "\n"));
  give(memfd_create(kName, 0));
  fail_and_tell([&] { grow(2 * kMost); });
  CHECK_EQ(taken().size(), size_t{2 * kMost});
}
