#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace aclnn_host {

// A tensor's sizes or strides. Up to eight, CANN's maximum rank, are stored inline.
class Dims {
 public:
  static constexpr int kInline = 8;

  Dims() = default;
  Dims(const int64_t* values, uint64_t size) { assign(values, size); }
  Dims(const Dims& other) { assign(other.begin(), other.size_); }
  Dims& operator=(const Dims& other) {
    if (this != &other) assign(other.begin(), other.size_);
    return *this;
  }

  void assign(const int64_t* values, uint64_t size) {
    int64_t* out = resize(size);
    // Not memmove: for so few values the call costs more.
    for (uint64_t i = 0; i < size; ++i) out[i] = values[i];
  }

  // Makes room for `size` values and returns their uninitialised location.
  int64_t* resize(uint64_t size) {
    if (size > kInline) {
      heap_ = std::make_unique<int64_t[]>(size);
    } else {
      heap_.reset();
    }
    size_ = size;
    return begin();
  }

  // Drops all but the first `size` values.
  void shrink(uint64_t size) { size_ = size; }

  int64_t* begin() { return heap_ ? heap_.get() : inline_; }
  const int64_t* begin() const { return heap_ ? heap_.get() : inline_; }
  const int64_t* end() const { return begin() + size_; }
  uint64_t size() const { return size_; }
  int64_t operator[](uint64_t i) const { return begin()[i]; }
  bool operator==(const Dims& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  uint64_t size_ = 0;
  std::unique_ptr<int64_t[]> heap_;
  int64_t inline_[kInline];
};

// The strides of a contiguous tensor. Sizes may be invalid here (stage 1 refuses them later), so
// the products wrap instead of overflowing.
inline void set_contiguous_strides(const Dims& shape, Dims& strides) {
  int64_t* const out = strides.resize(shape.size());
  uint64_t stride = 1;
  for (uint64_t i = shape.size(); i-- > 0;) {
    out[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
  }
}

}  // namespace aclnn_host
