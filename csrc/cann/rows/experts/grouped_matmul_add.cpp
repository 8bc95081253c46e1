// Products of groups of rows, added to matrices: the gradients of the weights of experts.

#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_add_rows {

namespace {

// x is [k, m] and weight [k, n]; the list has the ends or the sizes of the groups, and yRef has the
// matrices [m, n] of the groups, one below the other. `row` is the struct of a version.
template <class Version>
void add_products(Version& row, int64_t list_type) {
  const at::Tensor &x = row.x, &weight = row.weight;
  EXPECT(row.transposeX == true, "transposeX is false, expected true");
  EXPECT(row.transposeWeight == false, "transposeWeight is true, expected false");
  expect_one_of("groupType", row.groupType, {2}, ", groups of k");
  expect_list_type(list_type);
  expect_reduced_float("x", x);
  expect_dtype("groupList", row.groupList, at::kLong);
  expect_dtype("yRef", row.yRef, at::kFloat);
  expect_dims("x", x, 2);
  expect_dims("groupList", row.groupList, 1);
  expect_elements("groupList", row.groupList);
  const int64_t k = x.size(0), groups = row.groupList.numel();
  expect_dims("weight", weight, 2);
  expect_shape("weight", weight, {k, weight.size(1)});
  const at::IntArrayRef shape = row.yRef->sizes();
  EXPECT(row.yRef->numel() == groups * x.size(1) * weight.size(1) && shape.size() >= 2 &&
             shape.back() == weight.size(1),
         "yRef has shape ", shape, ", expected ", groups, " times ", x.size(1), " rows of ",
         weight.size(1));
  const at::Tensor left = wide(x).t(), right = wide(weight);
  std::vector<at::Tensor> products(static_cast<size_t>(groups),
                                   at::zeros({x.size(1), weight.size(1)}, right.options()));
  for (const Group& group :
       groups_of("groupList", row.groupList, /*is_on_device=*/true, list_type, groups, k)) {
    products[static_cast<size_t>(group.matrix)] =
        at::mm(left.narrow(1, group.begin, group.size), right.narrow(0, group.begin, group.size));
  }
  row.yRef = wide(row.yRef) + at::stack(products).reshape(shape);
}

}  // namespace

ACLNN_STRUCT(GroupedMatmulAdd, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
             (In, groupList), (InOut, yRef), (bool, transposeX), (bool, transposeWeight),
             (int64_t, groupType)) {
  add_products(*this, kGroupEnds);
}
ACLNN_STRUCT(GroupedMatmulAddV2, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
             (In, groupList), (InOut, yRef), (bool, transposeX), (bool, transposeWeight),
             (int64_t, groupType), (int64_t, groupListType)) {
  add_products(*this, groupListType);
}

}  // namespace aclnn_host::experts_grouped_matmul_add_rows
