// Logits of a linear layer, the exponentials of their rows and the gradients of their losses,
// computed in tiles of rows by classes, without storing them as a whole.
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

// Memory for this many rows of this many elements; the sizes of an empty tensor may overflow.
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

// The labels of rows whose label is not among these classes, or is ignored.
constexpr int64_t kElsewhere = -1;
constexpr int64_t kIgnored = -2;

// The partial results of a row of logits.
struct Row {
  int64_t label;           // among these classes, kElsewhere or kIgnored
  double max = 0;          // the largest
  double sum = 1;          // of exp(logit - max)
  double label_logit = 0;  // if the label is among these classes
  // The loss is weight * -log(softmax(logits)[label]), plus the smoothing term.
  double weight = 1;
  double weighted_logits = 0;  // sum of logits times class weights
};

// Label smoothing adds of_class * (all_weights * lse - weighted_logits) to the loss of a row.
template <class Real>
struct Smoothing {
  double of_class = 0;                  // 0 without smoothing; then the rest is unused
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

// Destinations of the gradients, contiguous; null: not requested.
template <class Real>
struct GradientsOut {
  Real* rows;    // [N, D]
  void* weight;  // [C, D], in the weight's dtype
  Real* bias;    // [C]
};

// The whole logits, or a matrix of their size, given by or returned to the caller.
struct Matrix {
  void* elements;  // null: none
  aclDataType dtype;
};

// The computation for which stage 1 reserves memory.
enum class Use {
  kSums,       // find_sums()
  kGradients,  // find_gradients()
  kOneByOne,   // find_sums(), then find_gradients() of its results
  kAtOnce,     // find_sums_and_gradients()
};

// Logits and all sums of products are Real, whatever the weight's dtype; factors have type Element,
// to which gradients with respect to logits are rounded. The order of summation depends on the
// sizes only.
template <class Real, class Element = Real>
class Tiles {
 public:
  // With `rounds`, find_sums()'s logits and the gradients with respect to logits are rounded to the
  // weight's dtype, as on matrix units.
  Tiles(const Sizes& sizes, aclDataType weight_dtype, Use use, bool rounds, Workspace& workspace);

  // Binds the memory and the operands.
  void place(const Operands<Real, Element>& operands, void* workspace);

  // Computes the other members of each row from its label. Writes `logits`, unless there are none.
  void find_sums(Row* rows, const Matrix& logits) const;

  // The gradients of the sum over rows of factors[row] * loss; the rows must be complete. `softmax`
  // are the probabilities without smoothing; if absent, they are recomputed.
  void find_gradients(const Row* rows, const double* factors, const Matrix& softmax,
                      const GradientsOut<Real>& out) const;

  // Both, with one product less: for as many rows at a time as there is memory for their logits.
  // The weight's gradient is accumulated in place, so the weight has type Real.
  void find_sums_and_gradients(Row* rows, const double* factors,
                               const GradientsOut<Real>& out) const
    requires std::is_same_v<Element, Real>;

 private:
  // Elements that fit in one Real.
  static constexpr int64_t kPerReal = int64_t{sizeof(Real)} / int64_t{sizeof(Element)};

  // The contribution of a tile to a row.
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
  int64_t group_;      // blocks whose gradients exist together
  int64_t rows_;       // rows that exist together
  int64_t tile_rows_;  // rows per part
  aclDataType weight_dtype_;
  CastFunction widen_;  // to Real, and back; null if the weight is Real
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
