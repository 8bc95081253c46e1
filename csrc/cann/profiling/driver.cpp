// Of the driver's library, libascend_hal, what torch_npu's profiler asks for: whether times are
// those of the processor's counter. They are not: from a version before 7.25.5 on torch_npu takes
// CLOCK_MONOTONIC_RAW, the clock of the profiles here.
#include <cstdint>

#define DRIVER_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int32_t kNoError = 0;
constexpr int32_t kInvalidValue = 3;
constexpr int32_t kNotSupported = 0xfffe;
constexpr int32_t kVersion = 0x071800;

}  // namespace

DRIVER_API int32_t halGetAPIVersion(int32_t* halAPIVersion) {
  if (halAPIVersion == nullptr) return kInvalidValue;
  *halAPIVersion = kVersion;
  return kNoError;
}

DRIVER_API int32_t halGetDeviceInfo(uint32_t devId, int32_t moduleType, int32_t infoType,
                                    int64_t* value) {
  return value == nullptr ? kInvalidValue : kNotSupported;
}
