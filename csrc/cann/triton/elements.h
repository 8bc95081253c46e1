#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "cann/triton/machine.h"

namespace aclnn_host::triton {

// Elementwise operations work on chunks, so that a register of another type, or with a single
// element, is widened into a small buffer first.
constexpr int64_t kChunk = 256;

inline float float_of_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7FFF;
  // Below 2^-14 the value is a multiple of 2^-24; else the exponent moves by 127 - 15.
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  const uint32_t wide = (magnitude << 13) + (magnitude >= 0x7C00 ? 0x70000000U : 0x38000000U);
  return std::bit_cast<float>(sign | (magnitude < 0x400 ? std::bit_cast<uint32_t>(small) : wide));
}

// Rounds to nearest, ties to even; NaN stays NaN. Without branches, so that loops use vectors.
inline uint16_t f16_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  // Below 2^-14: the ulp of 0.5 is 2^-24, so the addition rounds.
  const uint32_t sum = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F);
  const uint32_t normal = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  uint32_t result = magnitude < 0x38800000 ? sum - 0x3F000000 : normal;
  result = magnitude >= 0x477FF000 ? 0x7C00 : result;  // 65520 and more
  result = magnitude > 0x7F800000 ? 0x7E00 : result;
  return static_cast<uint16_t>(sign | result);
}

inline float float_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t bf16_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40 : rounded);
}

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
      if (kind_ == kF16) {
        for (int64_t i = 0; i < count; ++i) to[i] = float_of_f16(halves[i]);
        return;
      }
      if (kind_ == kBF16) {
        for (int64_t i = 0; i < count; ++i) to[i] = float_of_bf16(halves[i]);
        return;
      }
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
        for (int64_t i = 0; i < count; ++i) halves[i] = f16_of_float(buffer_[i]);
      } else if (kind_ == kBF16) {
        for (int64_t i = 0; i < count; ++i) halves[i] = bf16_of_float(buffer_[i]);
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
