#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/row_tile.h"

namespace aclnn_host {

// The kernels for elements x, y, dy, dx of one type. They compute in Real (double for DOUBLE,
// otherwise float); rstd, gamma and dgamma have that type. D is the length of a whole row; a tile
// may be a part of it, with at most RowTile::kMostColumns columns.
//
//   xhat = x * rstd
//   y    = xhat * gamma
//   dx   = (dy * gamma - xhat * mean) * rstd, mean = (sum over D of dy * gamma * xhat) / D
//   dgamma = sum over the rows of dy * xhat
struct RmsNormKernels {
  // sums[row] = sum of x^2
  void (*sum_of_squares)(const RowTile& tile, const void* x, double* sums);
  void (*normalize)(const RowTile& tile, const void* x, const void* rstd, const void* gamma,
                    void* y);
  // sums[row] = sum of dy * gamma * xhat
  void (*sum_of_products)(const RowTile& tile, const void* dy, const void* x, const void* rstd,
                          const void* gamma, double* sums);
  // Writes dx and adds the tile's contribution to dgamma.
  void (*gradients)(const RowTile& tile, const void* dy, const void* x, const void* rstd,
                    const void* gamma, const double* means, void* dx, void* dgamma);
};

using RmsNormKernelsByType = KernelsByType<RmsNormKernels>;

// The kernels in one version; kernels/rms_norm.cpp defines it once per CPU capability.
template <Capability>
const RmsNormKernelsByType& rms_norm_kernels() noexcept;

// The version for this CPU.
const RmsNormKernelsByType& rms_norm_kernels() noexcept;

}  // namespace aclnn_host
