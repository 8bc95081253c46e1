#pragma once

#include "cann/rows/row.h"

// The parts of grouped products: the groups, the matrix of each, and the product of one group for
// each combination of types in CANN's documents of aclnnGroupedMatmul.
namespace aclnn_host {

// A range of rows (or columns) that belongs to one matrix.
struct Group {
  int64_t matrix;
  int64_t begin;
  int64_t size;
};

// The contents of a group list: the end of each group, its size, or its matrix and its size.
constexpr int64_t kGroupEnds = 0;
constexpr int64_t kGroupSizes = 1;
constexpr int64_t kGroupPairs = 2;

// The groups of a list for `matrices` matrices, which have `limit` rows at most. A list in device
// memory has no values in stage 1; the first group then has all rows.
std::vector<Group> groups_of(const char* name, const at::Tensor& list, bool is_on_device,
                             int64_t type, int64_t matrices, int64_t limit);

// Checks groupListType where pairs are not accepted.
void expect_list_type(int64_t type);

// The matrices of a weight: one tensor (matrices, k, n), or a list of tensors (k, n). INT32 holds
// eight INT4. The shape may also be that of a private format: [matrices,] n1, k1, 16, n0.
class Matrices {
 public:
  Matrices(const char* name, std::vector<StoredTensor> weight, bool is_one_tensor);

  int64_t count() const;
  bool is_one_tensor() const { return is_one_tensor_; }
  // The matrix (k, n); INT4 as INT8.
  at::Tensor at(int64_t i, int64_t k) const;

 private:
  aclDataType dtype() const { return weight_[0].dtype; }

  const char* name_;
  std::vector<StoredTensor> weight_;
  bool is_one_tensor_;
};

// The number of elements in a row of a FRACTAL_NZ block.
int64_t width_of_blocks(aclDataType dtype);

// True if a weight is one tensor with all matrices.
bool has_all_matrices(const std::vector<StoredTensor>& weight);
void expect_all_matrices(const char* name, const StoredTensor& weight);

// Checks a tuningConfig, whose first number is the expected number of rows of a group, at most
// `rows`.
void expect_tuning(const char* name, at::OptionalIntArrayRef config, int64_t rows);

enum class GroupedKind {
  kPlain,       // both operands of one floating-point type
  kWeight,      // floating-point x, INT8 or INT4 weight
  kInt8,        // INT8 operands
  kInt4,        // INT4 operands
  kInt8ByInt4,  // INT8 x, INT4 weight
};
GroupedKind grouped_kind(aclDataType x, aclDataType weight);

// The operands of one group. Scales and offsets are (n), or (groups of k, n).
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

// The product before it is rounded to the output's type. The product of INT8 is INT32 without a
// scale, and INT8 with a scale that is given as bits.
at::Tensor grouped_product(GroupedKind kind, const GroupOperands& operands);

}  // namespace aclnn_host
