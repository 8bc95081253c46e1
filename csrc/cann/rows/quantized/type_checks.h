#pragma once

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

// The elements of a stored output have a type of ATen, whatever its memory has: use expect_type.
void expect_dtype(const char*, const StoredOutput&, at::ScalarType) = delete;
void expect_tensor(const char*, const StoredOutput&, at::ScalarType, at::IntArrayRef) = delete;
void expect_float(const StoredOutput&, at::IntArrayRef) = delete;

}  // namespace aclnn_host
