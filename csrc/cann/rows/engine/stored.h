#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "host_cann/descriptors/tensor.h"

// Conversion of tensors in types and formats that ATen lacks to the elements that rows see: INT4 as
// INT8, FLOAT8 and FLOAT4 as FLOAT, private formats in logical order.
namespace aclnn_host {

// The type in which a row sees the elements; at::ScalarType::Undefined if there is none.
at::ScalarType type_of_elements(aclDataType dtype);

// True if rows see a copy of the elements, not the caller's memory.
bool is_stored_apart(const TensorView& view);

// A view of the elements as a row sees them, without an address.
TensorView view_of_elements(const TensorView& view);

// A copy of the elements.
at::Tensor load(const TensorView& view);
// Writes elements to the view's memory. The padding of a private format gets zeros.
void store(const at::Tensor& elements, const TensorView& view);

// Converts a contiguous tensor to the blocks of a private format, one after the other, and back.
// `block_width` is C0.
at::Tensor to_blocks(const at::Tensor& tensor, aclFormat format, int64_t block_width);
at::Tensor from_blocks(const at::Tensor& blocks, at::IntArrayRef shape, aclFormat format,
                       int64_t block_width);

// Converts pairs of 4-bit integers, the first in the lower bits, to signed INT8, and back.
at::Tensor unpack_int4(const at::Tensor& bytes);
at::Tensor pack_int4(const at::Tensor& values);

}  // namespace aclnn_host
