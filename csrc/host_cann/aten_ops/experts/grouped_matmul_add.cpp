// Products of groups of rows, added to matrices: gradients of the weights of experts.

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/experts/grouped_product.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

// x is [k, m] and weight [k, n]; groupList tells where the rows of each group end, and yRef has the
// matrices [m, n] of the groups one below the other.
ACLNN(GroupedMatmulAdd, (FloatIn, x), (FloatIn, weight), (In, groupList), (InOut, yRef),
      (bool, transposeX), (bool, transposeWeight), (int64_t, groupType)) {
  TORCH_CHECK(transposeX, "transposeX is false, expected true");
  TORCH_CHECK(!transposeWeight, "transposeWeight is true, expected false");
  TORCH_CHECK(groupType == 2, "groupType is ", groupType.value(), ", expected 2, groups of k");
  TORCH_CHECK(at::isReducedFloatingType(x.scalar_type()), "x has dtype ",
              dtype_text(x.scalar_type()), ", expected FLOAT16 or BFLOAT16");
  expect_dtype("weight", weight, x);
  expect_dtype("groupList", groupList, at::kLong);
  expect_dtype("yRef", yRef, at::kFloat);
  expect_dims("x", x, 2);
  expect_dims("groupList", groupList, 1);
  const int64_t k = x.size(0), groups = groupList.numel();
  TORCH_CHECK(groups > 0, "groupList has no elements, expected 1 or more");
  expect_dims("weight", weight, 2);
  expect_shape("weight", weight, {k, weight.size(1)});
  TORCH_CHECK(yRef->numel() == groups * x.size(1) * weight.size(1) && yRef->dim() >= 2 &&
                  yRef->size(-1) == weight.size(1),
              "yRef has shape ", yRef->sizes(), ", expected ", groups, " times ", x.size(1),
              " rows of ", weight.size(1));
  const at::Tensor left = wide(x).t(), right = wide(weight);
  std::vector<at::Tensor> products(static_cast<size_t>(groups),
                                   at::zeros({x.size(1), weight.size(1)}, right.options()));
  for (const Group& group :
       groups_of("groupList", groupList, /*is_on_device=*/true, kGroupEnds, groups, k)) {
    products[static_cast<size_t>(group.matrix)] =
        at::mm(left.narrow(1, group.begin, group.size), right.narrow(0, group.begin, group.size));
  }
  yRef = wide(yRef) + at::stack(products).reshape(yRef->sizes());
}
