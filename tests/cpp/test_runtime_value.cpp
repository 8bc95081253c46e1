// Values in device memory with which streams wait for one another (CANN's document of
// aclrtValueWrite and aclrtValueWait).
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime_support.h"

using namespace aclnn_host;

namespace {

// Eight bytes of device memory with a value.
class Value {
 public:
  explicit Value(uint64_t value) {
    CHECK_EQ(aclrtMalloc(&data, sizeof value, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    set(value);
  }
  ~Value() { CHECK_EQ(aclrtFree(data), ACL_SUCCESS); }
  void set(uint64_t value) {
    CHECK_EQ(aclrtMemcpy(data, sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE),
             ACL_SUCCESS);
  }
  uint64_t get() const {
    uint64_t value = 0;
    CHECK_EQ(aclrtMemcpy(&value, sizeof value, data, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST),
             ACL_SUCCESS);
    return value;
  }
  void* data = nullptr;
};

bool is_idle(aclrtStream stream) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  CHECK_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  return status == ACL_STREAM_STATUS_COMPLETE;
}

}  // namespace

TEST(a_stream_waits_until_another_writes_the_value) {
  with_stream([](aclrtStream stream) {
    const aclrtStream writing = new_stream();
    Value value(0), after(0);
    CHECK_EQ(aclrtValueWait(value.data, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtValueWrite(after.data, 7, 0, stream), ACL_SUCCESS);
    CHECK(!is_idle(stream));
    CHECK_EQ(after.get(), 0u);
    CHECK_EQ(aclrtValueWrite(value.data, 1, 0, writing), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(after.get(), 7u);
    // A copy ends a wait, too.
    CHECK_EQ(aclrtValueWait(value.data, 2, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
    value.set(2);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(writing), ACL_SUCCESS);
  });
}

// The null stream does not wait: it fails with 207000 where the condition does not hold.
TEST(the_conditions_of_a_wait) {
  struct Case {
    uint32_t flag;
    uint64_t now, value;
    bool holds;
  };
  constexpr uint64_t kSign = uint64_t{1} << 63, kOnes = ~uint64_t{0};
  const std::vector<Case> cases = {
      {ACL_STREAM_WAIT_VALUE_GEQ, 3, 3, true},
      {ACL_STREAM_WAIT_VALUE_GEQ, 2, 3, false},
      {ACL_STREAM_WAIT_VALUE_GEQ, 1, kOnes, true},
      {ACL_STREAM_WAIT_VALUE_GEQ, kSign, 0, false},
      {ACL_STREAM_WAIT_VALUE_EQ, 3, 3, true},
      {ACL_STREAM_WAIT_VALUE_EQ, 4, 3, false},
      {ACL_STREAM_WAIT_VALUE_AND, 6, 4, true},
      {ACL_STREAM_WAIT_VALUE_AND, 6, 1, false},
      {ACL_STREAM_WAIT_VALUE_NOR, 6, 1, true},
      {ACL_STREAM_WAIT_VALUE_NOR, kOnes, 1, false},
      {ACL_STREAM_WAIT_VALUE_NOR, kSign, ~kSign, false},
  };
  with_stream([&](aclrtStream) {
    Value value(0);
    for (const Case& each : cases) {
      value.set(each.now);
      CHECK_EQ(aclrtValueWait(value.data, each.value, each.flag, nullptr), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(nullptr),
               each.holds ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    }
  });
}

TEST(a_model_waits_and_writes_at_every_execution) {
  with_stream([](aclrtStream stream) {
    const aclrtStream other = new_stream();
    Value value(0);
    CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    CHECK_EQ(aclrtValueWait(value.data, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtValueWrite(value.data, 5, 0, stream), ACL_SUCCESS);
    aclmdlRI model = nullptr;
    CHECK_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
    CHECK_EQ(value.get(), 0u);
    for (int round = 0; round < 3; ++round) {
      CHECK_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
      CHECK(!is_idle(stream));
      CHECK_EQ(aclrtValueWrite(value.data, 1, 0, other), ACL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      CHECK_EQ(value.get(), 5u);
    }
    CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}

TEST(a_write_that_its_stream_drops_fails_those_that_wait) {
  with_stream([](aclrtStream stream) {
    const aclrtStream failing = new_stream();
    Value value(0);
    run_on(failing, [] { return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel divided by 0"); });
    CHECK_EQ(aclrtValueWrite(value.data, 1, 0, failing), ACL_SUCCESS);
    CHECK_EQ(aclrtValueWait(value.data, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(contains(messages(), "divided by 0"));
    CHECK_EQ(aclrtDestroyStream(failing), ACL_SUCCESS);
    // A later write counts again.
    const aclrtStream next = new_stream();
    CHECK_EQ(aclrtValueWrite(value.data, 1, 0, next), ACL_SUCCESS);
    CHECK_EQ(aclrtValueWait(value.data, 1, ACL_STREAM_WAIT_VALUE_EQ, next), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(next), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(next), ACL_SUCCESS);
  });
}
