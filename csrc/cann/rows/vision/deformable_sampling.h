#pragma once

#include <array>

#include "cann/rows/row.h"

// Bilinear samples of images at positions that are inputs, and those of a deformable convolution.
namespace aclnn_host {

using DeformableSizes = std::vector<int64_t>;

// A bilinear sample of an image: the elements around a position, each with its weight and the
// derivative of the weight along both directions. Elements outside the image count as 0.
class Sample {
 public:
  struct Corner {
    int64_t pixel;  // row * width + column
    double share, along_y, along_x;
  };

  Sample(double y, double x, int64_t height, int64_t width) {
    const bool is_near =
        y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width);
    if (!is_near) return;  // also if the position is NaN
    const double down = y - std::floor(y), right = x - std::floor(x);
    const auto top = static_cast<int64_t>(std::floor(y));
    const auto left = static_cast<int64_t>(std::floor(x));
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = top + i / 2, column = left + i % 2;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      const double of_row = i / 2 == 1 ? down : 1 - down;
      const double of_column = i % 2 == 1 ? right : 1 - right;
      corners_[count_++] = {row * width + column, of_row * of_column,
                            i / 2 == 1 ? of_column : -of_column, i % 2 == 1 ? of_row : -of_row};
    }
  }
  const Corner* begin() const { return corners_.data(); }
  const Corner* end() const { return corners_.data() + count_; }

 private:
  std::array<Corner, 4> corners_{};
  size_t count_ = 0;
};

inline void expect_sampled_type(const char* name, const at::Tensor& tensor) {
  EXPECT(tensor.scalar_type() != at::kDouble, name,
         " has dtype DOUBLE, expected FLOAT, FLOAT16 or BFLOAT16");
}

inline at::Tensor in_floats(const at::Tensor& tensor) {
  return tensor.to(at::kFloat).contiguous();
}

// The checked sizes and steps of a deformable convolution.
struct Geometry {
  Geometry(const char* x_name, const at::Tensor& x, const at::Tensor& weight,
           at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
           at::IntArrayRef dilation, int64_t groups, int64_t deformable_groups, bool modulated)
      : groups(groups), deformable_groups(deformable_groups) {
    expect_sampled_type(x_name, x);
    expect_dims(x_name, x, 4);
    expect_dims("weight", weight, 4);
    EXPECT(modulated, "modulated is false, expected true");
    check_steps("stride", stride, 1);
    check_steps("dilation", dilation, 1);
    check_steps("padding", padding, 0);
    EXPECT(kernel.size() == 2 && kernel[0] > 0 && kernel[1] > 0 && kernel[0] <= kMostKernel &&
               kernel[0] * kernel[1] <= kMostKernel && kernel[1] <= kMostKernel,
           "kernelSize is ", kernel, ", expected two sizes with a product of 1 to ", kMostKernel);
    batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
    out_channels = weight.size(0);
    EXPECT(groups > 0 && channels % groups == 0 && out_channels % groups == 0, "groups is ", groups,
           ", expected a divisor of ", channels, " and ", out_channels,
           ", the numbers of channels");
    EXPECT(deformable_groups > 0 && channels % deformable_groups == 0, "deformableGroups is ",
           deformable_groups, ", expected a divisor of ", channels, ", the number of channels");
    EXPECT(kernel[0] * kernel[1] <= kMostProducts / std::max<int64_t>(channels / groups, 1),
           "kernelSize is ", kernel, " with ", channels / groups,
           " channels per group, expected a product of at most ", kMostProducts);
    rows = kernel[0], columns = kernel[1];
    step_y = stride[2], step_x = stride[3], before_y = padding[0], before_x = padding[2];
    apart_y = dilation[2], apart_x = dilation[3];
    out_height = results(height + padding[0] + padding[1], rows, apart_y, step_y);
    out_width = results(width + padding[2] + padding[3], columns, apart_x, step_x);
    EXPECT(out_height > 0 && out_width > 0, x_name, " has shape ", x.sizes(),
           ", expected at least as many elements as the kernel spans");
    expect_shape("weight", weight, {out_channels, channels / groups, rows, columns});
  }

  int64_t kernel() const { return rows * columns; }
  int64_t outputs() const { return out_height * out_width; }
  DeformableSizes result() const { return {batch, out_channels, out_height, out_width}; }
  DeformableSizes offsets() const {
    return {batch, 3 * deformable_groups * kernel(), out_height, out_width};
  }
  DeformableSizes samples() const {
    return {batch, channels, out_height * rows, out_width * columns};
  }

  int64_t batch, channels, height, width, out_channels, out_height, out_width, rows, columns;
  int64_t step_y, step_x, before_y, before_x, apart_y, apart_x, groups, deformable_groups;

 private:
  static constexpr int64_t kMostKernel = 2048;
  static constexpr int64_t kMostProducts = 65535;
  static constexpr int64_t kMostStep = std::numeric_limits<int32_t>::max();

  static void check_steps(const char* name, at::IntArrayRef steps, int64_t least) {
    EXPECT(steps.size() == 4, name, " is ", steps, ", expected four numbers");
    for (const int64_t step : steps) {
      EXPECT(step >= least && step <= kMostStep, name, " is ", steps, ", expected numbers of ",
             least, " to ", kMostStep);
    }
    EXPECT(least == 0 || (steps[0] == 1 && steps[1] == 1), name, " is ", steps,
           ", expected 1 for the batch and the channels");
  }
  static int64_t results(int64_t size, int64_t kernel, int64_t apart, int64_t step) {
    const int64_t span = (kernel - 1) * apart + 1;
    return size < span ? 0 : (size - span) / step + 1;
  }
};

// The samples times their masks: [batch, channels, kernel * results].
at::Tensor sampled(const Geometry& g, const at::Tensor& images, const at::Tensor& offset);
// The gradients of the images and the offsets, from those of the samples.
void sample_gradients(const Geometry& g, const at::Tensor& images, const at::Tensor& offset,
                      const at::Tensor& columns, const at::Tensor& grad_images,
                      const at::Tensor& grad_offset);

// Conversions between columns, as above, and the layout of CANN's sampled points: the kernel
// positions of each result, side by side.
at::Tensor as_points(const Geometry& g, const at::Tensor& columns);
at::Tensor as_columns(const Geometry& g, const at::Tensor& points);

}  // namespace aclnn_host
