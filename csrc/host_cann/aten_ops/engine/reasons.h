#pragma once

#include <exception>
#include <string>
#include <utility>

namespace aclnn_host {

// What a row throws where an argument is null that others make necessary, which is 161001. What
// TORCH_CHECK refuses is 161002.
class NullArgument : public std::exception {
 public:
  explicit NullArgument(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Why a row refuses its arguments or fails, from the exception that it ended with. What the host
// CANN's own checks say stands as it is. What torch says is quoted behind `sentence`, which is ours
// and names the arguments; what torch says of its own inside is left out.
std::string reason_of(const std::exception& error, const std::string& sentence);

// What torch says, for a text that quotes it.
std::string words_of(const std::exception& error);

}  // namespace aclnn_host
