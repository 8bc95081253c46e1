#pragma once

#include <cstddef>
#include <span>

#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// True if the emulated product reduces this type, as CANN's documents of HcclAllReduce list; the
// product `host` reduces all numeric types of at most 64 bits.
bool is_reduced(HcclDataType type, HcclReduceOp reduction) noexcept;

// result = the elementwise reduction of the sources, in their order. FP16 and BFP16 are reduced in
// FLOAT and rounded once; integers wrap around. The result may be one of the sources.
void reduce(HcclDataType type, HcclReduceOp reduction, std::span<const void* const> sources,
            void* result, size_t count);

// True if no number is an infinity or a NaN.
bool are_finite(HcclDataType type, const void* numbers, size_t count);

}  // namespace aclnn_host::hccl
