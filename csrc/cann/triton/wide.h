#pragma once

#include <bit>
#include <cstdint>

// On x86-64 these functions use the processor's wider vectors where it has them, with the same
// results.
#ifdef __x86_64__
#define ACLNN_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ACLNN_WIDE
#endif

namespace aclnn_host::triton {

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

// The same for `count` elements.
void floats_of_f16(const uint16_t* from, int64_t count, float* to);
void floats_of_bf16(const uint16_t* from, int64_t count, float* to);
void f16_of_floats(const float* from, int64_t count, uint16_t* to);
void bf16_of_floats(const float* from, int64_t count, uint16_t* to);

// Addresses moved by offsets in elements of 1 << shift bytes.
void move_by_offsets(const int64_t* addresses, const int32_t* offsets, int shift, int64_t count,
                     int64_t* to);

// How many of at most `most` addresses behind the first one are `distance` more than the one
// before.
int64_t consecutive(const uintptr_t* addresses, int64_t most, uintptr_t distance);

}  // namespace aclnn_host::triton
