#pragma once

#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/row.h"

// Products of groups of matrices: of lists of tensors, or of ranges of rows or columns of one
// tensor, which a group list divides.
namespace aclnn_host {

// The arguments of all versions. The first one has no groupType.
struct GroupedMatmul {
  std::vector<StoredTensor> x;
  std::vector<StoredTensor> weight;
  std::vector<at::Tensor> bias;
  std::vector<at::Tensor> scale;
  std::vector<at::Tensor> offset;
  std::vector<at::Tensor> antiquant_scale;
  std::vector<at::Tensor> antiquant_offset;
  std::vector<at::Tensor> per_token_scale{};
  std::optional<at::Tensor> group_list;
  int64_t split_item;
  std::optional<int64_t> group_type{};
  int64_t list_type = kGroupEnds;
  int64_t activation = 0;
  bool is_list_on_device = true;
  bool takes_many_outputs = false;  // with groups of one x
};

void grouped_matmul(const GroupedMatmul& call, const std::vector<Output>& out);

}  // namespace aclnn_host
