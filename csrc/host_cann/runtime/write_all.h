#pragma once

#include <cerrno>
#include <string_view>

#include <unistd.h>

namespace aclnn_host {

// Writes the whole text; returns the errno on failure, else 0.
inline int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace aclnn_host
