// Compresses 2:4 sparse weights, where at least two of every four elements are 0.

#include <array>
#include <cstdlib>
#include <memory>

#include "cann/prefix/include/aclnnop/aclnn_sparse4to2quant_matmul_weight_nz.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/null_arguments.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host::quantized_sparse_weight_rows {

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
// Memory that the caller frees with free().
template <class T>
using Memory = std::unique_ptr<T, Free>;

template <class T>
Memory<T> zeros(int64_t count) {
  const auto size = static_cast<size_t>(std::max<int64_t>(count, 1));
  return Memory<T>(static_cast<T*>(std::calloc(size, sizeof(T))));
}

// The two of four elements that are kept.
struct Pair {
  int first, second;
  uint8_t code;  // the first position, and the second minus 1 in the upper two bits
};

// The kept pair of four elements; `first` is negative if more than two are not 0. A single nonzero
// element is paired with a 0 at an arbitrary position.
Pair pair_of(const std::array<int8_t, 4>& four) {
  int count = 0;
  std::array<int, 4> positions{};
  for (int i = 0; i < 4; ++i) {
    if (four[static_cast<size_t>(i)] != 0) positions[static_cast<size_t>(count++)] = i;
  }
  const auto code = [](int first, int second) {
    return static_cast<uint8_t>((second - 1) << 2 | first);
  };
  const int first = positions[0];
  if (count > 2) return {-1, 0, 0};
  if (count == 2) return {first, positions[1], code(first, positions[1])};
  if (count == 0) return {0, 1, code(0, 1)};
  return first == 3 ? Pair{0, 3, code(0, 3)} : Pair{first, first + 1, code(first, 1)};
}

constexpr int64_t kRows = 16, kColumns = 32;  // of a block of the result
constexpr int64_t kDims = 4;

// Writes the kept elements of the eight from a column on, and the byte of their positions. Returns
// false if more than two of four are not 0.
bool compress(const int8_t* row, int64_t columns, int64_t column, int8_t* kept,
              uint8_t* positions) {
  uint8_t codes = 0;
  for (int64_t half = 0; half < 2; ++half) {
    std::array<int8_t, 4> four{};
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t at = column + half * 4 + i;
      if (at < columns) four[static_cast<size_t>(i)] = row[at];
    }
    const Pair pair = pair_of(four);
    if (pair.first < 0) return false;
    kept[half * 2] = four[static_cast<size_t>(pair.first)];
    kept[half * 2 + 1] = four[static_cast<size_t>(pair.second)];
    codes = static_cast<uint8_t>(codes | pair.code << (half * 4));
  }
  *positions = codes;
  return true;
}

}  // namespace

// The results are in blocks of 16 rows and 32 columns (FRACTAL_NZ), padded with 0.
extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnTransSparse4to2Para(
    const int8_t* weight, aclIntArray* shape, int8_t** sparseWeight, int64_t** sparseWeightDims,
    uint64_t* sparseWeightDimsNum, uint8_t** index, int64_t** indexDims, uint64_t* indexDimsNum) {
  constexpr const char* kApi = "aclnnTransSparse4to2Para";
  const aclnnStatus null = refuse_null(kApi, {{"weight", weight},
                                              {"shape", shape},
                                              {"sparseWeight", sparseWeight},
                                              {"sparseWeightDims", sparseWeightDims},
                                              {"sparseWeightDimsNum", sparseWeightDimsNum},
                                              {"index", index},
                                              {"indexDims", indexDims},
                                              {"indexDimsNum", indexDimsNum}});
  if (null != OK) return null;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto is_size = [](int64_t size) { return size >= 1 && size <= kMost; };
  if (!is_usable(shape) || shape->size != 2 || !is_size(shape->values[0]) ||
      !is_size(shape->values[1])) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: shape is no pair of numbers from 1 to %lld", kApi,
                static_cast<long long>(kMost));
  }
  const int64_t rows = shape->values[0], columns = shape->values[1];
  const int64_t across = (columns + 2 * kColumns - 1) / (2 * kColumns);
  const int64_t down = (rows + kRows - 1) / kRows;
  const int64_t count = across * down * kRows * kColumns;
  auto kept = zeros<int8_t>(count);
  auto positions = zeros<uint8_t>(count / 4);
  auto kept_dims = zeros<int64_t>(kDims), positions_dims = zeros<int64_t>(kDims);
  if (!kept || !positions || !kept_dims || !positions_dims) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "%s: no memory for %lld elements", kApi,
                static_cast<long long>(count));
  }
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t column = 0; column < columns; column += 8) {
      const int64_t eights = (column / (2 * kColumns) * down * kRows + n) * (kColumns / 4) +
                             column % (2 * kColumns) / 8;
      if (!compress(weight + n * columns, columns, column, kept.get() + eights * 4,
                    positions.get() + eights)) {
        return fail(ACLNN_ERR_PARAM_INVALID,
                    "%s: weight has more than two of four elements that are not 0 in row %lld, "
                    "from column %lld on",
                    kApi, static_cast<long long>(n), static_cast<long long>(column));
      }
    }
  }
  const std::array<int64_t, kDims> dims{across, down, kRows, kColumns};
  std::copy(dims.begin(), dims.end(), kept_dims.get());
  std::copy(dims.begin(), dims.end(), positions_dims.get());
  positions_dims.get()[kDims - 1] = kColumns / 4;
  *sparseWeight = kept.release();
  *sparseWeightDims = kept_dims.release();
  *sparseWeightDimsNum = kDims;
  *index = positions.release();
  *indexDims = positions_dims.release();
  *indexDimsNum = kDims;
  return OK;
}

}  // namespace aclnn_host::quantized_sparse_weight_rows
