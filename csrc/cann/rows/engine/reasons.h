#pragma once

#include <exception>
#include <string>

namespace aclnn_host {

// Why a row refuses its arguments or fails, from the exception that it ended with. What the host
// CANN's own checks say stands as it is. What torch says is quoted behind `sentence`, which is ours
// and names the arguments; what torch says of its own inside is left out.
std::string reason_of(const std::exception& error, const std::string& sentence);

// What torch says, for a text that quotes it.
std::string words_of(const std::exception& error);

}  // namespace aclnn_host
