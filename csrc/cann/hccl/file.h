#pragma once

#include <utility>

namespace aclnn_host::hccl {

// A file descriptor, which is closed with its owner. A forked child closes its copies at once: it
// lacks the threads that serve them, and while a copy is open, the other side of a connection does
// not see that this process has ended.
class File {
 public:
  File() = default;
  explicit File(int number);
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~File();

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace aclnn_host::hccl
