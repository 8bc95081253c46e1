#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "host_cann/descriptors/tensor.h"

// Tensors as CANN stores them in types and formats that ATen lacks, and their elements as rows see
// them: INT4 as INT8, FLOAT8 and FLOAT4 as FLOAT, private formats in order.
namespace aclnn_host {

// The type in which a row sees the elements; at::ScalarType::Undefined for one that has none.
at::ScalarType type_of_elements(aclDataType dtype);

// Whether rows see copies of the elements, not the memory.
bool is_stored_apart(const TensorView& view);

// A view of the elements as a row sees them, without an address.
TensorView view_of_elements(const TensorView& view);

// The elements in memory of their own.
at::Tensor load(const TensorView& view);
// Writes elements to where the view has them. A private format gets zeros in its padding.
void store(const at::Tensor& elements, const TensorView& view);

// The elements of a contiguous tensor in the blocks of a private format, one after the other, and
// back. `blocks_width` is C0.
at::Tensor to_blocks(const at::Tensor& tensor, aclFormat format, int64_t block_width);
at::Tensor from_blocks(const at::Tensor& blocks, at::IntArrayRef shape, aclFormat format,
                       int64_t block_width);

// Pairs of 4 bits, the lower ones first, as INT8 with sign; and back.
at::Tensor unpack_int4(const at::Tensor& bytes);
at::Tensor pack_int4(const at::Tensor& values);

}  // namespace aclnn_host
