// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <cstdint>

#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

// Allocates consecutive parts of scratch memory, each 64-byte aligned; from a null pointer, it only
// computes their total size.
class ScratchParts {
 public:
  explicit ScratchParts(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <class T>
  T* take(int64_t count) {
    T* const part = memory_ != nullptr ? reinterpret_cast<T*>(memory_ + size_) : nullptr;
    size_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return part;
  }
  int64_t size() const { return size_; }

 private:
  char* memory_;
  int64_t size_ = 0;
};

}  // namespace
}  // namespace aclnn_host
