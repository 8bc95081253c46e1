#include "host_cann/kernels/capability.h"

#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <ATen/Version.h>

namespace aclnn_host {
namespace {

Capability best_capability() {
#if defined(__x86_64__)
  const std::string torch_choice = at::get_cpu_capability();
  if (torch_choice == "AVX512") return Capability::AVX512;
  if (torch_choice == "AVX2") return Capability::AVX2;
  return Capability::kReference;
#else
  return Capability::DEFAULT;
#endif
}

Capability choose() {
  const Capability best = best_capability();
  const char* wanted = std::getenv("ACLNN_TORCH_CPU_CAPABILITY");
  if (wanted == nullptr) return best;
  for (const Capability one : {Capability::kReference, Capability::AVX2}) {
    if (std::strcmp(wanted, capability_name(one)) == 0 && one < best) return one;
  }
  return best;
}

}  // namespace

Capability current_capability() noexcept {
  static const Capability chosen = choose();
  return chosen;
}

#if defined(__x86_64__)
bool has_bfloat16_products() noexcept {
  return has_avx512_bf16();
}
bool has_avx512_bf16() noexcept {
  return current_capability() == Capability::AVX512 && __builtin_cpu_supports("avx512bf16");
}
bool has_amx_bf16() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;  // clang's builtin does not support it
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1u << 22) != 0;
}
#else
bool has_bfloat16_products() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long kBfloat16 = 1ul << 14;  // HWCAP2_BF16, missing in older headers
  return current_capability() == Capability::DEFAULT && (getauxval(AT_HWCAP2) & kBfloat16) != 0;
#else
  return false;
#endif
}
bool has_avx512_bf16() noexcept {
  return false;
}
bool has_amx_bf16() noexcept {
  return false;
}
#endif

const char* capability_name(Capability capability) noexcept {
  switch (capability) {
    case Capability::kReference: return "reference";
    case Capability::AVX2: return "avx2";
    case Capability::AVX512: return "avx512";
    case Capability::DEFAULT: break;
  }
  return "default";
}

}  // namespace aclnn_host
