#include "host_cann/ops/convolution_strategy.h"

#include <algorithm>
#include <iterator>

#include <ATen/Context.h>

#include "host_cann/kernels/capability.h"
#include "host_cann/ops/convolution_loops.h"
#include "host_cann/ops/matrix_products.h"
#include "host_cann/runtime/context.h"

namespace aclnn_host {
namespace {

using Values = ConvolutionSizes::Values;

double volume(const Values& sizes) {
  return static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) *
         static_cast<double>(sizes[2]);
}

// Whether the padded planes of the direct loops fit into a second-level cache or so: neither
// dilation nor padding spreads a few elements over much memory.
bool has_small_planes(const ConvolutionSizes& sizes) {
  constexpr double kMost = 1 << 22;
  double plane = static_cast<double>(sizes.large_channels + sizes.small_channels);
  for (int d = 0; d < 3; ++d) {
    plane *= static_cast<double>(sizes.small[d]) * static_cast<double>(sizes.stride[d]) +
             static_cast<double>(sizes.kernel[d]) * static_cast<double>(sizes.dilation[d]);
  }
  return plane <= kMost;
}

// How much the direct loops go through for every tap at most: a plane of the small image with what
// dilation spreads around it.
double plane_count(const ConvolutionSizes& sizes) {
  double plane = 1;
  for (int d = 0; d < 3; ++d) {
    const auto reach = static_cast<double>((sizes.kernel[d] - 1) * sizes.dilation[d]);
    plane *= static_cast<double>(sizes.small[d]) + reach / static_cast<double>(sizes.stride[d]);
  }
  return product_count(sizes) / volume(sizes.small) * plane;
}

// The direct loops take a row of the image at a time: rows of one element cost them as much as rows
// of a vector.
bool is_tiny(const ConvolutionCase& c) {
  constexpr double kMostProducts = 1 << 17;
  constexpr double kMostRows = 20 << 10;
  const double products = product_count(c.sizes);
  return products <= kMostProducts &&
         products <= kMostRows * static_cast<double>(c.sizes.small[2]) &&
         plane_count(c.sizes) <= 2 * kMostProducts && has_small_planes(c.sizes);
}

// Every thread has the weights in an order of its own, so they must fit into its cache.
bool is_channels_last_depthwise(const ConvolutionCase& c) {
  constexpr double kMostWeights = 1 << 18;
  double weights = static_cast<double>(c.sizes.groups);
  for (const int64_t taps : c.sizes.kernel) weights *= static_cast<double>(taps);
  return c.channels_last && c.sizes.large_channels == 1 && c.sizes.small_channels == 1 &&
         c.sizes.groups > 1 && weights <= kMostWeights;
}

bool is_depthwise(const ConvolutionCase& c) {
  return c.sizes.large_channels == 1 && c.sizes.groups > 1 && has_small_planes(c.sizes);
}

bool is_pointwise(const ConvolutionCase& c) {
  constexpr Values kOnes{1, 1, 1};
  return c.sizes.groups == 1 && c.sizes.kernel == kOnes && c.sizes.stride == kOnes &&
         c.sizes.small == c.sizes.large && c.sizes.padding == Values{};
}

// Whether a transposed convolution pads its output by less than a stride. ATen computes others by
// itself, and rounds more than once.
bool has_common_output_padding(const ConvolutionGeometry& geometry) {
  for (uint64_t d = 0; geometry.transposed && d < geometry.spatial; ++d) {
    if (geometry.output_padding[d] >= geometry.stride[d]) return false;
  }
  return true;
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

// Whether lines are long enough for vectors, and a block of windows is small.
bool has_windows(const ConvolutionCase& c) {
  constexpr int64_t kLeastWidth = 8;
  const int64_t width =
      c.sum == Sum::kLarge ? c.sizes.large[2] / c.sizes.stride[2] : c.sizes.small[2];
  return c.dtype != ACL_DOUBLE && c.geometry.is_symmetric() && !c.channels_last &&
         (width >= kLeastWidth || c.sum == Sum::kWeight) &&
         WindowProducts::fit(c.sizes, WindowProducts::pass_of(c.sum));
}

// Few channels, such as an image's colours: oneDNN takes 2 to 5 times as long for the small image,
// and for the large one where several elements of the kernel meet each of its positions.
// gradWeight, which has the channels side by side, is not for windows then.
bool has_few_channels(const ConvolutionCase& c) {
  const bool meets = c.sum == Sum::kSmall ||
                     (c.sum == Sum::kLarge && volume(c.sizes.kernel) > volume(c.sizes.stride));
  return meets && c.sizes.groups == 1 && c.sizes.large_channels < 16 &&
         c.sizes.small_channels >= 16 && has_windows(c);
}

// Whether oneDNN multiplies BFLOAT16 in units of its own, with sums in FLOAT that are rounded once.
// ATen leaves convolutions of several images to it, and rounds more than once in some of a single
// one. Pieces of gradWeight would be rounded each.
bool is_bfloat16(const ConvolutionCase& c) {
  // Of a single column that is made with a stride, oneDNN reads memory that is not the image's.
  const bool is_strided_column = c.sizes.small[2] == 1 && c.sizes.stride[2] > 1;
  return c.dtype == ACL_BF16 && !c.deterministic && c.geometry.is_symmetric() &&
         c.sizes.batch > 1 && !is_strided_column && has_common_output_padding(c.geometry) &&
         has_avx512_bf16() && at::globalContext().userEnabledMkldnn();
}

// Whether images are large enough to pay for their conversion to channels-last.
bool is_wide(const ConvolutionCase& c) {
  return volume(c.sizes.small) > 14 * 14;
}

bool has_many_channels(const ConvolutionCase& c) {
  return c.sizes.large_channels >= 16 && c.sizes.small_channels >= 16;
}

// Many that do not fill so wide vectors.
bool has_odd_channels(const ConvolutionCase& c, int64_t width) {
  return has_many_channels(c) &&
         (c.sizes.large_channels % width != 0 || c.sizes.small_channels % width != 0);
}

bool is_strided(const ConvolutionCase& c) {
  return c.sizes.stride != Values{1, 1, 1};
}

// AMX takes channels-last as it is. Without it, that is faster for lines, for odd channels, and
// where a stride makes images larger.
bool is_wide_bfloat16(const ConvolutionCase& c) {
  const bool enlarges = c.sum == Sum::kLarge && is_strided(c);
  return is_bfloat16(c) && is_wide(c) &&
         (has_amx_bf16() || c.geometry.spatial == 1 || has_odd_channels(c, 16) || enlarges);
}

// ATen's matrix products: what our own do not take.
bool is_bfloat16_pointwise(const ConvolutionCase& c) {
  return is_bfloat16(c) && is_pointwise(c) && !MatrixProducts::take(c.dtype);
}

// Channels-last images of BFLOAT16, which oneDNN need not pack, but for gradWeight of many
// channels. Those of one channel or position lie channels-first too.
bool is_faster_unpacked(const ConvolutionCase& c) {
  const int64_t channels = std::min(c.sizes.large_channels, c.sizes.small_channels);
  return c.channels_last && c.geometry.spatial > 1 && volume(c.sizes.small) > 1 && channels > 1 &&
         is_bfloat16(c) && (channels < 64 || c.sum != Sum::kWeight);
}

bool is_packed_pointwise(const ConvolutionCase& c) {
  return is_pointwise(c) && !is_faster_unpacked(c);
}
bool is_wide_pointwise(const ConvolutionCase& c) {
  return is_packed_pointwise(c) && volume(c.sizes.small) >= 10 * 10;
}

// Whether the images are small, which oneDNN is slow with, and stay in a cache when unfolded, and
// the output does not take less time than turning the weight. Zeros around images are left to
// others: an inf or nan in the other factor could meet them.
bool is_unfolded(const ConvolutionCase& c) {
  constexpr double kMostPositions = 8 * 8;
  constexpr double kMostElements = 1 << 20;
  constexpr double kMostWeights = 1 << 18;
  const double positions = volume(c.sizes.small);
  const double products = product_count(c.sizes);
  return c.sizes.groups == 1 && !c.geometry.transposed && c.geometry.padding_before == Values{} &&
         c.geometry.padding_after == Values{} && positions <= kMostPositions &&
         products <= kMostElements * static_cast<double>(c.sizes.small_channels) &&
         (c.is_gradient ||
          products <= kMostWeights * positions * static_cast<double>(c.sizes.batch));
}

// Lines, of which oneDNN's results are large for what they cost, and channels that do not fill its
// vectors.
bool is_line_or_odd(const ConvolutionCase& c) {
  const uint64_t most = has_odd_channels(c, 8) ? 2 : 1;
  return has_many_channels(c) && c.geometry.spatial <= most && has_windows(c);
}

// gradWeights that are large for what they cost, and made from images too small for oneDNN.
bool is_large_weight(const ConvolutionCase& c) {
  constexpr double kLeastElements = 1 << 20;
  constexpr double kMostPositions = 10 * 10;
  const double elements =
      static_cast<double>(c.sizes.large_channels * c.sizes.small_channels) * volume(c.sizes.kernel);
  return c.sum == Sum::kWeight && c.geometry.spatial == 2 && c.sizes.groups == 1 &&
         elements >= kLeastElements && volume(c.sizes.small) <= kMostPositions &&
         c.sizes.large_channels >= 16 && has_windows(c);
}

// What oneDNN computes several times slower channels-first in FLOAT: transposed convolutions, and
// gradients with gaps that no product reaches. For the rest of FLOAT the two are as fast, when the
// machine is quiet.
bool is_slow_channels_first(const ConvolutionCase& c) {
  const bool has_gaps = c.sizes.kernel[2] < c.sizes.stride[2];
  return c.dtype != ACL_DOUBLE && c.geometry.is_symmetric() && c.geometry.spatial > 1 &&
         is_wide(c) && (c.is_gradient ? has_gaps : c.geometry.transposed);
}

// Large images whose gradients oneDNN computes faster channels-last, by more than the conversions
// take: gradInput with a stride; without one, Intel's processors both. gradWeight with a stride
// takes up to twice as long.
bool is_large_gradient(const ConvolutionCase& c) {
  const bool faster = is_strided(c) ? c.sum == Sum::kLarge : is_intel();
  return c.is_gradient && !c.geometry.transposed && faster && c.dtype != ACL_DOUBLE &&
         c.geometry.is_symmetric() && c.geometry.spatial == 2 && volume(c.sizes.large) > 40 * 40 &&
         has_many_channels(c);
}

// What FLOAT's windows are for, of BFLOAT16 that our products take: but for what oneDNN takes less
// time for, small images of few channels and large weights without a stride; and for weights of a
// single image, which has no pair.
bool is_bfloat16_windows(const ConvolutionCase& c) {
  return c.dtype == ACL_BF16 && MatrixProducts::take(c.dtype) &&
         !(c.sum == Sum::kWeight && c.sizes.batch == 1) &&
         ((has_few_channels(c) && c.sum == Sum::kLarge) || is_line_or_odd(c) ||
          (is_large_weight(c) && is_strided(c)));
}

bool is_any(const ConvolutionCase&) {
  return true;
}

struct Strategy {
  const char* name;
  bool (*fits)(const ConvolutionCase&);
  Route route;
  Layout layout;
  Layout layout_of_last;  // where the input is channels-last
  // Else 16-bit operands are widened to FLOAT, but for what our own matrix products take.
  bool takes_16_bits;
};

constexpr Layout kGiven = Layout::kAsGiven;
constexpr Layout kFirst = Layout::kChannelsFirst;
constexpr Layout kLast = Layout::kChannelsLast;
constexpr Layout kOutermost = Layout::kChannelsOutermost;

// The first that fits is used.
constexpr Strategy kStrategies[] = {
    {"tiny", is_tiny, Route::kDirect, kFirst, kFirst, true},
    {"channels-last depthwise", is_channels_last_depthwise, Route::kDirect, kLast, kLast, true},
    {"depthwise", is_depthwise, Route::kDirect, kFirst, kFirst, true},
    {"BFLOAT16 pointwise", is_bfloat16_pointwise, Route::kPointwise, kOutermost, kLast, true},
    {"wide pointwise", is_wide_pointwise, Route::kPointwise, kFirst, kLast, false},
    {"pointwise", is_packed_pointwise, Route::kPointwise, kOutermost, kLast, false},
    {"BFLOAT16 windows", is_bfloat16_windows, Route::kWindows, kFirst, kFirst, true},
    {"wide BFLOAT16", is_wide_bfloat16, Route::kAten, kLast, kLast, true},
    {"BFLOAT16", is_bfloat16, Route::kAten, kGiven, kGiven, true},
    {"unfolded", is_unfolded, Route::kUnfolded, kLast, kLast, false},
    {"few channels", has_few_channels, Route::kWindows, kFirst, kFirst, false},
    {"lines, odd channels", is_line_or_odd, Route::kWindows, kFirst, kFirst, false},
    {"large weight", is_large_weight, Route::kWindows, kFirst, kFirst, false},
    {"slow channels-first", is_slow_channels_first, Route::kAten, kLast, kLast, false},
    {"large gradient", is_large_gradient, Route::kAten, kLast, kLast, false},
    {"any", is_any, Route::kAten, kGiven, kGiven, false},
};

}  // namespace

bool wants_same_bits() {
  return wants_determinism() || at::globalContext().deterministicAlgorithms();
}

double product_count(const ConvolutionSizes& sizes) {
  return static_cast<double>(sizes.batch * sizes.groups) *
         static_cast<double>(sizes.large_channels * sizes.small_channels) * volume(sizes.small) *
         volume(sizes.kernel);
}

Choice choose(const ConvolutionCase& c) {
  const Strategy& chosen =
      *std::find_if(std::begin(kStrategies), std::end(kStrategies),
                    [&](const Strategy& strategy) { return strategy.fits(c); });
  const Layout layout = c.channels_last ? chosen.layout_of_last : chosen.layout;
  const bool is_16_bit = c.dtype == ACL_FLOAT16 || c.dtype == ACL_BF16;
  const bool takes =
      chosen.takes_16_bits || (chosen.route == Route::kPointwise && MatrixProducts::take(c.dtype));
  const aclDataType dtype = is_16_bit && !takes ? ACL_FLOAT : c.dtype;
  const bool own = chosen.route == Route::kDirect ||
                   (chosen.route != Route::kAten && MatrixProducts::take(dtype));
  return {chosen.route, layout, dtype, c.deterministic && !own};
}

}  // namespace aclnn_host
