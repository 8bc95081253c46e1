#include <bit>
#include <cstdint>

#include "acl/acl_base.h"

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0: return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32: return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    default: return 0;
  }
}

float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000) << 16;
  const uint32_t exponent = value >> 10 & 0x1F;
  const uint32_t mantissa = value & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in binary32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

aclFloat16 aclFloatToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) {  // NaN: quiet, keeping the payload bits that fit
    return static_cast<aclFloat16>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  }
  if (magnitude < 0x38800000) {  // below 2^-14: a multiple of 2^-24, rounded to nearest even
    // The ulp of 0.5f is 2^-24, so the addition rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<aclFloat16>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  // Adding half an ulp minus one, plus the last kept bit, rounds to nearest, ties to even. A carry
  // correctly increments the exponent.
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  const uint32_t narrow = (rounded - ((127 - 15) << 23)) >> 13;
  return static_cast<aclFloat16>(sign | (narrow < 0x7C00 ? narrow : 0x7C00));
}
