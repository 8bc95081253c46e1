#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "cann/rows/engine/outputs.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/descriptors/tensor.h"

// Conversions of tensors to the types in which a row computes or copies them.

namespace aclnn_host {

// CANN's name of a type, for error texts.
inline const char* dtype_text(at::ScalarType type) {
  return dtype_name(acl_type(type));
}

// FLOAT for FLOAT16 and BFLOAT16; other types and tensors unchanged. Rows use it where intermediate
// results would be rounded to 16 bits. The assignment to the output rounds once.
inline at::ScalarType wide(at::ScalarType dtype) {
  return at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
}
inline at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(wide(tensor.scalar_type()));
}
inline at::Tensor wide(const Output& out) {
  return wide(static_cast<const at::Tensor&>(out));
}
inline std::optional<at::Tensor> wide(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(wide(*tensor)) : std::nullopt;
}

// Views UINT16, UINT32 and UINT64, for which ATen has few kernels, as the signed type of that size,
// and BOOL as UINT8. For rows that copy elements and do not compute with them.
inline at::Tensor as_movable(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kUInt16: return tensor.view(at::kShort);
    case at::kUInt32: return tensor.view(at::kInt);
    case at::kUInt64: return tensor.view(at::kLong);
    case at::kBool: return tensor.view(at::kByte);
    default: return tensor;
  }
}
// The result of `move` on as_movable(tensor), viewed in the tensor's own type again.
template <class Move>
at::Tensor moved(const at::Tensor& tensor, Move move) {
  return move(as_movable(tensor)).view(tensor.scalar_type());
}

}  // namespace aclnn_host
