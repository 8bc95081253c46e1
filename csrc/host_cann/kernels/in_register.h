// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <cstring>

#include <ATen/cpu/vec/vec.h>

namespace aclnn_host {
namespace {

// Keeps a loaded vector in a register; otherwise GCC reloads it at every use.
template <class V>
inline V in_register(V vector) {
#if defined(CPU_CAPABILITY_AVX512)
  using Bits = __m512;
#elif defined(CPU_CAPABILITY_AVX2)
  using Bits = __m256;
#endif
#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
  Bits bits;
  static_assert(sizeof(bits) == sizeof(vector));
  std::memcpy(&bits, &vector, sizeof(bits));
  asm("" : "+v"(bits));
  std::memcpy(static_cast<void*>(&vector), &bits, sizeof(bits));
#endif
  return vector;
}

}  // namespace
}  // namespace aclnn_host
