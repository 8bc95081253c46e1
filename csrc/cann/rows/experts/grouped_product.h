#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cann/rows/row.h"

// What products of groups of rows are made of: the groups, the matrix of each, and the product of
// one group in each of the combinations of types that CANN's documents of aclnnGroupedMatmul
// define.
namespace aclnn_host {

// Some rows (or columns), which belong to one matrix.
struct Group {
  int64_t matrix;
  int64_t begin;
  int64_t size;
};

// What a list of groups has: where each ends, its size, or its matrix and its size.
constexpr int64_t kGroupEnds = 0;
constexpr int64_t kGroupSizes = 1;
constexpr int64_t kGroupPairs = 2;

// The groups of a list, for `matrices` of them, which have `limit` rows at most. A list that the
// caller has on the device has no values before stage 2: there the first group has all rows.
std::vector<Group> groups_of(const char* name, const at::Tensor& list, bool is_on_device,
                             int64_t type, int64_t matrices, int64_t limit);

// The matrices of a weight: one tensor (matrices, k, n), or each a tensor (k, n). INT32 holds eight
// INT4, and a private format may be the shape of the tensor, too: [matrices,] n1, k1, 16, n0.
class Matrices {
 public:
  Matrices(const char* name, std::vector<StoredTensor> weight, bool is_one_tensor);

  int64_t count() const;
  bool is_one_tensor() const { return is_one_tensor_; }
  // The matrix (k, n), INT4 as INT8.
  at::Tensor at(int64_t i, int64_t k) const;

 private:
  aclDataType dtype() const { return weight_[0].dtype; }

  const char* name_;
  std::vector<StoredTensor> weight_;
  bool is_one_tensor_;
};

// How many elements a row of a block of FRACTAL_NZ has.
int64_t width_of_blocks(aclDataType dtype);

// Whether the shape of a weight is that of one tensor with all matrices.
bool has_all_matrices(const std::vector<StoredTensor>& weight);

enum class GroupedKind {
  kPlain,       // of one floating type
  kWeight,      // a floating type with a weight of INT8 or INT4
  kInt8,        // both INT8
  kInt4,        // both INT4
  kInt8ByInt4,  // INT8 with a weight of INT4
};
GroupedKind grouped_kind(aclDataType x, aclDataType weight);

// The operands of one group. Scales and offsets are (n), or (groups of k, n) where there are some.
struct GroupOperands {
  at::Tensor x;       // (m, k)
  at::Tensor weight;  // (k, n)
  std::optional<at::Tensor> bias;
  std::optional<at::Tensor> scale;
  std::optional<at::Tensor> offset;
  std::optional<at::Tensor> antiquant_scale;
  std::optional<at::Tensor> antiquant_offset;
  std::optional<at::Tensor> per_token_scale;  // (m)
};

// The product before it is rounded to the output's type: of INT8 without a scale INT32, with the
// bits of one INT8.
at::Tensor grouped_product(GroupedKind kind, const GroupOperands& operands);

}  // namespace aclnn_host
