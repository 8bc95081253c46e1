// Scales for quantisation, and packed sign bits.

#include "cann/named_ops/operator.h"
#include "cann/rows/bits.h"
#include "cann/rows/engine/frame.h"

namespace aclnn_host::named_quantization {

namespace {

constexpr double kLeastScale = 1.192092896e-07;  // FLOAT's epsilon

// The number of bins before this share of all data.
double bins_before(const at::Tensor& cumulated, double data, double share) {
  return (cumulated.to(at::kFloat) / data < share).sum().item().toDouble();
}

// A part of the data, 1 unless it is given.
double share(const char* name, const std::optional<double>& percentile) {
  const double part = percentile.value_or(1);
  EXPECT(part >= 0 && part <= 1, name, " is ", part, ", expected 0 to 1");
  return part;
}

struct Quantisation {
  double scale, offset;
};

// The scale, among intervals that contain most data, with the least squared error at `bits` bits.
Quantisation reconstruct(const at::Tensor& data, double low, double high,
                         const at::Tensor& cumulated, const Numerals& percentiles,
                         const Numerals& range, double step, bool with_offset, int64_t bits) {
  const auto bins = static_cast<double>(cumulated.numel());
  const auto count = static_cast<double>(data.numel());
  double most = bins_before(cumulated, count, percentiles[1]) / bins * (high - low) + low;
  double least = bins_before(cumulated, count, 1 - percentiles[0]) / bins * (high - low) + low;
  if (with_offset) {
    most = std::max(most, 0.0), least = std::min(least, 0.0);
  } else {
    most = std::max(std::abs(most), std::abs(least));
  }
  const double half = std::ldexp(1.0, static_cast<int>(bits) - 1);
  Quantisation best{1, 0};
  double best_loss = std::numeric_limits<double>::infinity();
  const auto steps = static_cast<int64_t>(std::ceil((range[1] - range[0]) / step));
  for (int64_t i = 0; i < steps; ++i) {
    const double end = most * (range[0] + static_cast<double>(i) * step);
    double scale = with_offset ? (end - least) / (2 * half - 1) : end / (half - 1);
    if (with_offset && scale < kLeastScale) scale = 1;
    const double offset = with_offset ? -(std::nearbyint(least / scale) + half) : 0;
    const at::Tensor codes = (at::round(data / scale) + offset).clamp(-half, half - 1);
    const double loss = ((codes - offset) * scale - data).square().sum().item().toDouble();
    if (loss < best_loss) best_loss = loss, best = {scale, offset};
  }
  return best;
}

}  // namespace

NAMED_OPERATOR(IFMR, (Floating<In>, data), (Floating<In>, data_min), (Floating<In>, data_max),
               (In, cumsum), (Out, scale), (Out, offset), (Attribute<double>, min_percentile),
               (Attribute<double>, max_percentile), (Attribute<Numerals>, search_range),
               (Attribute<double>, search_step), (Attribute<bool>, with_offset),
               (Attribute<int64_t>, quant_bits)) {
  constexpr double kMostSteps = 1 << 16;
  const Numerals range = search_range.value_or(Numerals{0.7, 1.3});
  const double step = search_step.value_or(0.01);
  const int64_t bits = quant_bits.value_or(8);
  EXPECT(range.size() == 2 && std::isfinite(range[0]) && std::isfinite(range[1]) && step > 0 &&
             std::abs(range[1] - range[0]) / step <= kMostSteps,
         "search_range has ", range.size(), " numbers and search_step is ", step,
         ", expected two finite numbers, at most ", kMostSteps, " positive steps apart");
  expect_range("quant_bits", bits, 2, 16);
  expect_one("data_min", data_min);
  expect_one("data_max", data_max);
  expect_one("scale", scale);
  expect_one("offset", offset);
  expect_dtype("cumsum", cumsum, at::kInt);
  expect_dims("cumsum", cumsum, 1);
  expect_elements("cumsum", cumsum, ", a number for each bin");
  const double below = share("min_percentile", min_percentile);
  const double above = share("max_percentile", max_percentile);
  Quantisation best{1, 0};
  if (has_values(data)) {
    best = reconstruct(data.to(at::kFloat), data_min.item().toDouble(), data_max.item().toDouble(),
                       cumsum, {below, above}, range, step, with_offset.value_or(true), bits);
  }
  scale = at::zeros(scale->sizes(), data.options().dtype(at::kFloat)) + best.scale;
  offset = at::zeros(offset->sizes(), data.options().dtype(at::kFloat)) + best.offset;
}
// Packs a bit for each number, 1 for 0 and more, eight in a byte from the lowest on.
NAMED_OPERATOR(SignBitsPack, (Floating<In>, self), (Out, y), (Attribute<int64_t>, size)) {
  const int64_t rows = size.value_or(1);
  expect_dims("self", self, 1);
  const int64_t bytes = (self.size(0) + 7) / 8;
  EXPECT(rows > 0 && bytes % rows == 0, "size is ", rows, ", expected a divisor of ", bytes);
  y = packed_bits(self >= 0).view({rows, -1});
}
NAMED_OPERATOR(SignBitsUnpack, (In, self), (Out, y), (Attribute<int64_t>, size),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of y says it")) {
  const int64_t rows = size.value_or(1);
  expect_dtype("self", self, at::kByte);
  expect_dims("self", self, 1);
  EXPECT(rows > 0 && self.numel() * 8 % rows == 0, "size is ", rows, ", expected a divisor of ",
         self.numel() * 8);
  y = (unpacked_bits(self).to(at::kFloat) * 2 - 1).view({rows, -1});
}

}  // namespace aclnn_host::named_quantization
