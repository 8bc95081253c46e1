// The marks of acl_prof.h: stamps, ranges of operators, steps.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_prof.h"
#include "cann/profiling/marks.h"
#include "cann/profiling/recorder.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/descriptor.h"

using namespace aclnn_host;

struct aclprofStepInfo : Descriptor<Object::kDescription, 4> {
  explicit aclprofStepInfo(uint64_t index) : index(index) {}

  const uint64_t index;
  bool started = false;
  bool ended = false;
  Range range;
};

namespace {

constexpr uint32_t kLongestMessage = 127;

struct Stamp : Descriptor<Object::kDescription, 5> {
  std::string message;
};

// The ranges that the calling thread has pushed and not popped: stamps and operators.
struct Pushed {
  uint64_t profile = 0;
  std::vector<Range> ranges;
};
thread_local Pushed pushed_stamps;
thread_local Pushed pushed_operators;

std::vector<Range>& ranges_of(Pushed& pushed) {
  if (const uint64_t now = profile_number.load(); now != pushed.profile) {
    pushed.ranges.clear();
    pushed.profile = now;
  }
  return pushed.ranges;
}

aclError not_running(const char* api) {
  return fail(ACL_ERROR_PROF_NOT_RUN,
              "%s: no profile with ACL_PROF_MSPROFTX is running; call this function between "
              "aclprofStart and aclprofStop of one",
              api);
}

aclError not_a_stamp(const char* api, const void* stamp) {
  if (stamp == nullptr) return null_argument(api, "stamp");
  return fail(ACL_ERROR_INVALID_PARAM,
              "%s: stamp is %p, which was destroyed, or is no stamp of aclprofCreateStamp", api,
              stamp);
}

// Calls body(stamp) with the handle's stamp if a profile records marks.
template <class Body>
aclError with_stamp(const char* api, void* handle, Body body) {
  return guarded(api, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(api);
    auto* const stamp = static_cast<Stamp*>(handle);
    if (stamp == nullptr || !stamp->is_alive()) return not_a_stamp(api, handle);
    return body(*stamp);
  });
}

aclError pop(const char* api, const char* push, Pushed& pushed) {
  return guarded(api, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(api);
    std::vector<Range>& ranges = ranges_of(pushed);
    if (ranges.empty()) {
      return fail(ACL_ERROR_PROFILING_FAILURE,
                  "%s: this thread has no range that is open; call %s on it first", api, push);
    }
    const Range range = std::move(ranges.back());
    ranges.pop_back();
    return end_range(api, range);
  });
}

bool is_there(const aclprofStepInfo* step) {
  return step != nullptr && step->is_alive();
}

aclError not_a_step(const char* api, const void* step) {
  if (step == nullptr) return null_argument(api, "stepInfo");
  return fail(ACL_ERROR_INVALID_PARAM,
              "%s: stepInfo is %p, which was destroyed, or is no step of aclprofCreateStepInfo",
              api, step);
}

}  // namespace

void* aclprofCreateStamp(void) {
  constexpr const char* kApi = "aclprofCreateStamp";
  Stamp* made = nullptr;
  guarded(kApi, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(kApi);
    made = new Stamp;
    return ACL_SUCCESS;
  });
  return made;
}

void aclprofDestroyStamp(void* stamp) {
  auto* const object = static_cast<Stamp*>(stamp);
  if (object == nullptr || !object->is_alive()) {
    not_a_stamp("aclprofDestroyStamp", stamp);
    return;
  }
  delete object;
}

aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  constexpr const char* kApi = "aclprofSetStampTraceMessage";
  return with_stamp(kApi, stamp, [&](Stamp& object) -> aclError {
    if (msg == nullptr) return null_argument(kApi, "msg");
    if (msgLen > kLongestMessage) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: msgLen is %u, expected %u at most", kApi, msgLen,
                  kLongestMessage);
    }
    object.message.assign(msg, strnlen(msg, msgLen));
    return ACL_SUCCESS;
  });
}

aclError aclprofMark(void* stamp) {
  constexpr const char* kApi = "aclprofMark";
  return with_stamp(kApi, stamp, [&](const Stamp& object) {
    return mark_moment(kApi, {"mark", object.message}, nullptr);
  });
}

aclError aclprofPush(void* stamp) {
  constexpr const char* kApi = "aclprofPush";
  return with_stamp(kApi, stamp, [&](const Stamp& object) {
    return begin_range(kApi, {"push/pop", object.message}, nullptr,
                       &ranges_of(pushed_stamps).emplace_back());
  });
}

aclError aclprofPop(void) {
  return pop("aclprofPop", "aclprofPush", pushed_stamps);
}

aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  constexpr const char* kApi = "aclprofRangeStart";
  return with_stamp(kApi, stamp, [&](const Stamp& object) -> aclError {
    if (rangeId == nullptr) return null_argument(kApi, "rangeId");
    Range range;
    begin_range(kApi, {"start/end", object.message}, nullptr, &range);
    const uint64_t number = keep_range(std::move(range));
    if (number == 0 || number > UINT32_MAX) {
      return fail(ACL_ERROR_STORAGE_OVER_LIMIT,
                  "%s: too many ranges are open; end some with aclprofRangeStop", kApi);
    }
    *rangeId = static_cast<uint32_t>(number);
    return ACL_SUCCESS;
  });
}

aclError aclprofRangeStop(uint32_t rangeId) {
  constexpr const char* kApi = "aclprofRangeStop";
  return guarded(kApi, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(kApi);
    Range range;
    if (!take_range(rangeId, &range)) {
      return fail(ACL_ERROR_PROFILING_FAILURE,
                  "%s: no range %u is open; pass the number of aclprofRangeStart, once", kApi,
                  rangeId);
    }
    return end_range(kApi, range);
  });
}

aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream) {
  constexpr const char* kApi = "aclprofMarkEx";
  return guarded(kApi, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(kApi);
    if (msg == nullptr) return null_argument(kApi, "msg");
    if (stream == nullptr) return null_argument(kApi, "stream");
    if (msgLen == 0 || msgLen > kLongestMessage || strnlen(msg, msgLen + 1) != msgLen) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: msgLen is %zu, expected the length of msg, 1 to %u bytes", kApi, msgLen,
                  kLongestMessage);
    }
    return mark_moment(kApi, {"mark", msg}, stream);
  });
}

aclError aclprofRangePushEx(aclprofEventAttributes* attr) {
  constexpr const char* kApi = "aclprofRangePushEx";
  return guarded(kApi, [&]() -> aclError {
    if (!is_profiled(kProfileMarks)) return not_running(kApi);
    if (attr == nullptr) return null_argument(kApi, "attr");
    if (attr->messageType != ACL_PROF_MESSAGE_TYPE_TENSOR_INFO) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: messageType is %u, expected 0 (tensor info)", kApi,
                  attr->messageType);
    }
    const aclprofTensorInfo* const info = attr->message.tensorInfo;
    if (info == nullptr) return null_argument(kApi, "message.tensorInfo");
    return begin_range(kApi, {"push/pop", text_of_hash(info->opNameId)}, nullptr,
                       &ranges_of(pushed_operators).emplace_back());
  });
}

aclError aclprofRangePop(void) {
  return pop("aclprofRangePop", "aclprofRangePushEx", pushed_operators);
}

aclprofStepInfo* aclprofCreateStepInfo(void) {
  static std::atomic<uint64_t> count = 0;
  aclprofStepInfo* made = nullptr;
  guarded("aclprofCreateStepInfo", [&]() -> aclError {
    made = new aclprofStepInfo(count.fetch_add(1) + 1);
    return ACL_SUCCESS;
  });
  return made;
}

void aclprofDestroyStepInfo(aclprofStepInfo* stepInfo) {
  if (is_there(stepInfo)) {
    delete stepInfo;
  } else {
    not_a_step("aclprofDestroyStepInfo", stepInfo);
  }
}

aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag,
                                 aclrtStream stream) {
  constexpr const char* kApi = "aclprofGetStepTimestamp";
  return guarded(kApi, [&]() -> aclError {
    if (!is_there(stepInfo)) return not_a_step(kApi, stepInfo);
    if (tag != ACL_STEP_START && tag != ACL_STEP_END) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: tag is %d, expected 0 (ACL_STEP_START) or 1 (ACL_STEP_END)", kApi,
                  static_cast<int>(tag));
    }
    bool& done = tag == ACL_STEP_START ? stepInfo->started : stepInfo->ended;
    if (done) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: the step has this tag already; make another with aclprofCreateStepInfo",
                  kApi);
    }
    done = true;
    const bool is_recorded = is_profiled(kProfileMarks | kProfileTasks);
    if (tag == ACL_STEP_START) {
      if (!is_recorded) return ACL_SUCCESS;
      return begin_range(kApi, {"step", "step " + std::to_string(stepInfo->index)}, stream,
                         &stepInfo->range);
    }
    if (stepInfo->range.begin == 0 || !is_recorded) return ACL_SUCCESS;
    return end_range(kApi, stepInfo->range);
  });
}
