// Measures the overhead of a row: a function of the host CANN that is one call of ATen. Built and
// loaded by call_path.py.
#include <array>
#include <chrono>
#include <cstdint>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>

#include "aclnnop/aclnn_mul.h"
#include "functions.h"

// Calls aclnnMul on `size` floats that many times, and at::mul for comparison. `nanoseconds`
// receives the mean times of stage 1, stage 2, ATen's call, and one read of the clock. Returns the
// first status other than success.
extern "C" int row_path(void* library, float* self, float* other, float* out, int64_t size,
                        int64_t turns, double* nanoseconds) {
  FIND(aclCreateTensor);
  FIND(aclDestroyTensor);
  FIND(aclnnMulGetWorkspaceSize);
  FIND(aclnnMul);
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const at::Tensor a = at::from_blob(self, {size}, at::kFloat);
  const at::Tensor b = at::from_blob(other, {size}, at::kFloat);
  std::array<aclTensor*, 3> tensors{};
  const std::array<void*, 3> memory{self, other, out};
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] =
        aclCreateTensor_(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1, memory[i]);
  }
  std::array<Clock::duration, 4> parts{};
  int status = 0;
  for (int64_t turn = 0; turn < turns && status == 0; ++turn) {
    std::array<Clock::time_point, 5> times;
    times[0] = Clock::now();
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    status =
        aclnnMulGetWorkspaceSize_(tensors[0], tensors[1], tensors[2], &workspace_size, &executor);
    times[1] = Clock::now();
    if (status == 0) status = aclnnMul_(nullptr, workspace_size, executor, nullptr);
    times[2] = Clock::now();
    const at::Tensor product = at::mul(a, b);
    times[3] = Clock::now();
    times[4] = Clock::now();
    for (size_t i = 0; i < parts.size(); ++i) parts[i] += times[i + 1] - times[i];
  }
  for (const aclTensor* each : tensors) aclDestroyTensor_(each);
  for (size_t i = 0; i < parts.size(); ++i) {
    nanoseconds[i] =
        std::chrono::duration<double, std::nano>(parts[i]).count() / static_cast<double>(turns);
  }
  return status;
}
