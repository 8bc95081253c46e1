#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cann/triton/machine.h"
#include "cann/triton/wide.h"

namespace aclnn_host::triton {

// Elementwise operations work on chunks, so that a register of another type, or with a single
// element, is widened into a small buffer first.
constexpr int64_t kChunk = 256;

// Reads an operand's elements as V. If V is float, the register may have any kind up to F32.
template <class V>
class Input {
 public:
  Input(Machine& machine, int64_t kind, int64_t operand, int64_t count)
      : data_(machine.at<char>(operand >> 1)), kind_(kind), is_splat_((operand & 1) != 0) {
    if (!is_splat_) return;
    widen(buffer_, 0, 1);
    std::fill_n(buffer_, std::min(count, kChunk), V(buffer_[0]));
  }

  const V* read(int64_t begin, int64_t count) {
    if (is_splat_) return buffer_;
    if (!is_widened()) return reinterpret_cast<const V*>(data_) + begin;
    widen(buffer_, begin, count);
    return buffer_;
  }

 private:
  bool is_widened() const { return std::is_same_v<V, float> && kind_ != kF32; }

  void widen(V* to, int64_t begin, int64_t count) {
    if constexpr (std::is_same_v<V, float>) {
      const auto* const halves = reinterpret_cast<const uint16_t*>(data_) + begin;
      if (kind_ == kF16) return floats_of_f16(halves, count, to);
      if (kind_ == kBF16) return floats_of_bf16(halves, count, to);
    }
    std::copy_n(reinterpret_cast<const V*>(data_) + begin, count, to);
  }

  const char* data_;
  const int64_t kind_;
  const bool is_splat_;
  V buffer_[kChunk];
};

// Writes V into a register, which may have any kind up to F32 if V is float.
template <class V>
class Output {
 public:
  Output(Machine& machine, int64_t kind, int64_t offset)
      : data_(machine.at<char>(offset)), kind_(kind) {}

  V* begin(int64_t begin) { return is_narrowed() ? buffer_ : reinterpret_cast<V*>(data_) + begin; }

  void end(int64_t begin, int64_t count) {
    if constexpr (std::is_same_v<V, float>) {
      auto* const halves = reinterpret_cast<uint16_t*>(data_) + begin;
      if (kind_ == kF16) {
        f16_of_floats(buffer_, count, halves);
      } else if (kind_ == kBF16) {
        bf16_of_floats(buffer_, count, halves);
      }
    }
  }

 private:
  bool is_narrowed() const { return std::is_same_v<V, float> && kind_ != kF32; }

  char* data_;
  const int64_t kind_;
  V buffer_[kChunk];
};

// Computes out = f(inputs...) for `count` elements.
template <class R, class F, class... V>
void map(int64_t count, Output<R>& out, F f, Input<V>&... inputs) {
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t size = std::min(kChunk, count - begin);
    R* const to = out.begin(begin);
    const auto loop = [&](const V*... from) {
      for (int64_t i = 0; i < size; ++i) to[i] = static_cast<R>(f(from[i]...));
    };
    loop(inputs.read(begin, size)...);
    out.end(begin, size);
  }
}

}  // namespace aclnn_host::triton
