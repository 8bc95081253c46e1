// Rasterizer: the nearest triangle at each pixel of a screen, and the barycentric coordinates.

#include <array>

#include "cann/rows/row.h"

namespace aclnn_host::vision_rasterizer_rows {

namespace {

using Weights3 = std::array<double, 3>;  // of the corners of a triangle

struct Point {
  double x, y, z;
};

struct Screen {
  // The position of a vertex (x, y, z, w) on the screen.
  Point position(const float* v) const {
    const double x = v[0], y = v[1], z = v[2], w = v[3];
    return {(x / w * 0.5 + 0.5) * static_cast<double>(width - 1) + 0.5,
            (0.5 + 0.5 * y / w) * static_cast<double>(height - 1) + 0.5, z / w * 0.49999 + 0.5};
  }
  int64_t width, height;
};

double signed_area(const Point& a, const Point& b, const Point& c) {
  return (c.x - a.x) * (b.y - a.y) - (b.x - a.x) * (c.y - a.y);
}

struct Triangle {
  std::array<Point, 3> corners;

  // The barycentric weights of a point; all -1 in a triangle without area.
  Weights3 weights(const Point& p) const {
    const double area = signed_area(corners[0], corners[1], corners[2]);
    if (area == 0) return {-1, -1, -1};
    const double beta = signed_area(corners[0], p, corners[2]) / area;
    const double gamma = signed_area(corners[0], corners[1], p) / area;
    return {1 - beta - gamma, beta, gamma};
  }
  // A range of pixels along one direction that contains all pixels with their centre in the
  // triangle.
  std::array<int64_t, 2> span(double Point::* along, int64_t size) const {
    const auto [low, high] = std::minmax({corners[0].*along, corners[1].*along, corners[2].*along});
    if (!std::isfinite(low) || !std::isfinite(high)) return {0, size};
    const auto limit = static_cast<double>(size);
    return {static_cast<int64_t>(std::clamp(std::floor(low) - 1, 0.0, limit)),
            static_cast<int64_t>(std::clamp(std::ceil(high) + 1, 0.0, limit))};
  }
};

Point center(int64_t x, int64_t y) {
  return {static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5, 0};
}

// The result: the depth of each pixel and the number of its face, from 1.
struct Drawing {
  Drawing(const Screen& screen, int32_t* faces)
      : screen(screen),
        faces(faces),
        depths(static_cast<size_t>(screen.width * screen.height),
               std::numeric_limits<double>::max()) {}

  void draw(const Triangle& triangle, int32_t number) {
    const auto [left, right] = triangle.span(&Point::x, screen.width);
    const auto [top, bottom] = triangle.span(&Point::y, screen.height);
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = left; x < right; ++x) {
        const Weights3 w = triangle.weights(center(x, y));
        if (!(w[0] >= 0 && w[1] >= 0 && w[2] >= 0)) continue;
        const auto& c = triangle.corners;
        const double depth = w[0] * c[0].z + w[1] * c[1].z + w[2] * c[2].z;
        const int64_t pixel = y * screen.width + x;
        // Of several faces with the same depth, the first one drawn remains.
        if (!(depth < depths[static_cast<size_t>(pixel)])) continue;
        depths[static_cast<size_t>(pixel)] = depth;
        faces[pixel] = number;
      }
    }
  }

  const Screen& screen;
  int32_t* faces;
  std::vector<double> depths;
};

}  // namespace

// findicesOut has the numbers of the faces from 1, and 0 for pixels without a face, whose weights
// are 0.
ACLNN(Rasterizer, (In, v), (In, f),
      (Unused<Optional<In>>, dOptional, "only depth priors need it, which are refused"),
      (int64_t, width), (int64_t, height),
      (Unused<double>, occlusionTruncation, "only depth priors need it, which are refused"),
      (int64_t, useDepthPrior), (Out, findicesOut), (Out, barycentricOut)) {
  constexpr int64_t kMostPixels = 4096;
  expect_dtype("v", v, at::kFloat);
  expect_dtype("f", f, at::kInt);
  expect_dtype("findicesOut", findicesOut, at::kInt);
  expect_dtype("barycentricOut", barycentricOut, at::kFloat);
  expect_range("width", width, 1, kMostPixels);
  expect_range("height", height, 1, kMostPixels);
  expect_one_of("useDepthPrior", useDepthPrior, {0});
  EXPECT(v.dim() == 2 && v.size(0) > 0 && v.size(1) == 4, "v has shape ", v.sizes(),
         ", expected two dimensions with vertices, the second 4");
  EXPECT(f.dim() == 2 && f.size(0) > 0 && f.size(1) == 3, "f has shape ", f.sizes(),
         ", expected two dimensions with faces, the second 3");
  EXPECT(f.size(0) < std::numeric_limits<int32_t>::max(), "f has ", f.size(0),
         " faces, expected less than 2^31 - 1");
  expect_shape("findicesOut", findicesOut, {height, width});
  expect_shape("barycentricOut", barycentricOut, {height, width, 3});
  const at::Tensor indices = at::zeros({height, width}, f.options());
  const at::Tensor weights = at::zeros({height, width, 3}, v.options());
  if (has_values(v)) {
    check_bounds("f", f, v.size(0));
    const Screen screen{width, height};
    const at::Tensor vertices = v.contiguous(), faces = f.contiguous();
    const auto corner = [&](int64_t face, int64_t i) {
      return vertices.const_data_ptr<float>() +
             int64_t{4} * faces.const_data_ptr<int32_t>()[3 * face + i];
    };
    const auto triangle = [&](int64_t face) {
      return Triangle{{screen.position(corner(face, 0)), screen.position(corner(face, 1)),
                       screen.position(corner(face, 2))}};
    };
    auto* const numbers = indices.mutable_data_ptr<int32_t>();
    Drawing drawing(screen, numbers);
    for (int64_t face = 0; face < f.size(0); ++face) {
      drawing.draw(triangle(face), static_cast<int32_t>(face + 1));
    }
    auto* const out = weights.mutable_data_ptr<float>();
    for (int64_t pixel = 0; pixel < indices.numel(); ++pixel) {
      if (numbers[pixel] == 0) continue;
      const int64_t face = numbers[pixel] - 1;
      Weights3 w = triangle(face).weights(center(pixel % screen.width, pixel / screen.width));
      double sum = 0;
      for (int64_t i = 0; i < 3; ++i) sum += w[static_cast<size_t>(i)] /= corner(face, i)[3];
      std::ranges::transform(w, out + 3 * pixel,
                             [sum](double weight) { return static_cast<float>(weight / sum); });
    }
  }
  findicesOut = indices;
  barycentricOut = weights;
}

}  // namespace aclnn_host::vision_rasterizer_rows
