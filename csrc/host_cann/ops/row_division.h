// Shared by the normalisations over rows: the division of work among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>

#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/kernels/row_tile.h"
#include "host_cann/kernels/sizes.h"
#include "host_cann/kernels/streaming.h"
#include "host_cann/kernels/tuning.h"

namespace aclnn_host {

// Depends on the shape alone, so that the number of threads does not affect any bit.

constexpr int64_t kMaxBlocks = 64;
constexpr int64_t kMinRowsPerBlock = 32;
constexpr int64_t kMinElementsPerBlock = 16384;
// Rows that are summed in Real before the sum is added to a double.
constexpr int64_t kRowsPerSum = 64;
// The size of a group of rows: a number of elements, but at least a number of rows.
struct Group {
  int64_t elements;
  int64_t least_rows;
};
// Fits the shared cache if the cores share the rows.
constexpr Group kSharedGroup = {1 << 19, 4};

template <class Real>
void add(const Real* values, int64_t n, double* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += values[i];
}

// x as a matrix of R rows and D columns. Rows form groups, which are loaded from memory once: first
// for the sums, then for the results. Groups form blocks, which threads process independently. With
// too few rows for that, there is one block, and threads process segments of its rows.
struct Division {
  int64_t rows;
  int64_t columns;
  int64_t segments;
  int64_t blocks;
  int64_t rows_per_block;
  int64_t rows_per_group;
  bool streaming;

  // `element_bytes` is the size of one element summed over all matrices that are read or written.
  Division(int64_t rows, int64_t columns, int64_t element_bytes, Group group)
      : rows(rows),
        columns(columns),
        streaming(columns > 0 && rows > kStreamingBytes / element_bytes / columns) {
    const int64_t width = std::max<int64_t>(columns, 1);
    segments = divide_up(width, RowTile::kMostColumns);
    rows_per_block = std::max(
        {kMinRowsPerBlock, divide_up(kMinElementsPerBlock, width), divide_up(rows, kMaxBlocks)});
    blocks = divide_up(rows, rows_per_block);
    if (segments > blocks) {
      blocks = 1;
      rows_per_block = rows;
      group = kSharedGroup;
    }
    rows_per_group = std::clamp(group.elements / width, group.least_rows, kRowsPerSum);
  }

  // Sums of a block: one for every segment of every row of a group.
  int64_t sums_per_block() const { return rows_per_group * segments; }

  // Calls body(block, first row, last row + 1).
  template <class Body>
  void for_each_block(Body body) const {
    const auto run = [&](int64_t begin, int64_t end) {
      const StreamingScope scope(streaming);
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * rows_per_block;
        body(block, first, std::min(first + rows_per_block, rows));
      }
    };
    if (blocks == 1) {
      run(0, 1);  // leave the threads to the segments
    } else {
      at::parallel_for(
          0, blocks,
          std::max<int64_t>(1, kGrain / (rows_per_block * std::max<int64_t>(columns, 1))), run);
    }
  }

  // Calls body(segment, first column, tile) for the segments of a group of `count` rows.
  template <class Body>
  void for_each_segment(int64_t count, Body body) const {
    const auto run = [&](int64_t begin, int64_t end) {
      for (int64_t segment = begin; segment < end; ++segment) {
        const int64_t first = segment * RowTile::kMostColumns;
        body(segment, first,
             RowTile{count, std::min(columns - first, RowTile::kMostColumns), columns, segments,
                     streaming});
      }
    };
    if (blocks == 1 && segments > 1) {
      const int64_t grain = std::max<int64_t>(1, kGrain / (count * RowTile::kMostColumns));
      at::parallel_for(0, segments, grain, [&](int64_t begin, int64_t end) {
        const StreamingScope scope(streaming);
        run(begin, end);
      });
    } else {
      run(0, segments);
    }
  }

  // Adds the blocks' sums of `columns` columns into the first block's, in order, and rounds them;
  // without rows they are `of_no_rows`.
  template <class Real>
  void add_blocks(double* totals, Real* sums, Real of_no_rows) const {
    if (rows == 0) {
      std::fill_n(sums, columns, of_no_rows);
      return;
    }
    at::parallel_for(0, columns, std::max<int64_t>(1, kGrain / blocks),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t block = 1; block < blocks; ++block) {
                         add(totals + block * columns + begin, end - begin, totals + begin);
                       }
                       std::transform(totals + begin, totals + end, sums + begin,
                                      [](double total) { return static_cast<Real>(total); });
                     });
  }

  // Replaces the sum of the first segment by the mean, for each of `count` rows.
  void sums_to_means(double* sums, int64_t count) const {
    for (int64_t row = 0; row < count; ++row) {
      double* const sum = sums + row * segments;
      for (int64_t segment = 1; segment < segments; ++segment) *sum += sum[segment];
      *sum /= static_cast<double>(columns);
    }
  }
};

// The compute dtype of a normalisation.
inline aclDataType real_type(aclDataType dtype) {
  return dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

// The elements of a tensor from a position on.
inline const void* from(const void* elements, int64_t position, aclDataType dtype) {
  return static_cast<const char*>(elements) +
         position * static_cast<int64_t>(aclDataTypeSize(dtype));
}
inline void* from(void* elements, int64_t position, aclDataType dtype) {
  return static_cast<char*>(elements) + position * static_cast<int64_t>(aclDataTypeSize(dtype));
}

}  // namespace aclnn_host
