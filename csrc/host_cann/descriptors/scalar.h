#pragma once

#include <cstdint>
#include <variant>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/descriptor.h"
#include "host_cann/runtime/visibility.h"

// A host scalar, stored in the widest type of its kind, which holds every value of its dtype
// exactly.
struct ACLNN_HOST_INTERNAL aclScalar : aclnn_host::Descriptor<aclnn_host::Object::kScalar> {
  aclDataType dtype;
  union {
    double real;
    int64_t integer;
    uint64_t natural;
    double complex[2];
  };

  bool is_complex() const;

  // The stored value; for a complex number, its real part.
  std::variant<double, int64_t, uint64_t> value() const;
  double to_double() const;

  // CANN's aclScalar::ToFloat: operators compute with FP32 scalars.
  float to_float() const { return static_cast<float>(to_double()); }
};
