#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {

// How messages call things: as the header does, without its prefix.
const char* name_of(HcclDataType type) noexcept;
const char* name_of(HcclReduceOp reduction) noexcept;
const char* name_of(HcclCMDType operation) noexcept;  // the function

// "HcclAllReduce (FP32, SUM) of 16 bytes".
std::string text_of(const Description& what, size_t bytes);

// "rank 1" or "ranks 1, 2 and 5". One that is named twice counts once; of many the first are named,
// and the others counted.
std::string text_of_ranks(std::vector<uint32_t> ranks);

// The bytes of an element; 0 for a type that there is none of.
size_t element_size(HcclDataType type) noexcept;

}  // namespace aclnn_host::hccl
