#pragma once

#include <unistd.h>

#include <utility>

namespace aclnn_host::hccl {

// A file descriptor, which is closed with its owner.
class File {
 public:
  File() = default;
  explicit File(int number) noexcept : number_(number) {}
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~File() {
    if (number_ >= 0) close(number_);
  }

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace aclnn_host::hccl
