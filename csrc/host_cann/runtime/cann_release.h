#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// The releases of CANN whose public checkers the operators follow, in their order. kLater is the
// newest public source, which is later than 9.1.
enum class CannRelease { k8_5, k9_0, k9_1, kLater };

ACLNN_HOST_INTERNAL CannRelease current_cann_release() noexcept;

}  // namespace aclnn_host
