#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "aclnn/acl_meta.h"
#include "host_cann/descriptors/dims.h"
#include "host_cann/runtime/descriptor.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// What an operator needs of a tensor. Stage 1 copies it, because a caller may destroy the aclTensor
// before the stream has run the operator.
struct TensorView {
  Dims shape;
  Dims strides;        // in elements
  int64_t offset = 0;  // in elements
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  // C0, the size of the blocks of a private format (private_format.h), for an operator that reads
  // and writes such; 0 for the others, which read any format as ND.
  int64_t block_width = 0;
  void* storage = nullptr;
  int64_t storage_count = 0;  // the elements that the storage was said to have; 0 for absurd sizes
  uint64_t block = 0;         // the number of the block of memory that `storage` was in when set

  // Sets `storage`, and notes whose memory it is: that may be freed before a stream comes to it.
  void point_at(void* address) noexcept;

  // Whether the memory that `storage` was in when set was freed since.
  bool is_freed() const noexcept;

  // The first element of the view.
  char* data() const {
    return static_cast<char*>(storage) + offset * static_cast<int64_t>(aclDataTypeSize(dtype));
  }
};

// The bits of an element: 4 of the types of which two share a byte; 0 of those without a size.
ACLNN_HOST_INTERNAL int64_t element_bits(aclDataType dtype) noexcept;

// The number of elements, or nothing when a size is negative or the product overflows 63 bits.
ACLNN_HOST_INTERNAL std::optional<int64_t> element_count(const Dims& shape) noexcept;

// The positions in the storage of a view's first and last element in memory, counted in elements.
struct Extent {
  int64_t first;
  int64_t last;
};

// Nothing for an empty view, and when the numbers overflow. A private format takes its padding,
// too.
ACLNN_HOST_INTERNAL std::optional<Extent> extent_of(const TensorView& view) noexcept;

// The bytes of memory from a view's first element to its last; none for an empty view, and more
// than there is where the numbers overflow.
struct Region {
  const void* begin = nullptr;
  size_t size = 0;
};
ACLNN_HOST_INTERNAL Region region_of(const TensorView& view) noexcept;

// "FLOAT16", "BFLOAT16", ... as the CANN documents write them.
ACLNN_HOST_INTERNAL const char* dtype_name(aclDataType dtype) noexcept;
ACLNN_HOST_INTERNAL std::string shape_text(const Dims& shape);

}  // namespace aclnn_host

struct aclTensor : aclnn_host::Descriptor<aclnn_host::Object::kTensor> {
  aclnn_host::TensorView view;
  aclnn_host::Dims storage_shape;
  // Of an output whose shape depends on the data: the shape, once the operator has run.
  std::shared_ptr<aclnn_host::Dims> written_shape;
};
