#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Versions of the kernels, slowest first. kReference is plain scalar code that defines the other
// versions' results, and runs on x86-64 CPUs without AVX2 (before 2013); DEFAULT is for other
// architectures. The enumerators without a k are the values of -DCPU_CAPABILITY=..., as in PyTorch.
enum class Capability { kReference, DEFAULT, AVX2, AVX512 };

// The version to use: PyTorch's choice for this CPU (which its ATEN_CPU_CAPABILITY can lower), or
// ACLNN_TORCH_CPU_CAPABILITY (reference, avx2, avx512), if the CPU supports it.
ACLNN_HOST_INTERNAL Capability current_capability() noexcept;
// True if the version may use a BFLOAT16 multiply instruction (AVX512_BF16, or FEAT_BF16 on
// aarch64); if that is AVX512_BF16; and if the CPU has AMX for BFLOAT16.
ACLNN_HOST_INTERNAL bool has_bfloat16_products() noexcept;
ACLNN_HOST_INTERNAL bool has_avx512_bf16() noexcept;
ACLNN_HOST_INTERNAL bool has_amx_bf16() noexcept;
ACLNN_HOST_INTERNAL const char* capability_name(Capability capability) noexcept;

// The kernels of one operator in the current version; `get` is a lambda template over the version.
// Called in the file that defines the reference, which is compiled once.
template <class Get>
auto& select_kernels(Get get) {
  switch (current_capability()) {
#if defined(__x86_64__)
    case Capability::AVX512: return get.template operator()<Capability::AVX512>();
    case Capability::AVX2: return get.template operator()<Capability::AVX2>();
#else
    case Capability::DEFAULT: return get.template operator()<Capability::DEFAULT>();
#endif
    default: return get.template operator()<Capability::kReference>();
  }
}

}  // namespace aclnn_host
