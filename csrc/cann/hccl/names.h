#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {

// Names for error messages: those of the header, without its prefix.
const char* name_of(HcclDataType type) noexcept;
const char* name_of(HcclReduceOp reduction) noexcept;
const char* name_of(HcclCMDType operation) noexcept;  // the function

// For example "HcclAllReduce (FP32, SUM) of 16 bytes".
std::string text_of(const Description& what, size_t bytes);

// For example "rank 1" or "ranks 1, 2 and 5". Duplicates count once; of a long list the first are
// named and the others counted.
std::string text_of_ranks(std::vector<uint32_t> ranks);

// The size of an element in bytes; 0 for an unknown type.
size_t element_size(HcclDataType type) noexcept;

}  // namespace aclnn_host::hccl
