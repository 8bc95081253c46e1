// Products of groups of rows, added to matrices: the gradients of the weights of experts.

#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_add_rows {

namespace {

// x is [k, m] and weight [k, n]; the list has the ends or the sizes of the groups, and yRef has the
// matrices [m, n] of the groups, one below the other.
void add_products(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& list,
                  Output& yRef, bool transpose_x, bool transpose_weight, int64_t group_type,
                  int64_t list_type) {
  EXPECT(transpose_x, "transposeX is false, expected true");
  EXPECT(!transpose_weight, "transposeWeight is true, expected false");
  EXPECT(group_type == 2, "groupType is ", group_type, ", expected 2, groups of k");
  EXPECT(list_type == kGroupEnds || list_type == kGroupSizes, "groupListType is ", list_type,
         ", expected 0 (where groups end) or 1 (their sizes)");
  EXPECT(at::isReducedFloatingType(x.scalar_type()), "x has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT16 or BFLOAT16");
  expect_dtype("groupList", list, at::kLong);
  expect_dtype("yRef", yRef, at::kFloat);
  expect_dims("x", x, 2);
  expect_dims("groupList", list, 1);
  const int64_t k = x.size(0), groups = list.numel();
  EXPECT(groups > 0, "groupList has no elements, expected 1 or more");
  expect_dims("weight", weight, 2);
  expect_shape("weight", weight, {k, weight.size(1)});
  EXPECT(yRef->numel() == groups * x.size(1) * weight.size(1) && yRef->dim() >= 2 &&
             yRef->size(-1) == weight.size(1),
         "yRef has shape ", yRef->sizes(), ", expected ", groups, " times ", x.size(1), " rows of ",
         weight.size(1));
  const at::Tensor left = wide(x).t(), right = wide(weight);
  std::vector<at::Tensor> products(static_cast<size_t>(groups),
                                   at::zeros({x.size(1), weight.size(1)}, right.options()));
  for (const Group& group :
       groups_of("groupList", list, /*is_on_device=*/true, list_type, groups, k)) {
    products[static_cast<size_t>(group.matrix)] =
        at::mm(left.narrow(1, group.begin, group.size), right.narrow(0, group.begin, group.size));
  }
  yRef = wide(yRef) + at::stack(products).reshape(yRef->sizes());
}

}  // namespace

ACLNN(GroupedMatmulAdd, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"), (In, groupList),
      (InOut, yRef), (bool, transposeX), (bool, transposeWeight), (int64_t, groupType)) {
  add_products(x, weight, groupList, yRef, transposeX, transposeWeight, groupType, kGroupEnds);
}
ACLNN(GroupedMatmulAddV2, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
      (In, groupList), (InOut, yRef), (bool, transposeX), (bool, transposeWeight),
      (int64_t, groupType), (int64_t, groupListType)) {
  add_products(x, weight, groupList, yRef, transposeX, transposeWeight, groupType, groupListType);
}

}  // namespace aclnn_host::experts_grouped_matmul_add_rows
