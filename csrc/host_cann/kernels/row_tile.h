#pragma once

#include <cstdint>

namespace aclnn_host {

// A rectangle of a matrix: `rows` rows of `columns` elements, `stride` elements from row to row.
// What there is once for every row, `rstd`, has no gaps; sums stand `sum_stride` apart. With
// `streaming`, the matrix is much larger than the caches: results bypass them, and while they are
// written, the elements of the next rows are asked for.
struct RowTile {
  // So that few numbers are added to one.
  static constexpr int64_t kMostColumns = 2048;

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

}  // namespace aclnn_host
