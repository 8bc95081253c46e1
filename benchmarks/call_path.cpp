// Measures the parts of an aclnn operator's call. Built and loaded by call_path.py.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "aclnnop/aclnn_elu_backward.h"
#include "functions.h"

// Calls aclnnEluBackward on `size` floats that many times. `nanoseconds` receives the mean times of
// making the descriptors, stage 1, stage 2, destroying the descriptors, and one read of the clock.
// Returns the first status other than success.
extern "C" int call_path(void* library, const float* gradient, const float* value, float* out,
                         int64_t size, int64_t turns, double* nanoseconds) {
  FIND(aclCreateTensor);
  FIND(aclCreateScalar);
  FIND(aclDestroyTensor);
  FIND(aclDestroyScalar);
  FIND(aclnnEluBackwardGetWorkspaceSize);
  FIND(aclnnEluBackward);
  const auto tensor = [&](const void* data) {
    return aclCreateTensor_(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1,
                            const_cast<void*>(data));
  };
  double one = 1;
  std::array<Clock::duration, 5> parts{};
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::array<Clock::time_point, 6> times;
    times[0] = Clock::now();
    const std::array tensors{tensor(gradient), tensor(value), tensor(out)};
    std::array<aclScalar*, 3> scalars;
    for (aclScalar*& scalar : scalars) scalar = aclCreateScalar_(&one, ACL_DOUBLE);
    times[1] = Clock::now();
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    if (const int status =
            aclnnEluBackwardGetWorkspaceSize_(tensors[0], scalars[0], scalars[1], scalars[2], false,
                                              tensors[1], tensors[2], &workspace_size, &executor)) {
      return status;
    }
    times[2] = Clock::now();
    if (const int status = aclnnEluBackward_(nullptr, workspace_size, executor, nullptr)) {
      return status;
    }
    times[3] = Clock::now();
    for (const aclTensor* each : tensors) aclDestroyTensor_(each);
    for (const aclScalar* each : scalars) aclDestroyScalar_(each);
    times[4] = Clock::now();
    times[5] = Clock::now();
    for (size_t i = 0; i < parts.size(); ++i) parts[i] += times[i + 1] - times[i];
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    nanoseconds[i] =
        std::chrono::duration<double, std::nano>(parts[i]).count() / static_cast<double>(turns);
  }
  return 0;
}
