// Logits of a linear layer, the exponentials of their rows and the gradients of their losses, in
// tiles of rows by classes: they never exist whole.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "host_cann/arguments/cast.h"
#include "host_cann/ops/cross_entropy_loss/shared.h"
#include "host_cann/ops/linear_cross_entropy/products.h"

namespace aclnn_host::linear_cross_entropy {

// FLOAT, DOUBLE or BFLOAT16.
template <class T>
constexpr aclDataType kTypeOf = std::is_same_v<T, double>     ? ACL_DOUBLE
                                : std::is_same_v<T, BFloat16> ? ACL_BF16
                                                              : ACL_FLOAT;

// Memory for so many rows of so many elements; sizes of an empty tensor may multiply to anything.
template <class T>
uint64_t reserve_array(Workspace& workspace, int64_t count, int64_t length = 1) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, length, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(T), &bytes)) {
    throw std::length_error("workspace");
  }
  return workspace.reserve(bytes);
}

struct Sizes {
  int64_t rows = 0;
  int64_t classes = 0;
  int64_t depth = 0;
};

// What a row has instead of a label: one that is none of these classes, or that it counts for
// nothing.
constexpr int64_t kElsewhere = -1;
constexpr int64_t kIgnored = -2;

// What is known of a row of logits.
struct Row {
  int64_t label;           // of these classes, or one of the above
  double max = 0;          // the largest
  double sum = 1;          // of exp(logit - max)
  double label_logit = 0;  // if the label is one of these classes
  // The loss is weight * -log(softmax(logits)[label]), and what smoothing adds.
  double weight = 1;
  double weighted_logits = 0;  // the sum of these, each times the weight of its class
};

// Label smoothing adds of_class * (all_weights * lse - weighted_logits) to the loss of a row.
template <class Real>
struct Smoothing {
  double of_class = 0;                  // 0: no smoothing, and nothing else is looked at
  const Real* class_weights = nullptr;  // null: ones
  double all_weights = 0;
};

// The matrices, contiguous: rows [N, D], weight [C, D], bias [C] or null.
template <class Real, class Element>
struct Operands {
  const Element* rows;
  const void* weight;
  const Real* bias;
  Smoothing<Real> smoothing{};
};

// Where the gradients go, contiguous; null: not wanted.
template <class Real>
struct GradientsOut {
  Real* rows;    // [N, D]
  void* weight;  // [C, D], of the weight's type
  Real* bias;    // [C]
};

// Whole logits, or something of their size, that come from the caller or go to it.
struct Matrix {
  void* elements;  // null: none
  aclDataType dtype;
};

// What is to be computed, for which stage 1 reserves memory.
enum class Use {
  kSums,       // find_sums()
  kGradients,  // find_gradients()
  kOneByOne,   // find_sums(), and find_gradients() of what it has found
  kAtOnce,     // find_sums_and_gradients()
};

// Logits and the sums of all products are in Real, whatever the weight's type is; what is
// multiplied has type Element, to which gradients by logits are then rounded. Sums are made in an
// order that the sizes alone decide.
template <class Real, class Element = Real>
class Tiles {
 public:
  // With `rounds`, logits that find_sums() has computed, and gradients by logits, are rounded to
  // the type of the weight, as they are where matrix units take it.
  Tiles(const Sizes& sizes, aclDataType weight_dtype, Use use, bool rounds, Workspace& workspace);

  // With its memory, and what to compute with.
  void place(const Operands<Real, Element>& operands, void* workspace);

  // Of each row, whose label is given, the rest. `logits` are written, unless there are none.
  void find_sums(Row* rows, const Matrix& logits) const;

  // The gradients of the sum over rows of factors[row] * loss, for rows of which all is known.
  // `softmax` are the probabilities, without smoothing; if there are none they are computed again.
  void find_gradients(const Row* rows, const double* factors, const Matrix& softmax,
                      const GradientsOut<Real>& out) const;

  // Both, with one product less: of as many rows at a time as there is memory for the logits of.
  // The gradient of the weight is added up in its place, so the weight has type Real.
  void find_sums_and_gradients(Row* rows, const double* factors,
                               const GradientsOut<Real>& out) const
    requires std::is_same_v<Element, Real>;

 private:
  // Elements in the place of a Real.
  static constexpr int64_t kPerReal = int64_t{sizeof(Real)} / int64_t{sizeof(Element)};

  // Of a row in a tile.
  struct TileSum {
    ExponentialSum exponentials;
    double weighted_logits;
  };

  int64_t block_count() const { return divide_up(sizes_.classes, width_); }
  int64_t begin_of(int64_t block) const { return block * width_; }
  int64_t length_of(int64_t block) const {
    return std::min(width_, sizes_.classes - begin_of(block));
  }
  template <class T = Real>
  T* room(uint64_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(workspace_) + offset);
  }

  bool widens_weight() const { return weight_dtype_ != kTypeOf<Element>; }
  const Element* weight_of(int64_t block, Element* room) const;
  const Real* class_weights_of(int64_t block) const {
    const Real* const weights = operands_.smoothing.class_weights;
    return weights != nullptr ? weights + begin_of(block) : nullptr;
  }
  void compute_logits(int64_t first, int64_t count, int64_t block, const Element* weight,
                      Real* tile, int64_t part) const;
  void round_tile(int64_t count, int64_t block, Real* tile) const;
  void to_elements(int64_t count, int64_t block, Real* tile) const;
  void find_tile_sums(Row* rows, int64_t count, int64_t block, const Real* tile,
                      TileSum* sums) const;
  void join_sums(Row* rows, int64_t count, const TileSum* sums) const;
  void to_gradients(const Row* rows, const double* factors, int64_t count, int64_t block,
                    Real* tile) const;
  void load_gradients(const Row* rows, const double* factors, int64_t first, int64_t count,
                      int64_t block, const Matrix& softmax, Real* tile) const;
  void add_to_classes(int64_t first, int64_t count, int64_t block, const Element* tile,
                      Real* weight, Real* bias, bool adds, int64_t part) const;
  void add_to_rows(int64_t first, int64_t count, int64_t block, int64_t blocks,
                   const Element* tiles, const Element* weight, Real* out, bool adds) const;

  Sizes sizes_;
  int64_t width_;      // classes of a block
  int64_t group_;      // blocks whose gradients exist at a time
  int64_t rows_;       // that exist at a time
  int64_t tile_rows_;  // that a part works on
  aclDataType weight_dtype_;
  CastFunction widen_;  // to Real, and back; null: the weight has that type
  CastFunction narrow_;
  bool rounds_;
  Products<Real, Element> products_;
  Operands<Real, Element> operands_{};
  void* workspace_ = nullptr;
  uint64_t tiles_;
  uint64_t weights_;
  uint64_t weight_gradients_;
  uint64_t ones_;
  uint64_t sums_;
};

}  // namespace aclnn_host::linear_cross_entropy
