#pragma once

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// CANN's rule for casts: no complex to real, no floating to integers of 8 bits and more; everything
// to bool. It accepts dtypes with which the host does not compute; find_cast() does not.
ACLNN_HOST_INTERNAL bool can_cast(aclDataType from, aclDataType to) noexcept;

// CANN's rule of promotion, if the result is a floating dtype that the host computes with: two
// different 16-bit dtypes give FLOAT, an integer or bool takes the other's dtype. Otherwise
// ACL_DT_UNDEFINED.
ACLNN_HOST_INTERNAL aclDataType promote_type(aclDataType a, aclDataType b) noexcept;

// Converts n contiguous elements: rounds to nearest even into a floating type (DOUBLE through FLOAT
// into the 16-bit types), truncates with saturation (NaN to 0) into an integer type, and adds a
// zero imaginary part into a complex type.
using CastFunction = void (*)(const void* from, void* to, int64_t n);

// Null if there is no conversion between these types.
ACLNN_HOST_INTERNAL CastFunction find_cast(aclDataType from, aclDataType to) noexcept;

}  // namespace aclnn_host
