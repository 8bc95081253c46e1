// Point clouds: the gradient of the Chamfer distance, which takes the distance of each point to the
// nearest one of the other set, and the gradient of an interpolation between points.

#include "cann/rows/row.h"

namespace aclnn_host::vision_point_clouds_rows {

namespace {

// Adds the gradients of the distances between points and partners to the points, and subtracts them
// from the partners. An index out of range has no gradient.
void add_gradients(const at::Tensor& points, const at::Tensor& partners, const at::Tensor& index,
                   const at::Tensor& gradient, at::Tensor& of_points, at::Tensor& of_partners) {
  const at::Tensor is_valid = (index >= 0) & (index < c10::Scalar(partners.size(1)));
  const at::Tensor indices = (index * is_valid).unsqueeze(-1).expand(points.sizes());
  if (partners.size(1) == 0) return;
  const at::Tensor parts = (2 * gradient.unsqueeze(-1) * (points - partners.gather(1, indices)))
                               .masked_fill(~is_valid.unsqueeze(-1), 0);
  of_points = of_points + parts;
  of_partners = of_partners.scatter_add(1, indices, -parts);
}

}  // namespace

// Adds each gradient, times its three weights, to its three points. grad_x and grad_y may have a
// fourth dimension of size 1.
ACLNN(ThreeInterpolateBackward, (Floating<In>, grad_x), (IndexIn, idx),
      (SameDtype<Floating<In>>, weight, "grad_x"), (int, m), (SameDtype<Out>, grad_y, "grad_x")) {
  EXPECT(grad_x.dim() == 3 || (grad_x.dim() == 4 && grad_x.size(3) == 1), "grad_x has shape ",
         grad_x.sizes(), ", expected three dimensions, or a fourth of 1");
  expect_at_least("m", m, 0);
  const at::Tensor gradient = wide(grad_x).flatten(2);
  const int64_t batch = gradient.size(0), channels = gradient.size(1), points = gradient.size(2);
  expect_shape("idx", idx, {batch, points, 3});
  expect_shape("weight", weight, {batch, points, 3});
  check_bounds("idx", idx, m);
  const at::Tensor parts = gradient.unsqueeze(-1) * wide(weight).unsqueeze(1);  // [b, c, n, 3]
  const at::Tensor indices = idx.unsqueeze(1).expand({batch, channels, points, 3});
  const at::Tensor sums = at::zeros({batch, channels, m.value()}, gradient.options())
                              .scatter_add(2, indices.flatten(2), parts.flatten(2));
  grad_y = grad_x.dim() == 4 ? sums.unsqueeze(-1) : sums;
}

ACLNN(ChamferDistanceBackward, (Floating<In>, xyz1), (SameDtype<Floating<In>>, xyz2, "xyz1"),
      (IndexIn, idx1), (IndexIn, idx2), (SameDtype<Floating<In>>, gradDist1, "xyz1"),
      (SameDtype<Floating<In>>, gradDist2, "xyz1"), (Out, gradXyz1), (Out, gradXyz2)) {
  expect_dims("xyz1", xyz1, 3);
  expect_dims("xyz2", xyz2, 3);
  expect_shape("xyz1", xyz1, {xyz1.size(0), xyz1.size(1), 2});
  expect_shape("xyz2", xyz2, {xyz1.size(0), xyz2.size(1), 2});
  const std::vector<int64_t> first{xyz1.size(0), xyz1.size(1)};
  const std::vector<int64_t> second{xyz2.size(0), xyz2.size(1)};
  expect_shape("idx1", idx1, first);
  expect_shape("idx2", idx2, second);
  expect_shape("gradDist1", gradDist1, first);
  expect_shape("gradDist2", gradDist2, second);
  const at::Tensor points = wide(xyz1), others = wide(xyz2);
  at::Tensor of_points = at::zeros_like(points), of_others = at::zeros_like(others);
  add_gradients(points, others, idx1, wide(gradDist1), of_points, of_others);
  add_gradients(others, points, idx2, wide(gradDist2), of_others, of_points);
  gradXyz1 = of_points;
  gradXyz2 = of_others;
}

}  // namespace aclnn_host::vision_point_clouds_rows
