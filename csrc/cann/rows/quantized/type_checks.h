#pragma once

#include <initializer_list>
#include <string>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

// Checks like those of checks.h, of types that ATen lacks.
namespace aclnn_host {

// Refuses all types but these.
void expect_type(const char* name, aclDataType dtype, std::initializer_list<aclDataType> accepted,
                 const char* reason = "");
inline void expect_type(const char* name, const StoredTensor& tensor,
                        std::initializer_list<aclDataType> accepted, const char* reason = "") {
  expect_type(name, tensor.dtype, accepted, reason);
}
inline void expect_type(const StoredOutput& out, std::initializer_list<aclDataType> accepted,
                        const char* reason = "") {
  expect_type(out.name(), out.dtype(), accepted, reason);
}
// As the other, for an output whose type an argument of the call repeats.
void expect_type(const char* argument, int64_t dtype, const StoredOutput& out,
                 std::initializer_list<aclDataType> accepted);

}  // namespace aclnn_host
