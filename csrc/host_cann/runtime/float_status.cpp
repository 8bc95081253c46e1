#include "host_cann/runtime/float_status.h"

#include <atomic>
#include <cstddef>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/product.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

// The float statuses of all possible devices (ACLNN_TORCH_DEVICES), by FloatStatus.
constexpr size_t kMostDevices = 64;
std::atomic<bool> overflowed[kMostDevices][2];

std::atomic<bool>& status_of(int32_t device, FloatStatus status) {
  return overflowed[device][static_cast<size_t>(status)];
}

// The mode set by aclrtSetDeviceSatMode, for products that support both.
std::atomic<aclrtFloatOverflowMode> chosen_mode = ACL_RT_OVERFLOW_MODE_INFNAN;

// The only mode of a product; ACL_RT_OVERFLOW_MODE_UNDEF if it has both.
// (hicann/runtime, docs/zh/api_ref/25-02_Enumerations.md: aclrtFloatOverflowMode.)
aclrtFloatOverflowMode only_mode(Product product) {
  switch (product) {
    case Product::kAscend310P:
    case Product::kAscend910: return ACL_RT_OVERFLOW_MODE_SATURATION;
    case Product::kAscend950: return ACL_RT_OVERFLOW_MODE_INFNAN;
    default: return ACL_RT_OVERFLOW_MODE_UNDEF;
  }
}

// True if the product's streams have a switch, initially off, that enables overflow reports.
// (docs/zh/api_ref/06_stream_management.md: aclrtSetStreamOverflowSwitch.)
bool has_switch(Product product) {
  return product != Product::kAscend310P && product != Product::kAscend910;
}

const char* name_of(aclrtFloatOverflowMode mode) {
  return mode == ACL_RT_OVERFLOW_MODE_SATURATION ? "ACL_RT_OVERFLOW_MODE_SATURATION"
                                                 : "ACL_RT_OVERFLOW_MODE_INFNAN";
}

}  // namespace

aclrtFloatOverflowMode overflow_mode() noexcept {
  const aclrtFloatOverflowMode only = only_mode(current_product());
  return only != ACL_RT_OVERFLOW_MODE_UNDEF ? only : chosen_mode.load(std::memory_order_relaxed);
}

bool reports_overflow(aclrtStream stream) noexcept {
  if (overflow_mode() != ACL_RT_OVERFLOW_MODE_SATURATION) return false;
  if (!has_switch(current_product())) return true;
  uint32_t is_on = 0;
  return aclrtGetStreamOverflowSwitch(stream, &is_on) == ACL_SUCCESS && is_on != 0;
}

void note_overflow() noexcept {
  const int32_t device = current_device();
  if (device < 0) return;
  status_of(device, FloatStatus::kOperators) = true;
  status_of(device, FloatStatus::kDebugging) = true;
}

bool has_overflowed(FloatStatus status) noexcept {
  const int32_t device = current_device();
  return device >= 0 && status_of(device, status);
}

void clear_overflow(FloatStatus status) noexcept {
  const int32_t device = current_device();
  if (device >= 0) status_of(device, status) = false;
}

void forget_overflow(int32_t device) noexcept {
  status_of(device, FloatStatus::kOperators) = false;
  status_of(device, FloatStatus::kDebugging) = false;
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  constexpr const char* kApi = "aclrtSetDeviceSatMode";
  if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: mode is %d, expected 0 (ACL_RT_OVERFLOW_MODE_SATURATION) or 1 "
                "(ACL_RT_OVERFLOW_MODE_INFNAN)",
                kApi, mode);
  }
  const Product product = current_product();
  const aclrtFloatOverflowMode only = only_mode(product);
  if (only == ACL_RT_OVERFLOW_MODE_UNDEF) {
    chosen_mode.store(mode, std::memory_order_relaxed);
  } else if (mode != only) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: mode is %s, expected %s, which alone %s has",
                kApi, name_of(mode), name_of(only), product_name(product));
  }
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  if (mode == nullptr) return null_argument("aclrtGetDeviceSatMode", "mode");
  *mode = overflow_mode();
  return ACL_SUCCESS;
}
