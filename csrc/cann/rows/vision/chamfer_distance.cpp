// The gradient of the Chamfer distance, which is of each point to the nearest one of the other set.

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::vision_chamfer_distance_rows {

namespace {

void check_points(const char* name, const at::Tensor& points, const at::Tensor& like) {
  EXPECT(points.dim() == 3 && points.size(0) == like.size(0) && points.size(2) == 2, name,
         " has shape ", points.sizes(), ", expected three dimensions, the first ", like.size(0),
         ", the last 2");
  expect_dtype(name, points, like);
}

// Adds the gradients of the distances of points to their partners: to the points, and negative to
// the partners. An index of no partner has no gradient.
void add_gradients(const at::Tensor& points, const at::Tensor& partners, const at::Tensor& index,
                   const at::Tensor& gradient, at::Tensor& of_points, at::Tensor& of_partners) {
  const at::Tensor is_valid = (index >= 0) & (index < c10::Scalar(partners.size(1)));
  const at::Tensor places = (index * is_valid).unsqueeze(-1).expand(points.sizes());
  if (partners.size(1) == 0) return;
  const at::Tensor parts = (2 * gradient.unsqueeze(-1) * (points - partners.gather(1, places)))
                               .masked_fill(~is_valid.unsqueeze(-1), 0);
  of_points = of_points + parts;
  of_partners = of_partners.scatter_add(1, places, -parts);
}

}  // namespace

ACLNN(ChamferDistanceBackward, (FloatIn, xyz1), (FloatIn, xyz2), (IndexIn, idx1), (IndexIn, idx2),
      (FloatIn, gradDist1), (FloatIn, gradDist2), (Out, gradXyz1), (Out, gradXyz2)) {
  EXPECT(xyz1.dim() == 3, "xyz1 has shape ", xyz1.sizes(), ", expected three dimensions");
  check_points("xyz1", xyz1, xyz1);
  check_points("xyz2", xyz2, xyz1);
  const std::vector<int64_t> first{xyz1.size(0), xyz1.size(1)};
  const std::vector<int64_t> second{xyz2.size(0), xyz2.size(1)};
  expect_shape("idx1", idx1, first);
  expect_shape("idx2", idx2, second);
  expect_shape("gradDist1", gradDist1, first);
  expect_shape("gradDist2", gradDist2, second);
  expect_dtype("gradDist1", gradDist1, xyz1);
  expect_dtype("gradDist2", gradDist2, xyz1);
  const at::Tensor points = wide(xyz1), others = wide(xyz2);
  at::Tensor of_points = at::zeros_like(points), of_others = at::zeros_like(others);
  add_gradients(points, others, idx1, wide(gradDist1), of_points, of_others);
  add_gradients(others, points, idx2, wide(gradDist2), of_others, of_points);
  gradXyz1 = of_points;
  gradXyz2 = of_others;
}

}  // namespace aclnn_host::vision_chamfer_distance_rows
