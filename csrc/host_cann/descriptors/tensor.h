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

// The part of a tensor that an operator needs. Stage 1 copies it, because a caller may destroy the
// aclTensor before the stream has run the operator.
struct TensorView {
  Dims shape;
  Dims strides;        // in elements
  int64_t offset = 0;  // in elements
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  // C0, the block size of a private format (private_format.h), for operators that read and write
  // private formats; 0 for the others, which read any format as ND.
  int64_t block_width = 0;
  void* storage = nullptr;
  int64_t storage_count = 0;  // declared elements of the storage; 0 if invalid
  uint64_t block = 0;         // number of the memory block when `storage` was set

  // Sets `storage` and the number of its block, which may be freed before a stream uses it.
  void point_at(void* address) noexcept;

  // True if the block that `storage` pointed into was freed since.
  bool is_freed() const noexcept;

  // The first element of the view.
  char* data() const {
    return static_cast<char*>(storage) + offset * static_cast<int64_t>(aclDataTypeSize(dtype));
  }
};

// The bits of an element: 4 for types of which two share a byte; 0 for types without a size.
ACLNN_HOST_INTERNAL int64_t element_bits(aclDataType dtype) noexcept;

// The number of elements; nullopt if a size is negative or the product overflows 63 bits.
ACLNN_HOST_INTERNAL std::optional<int64_t> element_count(const Dims& shape) noexcept;

// Positions in the storage of a view's lowest and highest element, counted in elements.
struct Extent {
  int64_t first;
  int64_t last;
};

// nullopt for an empty view, and on overflow. A private format includes its padding.
ACLNN_HOST_INTERNAL std::optional<Extent> extent_of(const TensorView& view) noexcept;

// The bytes of memory from a view's first element to its last: none for an empty view, more than
// any machine has on overflow.
struct Region {
  const void* begin = nullptr;
  size_t size = 0;
};
ACLNN_HOST_INTERNAL Region region_of(const TensorView& view) noexcept;

// "FLOAT16", "BFLOAT16", ..., as in the CANN documents.
ACLNN_HOST_INTERNAL const char* dtype_name(aclDataType dtype) noexcept;
ACLNN_HOST_INTERNAL std::string shape_text(const Dims& shape);

}  // namespace aclnn_host

struct aclTensor : aclnn_host::Descriptor<aclnn_host::Object::kTensor> {
  aclnn_host::TensorView view;
  aclnn_host::Dims storage_shape;
  // For an output whose shape depends on the data: the shape after the operator has run.
  std::shared_ptr<aclnn_host::Dims> written_shape;
};
