#include "cann/rows/vision/deformable_sampling.h"

#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

// Calls visit(n, group, column, at, sample) for every kernel position in every result: `column`
// indexes [kernel, results], `at` has the positions of the x offset, the y offset and the mask.
template <class Visit>
void each_sample(const Geometry& g, const at::Tensor& offset, Visit visit) {
  const auto* const offsets = offset.const_data_ptr<float>();
  const int64_t part = g.deformable_groups * g.kernel() * g.outputs();
  for (int64_t i = 0; i < g.batch * part; ++i) {
    const int64_t n = i / part;
    const int64_t group = i % part / (g.kernel() * g.outputs());
    const int64_t column = i % (g.kernel() * g.outputs());
    const int64_t k = column / g.outputs(), result = column % g.outputs();
    const std::array<int64_t, 3> at{i + 2 * n * part, i + (2 * n + 1) * part,
                                    i + (2 * n + 2) * part};
    const int64_t y = result / g.out_width * g.step_y + k / g.columns * g.apart_y - g.before_y;
    const int64_t x = result % g.out_width * g.step_x + k % g.columns * g.apart_x - g.before_x;
    // Computed in FLOAT, as on a device: the last bit of a position may decide which elements
    // surround it.
    visit(n, group, column, at,
          Sample(static_cast<float>(y) + offsets[at[1]], static_cast<float>(x) + offsets[at[0]],
                 g.height, g.width));
  }
}

}  // namespace

at::Tensor sampled(const Geometry& g, const at::Tensor& images, const at::Tensor& offset) {
  const at::Tensor result =
      at::zeros({g.batch, g.channels, g.kernel() * g.outputs()}, images.options());
  if (!has_values(images)) return result;
  const auto* const data = images.const_data_ptr<float>();
  const auto* const masks = offset.const_data_ptr<float>();
  auto* const out = result.mutable_data_ptr<float>();
  const int64_t share = g.channels / g.deformable_groups;
  each_sample(g, offset,
              [&](int64_t n, int64_t group, int64_t column, const std::array<int64_t, 3>& at,
                  const Sample& sample) {
                for (int64_t c = group * share; c < (group + 1) * share; ++c) {
                  const float* const image = data + (n * g.channels + c) * g.height * g.width;
                  double sum = 0;
                  for (const auto& corner : sample) sum += corner.share * image[corner.pixel];
                  out[(n * g.channels + c) * g.kernel() * g.outputs() + column] =
                      static_cast<float>(sum * masks[at[2]]);
                }
              });
  return result;
}

at::Tensor as_points(const Geometry& g, const at::Tensor& columns) {
  return columns.view({g.batch, g.channels, g.rows, g.columns, g.out_height, g.out_width})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape(g.samples());
}
at::Tensor as_columns(const Geometry& g, const at::Tensor& points) {
  return points.view({g.batch, g.channels, g.out_height, g.rows, g.out_width, g.columns})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape({g.batch, g.channels, g.kernel() * g.outputs()});
}

void sample_gradients(const Geometry& g, const at::Tensor& images, const at::Tensor& offset,
                      const at::Tensor& columns, const at::Tensor& grad_images,
                      const at::Tensor& grad_offset) {
  const auto* const data = images.const_data_ptr<float>();
  const auto* const masks = offset.const_data_ptr<float>();
  const auto* const gradients = columns.const_data_ptr<float>();
  auto* const image_out = grad_images.mutable_data_ptr<float>();
  auto* const offset_out = grad_offset.mutable_data_ptr<float>();
  const int64_t share = g.channels / g.deformable_groups;
  each_sample(g, offset,
              [&](int64_t n, int64_t group, int64_t column, const std::array<int64_t, 3>& at,
                  const Sample& sample) {
                std::array<double, 3> sums{};
                for (int64_t c = group * share; c < (group + 1) * share; ++c) {
                  const int64_t image = (n * g.channels + c) * g.height * g.width;
                  const double gradient =
                      gradients[(n * g.channels + c) * g.kernel() * g.outputs() + column];
                  for (const auto& corner : sample) {
                    const double value = gradient * data[image + corner.pixel];
                    sums[0] += value * corner.along_x;
                    sums[1] += value * corner.along_y;
                    sums[2] += value * corner.share;
                    image_out[image + corner.pixel] +=
                        static_cast<float>(gradient * masks[at[2]] * corner.share);
                  }
                }
                offset_out[at[0]] = static_cast<float>(sums[0] * masks[at[2]]);
                offset_out[at[1]] = static_cast<float>(sums[1] * masks[at[2]]);
                offset_out[at[2]] = static_cast<float>(sums[2]);
              });
}

}  // namespace aclnn_host
