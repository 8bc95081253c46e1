#pragma once

#include <initializer_list>
#include <string>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

// Checks like those of checks.h, of types and formats that ATen lacks, and of texts.
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

// Refuses all texts but these.
void expect_text(const char* name, const std::string& text,
                 std::initializer_list<const char*> accepted, const char* reason = "");

inline void expect_tensor(const char* name, const at::Tensor& tensor, at::ScalarType dtype,
                          at::IntArrayRef shape) {
  expect_dtype(name, tensor, dtype);
  expect_shape(name, tensor, shape);
}

// Requires FLOAT16 or BFLOAT16.
inline void expect_half(const char* name, const at::Tensor& tensor, const char* reason = "") {
  expect_dtype(name, tensor, {at::kHalf, at::kBFloat16}, reason);
}

}  // namespace aclnn_host
