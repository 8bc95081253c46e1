#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "kernels/capability.h"

namespace aclnn_host {

// A rectangle of a matrix: `rows` rows of `columns` elements, `stride` elements from row to row.
// What there is once for every row, `rstd`, has no gaps; sums stand `sum_stride` apart. With
// `streaming`, the matrix is much larger than the caches: results bypass them, and while they are
// written, the elements of the next rows are asked for.
struct RmsNormTile {
  int64_t rows;
  int64_t columns;
  int64_t stride;
  int64_t sum_stride;
  bool streaming = false;

  // From an element to that of the tile below.
  template <class T>
  int64_t next_bytes() const {
    return rows * stride * static_cast<int64_t>(sizeof(T));
  }
};

// The kernels for elements x, y, dy, dx of one type. They compute in Real, double for DOUBLE and
// float for the others; rstd, gamma and dgamma are of that type. D is the length of a whole row, of
// which a tile may be a part: columns is at most kSegment, so that few numbers are added to one.
//
//   xhat = x * rstd
//   y    = xhat * gamma
//   dx   = (dy * gamma - xhat * mean) * rstd, mean = (sum over D of dy * gamma * xhat) / D
//   dgamma = sum over the rows of dy * xhat
struct RmsNormKernels {
  static constexpr int64_t kSegment = 2048;

  // sums[row] = sum of x^2
  void (*sum_of_squares)(const RmsNormTile& tile, const void* x, double* sums);
  void (*normalize)(const RmsNormTile& tile, const void* x, const void* rstd, const void* gamma,
                    void* y);
  // sums[row] = sum of dy * gamma * xhat
  void (*sum_of_products)(const RmsNormTile& tile, const void* dy, const void* x, const void* rstd,
                          const void* gamma, double* sums);
  // Writes dx and adds the tile's share to dgamma.
  void (*gradients)(const RmsNormTile& tile, const void* dy, const void* x, const void* rstd,
                    const void* gamma, const double* means, void* dx, void* dgamma);
};

struct RmsNormKernelsByType {
  RmsNormKernels float32;
  RmsNormKernels float16;
  RmsNormKernels bfloat16;
  RmsNormKernels float64;

  const RmsNormKernels& find(aclDataType dtype) const {
    switch (dtype) {
      case ACL_FLOAT16: return float16;
      case ACL_BF16: return bfloat16;
      case ACL_DOUBLE: return float64;
      default: return float32;
    }
  }
};

// The kernels in one version; kernels/rms_norm.cpp defines it once per CPU capability.
template <Capability>
const RmsNormKernelsByType& rms_norm_kernels() noexcept;

}  // namespace aclnn_host
