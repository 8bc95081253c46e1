// Virtual memory: reserved addresses, physical memory, mappings.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime_support.h"

// Set before anything reads it.
static const int environment =
    setenv("ACLNN_TORCH_DEVICE_MEMORY", "64M", 1) + setenv("ACLNN_TORCH_DEVICES", "2", 1);
constexpr size_t kMiB = size_t{1} << 20;

static aclrtPhysicalMemProp memory_of(uint32_t device) {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {device, ACL_MEM_LOCATION_TYPE_DEVICE};
  return prop;
}

static aclrtDrvMemHandle physical(size_t size) {
  const auto prop = memory_of(0);
  aclrtDrvMemHandle handle = nullptr;
  CHECK_EQ(aclrtMallocPhysical(&handle, size, &prop, 0), ACL_SUCCESS);
  return handle;
}

static char* reserve(size_t size) {
  void* range = nullptr;
  CHECK_EQ(aclrtReserveMemAddress(&range, size, 0, nullptr, 1), ACL_SUCCESS);
  return static_cast<char*>(range);
}

static size_t free_memory() {
  size_t free = 0, total = 0;
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  return free;
}

// Runs the body on device 0 and checks that it leaves nothing behind.
static void on_device(const std::function<void()>& body) {
  CHECK_EQ(environment, 0);
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(free_memory(), 64 * kMiB);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

static aclError copy_in(void* dst, const std::vector<char>& bytes) {
  return aclrtMemcpy(dst, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE);
}

static aclError copy_out(std::vector<char>& bytes, const void* src) {
  return aclrtMemcpy(bytes.data(), bytes.size(), src, bytes.size(), ACL_MEMCPY_DEVICE_TO_HOST);
}

TEST(a_mapping_is_device_memory_and_a_range_is_not) {
  on_device([] {
    char* const range = reserve(8 * kMiB);
    const std::vector<char> bytes(100, 'x');
    CHECK_EQ(copy_in(range, bytes), ACL_ERROR_RT_PARAM_INVALID);
    const auto handle = physical(2 * kMiB);
    CHECK_EQ(free_memory(), 62 * kMiB);
    CHECK_EQ(aclrtMapMem(range + 2 * kMiB, 2 * kMiB, 0, handle, 0), ACL_SUCCESS);
    CHECK_EQ(free_memory(), 62 * kMiB);
    CHECK_EQ(copy_in(range + 4 * kMiB - 100, bytes), ACL_SUCCESS);
    CHECK_EQ(copy_in(range + 4 * kMiB - 99, bytes), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(copy_in(range + 2 * kMiB - 1, bytes), ACL_ERROR_RT_PARAM_INVALID);
    std::vector<char> back(100);
    CHECK_EQ(copy_out(back, range + 4 * kMiB - 100), ACL_SUCCESS);
    CHECK(back == bytes);
    CHECK_EQ(aclrtFree(range + 2 * kMiB), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(range + 2 * kMiB), ACL_SUCCESS);
    CHECK_EQ(copy_out(back, range + 2 * kMiB), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}

TEST(mappings_that_touch_are_one_block) {
  on_device([] {
    char* const range = reserve(8 * kMiB);
    const aclrtDrvMemHandle handles[] = {physical(2 * kMiB), physical(kMiB), physical(kMiB)};
    CHECK_EQ(aclrtMapMem(range, 2 * kMiB, 0, handles[0], 0), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(range + 3 * kMiB, kMiB, 0, handles[1], 0), ACL_SUCCESS);
    std::vector<char> bytes(3 * kMiB, 'a');
    CHECK_EQ(copy_in(range + kMiB, bytes), ACL_ERROR_RT_PARAM_INVALID);  // a hole
    CHECK_EQ(aclrtMapMem(range + 2 * kMiB, kMiB, 0, handles[2], 0), ACL_SUCCESS);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i >> 12);
    CHECK_EQ(copy_in(range + kMiB, bytes), ACL_SUCCESS);
    std::vector<char> back(bytes.size());
    CHECK_EQ(copy_out(back, range + kMiB), ACL_SUCCESS);
    CHECK(back == bytes);
    for (size_t at : {size_t{0}, 2 * kMiB, 3 * kMiB}) {
      CHECK_EQ(aclrtUnmapMem(range + at), ACL_SUCCESS);
    }
    for (const auto handle : handles) CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}

TEST(contents_belong_to_the_physical_memory) {
  on_device([] {
    char* const range = reserve(4 * kMiB);
    const auto handle = physical(kMiB);
    const std::vector<char> bytes(64, 'p');
    CHECK_EQ(aclrtMapMem(range, kMiB, 0, handle, 0), ACL_SUCCESS);
    CHECK_EQ(copy_in(range + 512, bytes), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(range + 2 * kMiB, kMiB, 0, handle, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);  // the mapping keeps it
    CHECK_EQ(free_memory(), 63 * kMiB);
    std::vector<char> back(64);
    CHECK_EQ(copy_out(back, range + 2 * kMiB + 512), ACL_SUCCESS);
    CHECK(back == bytes);
    CHECK_EQ(aclrtUnmapMem(range + 2 * kMiB), ACL_SUCCESS);
    CHECK_EQ(free_memory(), 64 * kMiB);
    const auto fresh = physical(kMiB);  // it has no old contents
    CHECK_EQ(aclrtMapMem(range, kMiB, 0, fresh, 0), ACL_SUCCESS);
    CHECK_EQ(copy_out(back, range + 512), ACL_SUCCESS);
    CHECK(back == std::vector<char>(64, '\0'));
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(fresh), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}

TEST(a_range_may_have_any_size_and_needs_no_device) {
  leaves_nothing([] {
    char* const range = reserve(512);  // torch_npu tests in this way whether mapping works
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}

TEST(physical_memory_counts_and_runs_out) {
  on_device([] {
    const auto prop = memory_of(0);
    const auto most = physical(60 * kMiB);
    void* block = nullptr;
    aclrtDrvMemHandle more = nullptr;
    CHECK_EQ(aclrtMallocPhysical(&more, 8 * kMiB, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(contains(messages(), "device 0 is out of memory"));
    CHECK_EQ(aclrtMalloc(&block, 8 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST),
             ACL_ERROR_RT_MEMORY_ALLOCATION);
    const auto other = memory_of(1);
    CHECK_EQ(aclrtMallocPhysical(&more, 8 * kMiB, &other, 0), ACL_SUCCESS);
    CHECK_EQ(aclHostLiveObjects("physical_memory"), 2);
    CHECK_EQ(aclrtFreePhysical(more), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(most), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(most), ACL_ERROR_RT_PARAM_INVALID);
  });
}

TEST(bad_arguments_are_refused_and_named) {
  on_device([] {
    void* range = nullptr;
    CHECK_EQ(aclrtReserveMemAddress(nullptr, kMiB, 0, nullptr, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&range, 0, 0, nullptr, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddress(&range, SIZE_MAX, 0, nullptr, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddress(&range, kMiB, 1, nullptr, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddress(&range, kMiB, 0, nullptr, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(range == nullptr);

    auto prop = memory_of(0);
    aclrtDrvMemHandle handle = nullptr;
    CHECK_EQ(aclrtMallocPhysical(nullptr, kMiB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocPhysical(&handle, kMiB, nullptr, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocPhysical(&handle, 100, &prop, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMallocPhysical(&handle, kMiB, &prop, 1), ACL_ERROR_RT_PARAM_INVALID);
    prop.location.id = 2;
    CHECK_EQ(aclrtMallocPhysical(&handle, kMiB, &prop, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    prop.location = {0, ACL_MEM_LOCATION_TYPE_HOST};
    CHECK_EQ(aclrtMallocPhysical(&handle, kMiB, &prop, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(handle == nullptr);
    CHECK_EQ(free_memory(), 64 * kMiB);

    char* const own = reserve(4 * kMiB);
    handle = physical(2 * kMiB);
    CHECK_EQ(aclrtMapMem(own, 2 * kMiB, 0, own, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own, kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own, 2 * kMiB, kMiB, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own, 2 * kMiB, 0, handle, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own + 512, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own + 3 * kMiB, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own - kMiB, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(own + kMiB, 2 * kMiB, 0, handle, 0), ACL_SUCCESS);
    messages();
    CHECK_EQ(aclrtMapMem(own, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "mapped already"));
    CHECK_EQ(aclrtMapMem(own + 2 * kMiB, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReleaseMemAddress(own), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReleaseMemAddress(own + kMiB), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(own), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(own + kMiB), ACL_SUCCESS);
    CHECK_EQ(aclrtUnmapMem(own + kMiB), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(own, 2 * kMiB, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReleaseMemAddress(own), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(own), ACL_ERROR_RT_PARAM_INVALID);
  });
}

TEST(memory_mapped_at_the_same_address_is_not_what_a_copy_was_given) {
  on_device([] {
    char* const range = reserve(2 * kMiB);
    const aclrtDrvMemHandle handles[] = {physical(kMiB), physical(kMiB)};
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    CHECK_EQ(aclrtMapMem(range, kMiB, 0, handles[0], 0), ACL_SUCCESS);
    CHECK_EQ(aclrtMemsetAsync(range, kMiB, 'x', kMiB, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(range, kMiB, 0, handles[1], 0), ACL_SUCCESS);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    CHECK_EQ(range[0], '\0');
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    for (const auto handle : handles) CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(physical_memory_of_the_granularity_can_be_made) {
  on_device([] {
    auto prop = memory_of(0);
    for (const auto option :
         {ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED}) {
      size_t size = 0;
      CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, option, &size), ACL_SUCCESS);
      CHECK_EQ(size, 2 * kMiB);
      CHECK_EQ(aclrtFreePhysical(physical(size)), ACL_SUCCESS);
    }
    size_t size = 7;
    CHECK_EQ(aclrtMemGetAllocationGranularity(nullptr, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &size),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, nullptr),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(
        aclrtMemGetAllocationGranularity(&prop, static_cast<aclrtMemGranularityOptions>(2), &size),
        ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(size, 7u);
  });
}

TEST(the_share_of_taken_memory_is_told_and_no_core_s) {
  on_device([] {
    void* block = nullptr;
    CHECK_EQ(aclrtMalloc(&block, 16 * kMiB, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    aclrtUtilizationInfo info = {};
    CHECK_EQ(aclrtGetDeviceUtilizationRate(0, &info), ACL_SUCCESS);
    CHECK_EQ(info.memoryUtilization, 25);
    for (const int32_t of : {info.cubeUtilization, info.vectorUtilization, info.aicpuUtilization}) {
      CHECK_EQ(of, DEVICE_UTILIZATION_NOT_SUPPORT);
    }
    CHECK_EQ(aclrtGetDeviceUtilizationRate(1, &info), ACL_SUCCESS);
    CHECK_EQ(info.memoryUtilization, 0);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclrtGetDeviceUtilizationRate(2, &info), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetDeviceUtilizationRate(0, nullptr), ACL_ERROR_INVALID_PARAM);
    info.utilizationExtend = reinterpret_cast<aclrtUtilizationExtendInfo*>(&info);
    CHECK_EQ(aclrtGetDeviceUtilizationRate(0, &info), ACL_ERROR_INVALID_PARAM);
  });
}

TEST(host_memory_is_registered_once) {
  on_device([] {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char* const memory = static_cast<char*>(std::aligned_alloc(page, 4 * page));
    void* device = nullptr;
    CHECK_EQ(aclrtHostGetDevicePointer(memory, &device, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQ(aclrtHostRegisterV2(memory + page, 2 * page, ACL_HOST_REG_MAPPED), ACL_SUCCESS);
    CHECK_EQ(aclrtHostGetDevicePointer(memory + 2 * page, &device, 0), ACL_SUCCESS);
    CHECK(device == memory + 2 * page);
    CHECK_EQ(aclrtHostGetDevicePointer(memory + 3 * page, &device, 0),
             ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    for (const auto& [begin, size] : {std::pair(0, 2), std::pair(1, 2), std::pair(2, 2)}) {
      CHECK_EQ(
          aclrtHostRegister(memory + static_cast<size_t>(begin) * page,
                            static_cast<size_t>(size) * page, ACL_HOST_REGISTER_MAPPED, &device),
          ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    CHECK_EQ(aclrtHostRegister(memory, page, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
    CHECK(device == memory);
    CHECK_EQ(
        aclrtHostRegisterV2(memory + 3 * page, page, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED),
        ACL_SUCCESS);
    CHECK_EQ(aclrtHostUnregister(memory + 2 * page), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    for (const size_t begin : {0, 1, 3}) {
      CHECK_EQ(aclrtHostUnregister(memory + begin * page), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtHostUnregister(memory), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);

    CHECK_EQ(aclrtHostRegisterV2(nullptr, page, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostUnregister(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegister(memory, page, ACL_HOST_REGISTER_MAPPED, nullptr),
             ACL_ERROR_INVALID_PARAM);
    for (const uint64_t size : {uint64_t{0}, ~uint64_t{0}}) {
      CHECK_EQ(aclrtHostRegisterV2(memory, size, ACL_HOST_REG_MAPPED), ACL_ERROR_RT_PARAM_INVALID);
    }
    CHECK_EQ(aclrtHostRegisterV2(memory + 8, page, ACL_HOST_REG_MAPPED),
             ACL_ERROR_RT_PARAM_INVALID);
    for (const uint32_t flag : {0u, 1u}) {
      CHECK_EQ(aclrtHostRegisterV2(memory, page, flag), ACL_ERROR_RT_PARAM_INVALID);
    }
    std::free(memory);
  });
}

// The graph of a device stores addresses, and uses the memory that is mapped there when it is
// executed.
TEST(a_model_uses_what_is_mapped_at_its_addresses_now) {
  on_device([] {
    constexpr size_t kSize = 2 * kMiB;
    char* const range = reserve(kSize);
    const aclrtDrvMemHandle first = physical(kSize);
    CHECK_EQ(aclrtMapMem(range, kSize, 0, first, 0), ACL_SUCCESS);
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    CHECK_EQ(aclrtMemsetAsync(range, 4, 'a', 4, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpyAsync(range + 4, 4, range, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
             ACL_SUCCESS);
    aclmdlRI model = nullptr;
    CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);

    // Other memory at the same addresses.
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    const aclrtDrvMemHandle second = physical(kSize);
    CHECK_EQ(aclrtMapMem(range, kSize, 0, second, 0), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    std::vector<char> back(8);
    CHECK_EQ(copy_out(back, range), ACL_SUCCESS);
    CHECK(back == std::vector<char>(8, 'a'));

    // No memory.
    CHECK_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    messages();
    CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    for (const auto handle : {first, second}) CHECK_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}
