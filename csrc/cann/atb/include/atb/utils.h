// Sizes of tensors.
#pragma once

#include <cstdint>
#include <string>

#include "atb/types.h"

#pragma GCC visibility push(default)
namespace atb {

class Utils {
 public:
  static std::string GetAtbVersion();
  // The bytes of a tensor; 0 if it is invalid.
  static uint64_t GetTensorSize(const Tensor& tensor);
  static uint64_t GetTensorSize(const TensorDesc& tensorDesc);
  // The elements of a tensor; 0 if it is invalid.
  static uint64_t GetTensorNumel(const Tensor& tensor);
  static uint64_t GetTensorNumel(const TensorDesc& tensorDesc);
  // Stores each number in the lower half of 64 bits whose upper half is 0.
  static void QuantParamConvert(const float* src, uint64_t* dest, uint64_t itemCount);
  static Status SetLogLevel(LogLevel atbLogLevel);
  static Status ResetLogLevel();
};

}  // namespace atb
#pragma GCC visibility pop
