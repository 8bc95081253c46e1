// The allocator of vllm-ascend's sleep mode: memory, errors and devices.
// tests/npu/test_sleep_mode.py has what torch_npu and the Python package make of it. The rules are
// those of vllm-ascend 0.23.0 (csrc/camem_allocator.cpp) and of CANN's virtual memory
// (docs/emulation/runtime.md).
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime_support.h"

// Set before anything reads it.
static const int environment =
    setenv("ACLNN_TORCH_DEVICE_MEMORY", "64M", 1) + setenv("ACLNN_TORCH_DEVICES", "2", 1);
constexpr size_t kMiB = size_t{1} << 20;

using Handle = std::array<uint64_t, 4>;

extern "C" {
void* my_malloc(ssize_t size, int device, aclrtStream stream);
void my_free(void* pointer, ssize_t size, int device, aclrtStream stream);
void aclHostVllmCallbacks(bool (*allocated)(uint64_t, uint64_t, uint64_t, uint64_t, char*, size_t),
                          void (*freed)(uint64_t));
aclError aclHostVllmMap(uint64_t device, uint64_t size, uint64_t address, uint64_t memory);
aclError aclHostVllmUnmap(uint64_t device, uint64_t size, uint64_t address, uint64_t memory);
}

namespace {

std::vector<Handle> allocated;
std::vector<uint64_t> freed;

bool on_allocated(uint64_t device, uint64_t size, uint64_t address, uint64_t memory, char*,
                  size_t) {
  allocated.push_back({device, size, address, memory});
  return true;
}

bool on_allocated_fails(uint64_t, uint64_t, uint64_t, uint64_t, char* reason, size_t size) {
  CHECK_EQ(size, 256U);
  std::strcpy(reason, "KeyError: 'weights'");
  return false;
}

void on_freed(uint64_t address) {
  freed.push_back(address);
}

aclError map(const Handle& handle) {
  return aclHostVllmMap(handle[0], handle[1], handle[2], handle[3]);
}

aclError unmap(const Handle& handle) {
  return aclHostVllmUnmap(handle[0], handle[1], handle[2], handle[3]);
}

// The text of the exception of a call.
std::string raised(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

size_t free_memory(int device) {
  CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
  size_t free = 0, total = 0;
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  return free;
}

void on_devices(const std::function<void()>& body) {
  CHECK_EQ(environment, 0);
  leaves_nothing([&] {
    allocated.clear();
    freed.clear();
    aclHostVllmCallbacks(on_allocated, on_freed);
    CHECK_EQ(free_memory(0), 64 * kMiB);
    body();
    CHECK_EQ(free_memory(1), 64 * kMiB);
    CHECK_EQ(aclrtResetDeviceForce(1), ACL_SUCCESS);
    CHECK_EQ(free_memory(0), 64 * kMiB);
    CHECK_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
    aclHostVllmCallbacks(nullptr, nullptr);
  });
}

}  // namespace

TEST(a_block_is_whole_pages_and_its_address_outlives_its_memory) {
  on_devices([] {
    auto* const block = static_cast<char*>(my_malloc(3 * kMiB + 1, 0, nullptr));
    CHECK_EQ(allocated.size(), 1U);
    const Handle handle = allocated.at(0);
    CHECK_EQ(handle[0], 0U);
    CHECK_EQ(handle[1], 4 * kMiB);  // the granularity is 2 MiB
    CHECK_EQ(handle[2], reinterpret_cast<uint64_t>(block));
    CHECK_EQ(free_memory(0), 60 * kMiB);

    char bytes[] = "weights";
    const auto in = [&](void* to) {
      return aclrtMemcpy(to, sizeof bytes, bytes, sizeof bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    };
    CHECK_EQ(in(block), ACL_SUCCESS);
    CHECK_EQ(unmap(handle), ACL_SUCCESS);
    CHECK_EQ(free_memory(0), 64 * kMiB);
    CHECK_EQ(in(block), ACL_ERROR_RT_PARAM_INVALID);
    messages();
    CHECK_EQ(map(handle), ACL_SUCCESS);
    CHECK_EQ(free_memory(0), 60 * kMiB);
    CHECK_EQ(in(block + 4 * kMiB - sizeof bytes), ACL_SUCCESS);
    my_free(block, 3 * kMiB + 1, 0, nullptr);
    CHECK_EQ(freed.size(), 1U);
    CHECK_EQ(freed.at(0), handle[2]);
    CHECK_EQ(free_memory(0), 64 * kMiB);
  });
}

TEST(a_block_without_memory_can_be_freed) {
  on_devices([] {
    void* const block = my_malloc(1, 1, nullptr);
    CHECK_EQ(free_memory(1), 62 * kMiB);
    CHECK_EQ(free_memory(0), 64 * kMiB);
    CHECK_EQ(unmap(allocated.at(0)), ACL_SUCCESS);
    my_free(block, 1, 1, nullptr);
    CHECK_EQ(freed.size(), 1U);
    CHECK_EQ(map(allocated.at(0)), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "is not the address of a block of my_malloc, or was freed"));
  });
}

TEST(memory_is_not_given_back_or_asked_for_twice) {
  on_devices([] {
    void* const block = my_malloc(1, 0, nullptr);
    const Handle handle = allocated.at(0);
    CHECK_EQ(map(handle), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "python_create_and_map: the block at 0x"));
    CHECK_EQ(unmap(handle), ACL_SUCCESS);
    CHECK_EQ(unmap(handle), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "python_unmap_and_release: the memory of the block at 0x"));
    my_free(block, 1, 0, nullptr);
    my_free(block, 1, 0, nullptr);
    CHECK(contains(messages(), "is not the address of a block of my_malloc, or was freed"));
    CHECK_EQ(freed.size(), 1U);
  });
}

TEST(handles_are_checked) {
  on_devices([] {
    CHECK_EQ(unmap({0, 0, 0, 0}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "python_unmap_and_release: 0x0 is not the address of a block"));
    my_free(nullptr, 1, 0, nullptr);
    CHECK_EQ(messages(), "my_free: 0x0 is not the address of a block of my_malloc, or was freed");
    void* const block = my_malloc(1, 0, nullptr);
    const Handle handle = allocated.at(0);
    for (size_t i : {0, 1, 3}) {
      Handle changed = handle;
      changed[i] += 1;
      CHECK_EQ(unmap(changed), ACL_ERROR_INVALID_PARAM);
      CHECK(contains(messages(), "python_unmap_and_release: the handle is ("));
      CHECK_EQ(map(changed), ACL_ERROR_INVALID_PARAM);
      CHECK(contains(messages(), "), expected (0, 2097152, 0x"));
    }
    CHECK_EQ(free_memory(0), 62 * kMiB);
    my_free(block, 1, 0, nullptr);
  });
}

TEST(what_cannot_be_allocated_leaves_nothing) {
  on_devices([] {
    const auto refusal = [](ssize_t size, int device) {
      return raised([=] { my_malloc(size, device, nullptr); });
    };
    my_free(nullptr, 1, 0, nullptr);  // the message of an earlier failure is no part of the next
    CHECK_EQ(refusal(0, 0), "my_malloc: size is 0, expected 1 or more (status 100000)");
    CHECK_EQ(refusal(-1, 0), "my_malloc: size is -1, expected 1 or more (status 100000)");
    CHECK(contains(refusal(SSIZE_MAX, 0), "aclrtReserveMemAddress: size is "));
    CHECK(contains(refusal(1, 2), "aclrtMallocPhysical: "));
    CHECK(contains(refusal(1, -1), "aclrtMallocPhysical: "));
    const std::string text = refusal(66 * kMiB, 0);
    CHECK(contains(text, "aclrtMallocPhysical: "));
    CHECK(contains(text, "(status 207001)"));
    CHECK_EQ(allocated.size(), 0U);
    CHECK_EQ(freed.size(), 0U);
  });
}

TEST(memory_that_is_gone_is_an_error_and_the_block_stays) {
  on_devices([] {
    void* const block = my_malloc(40 * kMiB, 0, nullptr);
    CHECK_EQ(unmap(allocated.at(0)), ACL_SUCCESS);
    void* const other = my_malloc(30 * kMiB, 0, nullptr);
    CHECK_EQ(map(allocated.at(0)), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(free_memory(0), 34 * kMiB);
    my_free(other, 30 * kMiB, 0, nullptr);
    CHECK_EQ(map(allocated.at(0)), ACL_SUCCESS);
    my_free(block, 40 * kMiB, 0, nullptr);
  });
}

TEST(functions_of_python_that_fail_or_are_not_there) {
  on_devices([] {
    aclHostVllmCallbacks(on_allocated_fails, on_freed);
    CHECK_EQ(raised([] { my_malloc(1, 0, nullptr); }),
             "my_malloc: the first function of init_module raised KeyError: 'weights' (status "
             "500001)");
    CHECK_EQ(free_memory(0), 64 * kMiB);
    CHECK_EQ(freed.size(), 0U);
    aclHostVllmCallbacks(on_allocated, on_freed);
    void* const block = my_malloc(1, 0, nullptr);
    aclHostVllmCallbacks(nullptr, nullptr);
    CHECK_EQ(raised([] { my_malloc(1, 0, nullptr); }),
             "my_malloc: init_module of vllm_ascend.vllm_ascend_C was not called in this process "
             "(status 100001)");
    my_free(block, 1, 0, nullptr);
    CHECK_EQ(freed.size(), 0U);
  });
}
