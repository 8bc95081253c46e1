#pragma once

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// CANN's rule of casts: false for complex to real, floating to integers of 8 bits and more,
// anything else to bool. It says nothing of types with which the host does not compute; find_cast()
// does.
ACLNN_HOST_INTERNAL bool can_cast(aclDataType from, aclDataType to) noexcept;

// CANN's rule of promotion where a floating type that the host computes with is the result: two
// 16-bit types make FLOAT, an integer or bool takes the type beside it. Else ACL_DT_UNDEFINED.
ACLNN_HOST_INTERNAL aclDataType promote_type(aclDataType a, aclDataType b) noexcept;

// Converts n contiguous elements: to nearest even into a floating type (DOUBLE by way of FLOAT into
// the 16-bit types), truncation
// with saturation (nan to 0) into an integer type, a zero imaginary part into a complex type.
using CastFunction = void (*)(const void* from, void* to, int64_t n);

// Null when elements of these types cannot be converted here.
ACLNN_HOST_INTERNAL CastFunction find_cast(aclDataType from, aclDataType to) noexcept;

}  // namespace aclnn_host
