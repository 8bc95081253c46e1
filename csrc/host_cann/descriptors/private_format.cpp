#include "host_cann/descriptors/private_format.h"

#include <algorithm>
#include <utility>

namespace aclnn_host {
namespace {

constexpr int64_t kRows = 16;

// One dimension in memory: a whole dimension of the tensor, its blocks, or the inside of a block.
struct Piece {
  enum class Part { kWhole, kBlocks, kRowsOfBlock, kWidthOfBlock };
  int dim;  // counted from the last one if negative
  Part part;
};

// For the formats of images. N and C are dimensions 0 and 1.
std::vector<Piece> pieces_of(aclFormat format) {
  using enum Piece::Part;
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
      return {{0, kWhole}, {1, kBlocks}, {2, kWhole}, {3, kWhole}, {1, kWidthOfBlock}};
    case ACL_FORMAT_FRACTAL_Z:
      return {{1, kBlocks}, {2, kWhole},       {3, kWhole},
              {0, kBlocks}, {0, kRowsOfBlock}, {1, kWidthOfBlock}};
    case ACL_FORMAT_NDC1HWC0:
      return {{0, kWhole}, {2, kWhole}, {1, kBlocks}, {3, kWhole}, {4, kWhole}, {1, kWidthOfBlock}};
    case ACL_FRACTAL_Z_3D:
      return {{2, kWhole},  {1, kBlocks},      {3, kWhole},       {4, kWhole},
              {0, kBlocks}, {0, kRowsOfBlock}, {1, kWidthOfBlock}};
    default: return {};
  }
}

// The sizes in the format's own dimensions.
std::vector<int64_t> shape_in(aclFormat format, const Dims& shape) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  const bool is_image = format == ACL_FORMAT_NC1HWC0 || format == ACL_FORMAT_FRACTAL_Z;
  if (!is_image || sizes.size() >= 4) return sizes;
  sizes.insert(sizes.begin(), 1);
  sizes.resize(4, 1);
  return sizes;
}

std::vector<Piece> pieces_of(aclFormat format, int rank) {
  using enum Piece::Part;
  if (!is_fractal_nz(format)) {
    const bool volume = format == ACL_FORMAT_NDC1HWC0 || format == ACL_FRACTAL_Z_3D;
    return rank == (volume ? 5 : 4) ? pieces_of(format) : std::vector<Piece>();
  }
  std::vector<Piece> pieces;
  if (rank < 2) return pieces;
  for (int i = 0; i < rank - 2; ++i) pieces.push_back({i, kWhole});
  pieces.insert(pieces.end(), {{rank - 1, kBlocks},
                               {rank - 2, kBlocks},
                               {rank - 2, kRowsOfBlock},
                               {rank - 1, kWidthOfBlock}});
  return pieces;
}

// Whether rows of blocks may have this many elements: 32 bytes, or 16 elements of 32 bits.
bool is_width_of(const TensorView& view, int64_t width) noexcept {
  const int64_t bits = element_bits(view.dtype);
  return width * bits == 256 || (bits == 32 && width == 16);
}

// False for a FRACTAL_NZ matrix whose columns fill another number of blocks of this width.
bool counts_columns(const TensorView& view, int64_t blocks, int64_t width) noexcept {
  const uint64_t rank = view.shape.size();
  if (!is_fractal_nz(view.format) || rank < 2) return true;
  const int64_t columns = view.shape[is_transposed(view) ? rank - 2 : rank - 1];
  return blocks == columns / width + (columns % width != 0 ? 1 : 0);
}

}  // namespace

bool is_fractal_nz(aclFormat format) noexcept {
  switch (format) {
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8: return true;
    default: return false;
  }
}

bool is_private(aclFormat format) noexcept {
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D: return true;
    default: return is_fractal_nz(format);
  }
}

std::optional<Blocks> blocks_of(aclFormat format, const Dims& shape, int64_t block_width) {
  Blocks blocks;
  blocks.shape = shape_in(format, shape);
  const auto rank = static_cast<int>(blocks.shape.size());
  const std::vector<Piece> pieces = pieces_of(format, rank);
  if (pieces.empty() || block_width <= 0) return std::nullopt;
  // The block size of a dimension, if it is split.
  const auto block_size = [&](int dim) -> int64_t {
    for (const Piece& piece : pieces) {
      if (piece.dim != dim) continue;
      if (piece.part == Piece::Part::kRowsOfBlock) return kRows;
      if (piece.part == Piece::Part::kWidthOfBlock) return block_width;
    }
    return 0;
  };
  std::vector<int64_t> place;  // index of each dimension's first piece
  for (int dim = 0; dim < rank; ++dim) {
    const int64_t size = blocks.shape[static_cast<size_t>(dim)];
    const int64_t block = block_size(dim);
    place.push_back(static_cast<int64_t>(blocks.split.size()));
    if (size < 0 || size > INT64_MAX / 256) return std::nullopt;
    if (block == 0) {
      blocks.padded.push_back(size);
      blocks.split.push_back(size);
      continue;
    }
    const int64_t count = (size + block - 1) / block;
    blocks.padded.push_back(count * block);
    blocks.split.push_back(count);
    blocks.split.push_back(block);
  }
  for (const auto& [dim, part] : pieces) {
    const bool inner = part == Piece::Part::kRowsOfBlock || part == Piece::Part::kWidthOfBlock;
    blocks.order.push_back(place[static_cast<size_t>(dim)] + (inner ? 1 : 0));
  }
  return blocks;
}

std::vector<int64_t> storage_sizes(aclFormat format, const Blocks& blocks) {
  std::vector<int64_t> sizes;
  sizes.reserve(blocks.order.size());
  for (const int64_t dim : blocks.order) sizes.push_back(blocks.split[static_cast<size_t>(dim)]);
  if (format != ACL_FORMAT_FRACTAL_Z && format != ACL_FRACTAL_Z_3D) return sizes;
  // [C1 * H * W, N1, 16, C0], with a factor D in the first one.
  while (sizes.size() > 4) {
    sizes[1] *= sizes[0];
    sizes.erase(sizes.begin());
  }
  return sizes;
}

bool is_transposed(const TensorView& view) noexcept {
  const uint64_t rank = view.shape.size();
  if (!is_fractal_nz(view.format) || rank < 2) return false;
  const int64_t rows = view.shape[rank - 2];
  const int64_t columns = view.shape[rank - 1];
  const int64_t row_stride = view.strides[rank - 2];
  const int64_t column_stride = view.strides[rank - 1];
  const bool in_order = column_stride == 1 && row_stride == columns;
  return !in_order && row_stride == 1 && column_stride == rows;
}

Dims shape_in_memory(const TensorView& view) {
  Dims shape = view.shape;
  const uint64_t rank = shape.size();
  if (is_transposed(view)) std::swap(shape.begin()[rank - 2], shape.begin()[rank - 1]);
  return shape;
}

int64_t block_width_of(const TensorView& view, const Dims& storage_shape) noexcept {
  switch (view.format) {
    case ACL_FORMAT_FRACTAL_NZ_C0_16: return 16;
    case ACL_FORMAT_FRACTAL_NZ_C0_32: return 32;
    case ACL_FORMAT_FRACTAL_NZ_C0_2: return 2;
    case ACL_FORMAT_FRACTAL_NZ_C0_4: return 4;
    case ACL_FORMAT_FRACTAL_NZ_C0_8: return 8;
    default: break;
  }
  // A storage given in blocks ends with 16 rows of C0.
  const uint64_t rank = storage_shape.size();
  if (rank >= 4) {
    const int64_t width = storage_shape[rank - 1];
    if (is_width_of(view, width) && counts_columns(view, storage_shape[rank - 4], width)) {
      return width;
    }
  }
  const int64_t bits = element_bits(view.dtype);
  return bits > 0 ? std::max<int64_t>(256 / bits, 1) : 16;
}

std::optional<int64_t> padded_count(const TensorView& view) noexcept {
  try {
    if (element_count(view.shape).value_or(-1) == 0) return 0;
    const auto blocks = blocks_of(view.format, shape_in_memory(view), view.block_width);
    if (!blocks) return std::nullopt;
    return element_count(Dims(blocks->padded.data(), blocks->padded.size()));
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace aclnn_host
