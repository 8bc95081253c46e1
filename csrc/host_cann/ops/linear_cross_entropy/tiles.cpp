#include "host_cann/ops/linear_cross_entropy/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host_cann/kernels/cross_entropy_loss.h"
#include "host_cann/ops/thread_parts.h"

namespace aclnn_host::linear_cross_entropy {
namespace {

// Classes of a block: as many as the product kernel packs at once, but fewer for long rows.
int64_t width_for(int64_t depth) {
  return depth <= 4096 ? 512 : 128;
}

// Rows of a tile, and bytes of the tiles of a group of blocks.
constexpr int64_t kTileRows = 512;
constexpr int64_t kGroupBytes = 2 << 20;
// Rows whose logits exist at a time, for some blocks only; for few classes more rows, so that every
// thread has a tile.
constexpr int64_t kMostRows = 2048;
constexpr int64_t kLogits = kMostRows * 512;
// Memory limit for rows whose logits exist for all classes. With fewer than kEnoughRows rows,
// reading and writing the weight's gradient takes longer, so the limit grows to a share of that
// gradient's memory.
constexpr int64_t kLeastRows = 128;
constexpr int64_t kLogitBytes = 48 << 20;
constexpr int64_t kEnoughRows = 256;
constexpr int64_t kShareOfGradient = 8;

int64_t rows_of_some_blocks(const Sizes& sizes) {
  const int64_t rows = kLogits / std::max<int64_t>(sizes.classes, 1) / kTileRows * kTileRows;
  return std::min(std::clamp(rows, kTileRows, kMostRows), sizes.rows);
}

template <class Real>
int64_t rows_at_once(const Sizes& sizes) {
  const int64_t bytes = std::max<int64_t>(sizes.classes, 1) * static_cast<int64_t>(sizeof(Real));
  const int64_t most = std::clamp(
      std::max(kLogitBytes / bytes, std::min(kEnoughRows, sizes.depth / kShareOfGradient)),
      kLeastRows, kTileRows);
  // The fewest passes within the limit, with equal numbers of rows.
  const int64_t times = divide_up(sizes.rows, most / kLeastRows * kLeastRows);
  const int64_t rows = divide_up(divide_up(sizes.rows, std::max<int64_t>(times, 1)), kLeastRows);
  return std::min(rows * kLeastRows, sizes.rows);
}

// Fails for more logits than could fit into memory; there may be no tensor of their size to check.
const Sizes& countable(const Sizes& sizes) {
  constexpr int64_t kMost = int64_t{1} << 56;
  if (sizes.classes > kMost / std::max<int64_t>(sizes.rows, 1)) throw std::length_error("logits");
  return sizes;
}

template <class Real>
const CrossEntropyLossKernels& kernels() {
  return cross_entropy_loss_kernels().find(kTypeOf<Real>);
}

// Elements from a position on.
const char* at(const void* elements, int64_t position, int64_t size) {
  return static_cast<const char*>(elements) + position * size;
}
char* at(void* elements, int64_t position, int64_t size) {
  return static_cast<char*>(elements) + position * size;
}

int64_t size_of(aclDataType dtype) {
  return static_cast<int64_t>(aclDataTypeSize(dtype));
}

// values -= factor * weights; null weights are ones.
template <class Real>
void subtract(double factor, const Real* weights, int64_t n, Real* values) {
  const auto each = static_cast<Real>(factor);
  for (int64_t i = 0; i < n; ++i) values[i] -= weights != nullptr ? each * weights[i] : each;
}

template <class T>
T one() {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {0x3f80};
  } else {
    return 1;
  }
}

double canonical(double value) {
  return cross_entropy::canonical(value);
}

}  // namespace

template <class Real, class Element>
Tiles<Real, Element>::Tiles(const Sizes& sizes, aclDataType weight_dtype, Use use, bool rounds,
                            Workspace& workspace)
    : sizes_(countable(sizes)),
      width_(width_for(sizes.depth)),
      weight_dtype_(weight_dtype),
      widen_(weight_dtype == kTypeOf<Real> ? nullptr : find_cast(weight_dtype, kTypeOf<Real>)),
      narrow_(weight_dtype == kTypeOf<Real> ? nullptr : find_cast(kTypeOf<Real>, weight_dtype)),
      rounds_(rounds && widen_ != nullptr),
      products_(part_count(static_cast<double>(sizes.rows) * static_cast<double>(sizes.classes) *
                           static_cast<double>(std::max<int64_t>(sizes.depth, 1))),
                workspace) {
  const int64_t parts = products_.parts();
  const bool at_once = use == Use::kAtOnce;
  rows_ = at_once ? rows_at_once<Real>(sizes) : rows_of_some_blocks(sizes);
  tile_rows_ = std::min(kTileRows, rows_);
  const int64_t tile_bytes =
      std::max<int64_t>(rows_, 1) * width_ * static_cast<int64_t>(sizeof(Real));
  group_ =
      at_once ? block_count() : std::min(std::max(kGroupBytes / tile_bytes, parts), block_count());
  const auto reserve = [&](int64_t count, int64_t length) {
    return reserve_array<Real>(workspace, count, length);
  };
  const bool sums = use != Use::kGradients;
  const bool gradients = use != Use::kSums;
  // find_sums() needs a tile and a block of the weight per part, find_gradients() per group.
  const int64_t part_tiles = sums && !at_once ? parts * tile_rows_ : 0;
  tiles_ = reserve(std::max(part_tiles, gradients ? group_ * rows_ : 0), width_);
  const int64_t weights = !widens_weight() ? 0 : gradients ? std::max(parts, group_) : parts;
  weights_ = reserve_array<Element>(workspace, weights * width_, sizes.depth);
  weight_gradients_ = reserve(narrow_ != nullptr && gradients ? group_ * width_ : 0, sizes.depth);
  ones_ = reserve_array<Element>(workspace, gradients ? rows_ : 0);
  sums_ = reserve_array<TileSum>(workspace, sums ? rows_ : 0, block_count());
}

template <class Real, class Element>
void Tiles<Real, Element>::place(const Operands<Real, Element>& operands, void* workspace) {
  operands_ = operands;
  workspace_ = workspace;
  products_.place(workspace);
}

// A block of the weight for the products, converted in `room` if it has another dtype.
template <class Real, class Element>
const Element* Tiles<Real, Element>::weight_of(int64_t block, Element* room) const {
  const char* const from =
      at(operands_.weight, begin_of(block) * sizes_.depth, size_of(weight_dtype_));
  if (!widens_weight()) return reinterpret_cast<const Element*>(from);
  widen_(from, room, length_of(block) * sizes_.depth);
  return room;
}

template <class Real, class Element>
void Tiles<Real, Element>::compute_logits(int64_t first, int64_t count, int64_t block,
                                          const Element* weight, Real* tile, int64_t part) const {
  MatrixView<Real> bias{};
  if (operands_.bias != nullptr) bias = {operands_.bias + begin_of(block), 0, 1};
  products_.multiply({.rows = count,
                      .columns = length_of(block),
                      .depth = sizes_.depth,
                      .left = {operands_.rows + first * sizes_.depth, sizes_.depth, 1},
                      .right = {weight, 1, sizes_.depth},
                      .out = tile,
                      .out_stride = width_,
                      .bias = bias},
                     part);
}

// Converts to the weight's dtype.
template <class Real, class Element>
void Tiles<Real, Element>::round_tile(int64_t count, int64_t block, Real* tile) const {
  constexpr int64_t kSome = 64;
  alignas(Real) char narrow[kSome * sizeof(Real)];
  const int64_t length = length_of(block);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < length; j += kSome) {
      const int64_t some = std::min(kSome, length - j);
      narrow_(tile + i * width_ + j, narrow, some);
      widen_(narrow, tile + i * width_ + j, some);
    }
  }
}

// A tile of gradients in the products' type, each row stored at its beginning.
template <class Real, class Element>
void Tiles<Real, Element>::to_elements(int64_t count, int64_t block, Real* tile) const {
  if constexpr (std::is_same_v<Element, Real>) {
    if (rounds_) round_tile(count, block, tile);
  } else {
    constexpr int64_t kSome = 64;
    Element elements[kSome];
    const int64_t length = length_of(block);
    for (int64_t i = 0; i < count; ++i) {
      Real* const row = tile + i * width_;
      for (int64_t j = 0; j < length; j += kSome) {
        const int64_t some = std::min(kSome, length - j);
        narrow_(row + j, elements, some);
        std::copy_n(elements, some, reinterpret_cast<Element*>(row) + j);
      }
    }
  }
}

// Collects a tile's contributions to its rows: the labels' logits, and the exponentials in `sums`,
// which are one block apart.
template <class Real, class Element>
void Tiles<Real, Element>::find_tile_sums(Row* rows, int64_t count, int64_t block, const Real* tile,
                                          TileSum* sums) const {
  const int64_t length = length_of(block);
  for (int64_t i = 0; i < count; ++i) {
    const Real* const row = tile + i * width_;
    TileSum& sum = sums[i * block_count() + block];
    sum.exponentials = kernels<Real>().exponential_sum(row, length, false);
    if (operands_.smoothing.of_class != 0) {
      sum.weighted_logits =
          kernels<Real>().weighted_sum(row, class_weights_of(block), 0, 0, length);
    }
    const int64_t position = rows[i].label - begin_of(block);
    if (rows[i].label >= 0 && position >= 0 && position < length) {
      rows[i].label_logit = row[position];
    }
  }
}

template <class Real, class Element>
void Tiles<Real, Element>::join_sums(Row* rows, int64_t count, const TileSum* sums) const {
  const bool smooths = operands_.smoothing.of_class != 0;
  for (int64_t i = 0; i < count; ++i, sums += block_count()) {
    ExponentialSum all = sums[0].exponentials;
    double weighted = smooths ? sums[0].weighted_logits : 0;
    for (int64_t block = 1; block < block_count(); ++block) {
      all = cross_entropy::joined(all, sums[block].exponentials);
      if (smooths) weighted += sums[block].weighted_logits;
    }
    rows[i].max = all.max;
    rows[i].sum = all.sum;
    rows[i].weighted_logits = weighted;
  }
}

template <class Real, class Element>
void Tiles<Real, Element>::find_sums(Row* rows, const Matrix& logits) const {
  auto* const sums = reinterpret_cast<TileSum*>(room(sums_));
  const CastFunction store =
      logits.elements == nullptr ? nullptr : find_cast(kTypeOf<Real>, logits.dtype);
  for (int64_t first = 0; first < sizes_.rows; first += rows_) {
    const int64_t count = std::min(rows_, sizes_.rows - first);
    const int64_t tiles = divide_up(count, tile_rows_);
    products_.for_each(tiles * block_count(), [&](int64_t part, int64_t task) {
      const int64_t block = task / tiles;
      const int64_t row = task % tiles * tile_rows_;
      const int64_t some = std::min(tile_rows_, count - row);
      Real* const tile = room(tiles_) + part * tile_rows_ * width_;
      const Element* const weight =
          weight_of(block, room<Element>(weights_) + part * width_ * sizes_.depth);
      compute_logits(first + row, some, block, weight, tile, part);
      if (rounds_) round_tile(some, block, tile);
      find_tile_sums(rows + first + row, some, block, tile, sums + row * block_count());
      for (int64_t i = 0; store != nullptr && i < some; ++i) {
        const int64_t to = (first + row + i) * sizes_.classes + begin_of(block);
        store(tile + i * width_, at(logits.elements, to, size_of(logits.dtype)), length_of(block));
      }
    });
    join_sums(rows + first, count, sums);
  }
}

// Turns logits into gradients of the loss with respect to them.
template <class Real, class Element>
void Tiles<Real, Element>::to_gradients(const Row* rows, const double* factors, int64_t count,
                                        int64_t block, Real* tile) const {
  const int64_t length = length_of(block);
  for (int64_t i = 0; i < count; ++i) {
    Real* const row = tile + i * width_;
    const Row& all = rows[i];
    if (all.label == kIgnored) {
      std::fill_n(row, length, Real(0));
      continue;
    }
    const int64_t position = all.label - begin_of(block);
    const bool has_label = all.label >= 0 && position >= 0 && position < length;
    const double label_logit = has_label ? static_cast<double>(row[position]) : 0;
    const auto& [of_class, class_weights, all_weights] = operands_.smoothing;
    const double others = of_class != 0 ? of_class * all_weights * factors[i] : 0;
    const double total = all.weight * factors[i] + others;
    kernels<Real>().probability(row, all.max, canonical(total / all.sum), row, length);
    if (of_class != 0) subtract(of_class * factors[i], class_weights_of(block), length, row);
    if (has_label) {
      // exp(x) * total - weight * factor, without cancellation near x = 0.
      const double log_prob = (label_logit - all.max) - std::log(all.sum);
      double value = std::expm1(log_prob) * total + others;
      if (of_class != 0) {
        value -= of_class * factors[i] * (class_weights != nullptr ? class_weights[all.label] : 1);
      }
      row[position] = static_cast<Real>(canonical(value));
    }
  }
}

// The same for probabilities given by the caller.
template <class Real, class Element>
void Tiles<Real, Element>::load_gradients(const Row* rows, const double* factors, int64_t first,
                                          int64_t count, int64_t block, const Matrix& softmax,
                                          Real* tile) const {
  const int64_t length = length_of(block);
  const CastFunction load = find_cast(softmax.dtype, kTypeOf<Real>);
  for (int64_t i = 0; i < count; ++i) {
    Real* const row = tile + i * width_;
    const int64_t from = (first + i) * sizes_.classes + begin_of(block);
    load(at(softmax.elements, from, size_of(softmax.dtype)), row, length);
    const int64_t position = rows[i].label - begin_of(block);
    const auto factor = static_cast<Real>(factors[i]);
    if (rows[i].label >= 0 && position >= 0 && position < length) row[position] -= 1;
    for (int64_t j = 0; j < length; ++j) row[j] *= factor;
  }
}

// Adds a tile's contribution to the gradients of a block's weight and bias.
template <class Real, class Element>
void Tiles<Real, Element>::add_to_classes(int64_t first, int64_t count, int64_t block,
                                          const Element* tile, Real* weight, Real* bias, bool adds,
                                          int64_t part) const {
  if (weight != nullptr) {
    products_.multiply({.rows = length_of(block),
                        .columns = sizes_.depth,
                        .depth = count,
                        .left = {tile, 1, width_ * kPerReal},
                        .right = {operands_.rows + first * sizes_.depth, sizes_.depth, 1},
                        .out = weight,
                        .out_stride = sizes_.depth,
                        .adds = adds},
                       part);
  }
  if (bias != nullptr) {
    products_.multiply({.rows = 1,
                        .columns = length_of(block),
                        .depth = count,
                        .left = {room<Element>(ones_), count, 1},
                        .right = {tile, width_ * kPerReal, 1},
                        .out = bias,
                        .out_stride = sizes_.classes,
                        .adds = adds},
                       part);
  }
}

// Adds the contribution of some blocks' tiles, which are rows_ rows apart, to the rows' gradients.
template <class Real, class Element>
void Tiles<Real, Element>::add_to_rows(int64_t first, int64_t count, int64_t block, int64_t blocks,
                                       const Element* tiles, const Element* weight, Real* out,
                                       bool adds) const {
  MatrixProduct<Element, Real> product{.rows = count,
                                       .columns = sizes_.depth,
                                       .depth = width_,
                                       .left = {tiles, width_ * kPerReal, 1},
                                       .right = {weight, sizes_.depth, 1},
                                       .out = out + first * sizes_.depth,
                                       .out_stride = sizes_.depth,
                                       .left_term = rows_ * width_ * kPerReal,
                                       .right_term = width_ * sizes_.depth,
                                       .adds = adds};
  // The very last block may be narrower.
  const int64_t last = length_of(block + blocks - 1);
  product.terms = last < width_ ? blocks - 1 : blocks;
  if (product.terms > 0) {
    products_.multiply_together(product);
    product.adds = true;
  }
  if (last == width_) return;
  product.left.data += product.terms * product.left_term;
  product.right.data += product.terms * product.right_term;
  product.terms = 1;
  product.depth = last;
  products_.multiply_together(product);
}

template <class Real, class Element>
void Tiles<Real, Element>::find_gradients(const Row* rows, const double* factors,
                                          const Matrix& softmax,
                                          const GradientsOut<Real>& out) const {
  Real* const tiles = room(tiles_);
  std::fill_n(room<Element>(ones_), rows_, one<Element>());
  auto* const elements = reinterpret_cast<const Element*>(tiles);  // of a tile, after conversion
  for (int64_t group = 0; group < block_count(); group += group_) {
    const int64_t blocks = std::min(group_, block_count() - group);
    const Element* weight = room<Element>(weights_);  // of the group
    if (widens_weight()) {
      products_.for_each(blocks, [&](int64_t, int64_t i) {
        weight_of(group + i, room<Element>(weights_) + i * width_ * sizes_.depth);
      });
    } else {
      weight = weight_of(group, nullptr);
    }
    for (int64_t first = 0; first < sizes_.rows; first += rows_) {
      const int64_t count = std::min(rows_, sizes_.rows - first);
      const int64_t row_tiles = divide_up(count, tile_rows_);
      products_.for_each(row_tiles * blocks, [&](int64_t part, int64_t task) {
        const int64_t i = task / row_tiles;
        const int64_t row = task % row_tiles * tile_rows_;
        const int64_t some = std::min(tile_rows_, count - row);
        Real* const tile = tiles + (i * rows_ + row) * width_;
        const Row* const of_rows = rows + first + row;
        if (softmax.elements != nullptr) {
          load_gradients(of_rows, factors + first + row, first + row, some, group + i, softmax,
                         tile);
        } else {
          compute_logits(first + row, some, group + i, weight + i * width_ * sizes_.depth, tile,
                         part);
          to_gradients(of_rows, factors + first + row, some, group + i, tile);
        }
        to_elements(some, group + i, tile);
      });
      products_.for_each(blocks, [&](int64_t part, int64_t i) {
        const int64_t begin = begin_of(group + i);
        Real* of_weight = nullptr;
        if (out.weight != nullptr) {
          of_weight = narrow_ != nullptr ? room(weight_gradients_) + i * width_ * sizes_.depth
                                         : static_cast<Real*>(out.weight) + begin * sizes_.depth;
        }
        add_to_classes(first, count, group + i, elements + i * rows_ * width_ * kPerReal, of_weight,
                       out.bias != nullptr ? out.bias + begin : nullptr, first > 0, part);
        if (of_weight == nullptr || narrow_ == nullptr || first + count < sizes_.rows) return;
        narrow_(of_weight, at(out.weight, begin * sizes_.depth, size_of(weight_dtype_)),
                length_of(group + i) * sizes_.depth);
      });
      if (out.rows != nullptr) {
        add_to_rows(first, count, group, blocks, elements, weight, out.rows, group > 0);
      }
    }
  }
}

template <class Real, class Element>
void Tiles<Real, Element>::find_sums_and_gradients(Row* rows, const double* factors,
                                                   const GradientsOut<Real>& out) const
  requires std::is_same_v<Element, Real>
{
  Real* const tiles = room(tiles_);
  auto* const sums = reinterpret_cast<TileSum*>(room(sums_));
  std::fill_n(room(ones_), rows_, Real(1));
  for (int64_t first = 0; first < sizes_.rows; first += rows_) {
    const int64_t count = std::min(rows_, sizes_.rows - first);
    products_.for_each(block_count(), [&](int64_t part, int64_t block) {
      Real* const tile = tiles + block * rows_ * width_;
      compute_logits(first, count, block, weight_of(block, nullptr), tile, part);
      find_tile_sums(rows + first, count, block, tile, sums);
    });
    join_sums(rows + first, count, sums);
    products_.for_each(block_count(), [&](int64_t part, int64_t block) {
      const int64_t begin = begin_of(block);
      Real* const tile = tiles + block * rows_ * width_;
      to_gradients(rows + first, factors + first, count, block, tile);
      add_to_classes(
          first, count, block, tile,
          out.weight != nullptr ? static_cast<Real*>(out.weight) + begin * sizes_.depth : nullptr,
          out.bias != nullptr ? out.bias + begin : nullptr, first > 0, part);
    });
    if (out.rows != nullptr) {
      add_to_rows(first, count, 0, block_count(), tiles, weight_of(0, nullptr), out.rows, false);
    }
  }
}

template class Tiles<float>;
template class Tiles<float, BFloat16>;
template class Tiles<double>;

}  // namespace aclnn_host::linear_cross_entropy
