#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Versions of the kernels, worst first. kReference is plain scalar code, the statement of what the
// others compute, and the version for x86-64 without AVX2, of before 2013; DEFAULT is for other
// architectures. The enumerators without a k are what -DCPU_CAPABILITY=... names, as in PyTorch.
enum class Capability { kReference, DEFAULT, AVX2, AVX512 };

// The version to use: PyTorch's choice for this CPU (which its ATEN_CPU_CAPABILITY can lower), or
// what ACLNN_TORCH_CPU_CAPABILITY says, if the CPU can run it: reference, avx2, avx512.
ACLNN_HOST_INTERNAL Capability current_capability() noexcept;
// Whether the version may multiply BFLOAT16 by an instruction for it: AVX512_BF16, or FEAT_BF16 of
// aarch64; whether that is AVX512_BF16, and whether the CPU has AMX for it.
ACLNN_HOST_INTERNAL bool has_bfloat16_products() noexcept;
ACLNN_HOST_INTERNAL bool has_avx512_bf16() noexcept;
ACLNN_HOST_INTERNAL bool has_amx_bf16() noexcept;
ACLNN_HOST_INTERNAL const char* capability_name(Capability capability) noexcept;

// The kernels of one operator in the current version; `get` is a lambda template over the version.
// It is called where the reference is defined, which is compiled once.
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
