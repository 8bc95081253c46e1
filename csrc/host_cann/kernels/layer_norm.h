#pragma once

#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/row_tile.h"

namespace aclnn_host {

// The kernels for elements x, y, dy, dx of one type. They compute in Real (double for DOUBLE,
// otherwise float); mean, rstd, gamma, beta and their gradients have that type. D is the length of
// a whole row; a tile may be a part of it.
//
//   xhat = (x - mean) * rstd
//   y    = xhat * gamma + beta
//   dx   = (a - mean(a) - xhat * mean(a * xhat)) * rstd, a = dy * gamma, means over D
//   dgamma = sum over the rows of dy * xhat
//   dbeta  = sum over the rows of dy
struct LayerNormKernels {
  // sums[row] = sum of x
  void (*sum)(const RowTile& tile, const void* x, double* sums);
  // sums[row] = sum of (x - mean)^2
  void (*sum_of_squares)(const RowTile& tile, const void* x, const void* mean, double* sums);
  void (*normalize)(const RowTile& tile, const void* x, const void* mean, const void* rstd,
                    const void* gamma, const void* beta, void* y);
  // sums[row] = sum of a, products[row] = sum of a * xhat
  void (*sums_of_products)(const RowTile& tile, const void* dy, const void* x, const void* mean,
                           const void* rstd, const void* gamma, double* sums, double* products);
  // The means have replaced the sums. Writes dx.
  void (*gradient)(const RowTile& tile, const void* dy, const void* x, const void* mean,
                   const void* rstd, const void* gamma, const double* means,
                   const double* mean_products, void* dx);
  // Adds the tile's contribution to dgamma and dbeta.
  void (*weight_gradients)(const RowTile& tile, const void* dy, const void* x, const void* mean,
                           const void* rstd, void* dgamma, void* dbeta);
};

using LayerNormKernelsByType = KernelsByType<LayerNormKernels>;

// The kernels in one version; kernels/layer_norm.cpp defines it once per CPU capability.
template <Capability>
const LayerNormKernelsByType& layer_norm_kernels() noexcept;

// The version for this CPU.
const LayerNormKernelsByType& layer_norm_kernels() noexcept;

}  // namespace aclnn_host
