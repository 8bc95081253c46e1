#pragma once

#include <cstddef>
#include <span>

#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// Whether the product that is emulated reduces the type so, as CANN's documents of HcclAllReduce
// list it; the product `host` reduces all types that have numbers of at most 64 bits.
bool is_reduced(HcclDataType type, HcclReduceOp reduction) noexcept;

// result = the reduction of the sources, in their order, element by element. FP16 and BFP16 are
// reduced in FLOAT and rounded once; integers wrap around. The result may be one of the sources.
void reduce(HcclDataType type, HcclReduceOp reduction, std::span<const void* const> sources,
            void* result, size_t count);

// Whether none of the numbers is an infinity or a NaN.
bool are_finite(HcclDataType type, const void* numbers, size_t count);

}  // namespace aclnn_host::hccl
