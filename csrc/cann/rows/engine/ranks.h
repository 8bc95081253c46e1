#pragma once

#include <cstdint>
#include <string_view>

namespace aclnn_host {

// The largest rank of a tensor: the limit of CANN's checks (MAX_SUPPORT_DIMS_NUMS) and of its
// documents.
inline constexpr uint64_t kMostDimensions = 8;

// True if a function accepts a larger rank.
bool takes_more_dimensions(std::string_view api);

}  // namespace aclnn_host
