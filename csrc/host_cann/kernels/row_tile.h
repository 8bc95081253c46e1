#pragma once

#include <cstdint>

namespace aclnn_host {

// A rectangle of a matrix: `rows` rows of `columns` elements, `stride` elements apart. Per-row
// values such as `rstd` are contiguous; sums are `sum_stride` apart. With `streaming`, the matrix
// is much larger than the caches: results bypass them, and the next rows are prefetched meanwhile.
struct RowTile {
  // Limits the number of terms per sum.
  static constexpr int64_t kMostColumns = 2048;

  int64_t rows;
  int64_t columns;
  int64_t stride;
  int64_t sum_stride;
  bool streaming = false;

  // From an element to the corresponding one of the tile below.
  template <class T>
  int64_t next_bytes() const {
    return rows * stride * static_cast<int64_t>(sizeof(T));
  }
};

}  // namespace aclnn_host
