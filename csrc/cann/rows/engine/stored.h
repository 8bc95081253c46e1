#pragma once

#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "cann/rows/engine/outputs.h"
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

// The same memory as bytes, of which each has one element, or two neighbours of a type of 4 bits:
// of a view that has no byte in part, and is not in a private format.
bool has_whole_bytes(const TensorView& view);
TensorView view_of_bytes(const TensorView& view);

// An output of which a row changes some elements. In a type that ATen lacks, a row sees it as
// bytes, as view_of_bytes has them, so that only what it writes is converted.
class EncodedOutput : public StoredOutput {
 public:
  EncodedOutput(Output memory, const TensorView& view)
      : StoredOutput(std::move(memory), view.dtype, view.format), view_(view) {}
  using Output::operator=;
  // A tensor without memory of the elements' shape, for checks.
  at::Tensor elements() const;
  // What these elements are in the memory: bytes, or themselves in a type that ATen has.
  at::Tensor encoded(const at::Tensor& elements) const;

 private:
  const TensorView& view_;
};

// Converts a contiguous tensor to the blocks of a private format, one after the other, and back.
// `block_width` is C0.
at::Tensor to_blocks(const at::Tensor& tensor, aclFormat format, int64_t block_width);
at::Tensor from_blocks(const at::Tensor& blocks, at::IntArrayRef shape, aclFormat format,
                       int64_t block_width);

// Converts pairs of 4-bit integers, the first in the lower bits, to signed INT8, and back.
at::Tensor unpack_int4(const at::Tensor& bytes);
at::Tensor pack_int4(const at::Tensor& values);

}  // namespace aclnn_host
