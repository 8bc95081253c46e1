#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// The 64 bits that hold a scale and an offset for quantised products, as CANN's document of
// aclnnTransQuantParam defines them.
namespace aclnn_host {

constexpr uint64_t kQuantParamIsSet = uint64_t{1} << 46;

// The parameter of a scale, which keeps its upper 19 bits.
inline uint64_t quant_param(float scale) {
  return (std::bit_cast<uint32_t>(scale) & 0xFFFFE000U) | kQuantParamIsSet;
}

// Adds an offset to a parameter, rounded to -256 to 255, in bits 37 to 45.
inline uint64_t with_offset(uint64_t param, float offset) {
  const float rounded = std::isnan(offset) ? 0.0F : std::clamp(std::round(offset), -256.0F, 255.0F);
  const auto bits = static_cast<uint64_t>(static_cast<int64_t>(rounded)) & 0x1FFU;
  return (param & 0x4000FFFFFFFFU) | bits << 37;
}

// The scale in a parameter.
inline float scale_of(uint64_t param) {
  return std::bit_cast<float>(static_cast<uint32_t>(param));
}

}  // namespace aclnn_host
