// The functions of the driver's library, libascend_hal, by which torch_npu's profiler decides
// whether times are those of the processor's counter. For the version here, which is before 7.25.5,
// it uses CLOCK_MONOTONIC_RAW, the clock of the profiles.
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
