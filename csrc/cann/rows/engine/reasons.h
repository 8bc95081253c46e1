#pragma once

#include <exception>
#include <string>

namespace aclnn_host {

// The reason of a refusal or failure, from the exception that the row threw. A text of the host
// CANN's own checks is returned unchanged. A text of torch is quoted after `sentence`, which is
// ours and names the arguments; the parts about torch's internals are removed.
std::string reason_of(const std::exception& error, const std::string& sentence);

// torch's text, for an error text that quotes it.
std::string words_of(const std::exception& error);

}  // namespace aclnn_host
