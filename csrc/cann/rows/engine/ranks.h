#pragma once

#include <cstdint>
#include <string_view>

namespace aclnn_host {

// The dimensions that a tensor may have: as many as CANN's checks let through
// (MAX_SUPPORT_DIMS_NUMS), and its documents list.
inline constexpr uint64_t kMostDimensions = 8;

// Whether a function is one of those that take more.
bool takes_more_dimensions(std::string_view api);

}  // namespace aclnn_host
