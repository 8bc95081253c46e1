// Functions that torch_npu links besides the runtime proper: descriptions, compiler options,
// versions, profiling, and functions that the host CANN refuses.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

#include "acl/acl_op_compiler.h"
#include "acl/acl_rt.h"
#include "profiling/aprof_pub.h"
#include "runtime/rt.h"
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

TEST(limits_of_cores_are_remembered) {
  on_device([] {
    const auto device_limit = [](aclrtDevResLimitType type) {
      uint32_t value = 0;
      CHECK_EQ(aclrtGetDeviceResLimit(0, type, &value), ACL_SUCCESS);
      return value;
    };
    const auto stream_limit = [](aclrtStream stream) {
      uint32_t value = 0;
      CHECK_EQ(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_SUCCESS);
      return value;
    };
    const auto thread_limit = [] {
      uint32_t value = 0;
      CHECK_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_SUCCESS);
      return value;
    };
    int64_t cores = 0;
    CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_SUCCESS);
    const uint32_t all = static_cast<uint32_t>(cores);
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(stream_limit(stream), all);
    CHECK_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 8), ACL_SUCCESS);
    CHECK_EQ(device_limit(ACL_RT_DEV_RES_CUBE_CORE), 8u);
    CHECK(device_limit(ACL_RT_DEV_RES_VECTOR_CORE) > 8);
    CHECK_EQ(stream_limit(stream), 8u);
    CHECK_EQ(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, 4), ACL_SUCCESS);
    CHECK_EQ(aclrtSetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, 3), ACL_SUCCESS);
    CHECK_EQ(stream_limit(stream), 4u);
    CHECK_EQ(stream_limit(nullptr), 3u);
    CHECK_EQ(thread_limit(), 8u);
    CHECK_EQ(aclrtUseStreamResInCurrentThread(stream), ACL_SUCCESS);
    CHECK_EQ(thread_limit(), 4u);
    CHECK_EQ(aclrtUnuseStreamResInCurrentThread(stream), ACL_SUCCESS);
    CHECK_EQ(thread_limit(), 8u);
    CHECK_EQ(aclrtResetStreamResLimit(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetStreamResLimit(nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
    CHECK_EQ(stream_limit(stream), all);
    CHECK_EQ(stream_limit(nullptr), all);

    CHECK_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, all + 1),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "expected 1 to"));
    CHECK_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetDeviceResLimit(0, static_cast<aclrtDevResLimitType>(2), 1),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetDeviceResLimit(-1, ACL_RT_DEV_RES_CUBE_CORE, 1),
             ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtResetDeviceResLimit(99), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, 1),
             ACL_ERROR_RT_INVALID_HANDLE);
    messages();
  });
}

TEST(events_have_timestamps) {
  on_device([] {
    aclrtEvent first = nullptr, second = nullptr, timeless = nullptr;
    CHECK_EQ(aclrtCreateEventWithFlag(&first, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEventWithFlag(&second, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEventWithFlag(&timeless, ACL_EVENT_SYNC), ACL_SUCCESS);
    uint64_t begin = 0, end = 0;
    CHECK_EQ(aclrtEventGetTimestamp(first, &begin), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclrtRecordEvent(first, nullptr), ACL_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK_EQ(aclrtRecordEvent(second, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtEventGetTimestamp(first, &begin), ACL_SUCCESS);
    CHECK_EQ(aclrtEventGetTimestamp(second, &end), ACL_SUCCESS);
    CHECK(end >= begin + 2000);
    float ms = 0;
    CHECK_EQ(aclrtEventElapsedTime(&ms, first, second), ACL_SUCCESS);
    CHECK(std::abs(static_cast<double>(end - begin) / 1000 - ms) < 0.01);
    CHECK_EQ(aclrtEventGetTimestamp(first, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordEvent(timeless, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtEventGetTimestamp(timeless, &begin), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    for (const aclrtEvent event : {first, second, timeless}) {
      CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    }
    messages();
  });
}

TEST(devices_tell_about_themselves_without_being_set) {
  int64_t value = 0, cores = 0;
  CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value), ACL_SUCCESS);
  CHECK(value > 0);
  CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &value), ACL_SUCCESS);
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_SUCCESS);
  CHECK_EQ(value, cores);
  CHECK_EQ(aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(401), &value),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK_EQ(aclrtGetDeviceInfo(99, ACL_DEV_ATTR_L2_CACHE_SIZE, &value),
           ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, nullptr), ACL_ERROR_INVALID_PARAM);
  messages();
}

TEST(visible_devices_are_those_of_the_environment) {
  constexpr const char* kName = "ASCEND_RT_VISIBLE_DEVICES";
  const auto count = [](const char* visible) {
    setenv(kName, visible, 1);
    uint32_t devices = 99;
    CHECK_EQ(aclrtGetDeviceCount(&devices), ACL_SUCCESS);
    return devices;
  };
  CHECK_EQ(count("0"), 1u);
  CHECK_EQ(count("0,0"), 0u);
  CHECK_EQ(count(""), 0u);
  CHECK_EQ(count("0,x"), 1u);
  CHECK_EQ(count("0 ,1"), 1u);
  CHECK_EQ(count("0,64"), 1u);
  CHECK_EQ(count("x"), 0u);
  CHECK_EQ(count("-1"), 0u);
  CHECK_EQ(aclrtSetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
  unsetenv(kName);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  messages();
}

TEST(a_destroyed_event_is_nothing_to_wait_for) {
  on_device([] {
    aclrtEvent event = nullptr;
    CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_SUCCESS);
    CHECK_EQ(aclrtRecordEvent(event, nullptr), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, &event), ACL_ERROR_RT_INVALID_HANDLE);
    messages();
  });
}

TEST(page_locked_memory_begins_at_a_page) {
  void* memory = nullptr;
  void* device = nullptr;
  CHECK_EQ(aclrtMallocHost(&memory, 5000), ACL_SUCCESS);
  CHECK_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
  CHECK_EQ(aclrtHostRegister(memory, 5000, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
  CHECK_EQ(aclrtHostUnregister(memory), ACL_SUCCESS);
  CHECK_EQ(aclrtFreeHost(memory), ACL_SUCCESS);
  alignas(64) char pageable[128];
  CHECK_EQ(aclrtHostRegisterV2(pageable + 8, 64, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  CHECK_EQ(aclrtHostUnregister(pageable + 8), ACL_SUCCESS);
  if (reinterpret_cast<uintptr_t>(pageable + 8) % 4096 != 0) {
    CHECK_EQ(aclrtHostRegisterV2(pageable + 8, 64, ACL_HOST_REG_MAPPED),
             ACL_ERROR_RT_PARAM_INVALID);
  }
  messages();
}

TEST(a_prefetch_is_checked) {
  on_device([] {
    void* memory = nullptr;
    CHECK_EQ(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    CHECK_EQ(aclrtCmoAsync(memory, 4096, ACL_RT_CMO_TYPE_PREFETCH, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtCmoAsync(memory, 8192, ACL_RT_CMO_TYPE_PREFETCH, nullptr),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCmoAsync(&memory, 8, ACL_RT_CMO_TYPE_PREFETCH, nullptr),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCmoAsync(nullptr, 8, ACL_RT_CMO_TYPE_PREFETCH, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoAsync(memory, 8, ACL_RT_CMO_TYPE_FLUSH, nullptr),
             ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtFree(memory), ACL_SUCCESS);
    messages();
  });
}

TEST(the_overflow_switch_is_an_attribute_of_a_stream) {
  on_device([] {
    aclrtStream stream = nullptr;
    uint32_t flag = 7;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, &flag), ACL_SUCCESS);
    CHECK_EQ(flag, 0u);
    CHECK_EQ(aclrtSetStreamOverflowSwitch(stream, 1), ACL_SUCCESS);
    CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, &flag), ACL_SUCCESS);
    CHECK_EQ(flag, 1u);
    CHECK_EQ(aclrtSetStreamOverflowSwitch(stream, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    messages();
  });
}

TEST(conditional_tasks_are_refused) {
  void* handle = nullptr;
  CHECK_EQ(aclmdlRICondHandleCreate(nullptr, 0, 1, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(contains(messages(), "aclmdlRICondHandleCreate: not supported by the host CANN"));
}

TEST(a_data_buffer_keeps_what_it_is_given) {
  leaves_nothing([] {
    int value = 0;
    aclDataBuffer* const buffer = aclCreateDataBuffer(&value, 4);
    CHECK_EQ(aclGetDataBufferAddr(buffer), static_cast<void*>(&value));
    CHECK_EQ(aclGetDataBufferSizeV2(buffer), 4u);
    CHECK_EQ(aclUpdateDataBuffer(buffer, nullptr, 0), ACL_SUCCESS);
    CHECK(aclGetDataBufferAddr(buffer) == nullptr);
    CHECK_EQ(aclHostLiveObjects("description"), 1);
    CHECK_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
    CHECK_EQ(aclDestroyDataBuffer(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclUpdateDataBuffer(nullptr, &value, 4), ACL_ERROR_INVALID_PARAM);
    CHECK(aclGetDataBufferAddr(nullptr) == nullptr);
    CHECK_EQ(aclGetDataBufferSizeV2(nullptr), 0u);
  });
}

TEST(a_tensor_description_keeps_what_it_is_given) {
  leaves_nothing([] {
    std::vector<int64_t> dims{2, 0, 7};
    aclTensorDesc* const desc = aclCreateTensorDesc(ACL_BF16, 3, dims.data(), ACL_FORMAT_NCL);
    dims.assign(3, -1);  // they were copied
    CHECK_EQ(aclSetTensorFormat(desc, ACL_FORMAT_ND), ACL_SUCCESS);
    CHECK_EQ(aclSetTensorShape(desc, 2, dims.data()), ACL_SUCCESS);
    CHECK_EQ(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), ACL_SUCCESS);
    aclSetTensorDescName(desc, "x");
    CHECK_EQ(aclGetTensorDescType(desc), ACL_BF16);
    CHECK_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_NCL);
    CHECK_EQ(aclGetTensorDescNumDims(desc), 3u);
    CHECK_EQ(std::string(aclGetTensorDescName(desc)), "x");
    int64_t dim = 0;
    CHECK_EQ(aclGetTensorDescDimV2(desc, 2, &dim), ACL_SUCCESS);
    CHECK_EQ(dim, 7);
    CHECK_EQ(aclGetTensorDescDimV2(desc, 3, &dim), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetTensorDescDimV2(desc, 0, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclSetTensorShape(desc, 2, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclSetTensorShape(desc, -1, dims.data()), ACL_ERROR_INVALID_PARAM);
    aclDestroyTensorDesc(desc);

    aclTensorDesc* const scalar = aclCreateTensorDesc(ACL_FLOAT, 0, nullptr, ACL_FORMAT_ND);
    CHECK(scalar != nullptr);
    aclDestroyTensorDesc(scalar);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, 1, nullptr, ACL_FORMAT_ND) == nullptr);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, -1, dims.data(), ACL_FORMAT_ND) == nullptr);
  });
}

TEST(no_description_is_no_crash) {
  leaves_nothing([] {
    int64_t dim = 0;
    aclDestroyTensorDesc(nullptr);
    aclSetTensorDescName(nullptr, "x");
    CHECK_EQ(aclSetTensorFormat(nullptr, ACL_FORMAT_ND), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclSetTensorShape(nullptr, 1, &dim), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclSetTensorPlaceMent(nullptr, ACL_MEMTYPE_HOST), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetTensorDescDimV2(nullptr, 0, &dim), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetTensorDescType(nullptr), ACL_DT_UNDEFINED);
    CHECK_EQ(aclGetTensorDescFormat(nullptr), ACL_FORMAT_UNDEFINED);
    CHECK_EQ(aclGetTensorDescNumDims(nullptr), 0u);
    aclopDestroyAttr(nullptr);
  });
}

TEST(attributes_are_checked) {
  leaves_nothing([] {
    aclopAttr* const attr = aclopCreateAttr();
    const int64_t ints[] = {1, 2};
    const float floats[] = {1};
    const uint8_t bools[] = {1};
    const int lengths[] = {2};
    const int64_t* const lists[] = {ints};
    CHECK_EQ(aclopSetAttrBool(attr, "a", 1), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrInt(attr, "a", 1), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrFloat(attr, "a", 1), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrString(attr, "a", "b"), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrDataType(attr, "a", ACL_FLOAT), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrListBool(attr, "a", 1, bools), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrListInt(attr, "a", 2, ints), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrListInt(attr, "a", 0, nullptr), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrListFloat(attr, "a", 1, floats), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrListListInt(attr, "a", 1, lengths, lists), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrInt(nullptr, "a", 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopSetAttrInt(attr, nullptr, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopSetAttrString(attr, "a", nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopSetAttrListInt(attr, "a", 2, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopSetAttrListFloat(attr, "a", -1, floats), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopSetAttrListListInt(attr, "a", 1, nullptr, lists), ACL_ERROR_INVALID_PARAM);
    aclopDestroyAttr(attr);
  });
}

// See the comment on descriptors in tests/cpp/test_executors.cpp.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(destroyed_descriptions_are_refused) {
  leaves_nothing([] {
    aclDataBuffer* const buffer = aclCreateDataBuffer(nullptr, 0);
    CHECK_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
    CHECK_EQ(aclDestroyDataBuffer(buffer), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "aclDestroyDataBuffer: dataBuffer "));
    CHECK_EQ(aclUpdateDataBuffer(buffer, nullptr, 0), ACL_ERROR_INVALID_PARAM);
    aclTensorDesc* const desc = aclCreateTensorDesc(ACL_FLOAT, 0, nullptr, ACL_FORMAT_ND);
    aclDestroyTensorDesc(desc);
    aclDestroyTensorDesc(desc);
    CHECK(contains(messages(), "aclDestroyTensorDesc: desc "));
    CHECK_EQ(aclSetTensorFormat(desc, ACL_FORMAT_ND), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetTensorDescType(desc), ACL_DT_UNDEFINED);
    aclopAttr* const attr = aclopCreateAttr();
    aclopDestroyAttr(attr);
    aclopDestroyAttr(attr);
    CHECK(contains(messages(), "aclopDestroyAttr: attr "));
    CHECK_EQ(aclopSetAttrBool(attr, "a", 1), ACL_ERROR_INVALID_PARAM);
  });
}

#endif

TEST(an_operator_by_name_is_refused_by_name) {
  CHECK_EQ(aclopCompileAndExecute("NoSuchOperator", 0, nullptr, nullptr, 0, nullptr, nullptr,
                                  nullptr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
           ACL_ERROR_FEATURE_UNSUPPORTED);
  CHECK(contains(messages(), "operator NoSuchOperator"));
  CHECK_EQ(aclopCompileAndExecuteV2("NorThisOne", 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                                    ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
           ACL_ERROR_FEATURE_UNSUPPORTED);
  CHECK(contains(messages(), "operator NorThisOne"));
}

TEST(compiler_options_are_remembered) {
  char value[32] = "unchanged";
  CHECK_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), sizeof("disable"));
  CHECK_EQ(aclGetCompileopt(ACL_OP_JIT_COMPILE, value, sizeof(value)), ACL_SUCCESS);
  CHECK_EQ(std::string(value), "disable");
  CHECK_EQ(aclGetCompileoptSize(ACL_ALLOW_HF32), 0u);
  CHECK_EQ(aclGetCompileopt(ACL_ALLOW_HF32, value, sizeof(value)), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclSetCompileopt(ACL_ALLOW_HF32, "10"), ACL_SUCCESS);
  CHECK_EQ(aclGetCompileoptSize(ACL_ALLOW_HF32), 3u);
  CHECK_EQ(aclGetCompileopt(ACL_ALLOW_HF32, value, 2), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclGetCompileopt(ACL_ALLOW_HF32, value, 3), ACL_SUCCESS);
  CHECK_EQ(std::string(value), "10");
  CHECK_EQ(aclSetCompileopt(ACL_ALLOW_HF32, nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclSetCompileopt(static_cast<aclCompileOpt>(17), "1"), ACL_ERROR_INVALID_PARAM);
  messages();
}

TEST(versions_and_abilities) {
  aclCANNPackageVersion version;
  std::memset(&version, 0xFF, sizeof(version));
  CHECK_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version), ACL_SUCCESS);
  const std::string whole = version.version;
  CHECK_EQ(whole, std::string(version.majorVersion) + "." + version.minorVersion + "." +
                      version.releaseVersion);
  char text[ACL_PKG_VERSION_MAX_SIZE];
  char package[] = "runtime";
  CHECK_EQ(aclsysGetVersionStr(package, text), ACL_SUCCESS);
  CHECK_EQ(std::string(text), whole);
  CHECK_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(8), &version),
           ACL_ERROR_INVALID_PARAM);

  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  CHECK_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  CHECK_EQ(count, 3u);
  int32_t value = -1;
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);
  CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value), ACL_SUCCESS);
  CHECK_EQ(value, 1);
  CHECK_EQ(aclHostSetProduct("Ascend310P"), ACL_SUCCESS);
  CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value), ACL_SUCCESS);
  CHECK_EQ(value, 0);
  CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
  messages();
}

TEST(settings_of_the_device_are_remembered) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);
  CHECK_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
  CHECK_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_EQ(aclrtGetDeviceSatMode(nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclHostSetProduct("Ascend950"), ACL_SUCCESS);  // which has only one
  CHECK_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);  // and it was not changed
  CHECK_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
  uint64_t actual = 0;
  CHECK_EQ(aclrtSetOpExecuteTimeOutV2(1000, &actual), ACL_SUCCESS);
  CHECK_EQ(actual, 1000u);
  CHECK_EQ(aclrtSetOpExecuteTimeOutV2(1, nullptr), ACL_ERROR_INVALID_PARAM);
  messages();
}

TEST(profiling_reports_are_accepted) {
  char data[8] = {};
  CHECK_EQ(MsprofRegisterCallback(1, nullptr), 0);
  CHECK_EQ(MsprofReportApi(0, nullptr), 0);
  CHECK_EQ(MsprofReportCompactInfo(0, data, sizeof(data)), 0);
  CHECK_EQ(MsprofReportAdditionalInfo(0, data, sizeof(data)), 0);
  CHECK_EQ(MsprofGetHashId("aclnnElu", 8), MsprofGetHashId("aclnnElu!", 8));
  CHECK(MsprofGetHashId("aclnnElu", 8) != MsprofGetHashId("aclnnElv", 8));
  const uint64_t before = MsprofSysCycleTime();
  CHECK(MsprofSysCycleTime() >= before);
}

TEST(what_a_host_cannot_do_names_itself) {
  const auto refused = [](aclError status, aclError expected, const char* api) {
    CHECK_EQ(status, expected);
    CHECK(contains(messages(), api));
  };
  constexpr aclError kRuntime = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  constexpr aclError kAcl = ACL_ERROR_FEATURE_UNSUPPORTED;
  refused(aclmdlInitDump(), kAcl, "aclmdlInitDump");
  refused(aclmdlSetDump("x"), kAcl, "aclmdlSetDump");
  refused(aclmdlFinalizeDump(), kAcl, "aclmdlFinalizeDump");
  refused(aclrtMemExportToShareableHandle(nullptr, ACL_MEM_HANDLE_TYPE_NONE, 0, nullptr), kRuntime,
          "aclrtMemExportToShareableHandle");
  refused(aclrtMemImportFromShareableHandle(0, 0, nullptr), kRuntime,
          "aclrtMemImportFromShareableHandle");
  refused(aclrtMemSetPidToShareableHandle(0, nullptr, 0), kRuntime,
          "aclrtMemSetPidToShareableHandle");
  refused(aclrtBinaryLoadFromData(nullptr, 0, nullptr, nullptr), kRuntime,
          "aclrtBinaryLoadFromData");
  refused(aclrtBinaryGetFunction(nullptr, "k", nullptr), kRuntime, "aclrtBinaryGetFunction");
  refused(aclrtGetFunctionAddr(nullptr, nullptr, nullptr), kRuntime, "aclrtGetFunctionAddr");
  refused(rtDevBinaryRegister(nullptr, nullptr), kRuntime, "rtDevBinaryRegister");
  refused(rtFunctionRegister(nullptr, nullptr, "k", nullptr, 0), kRuntime, "rtFunctionRegister");
  refused(rtKernelLaunch(nullptr, 1, nullptr, 0, nullptr, nullptr), kRuntime, "rtKernelLaunch");
  refused(rtGetC2cCtrlAddr(nullptr, nullptr), kRuntime, "rtGetC2cCtrlAddr");
  refused(aclrtIpcMemGetExportKey(nullptr, 1, nullptr, 0, 0), kRuntime, "aclrtIpcMemGetExportKey");
  refused(aclrtIpcMemSetImportPid("k", nullptr, 0), kRuntime, "aclrtIpcMemSetImportPid");
  refused(aclrtIpcMemImportByKey(nullptr, "k", 0), kRuntime, "aclrtIpcMemImportByKey");
  refused(aclrtIpcMemClose("k"), kRuntime, "aclrtIpcMemClose");
}

TEST(there_are_no_offline_models) {
  const auto named = [](const char* api) { CHECK(contains(messages(), api)); };
  const auto refused = [&](aclError status, const char* api) {
    CHECK_EQ(status, aclError{ACL_ERROR_FEATURE_UNSUPPORTED});
    named(api);
  };
  uint32_t id = 7;
  refused(aclmdlLoadFromFile("model.om", &id), "aclmdlLoadFromFile");
  refused(aclmdlLoadFromMem("om", 2, &id), "aclmdlLoadFromMem");
  refused(aclmdlExecute(id, nullptr, nullptr), "aclmdlExecute");
  refused(aclmdlExecuteAsync(id, nullptr, nullptr, nullptr), "aclmdlExecuteAsync");
  refused(aclmdlUnload(id), "aclmdlUnload");
  refused(aclmdlGetDesc(nullptr, id), "aclmdlGetDesc");
  refused(aclmdlGetInputDims(nullptr, 0, nullptr), "aclmdlGetInputDims");
  refused(aclmdlGetOutputDims(nullptr, 0, nullptr), "aclmdlGetOutputDims");
  refused(aclmdlAddDatasetBuffer(nullptr, nullptr), "aclmdlAddDatasetBuffer");
  CHECK_EQ(id, 7U);
  CHECK(aclmdlCreateDesc() == nullptr);
  named("aclmdlCreateDesc");
  CHECK(aclmdlCreateDataset() == nullptr);
  named("aclmdlCreateDataset");
  CHECK_EQ(aclmdlDestroyDesc(nullptr), ACL_SUCCESS);
  CHECK_EQ(aclmdlDestroyDataset(nullptr), ACL_SUCCESS);
  CHECK_EQ(aclmdlGetNumInputs(nullptr), size_t{0});
  CHECK_EQ(aclmdlGetNumOutputs(nullptr), size_t{0});
  CHECK_EQ(aclmdlGetInputSizeByIndex(nullptr, 0), size_t{0});
  CHECK_EQ(aclmdlGetOutputSizeByIndex(nullptr, 0), size_t{0});
  CHECK_EQ(aclmdlGetDatasetNumBuffers(nullptr), size_t{0});
  CHECK(aclmdlGetDatasetBuffer(nullptr, 0) == nullptr);
  CHECK(aclmdlGetInputNameByIndex(nullptr, 0) == nullptr);
  CHECK(aclmdlGetOutputNameByIndex(nullptr, 0) == nullptr);
  CHECK_EQ(aclmdlGetInputFormat(nullptr, 0), ACL_FORMAT_UNDEFINED);
  CHECK_EQ(aclmdlGetOutputFormat(nullptr, 0), ACL_FORMAT_UNDEFINED);
  CHECK_EQ(aclmdlGetInputDataType(nullptr, 0), ACL_DT_UNDEFINED);
  CHECK_EQ(aclmdlGetOutputDataType(nullptr, 0), ACL_DT_UNDEFINED);
  messages();
}

TEST(a_constant_tensor_of_an_operator_called_by_name) {
  const int64_t dims[] = {2};
  int32_t values[] = {3, 4};
  aclTensorDesc* const desc = aclCreateTensorDesc(ACL_INT32, 1, dims, ACL_FORMAT_ND);
  CHECK_EQ(aclSetTensorConst(desc, values, sizeof(values)), ACL_SUCCESS);
  CHECK_EQ(aclSetTensorConst(desc, nullptr, 8), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclSetTensorConst(nullptr, values, 8), ACL_ERROR_INVALID_PARAM);
  aclDestroyTensorDesc(desc);
  messages();
}

// The text of the exception that a log line of torch_npu's call leads to; empty if there is none.
template <class... Values>
static std::string logged(const char* format, Values... values) {
  try {
    aclAppLog(ACL_WARNING, "f", "f.cpp", 1, format, values...);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(turning_from_a_missing_function_to_aclop_is_an_error_that_names_it) {
  const char* const format =
      "[PTA]:%s or %sGetWorkspaceSize not in %s, or %s not found. Will call %s";
  const char* const library = "libopapi.so";
  const std::string text =
      logged(format, "aclnnErfinv", "aclnnErfinv", library, library, "acl_op::erfinv(self)");
  CHECK(text.starts_with("aclnnErfinv is not implemented"));
  // The text of an earlier failure must not be taken for this one's.
  CHECK_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  logged(format, "aclnnErfinv", "aclnnErfinv", library, library, "acl_op::erfinv(self)");
  CHECK_EQ(messages(), std::string());
  CHECK(logged("[PTA]:%s not in %s, or %s not found. Will call %s", "aclnnAdd", library, library,
               "acl_op::add(a, b)")
            .starts_with("aclnnAdd is not implemented"));
  // Another aclnn function with the same meaning is no error, and other lines are not kept.
  CHECK_EQ(logged(format, "aclnnNewer", "aclnnNewer", library, library, "op_api::older(self)"), "");
  // Nor is it an error if the operator exists by name.
  CHECK_EQ(logged(format, "aclnnROIAlign", "aclnnROIAlign", library, library,
                  "acl_op::npu_roi_align(self, rois)"),
           "");
  CHECK_EQ(logged("a line of %d", 7), "");
  CHECK_EQ(logged("%d not found. Will call %s", 7, "acl_op::x"), "");
  CHECK_EQ(logged(nullptr), "");
}

// Runs the body on a thread with device 0 and the name of torch_npu's queue.
static void on_queue(const std::function<void()>& body) {
  std::thread([&] {
    pthread_setname_np(pthread_self(), "acl_thread");
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
}

// A call that fails.
static void fail_a_copy(aclrtStream stream) {
  CHECK_EQ(aclrtMemcpyAsync(nullptr, 4, nullptr, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream),
           ACL_ERROR_INVALID_PARAM);
}

TEST(after_a_call_that_fails_on_torch_npus_queue_every_wait_fails_until_the_reset) {
  on_device([] {
    aclrtStream stream = nullptr, later = nullptr;
    aclrtEvent event = nullptr;
    void* memory = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
    CHECK_EQ(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    on_queue([&] {
      fail_a_copy(stream);
      CHECK(contains(messages(), "aclrtMemcpyAsync: dst is a null pointer"));
      CHECK_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);  // the first failure is reported
    });
    const auto fails = [](aclError status) {
      CHECK_EQ(status, ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK_EQ(messages(),
               "aclrtMemcpyAsync: dst is a null pointer (status 100000); torch_npu drops all work "
               "that follows on npu:0, so that results would be old memory; restart the process");
    };
    CHECK_EQ(aclrtCreateStream(&later), ACL_SUCCESS);
    aclrtStreamStatus stream_status{};
    aclrtEventRecordedStatus event_status{};
    int32_t value = 0;
    fails(aclrtSynchronizeStream(stream));
    fails(aclrtSynchronizeStream(later));
    fails(aclrtSynchronizeStreamWithTimeout(nullptr, 1000));
    fails(aclrtStreamQuery(stream, &stream_status));
    fails(aclrtSynchronizeDevice());
    fails(aclrtSynchronizeEvent(event));
    CHECK_EQ(aclrtQueryEventStatus(event, &event_status), ACL_SUCCESS);
    fails(aclrtMemcpy(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(aclrtMemcpy(memory, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(memory), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(later), ACL_SUCCESS);
  });
  on_device([] { CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS); });
}

TEST(a_queue_that_failed_before_its_device_was_reset_fails_again) {
  std::thread([] {
    pthread_setname_np(pthread_self(), "acl_thread");
    for (int turn = 0; turn < 2; ++turn) {
      CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      fail_a_copy(nullptr);
      CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      messages();
    }
  }).join();
}

TEST(a_failure_that_torch_npus_queue_overcomes_is_none) {
  on_device([] {
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    on_queue([&] {
      void* memory = nullptr;
      CHECK_EQ(aclrtMalloc(&memory, size_t{1} << 60, ACL_MEM_MALLOC_HUGE_FIRST),
               ACL_ERROR_RT_MEMORY_ALLOCATION);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
      CHECK_EQ(run_on(stream, [] { return ACL_SUCCESS; }), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    });
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_task_that_fails_is_its_streams_failure_alone_also_if_torch_npus_queue_launched_it) {
  on_device([] {
    aclrtStream stream = nullptr, other = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
    on_queue([&] {  // the stream's worker gets its name
      run_on(stream, [] { return fail(ACL_ERROR_RT_COPY_DATA, "a task failed"); });
      CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    });
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    CHECK_EQ(messages(), "a task failed");
    CHECK_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}
