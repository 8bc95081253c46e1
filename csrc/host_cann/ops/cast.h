#pragma once

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// CANN's rule of casts: false for complex to real, floating to integer, anything else to bool.
ACLNN_HOST_INTERNAL bool can_cast(aclDataType from, aclDataType to) noexcept;

// CANN's rule of promotion for FLOAT, FLOAT16, BFLOAT16 and DOUBLE; an integer beside one of them
// is computed with as FLOAT, beside DOUBLE as that.
ACLNN_HOST_INTERNAL aclDataType promote_type(aclDataType a, aclDataType b) noexcept;

// Converts n contiguous elements: to nearest even into a floating type (DOUBLE by way of FLOAT into
// the 16-bit types), truncation
// with saturation (nan to 0) into an integer type, a zero imaginary part into a complex type.
using CastFunction = void (*)(const void* from, void* to, int64_t n);

// Null when elements of these types cannot be converted here.
ACLNN_HOST_INTERNAL CastFunction find_cast(aclDataType from, aclDataType to) noexcept;

}  // namespace aclnn_host
