#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "acl/acl_base.h"
#include "host_cann/descriptors/dims.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/visibility.h"

// The private formats, in which a device multiplies matrices and convolves: the elements are stored
// in blocks of 16 rows or C0 channels, padded with zeros. CANN's documents ("data formats")
// describe each as a tensor that is padded, split and permuted:
//
//   FRACTAL_NZ     [..., R, C]        [..., C1, R1, 16, C0]
//   NC1HWC0        [N, C, H, W]       [N, C1, H, W, C0]
//   FRACTAL_Z      [N, C, H, W]       [C1, H, W, N1, 16, C0]
//   NDC1HWC0       [N, C, D, H, W]    [N, D, C1, H, W, C0]
//   FRACTAL_Z_3D   [N, C, D, H, W]    [D, C1, H, W, N1, 16, C0]
//
// NC1HWC0 and FRACTAL_Z treat a tensor of fewer dimensions as [1, C, H, W], with 1 for the missing
// trailing ones.
namespace aclnn_host {

ACLNN_HOST_INTERNAL bool is_private(aclFormat format) noexcept;
ACLNN_HOST_INTERNAL bool is_fractal_nz(aclFormat format) noexcept;

struct Blocks {
  std::vector<int64_t> shape;   // the sizes in the format's dimensions
  std::vector<int64_t> padded;  // rounded up to whole blocks
  std::vector<int64_t> split;   // with dimensions split into the number of blocks and C0
  std::vector<int64_t> order;   // permutation of the split dimensions in memory
};
// nullopt for a rank that the format does not support, and if the sizes overflow.
ACLNN_HOST_INTERNAL std::optional<Blocks> blocks_of(aclFormat format, const Dims& shape,
                                                    int64_t block_width);
// The storage sizes that CANN publishes: FRACTAL_Z and FRACTAL_Z_3D merge their first dimensions.
ACLNN_HOST_INTERNAL std::vector<int64_t> storage_sizes(aclFormat format, const Blocks& blocks);

// True if a view of a FRACTAL_NZ matrix is the transpose of the matrix in memory.
ACLNN_HOST_INTERNAL bool is_transposed(const TensorView& view) noexcept;
// The sizes of the tensor in memory.
ACLNN_HOST_INTERNAL Dims shape_in_memory(const TensorView& view);

// C0: from the format, otherwise from the storage, otherwise the number of elements in 32 bytes.
// torch's views in another type, such as INT32 of INT8, keep the storage of the first type, whose
// blocks do not count as many columns.
ACLNN_HOST_INTERNAL int64_t block_width_of(const TensorView& view,
                                           const Dims& storage_shape) noexcept;

// The number of elements, with padding, of a tensor in a private format; nullopt if blocks_of()
// returns nullopt.
ACLNN_HOST_INTERNAL std::optional<int64_t> padded_count(const TensorView& view) noexcept;

}  // namespace aclnn_host
