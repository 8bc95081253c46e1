// Images: resizing, blending of two by a mask, blurring, and colour conversion.

#include <numeric>

#include "cann/rows/row.h"

namespace aclnn_host::vision_image_rows {

namespace {

// Converts numbers to bytes: rounded to nearest, ties to even, and saturated.
at::Tensor as_bytes(const at::Tensor& numbers) {
  return at::clamp(at::round(at::nan_to_num(numbers, 0.0, 255.0, 0.0)), 0, 255).to(at::kByte);
}

// Requires a last dimension of this many channels.
void expect_channels(const char* name, const at::Tensor& image, int64_t channels) {
  EXPECT(image.dim() > 0 && image.size(-1) == channels, name, " has shape ", image.sizes(),
         ", expected a last dimension of ", channels, ", the channels");
}

// ---- blurring

constexpr int64_t kConstant = 0, kReplicate = 1, kReflect = 2, kReflect101 = 4;

// The size of the kernel along a dimension of `size` elements; 0 means as many as the deviation
// needs.
int64_t kernel_size(int64_t given, double sigma, int64_t size, int64_t border) {
  constexpr int64_t kSizes[] = {1, 3, 5, 7, 9, 11, 15, 21, 31};
  constexpr double kMostSigma = 1e6;
  EXPECT(given != 0 || sigma > 0, "ksize has a 0 and its deviation is ", sigma,
         ", expected a size or a deviation of more than 0");
  if (given == 0) given = std::llround(std::min(sigma, kMostSigma) * 8 + 1) | 1;
  if (border != kConstant && size == 1) given = 1;
  EXPECT(std::find(std::begin(kSizes), std::end(kSizes), given) != std::end(kSizes), "ksize is ",
         given, " (by sigma, where it is 0), expected ", at::IntArrayRef(kSizes));
  return given;
}

// The weights of a kernel, which sum to 1. Small kernels without a deviation have fixed weights.
std::vector<float> gaussian(int64_t size, double sigma) {
  if (!(sigma > 0)) {
    switch (size) {
      case 1: return {1};
      case 3: return {0.25f, 0.5f, 0.25f};
      case 5: return {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
      case 7: return {0.03125f, 0.109375f, 0.21875f, 0.28125f, 0.21875f, 0.109375f, 0.03125f};
      case 9:
        return {4 / 256.0f,  13 / 256.0f, 30 / 256.0f, 51 / 256.0f, 60 / 256.0f,
                51 / 256.0f, 30 / 256.0f, 13 / 256.0f, 4 / 256.0f};
      default: sigma = static_cast<double>(size) * 0.15 + 0.35;
    }
  }
  const int64_t middle = size / 2;
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double x = static_cast<double>(i - middle) / sigma;
    values.push_back(std::exp(-x * x / 2));
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) value /= sum;
  return {values.begin(), values.end()};
}

// The index of the element that replaces one outside the image.
int64_t mirrored(int64_t index, int64_t size, int64_t border) {
  if (border == kReplicate || size == 1) return std::clamp<int64_t>(index, 0, size - 1);
  const int64_t skipped = border == kReflect101 ? 1 : 0;  // 1 if the border element is not repeated
  while (index < 0 || index >= size) {
    index = index < 0 ? -index - 1 + skipped : 2 * size - index - 1 - skipped;
  }
  return index;
}

at::Tensor blurred(const at::Tensor& image, int64_t dim, const std::vector<float>& weights,
                   int64_t border) {
  const int64_t size = image.size(dim);
  const auto beside = static_cast<int64_t>(weights.size() / 2);
  at::Tensor wider;
  if (border == kConstant) {
    std::vector<int64_t> pad(static_cast<size_t>(2 * (image.dim() - dim)), 0);
    pad[pad.size() - 2] = pad[pad.size() - 1] = beside;
    wider = at::constant_pad_nd(image, pad, 0);
  } else {
    std::vector<int64_t> indices;
    for (int64_t i = -beside; i < size + beside; ++i) indices.push_back(mirrored(i, size, border));
    wider = at::index_select(image, dim, at::tensor(indices));
  }
  at::Tensor sum = at::zeros_like(image);
  for (int64_t i = 0; i <= 2 * beside; ++i) {
    sum = sum + wider.narrow(dim, i, size) * weights[static_cast<size_t>(i)];
  }
  return sum;
}

// ---- sizes

// Checks the size of an image in one direction times the scale; the scale is a rounded number.
void check_scaled(const char* direction, int64_t size, double scale, int64_t result) {
  constexpr double kError = 1e-5;
  const auto scaled = [size](double factor) {
    return std::floor(static_cast<double>(size) * factor);
  };
  const auto given = static_cast<double>(result);
  EXPECT(result > 0 && given >= scaled(scale - kError) && given <= scaled(scale + kError),
         "out has ", result, " elements in ", direction, ", expected ", scaled(scale), ", ", size,
         " times the scale ", scale);
}

}  // namespace

// Corners are not aligned: bilinear mode samples at half-pixel centres, nearest mode takes the
// element before.
ACLNN(Resize, (Stored<In>, self), (Floats, scales), (const char*, mode),
      (SameDtype<Stored<Out>>, out, "self")) {
  const at::Tensor& x = self.elements;
  EXPECT(self.dtype == ACL_FLOAT || self.dtype == ACL_FLOAT16 || self.dtype == ACL_BF16,
         "self has dtype ", dtype_name(self.dtype), ", expected FLOAT, FLOAT16 or BFLOAT16");
  EXPECT(self.format == out.format(), "out has format ", out.format(), ", expected ", self.format,
         ", the format of self");
  const bool channels_last = self.format == ACL_FORMAT_NHWC;
  EXPECT(channels_last || self.format == ACL_FORMAT_NCHW || self.format == ACL_FORMAT_ND,
         "self has format ", static_cast<int64_t>(self.format), ", expected NCHW or NHWC");
  expect_text("mode", mode, {"nearest", "bilinear"});
  expect_dims("self", x, 4);
  expect_dims("out", out, 4);
  EXPECT(scales.size() == 4, "scales has ", scales.size(), " numbers, expected 4");
  const int64_t h = channels_last ? 1 : 2, w = h + 1, c = channels_last ? 3 : 1;
  for (const int64_t dim : {int64_t{0}, c}) {
    const double scale = scales[static_cast<size_t>(dim)];
    EXPECT(scale == 1, "scales[", dim, "] is ", scale, ", expected 1");
    EXPECT(out->size(dim) == x.size(dim), "out has ", out->size(dim), " elements in dimension ",
           dim, ", expected ", x.size(dim));
  }
  expect_elements("self", x);
  check_scaled("height", x.size(h), scales[static_cast<size_t>(h)], out->size(h));
  check_scaled("width", x.size(w), scales[static_cast<size_t>(w)], out->size(w));
  const std::vector<int64_t> size{out->size(h), out->size(w)};
  const at::Tensor images = wide(channels_last ? x.permute({0, 3, 1, 2}) : x).contiguous();
  const at::Tensor result = mode == "nearest"
                                ? at::upsample_nearest2d(images, size)
                                : at::upsample_bilinear2d(images, size, /*align_corners=*/false);
  out = channels_last ? result.permute({0, 2, 3, 1}) : result;
}

// Deviation of BackgroundReplace, BlendImagesCustom, MrgbaCustom: Of UINT8 images, the first two
// round to nearest and the last one rounds down; a device computes in FLOAT16.
ACLNN(BackgroundReplace, (In, bkg), (Like<In>, src, "bkg"), (In, mask), (Like<Out>, out, "bkg")) {
  expect_dtype("bkg", bkg, {at::kByte, at::kHalf});
  expect_dtype("mask", mask, at::kHalf);
  std::vector<int64_t> one_channel = bkg.sizes().vec();
  if (!one_channel.empty()) one_channel.back() = 1;
  EXPECT(mask.sizes() == bkg.sizes() || mask.sizes() == one_channel, "mask has shape ",
         mask.sizes(), ", expected ", one_channel, " or ", bkg.sizes());
  const at::Tensor share = wide(mask);
  const at::Tensor result = bkg.to(at::kFloat) * (1 - share) + src.to(at::kFloat) * share;
  out = bkg.scalar_type() == at::kByte ? as_bytes(result) : result;
}
// Rounds to nearest.
ACLNN(BlendImagesCustom, (In, rgb), (In, alpha), (In, frame), (Like<Out>, out, "frame")) {
  for (const auto& [name, tensor] :
       {std::pair("rgb", &rgb), std::pair("alpha", &alpha), std::pair("frame", &frame)}) {
    expect_dtype(name, *tensor, at::kByte);
  }
  expect_channels("rgb", rgb, 3);
  expect_channels("alpha", alpha, 1);
  expect_channels("frame", frame, 3);
  const at::Tensor share = alpha.to(at::kInt);
  const at::Tensor sum = rgb.to(at::kInt) * share + frame.to(at::kInt) * (255 - share);
  out = at::div(sum + 127, 255, "floor").to(at::kByte);
}
// Rounds down.
ACLNN(MrgbaCustom, (In, rgb), (In, alpha), (Like<Out>, out, "rgb")) {
  expect_dtype("rgb", rgb, at::kByte);
  expect_dtype("alpha", alpha, at::kByte);
  expect_channels("rgb", rgb, 3);
  expect_channels("alpha", alpha, 1);
  out = at::div(rgb.to(at::kInt) * alpha.to(at::kInt), 255, "floor").to(at::kByte);
}

// Blurs as OpenCV does for FLOAT images: ksize is width, height.
ACLNN(GaussianBlur, (In, src), (Ints, ksize), (double, sigmaX), (double, sigmaY),
      (int64_t, borderType), (Like<Out>, dst, "src")) {
  expect_dtype("src", src, at::kFloat);
  expect_dims("src", src, 2, 3);
  expect_elements("src", src);
  EXPECT(ksize.size() == 2, "ksize is ", ksize, ", expected two sizes");
  EXPECT(std::isfinite(sigmaX.value()) && std::isfinite(sigmaY.value()) && sigmaX >= 0.0,
         "sigmaX is ", sigmaX.value(), " and sigmaY is ", sigmaY.value(),
         ", expected finite numbers, sigmaX 0 or more");
  expect_one_of("borderType", borderType, {kConstant, kReplicate, kReflect, kReflect101});
  const double sigma_y = sigmaY > 0.0 ? sigmaY.value() : sigmaX.value();
  const int64_t width = kernel_size(ksize[0], sigmaX, src.size(1), borderType);
  const int64_t height = kernel_size(ksize[1], sigma_y, src.size(0), borderType);
  if (!src.is_cpu()) {
    dst = at::empty(src.sizes(), src.options());
    return;
  }
  const at::Tensor rows = blurred(src, 1, gaussian(width, sigmaX), borderType);
  dst = blurred(rows, 0, gaussian(height, sigma_y), borderType);
}

// Pairs of pixels share U, stored with the first, and the first pixel's V, stored with the second.
// Without a format, the channels are last.
ACLNN(Rgb2yuv422, (In, x), (char*, dataFormatOptional), (SameDtype<Out>, out, "x")) {
  const auto type = x.scalar_type();
  expect_dtype("x", x, {at::kByte, at::kHalf, at::kFloat});
  const bool channels_first = dataFormatOptional == "NCHW";
  if (!dataFormatOptional.empty()) {
    expect_text("dataFormatOptional", dataFormatOptional, {"NHWC", "NCHW"});
  }
  expect_dims("x", x, 3, 8);
  const int64_t channel = channels_first ? -3 : -1;
  EXPECT(x.size(channel) == 3, "x has shape ", x.sizes(), ", expected 3 channels in ",
         channels_first ? "the last dimension but two" : "the last dimension");
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(channel + x.dim())] = 2;
  expect_shape("out", out, shape);
  const auto colour = [&](int64_t i) { return x.select(channel, i).to(at::kFloat); };
  const at::Tensor r = colour(0), g = colour(1), b = colour(2);
  const double offset = type == at::kByte ? 128 : 0;
  const at::Tensor y = 0.299 * r + 0.587 * g + 0.114 * b;
  const at::Tensor u = -0.16874 * r - 0.33126 * g + 0.5 * b + offset;
  const at::Tensor v = 0.5 * r - 0.41869 * g - 0.08131 * b + offset;
  const int64_t width = y.size(-1);
  const at::Tensor chroma = at::empty(y.sizes(), y.options());
  chroma.slice(-1, 0, width, 2).copy_(u.slice(-1, 0, width, 2));
  if (width > 1) chroma.slice(-1, 1, width, 2).copy_(v.slice(-1, 0, width - 1, 2));
  const at::Tensor result = at::stack({y, chroma}, channel);
  out = type == at::kByte ? as_bytes(result) : result;
}

}  // namespace aclnn_host::vision_image_rows
