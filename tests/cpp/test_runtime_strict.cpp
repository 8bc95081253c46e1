// Strict mode: the host cannot access device memory, except in code that runs on the device;
// executors are refused other memory. Tests in which a signal is expected run in a child process.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "host_cann/runtime/memory.h"
#include "runtime_support.h"

using aclnn_host::MemoryInUse;

static const int environment =
    setenv("ACLNN_TORCH_STRICT", "1", 1) + setenv("ACLNN_TORCH_DEVICES", "2", 1);

// The signal that ends a child process which runs the body; 0 if the body returns.
static int signal_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // no report of a sanitizer
    alarm(60);
    body();
    _exit(0);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void touch(const void* address) {
  static_cast<void>(*static_cast<const volatile char*>(address));
}

// Device memory on the thread's device, and the same filled with 1, 2, 3, ...
static float* floats(size_t count, aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_NORMAL_ONLY) {
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, count * sizeof(float), policy), ACL_SUCCESS);
  return static_cast<float*>(memory);
}

static float* numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  float* memory = floats(count);
  const size_t size = count * sizeof(float);
  CHECK_EQ(aclrtMemcpy(memory, size, values.data(), size, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  return memory;
}

static std::vector<float> back(const float* memory, size_t count) {
  std::vector<float> values(count);
  const size_t size = count * sizeof(float);
  CHECK_EQ(aclrtMemcpy(values.data(), size, memory, size, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  return values;
}

static aclTensor* tensor(float* data, int64_t count) {
  return aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, data);
}

// out = factor * self for positive numbers, as an ELU; returns the status of stage 2.
static aclnnStatus scale(float* self, float* out, int64_t count, float factor, aclrtStream stream) {
  float number = 1;
  aclScalar* one = aclCreateScalar(&number, ACL_FLOAT);
  aclScalar* by = aclCreateScalar(&factor, ACL_FLOAT);
  aclTensor* tensors[] = {tensor(self, count), tensor(out, count)};
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnEluGetWorkspaceSize(tensors[0], one, by, one, tensors[1], &size, &executor), OK);
  for (const auto* each : tensors) aclDestroyTensor(each);
  for (const auto* each : {one, by}) aclDestroyScalar(each);
  return aclnnElu(nullptr, 0, executor, stream);
}

TEST(the_host_cannot_touch_device_memory) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* pinned = nullptr;
  CHECK_EQ(aclrtMallocHost(&pinned, 64), ACL_SUCCESS);
  CHECK_EQ(signal_of([&] { touch(pinned); }), 0);
  CHECK_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
    for (const auto policy : {ACL_MEM_MALLOC_NORMAL_ONLY, ACL_MEM_MALLOC_HUGE_FIRST}) {
      float* memory = floats(count, policy);
      CHECK_EQ(reinterpret_cast<uintptr_t>(memory) % 512, uintptr_t{0});
      CHECK_EQ(signal_of([&] { touch(memory); }), SIGSEGV);
      CHECK_EQ(signal_of([&] { touch(memory + count - 1); }), SIGSEGV);
      CHECK_EQ(aclrtMemset(memory, count * sizeof(float), 1, count * sizeof(float)), ACL_SUCCESS);
      CHECK_EQ(signal_of([&] { touch(memory); }), SIGSEGV);
      CHECK_EQ(aclrtFree(memory), ACL_SUCCESS);
    }
  }
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(mapped_memory_is_closed_too) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const size_t size = size_t{2} << 20;
  aclrtPhysicalMemProp property{};
  property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  property.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  void* begin = nullptr;
  CHECK_EQ(aclrtReserveMemAddress(&begin, 2 * size, 0, nullptr, 0), ACL_SUCCESS);
  aclrtDrvMemHandle handles[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    CHECK_EQ(aclrtMallocPhysical(&handles[i], size, &property, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(static_cast<char*>(begin) + i * size, size, 0, handles[i], 0),
             ACL_SUCCESS);
  }
  // Two adjacent mappings are one block: the copy opens both and closes both.
  const std::vector<char> ones(2 * size, 1);
  CHECK_EQ(aclrtMemcpy(begin, 2 * size, ones.data(), 2 * size, ACL_MEMCPY_HOST_TO_DEVICE),
           ACL_SUCCESS);
  for (const size_t at : {size_t{0}, size - 1, size, 2 * size - 1}) {
    CHECK_EQ(signal_of([&] { touch(static_cast<char*>(begin) + at); }), SIGSEGV);
  }
  std::vector<char> values(2 * size);
  CHECK_EQ(aclrtMemcpy(values.data(), 2 * size, begin, 2 * size, ACL_MEMCPY_DEVICE_TO_HOST),
           ACL_SUCCESS);
  CHECK(values == ones);
  for (size_t i = 0; i < 2; ++i) {
    CHECK_EQ(aclrtUnmapMem(static_cast<char*>(begin) + i * size), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(handles[i]), ACL_SUCCESS);
  }
  CHECK_EQ(aclrtReleaseMemAddress(begin), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(what_runs_on_the_device_sees_it) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  leaves_nothing([] {
    aclrtStream created = nullptr;
    CHECK_EQ(aclrtCreateStream(&created), ACL_SUCCESS);
    for (aclrtStream stream : {static_cast<aclrtStream>(nullptr), created}) {
      float* x = numbers(1000);
      float* y = floats(1000);
      const size_t size = 1000 * sizeof(float);
      CHECK_EQ(aclrtMemsetAsync(y, size, 0, size, stream), ACL_SUCCESS);
      CHECK_EQ(scale(x, y, 1000, 2, stream), OK);
      CHECK_EQ(scale(y, y, 1000, 3, stream), OK);
      CHECK_EQ(aclrtMemcpyAsync(x, size, y, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
               ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      const std::vector<float> values = back(x, 1000);
      CHECK_EQ(values.front(), 6.f);
      CHECK_EQ(values.back(), 6000.f);
      CHECK_EQ(signal_of([&] { touch(x); }), SIGSEGV);
      CHECK_EQ(signal_of([&] { touch(y); }), SIGSEGV);
      CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
      CHECK_EQ(aclrtFree(y), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtDestroyStream(created), ACL_SUCCESS);
  });
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_copy_has_the_sides_that_its_kind_says) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  float* const from = numbers(4);
  float* const to = floats(4);
  for (const auto kind : {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST}) {
    CHECK_EQ(aclrtMemcpy(to, 16, from, 16, kind), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(messages().find("expected host memory") != std::string::npos);
  }
  CHECK_EQ(aclrtFree(from), ACL_SUCCESS);
  CHECK_EQ(aclrtFree(to), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(users_are_counted) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  float* x = floats(4);
  {
    MemoryInUse first;
    first.add(x, 4);
    {
      MemoryInUse second;
      second.add(x + 2, 4);
      second.add(x, 4);
    }
    touch(x);
    // A child has none of the parent's running tasks.
    CHECK_EQ(signal_of([&] { touch(x); }), SIGSEGV);
    CHECK_EQ(signal_of([&] {
               if (aclrtFree(x) != ACL_SUCCESS) abort();
             }),
             0);
    touch(x);
  }
  CHECK_EQ(signal_of([&] { touch(x); }), SIGSEGV);
  CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_block_is_given_back_when_its_last_user_has_gone) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  float* x = floats(4);
  std::atomic<bool> freed = false;
  std::thread other;
  {
    MemoryInUse open;
    open.add(x, 16);
    other = std::thread([&] {
      CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
      freed = true;
    });
    for (int i = 0; i < 100; ++i) {
      touch(x);
      std::this_thread::yield();
    }
    CHECK(!freed);
  }
  other.join();
  CHECK(freed);
  CHECK_EQ(aclrtFree(x), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

TEST(many_streams_use_one_block) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  constexpr int kStreams = 4;
  float* x = numbers(64);
  std::vector<float*> outs;
  aclrtStream streams[kStreams] = {};
  for (auto& stream : streams) {
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    outs.push_back(floats(64));
  }
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      CHECK_EQ(scale(x, outs[i], 64, static_cast<float>(i + 1), streams[i]), OK);
    }
  }
  for (int i = 0; i < kStreams; ++i) {
    CHECK_EQ(aclrtSynchronizeStream(streams[i]), ACL_SUCCESS);
    CHECK_EQ(back(outs[i], 64).back(), 64.f * static_cast<float>(i + 1));
    CHECK_EQ(aclrtDestroyStream(streams[i]), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(outs[i]), ACL_SUCCESS);
  }
  CHECK_EQ(signal_of([&] { touch(x); }), SIGSEGV);
  CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(host_memory_is_an_error_of_the_device) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  leaves_nothing([] {
    float host[4] = {1, 2, 3, 4};
    void* pinned = nullptr;
    CHECK_EQ(aclrtMallocHost(&pinned, sizeof(host)), ACL_SUCCESS);
    float* x = numbers(4);
    for (float* address : {host, static_cast<float*>(pinned)}) {
      aclrtStream stream = nullptr;
      CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      CHECK_EQ(scale(x, address, 4, 5, stream), OK);
      CHECK_EQ(scale(x, x, 4, 5, stream), OK);  // it does not run any more
      for (int i = 0; i < 2; ++i) {
        CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
        const std::string text = messages();
        CHECK(contains(text, "aclnnElu: tensor argument 1 (shape [4]) is at 0x"));
        CHECK(contains(text, "ACLNN_TORCH_STRICT"));
      }
      CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
    CHECK_EQ(scale(host, x, 4, 5, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(host[3], 4.f);
    CHECK_EQ(back(x, 4)[3], 4.f);
    CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
    CHECK_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
  });
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(registered_host_memory_is_for_the_device_too) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  leaves_nothing([] {
    constexpr size_t kPage = 1 << 16;  // of any system
    auto* const host = static_cast<float*>(std::aligned_alloc(kPage, kPage));
    for (int i = 0; i < 4; ++i) host[i] = static_cast<float>(i + 1);
    void* device = nullptr;
    CHECK_EQ(aclrtHostRegisterV2(host, kPage, ACL_HOST_REG_MAPPED), ACL_SUCCESS);
    CHECK_EQ(aclrtHostGetDevicePointer(host, &device, 0), ACL_SUCCESS);
    float* const x = static_cast<float*>(device);
    CHECK_EQ(scale(x, x, 4, 5, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK_EQ(host[3], 20.f);
    CHECK_EQ(aclrtHostUnregister(host), ACL_SUCCESS);
    CHECK_EQ(scale(x, x, 4, 5, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(host[3], 20.f);
    std::free(host);
  });
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_workspace_in_host_memory_is_an_error_of_the_device) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  float* x = numbers(12);
  float* out = floats(12);
  const int64_t shape[] = {3, 4}, transposed[] = {1, 3}, width = 4, rows[] = {3, 1}, storage = 12;
  const auto make = [&](float* data, const int64_t* strides) {
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &storage, 1, data);
  };
  aclTensor* tensors[] = {
      make(x, transposed),
      aclCreateTensor(&width, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &width, 1, x),
      make(out, nullptr),
      aclCreateTensor(rows, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, rows, 1, floats(3))};
  std::vector<char> host;
  void* device = nullptr;
  for (const bool right : {true, false}) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK_EQ(aclnnRmsNormGetWorkspaceSize(tensors[0], tensors[1], 1e-6, tensors[2], tensors[3],
                                          &size, &executor),
             OK);
    CHECK(size > 0);  // the transposed input is packed
    host.resize(size);
    if (device == nullptr) {
      CHECK_EQ(aclrtMalloc(&device, size, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    }
    CHECK_EQ(aclnnRmsNorm(right ? device : host.data(), size, executor, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), right ? ACL_SUCCESS : ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(contains(messages(), "aclnnRmsNorm: the workspace is at 0x"), !right);
  }
  for (void* memory : {static_cast<void*>(x), static_cast<void*>(out), device}) {
    CHECK_EQ(aclrtFree(memory), ACL_SUCCESS);
  }
  void* rstd = nullptr;
  CHECK_EQ(aclGetRawTensorAddr(tensors[3], &rstd), OK);
  CHECK_EQ(aclrtFree(rstd), ACL_SUCCESS);
  for (const auto* each : tensors) aclDestroyTensor(each);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_thread_without_a_device_computes_in_host_memory) {
  std::thread([] {
    float host[4] = {1, 2, 3, 4};
    CHECK_EQ(scale(host, host, 4, 5, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK_EQ(host[3], 20.f);
  }).join();
}

TEST(copies_between_devices_open_both_sides) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  float* x = numbers(4);
  CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  float* y = floats(4);
  CHECK_EQ(aclrtMemcpy(y, 16, x, 16, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  CHECK_EQ(back(y, 4)[3], 4.f);
  CHECK_EQ(scale(x, y, 4, 2, nullptr), OK);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK(contains(messages(),
                 "tensor argument 0 (shape [4]) is in the memory of device 0, but the stream "
                 "belongs to device 1"));
  CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
  CHECK_EQ(aclrtFree(y), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(a_dump_reads_device_memory) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  char folder[] = "/tmp/aclnn_torch_dump_XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  setenv("ACLNN_TORCH_DUMP_DIR", folder, 1);
  float* x = numbers(4);
  aclTensor* tensors[] = {tensor(x, 4)};
  CHECK_EQ(aclDumpOpTensors("T", "n", tensors, 1, 0, nullptr), OK);
  unsetenv("ACLNN_TORCH_DUMP_DIR");
  const std::string path = std::string(folder) + "/T.n.input.0.bin";
  float values[4] = {};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(values), sizeof(values));
  CHECK_EQ(values[3], 4.f);
  unlink(path.c_str());
  rmdir(folder);
  aclDestroyTensor(tensors[0]);
  CHECK_EQ(aclrtFree(x), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}
