#include "host_cann/ops/convolution/limits.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "host_cann/ops/convolution/requirements.h"

namespace aclnn_host {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kL1Bytes = 512 << 10;
constexpr int64_t kUnit = 16;  // rows and columns of one matrix multiplication of the unit

// Upper limits in one spatial dimension.
struct AxisLimits {
  int64_t stride;
  int64_t dilation;
  int64_t padding;
  int64_t kernel;
  int64_t size;  // of the images
};

bool is_a2(Product product) {
  return product == Product::kAscend910B || product == Product::kAscend910_93;
}

const Dims& large_of(const InnerConvolution& call) {
  return call.large.tensor->view.shape;
}

const Dims& small_of(const InnerConvolution& call) {
  return call.small.tensor->view.shape;
}

bool is_depth(const InnerConvolution& call, uint64_t d) {
  return call.geometry.spatial == 3 && d == 0;
}

// Elements in one 32-byte row of a matrix unit's operand.
int64_t row_elements(const InnerConvolution& call) {
  return call.dtype == ACL_FLOAT ? 8 : 16;
}
constexpr int64_t kRowBytes = 32;

int64_t element_bytes(const InnerConvolution& call) {
  return kRowBytes / row_elements(call);
}

Wide reach(const InnerConvolution& call, uint64_t d) {
  return Wide{call.weight[d + 2] - 1} * call.geometry.dilation[d];
}

Wide volume(const Dims& shape) {
  Wide elements = 1;
  for (uint64_t d = 2; d < shape.size(); ++d) elements *= shape[d];
  return elements;
}

// Fails for values above a limit.
class Limits {
 public:
  Limits(Checks& checks, const InnerConvolution& call) : checks_(checks), call_(call) {}

  void at_most(const char* name, const char* what, Wide value, Wide most) {
    fails_above(name, what, "", value, most);
  }

  void axis(uint64_t d, const AxisLimits& most) {
    const ConvolutionGeometry& geometry = call_.geometry;
    on_axis("stride", "", d, geometry.stride[d], most.stride);
    on_axis("dilation", "", d, geometry.dilation[d], most.dilation);
    on_axis("padding", "", d, std::max(geometry.padding_before[d], geometry.padding_after[d]),
            most.padding);
    on_axis("weight", "'s size", d, call_.weight[d + 2], most.kernel);
    on_axis(call_.large.name, "'s size", d, large_of(call_)[d + 2], most.size);
    on_axis(call_.small.name, "'s size", d, small_of(call_)[d + 2], most.size);
  }

  void on_axis(const char* name, const char* what, uint64_t d, Wide value, Wide most) {
    constexpr const char* kPlaces[] = {" in L", " in D", " in H", " in W"};
    const uint64_t spatial = call_.geometry.spatial;
    fails_above(name, what, kPlaces[spatial == 1 ? 0 : 4 - spatial + d], value, most);
  }

  // Checks the batch and the channel counts.
  void channels(int64_t most) {
    at_most(call_.large.name, "'s batch size", large_of(call_)[0], most);
    at_most(call_.large.name, "'s number of channels", large_of(call_)[1], most);
    at_most(call_.small.name, "'s number of channels", small_of(call_)[1], most);
  }

  void elements(Argument image, Wide most, Wide bytes = 1) {
    at_most(image.name, bytes == 1 ? "'s elements of a channel" : "'s bytes of a channel",
            volume(image.tensor->view.shape) * bytes, most);
  }

  // Fails if a core's memory is too small.
  void fits(Wide bytes) {
    at_most(call_.large.name, "'s bytes that a core must hold at once", bytes, kL1Bytes);
  }

 private:
  void fails_above(const char* name, const char* what, const char* place, Wide value, Wide most) {
    checks_.require(value <= most,
                    "%s%s%s is %lld, expected at most %lld, which is what this product's "
                    "operators take; or select the product host, which has no such limit",
                    name, what, place, static_cast<long long>(std::min<Wide>(value, kNone)),
                    static_cast<long long>(std::min<Wide>(most, kNone)));
  }

  Checks& checks_;
  const InnerConvolution& call_;
};

bool has_no_padding(const ConvolutionGeometry& geometry) {
  const ConvolutionGeometry::Values none{};
  return geometry.padding_before == none && geometry.padding_after == none;
}

template <class Condition>
bool all_dimensions(const InnerConvolution& call, const Condition& condition) {
  for (uint64_t d = 0; d < call.geometry.spatial; ++d) {
    if (!condition(d)) return false;
  }
  return true;
}

// True if CANN computes it as a matrix product if its padding is zero.
bool may_be_product(const InnerConvolution& call) {
  const ConvolutionGeometry& geometry = call.geometry;
  return geometry.groups == 1 && has_no_padding(geometry) &&
         all_dimensions(call, [&](uint64_t d) { return geometry.dilation[d] == 1; });
}

bool is_product(const InnerConvolution& call) {
  return call.geometry.spatial > 1 && may_be_product(call) && all_dimensions(call, [&](uint64_t d) {
           return call.weight[d + 2] == large_of(call)[d + 2];
         });
}

bool is_product_in_gradient(const InnerConvolution& call) {
  if (!may_be_product(call)) return false;
  const auto moves_by_itself = [&](uint64_t d) {
    return call.weight[d + 2] == call.geometry.stride[d] &&
           Wide{small_of(call)[d + 2]} * call.weight[d + 2] == large_of(call)[d + 2];
  };
  const auto is_met_once = [&](uint64_t d) {
    return call.weight[d + 2] == large_of(call)[d + 2] && small_of(call)[d + 2] == 1;
  };
  return all_dimensions(call, moves_by_itself) || all_dimensions(call, is_met_once);
}

bool is_pointwise(const InnerConvolution& call) {
  constexpr Wide kMaxElements = 65536;
  return may_be_product(call) && volume(call.weight) == 1 &&
         volume(large_of(call)) < kMaxElements &&
         all_dimensions(call, [&](uint64_t d) { return call.geometry.stride[d] == 1; });
}

// The minimum that a core loads: image rows for 16 output positions or, without groups, only the
// part of each row that they read.
void require_loadable(Limits& limits, const InnerConvolution& call) {
  const ConvolutionGeometry& geometry = call.geometry;
  const Wide height = large_of(call)[3];
  const Wide width = large_of(call)[4];
  const Wide rows = (kUnit / small_of(call)[4] + 1) * Wide{geometry.stride[1]} + reach(call, 1) + 1;
  const int64_t bias = call.has_bias ? kUnit * element_bytes(call) : 0;
  const Wide whole_rows = std::min(rows, height) * width * kRowBytes + bias;
  if (whole_rows <= kL1Bytes || geometry.groups > 1 || is_pointwise(call)) {
    return limits.fits(whole_rows);
  }
  const Wide columns = (kUnit - 1) * Wide{geometry.stride[2]} + reach(call, 2) + 1;
  limits.fits(std::min(reach(call, 1) + 1, height) * std::min(columns, width) * kRowBytes + bias);
}

// The limits of the 3-D operator, which Ascend950 also uses for lines and planes.
void require_volumes(Checks& checks, const InnerConvolution& call) {
  const bool counts_in_millions = checks.product() == Product::kAscend950;
  const int64_t size = counts_in_millions ? kMillion : kNone;
  Limits limits(checks, call);
  const uint64_t spatial = call.geometry.spatial;
  for (uint64_t d = 0; d < spatial; ++d) {
    limits.axis(d, is_depth(call, d) ? AxisLimits{size, size, size, size, size}
                                     : AxisLimits{63, 255, 255, 511, size});
  }
  const Dims& weight = call.weight;
  const Wide taps = Wide{weight[spatial + 1]} * (spatial > 1 ? weight[spatial] : 1);
  limits.at_most("weight", "'s elements in H and W", taps, 65535 / row_elements(call));
  if (!counts_in_millions) return require_loadable(limits, call);
  limits.channels(kMillion);
  limits.elements(call.large, (Wide{1} << 40) - 1, element_bytes(call));
  limits.elements(call.small, std::numeric_limits<uint32_t>::max());
}

// The limits of Ascend950's operator for lines and planes.
void require_planes(Checks& checks, const InnerConvolution& call) {
  Limits limits(checks, call);
  for (uint64_t d = 0; d < call.geometry.spatial; ++d) {
    limits.axis(d, {kMillion, kMillion, kMillion, kMillion, kMillion});
  }
  limits.channels(kMillion);
  limits.elements(call.small, std::numeric_limits<uint32_t>::max());
}

// The minimum that a core loads: the small image, spread by its strides, and the weight.
void require_spread_loadable(Limits& limits, const InnerConvolution& call) {
  const Wide width = large_of(call)[4];
  const Wide spread = Wide{small_of(call)[4]} * call.geometry.stride[2];
  Wide rows = reach(call, 1) + 2;
  if (width <= kUnit) {
    const Wide whole = Wide{kUnit} / width;
    rows = reach(call, 1) + whole + (kUnit % width == 0 ? 0 : 2);
  }
  rows = std::min(rows, Wide{small_of(call)[3]} * call.geometry.stride[1]);
  constexpr Wide kTile = Wide{kUnit} * kUnit * 2;
  limits.fits(rows * spread * kRowBytes + Wide{call.weight[3]} * call.weight[4] * kTile + kTile);
}

}  // namespace

bool has_published_gradients(Product product, uint64_t spatial) {
  return product == Product::kAscend950 || (is_a2(product) && spatial == 3);
}

void require_convolvable(Checks& checks, const InnerConvolution& call) {
  if (!checks.ok() || is_product(call)) return;
  if (call.geometry.spatial == 3) {
    if (is_a2(checks.product()) || checks.product() == Product::kAscend950) {
      require_volumes(checks, call);
    }
  } else if (checks.product() == Product::kAscend950) {
    require_planes(checks, call);
  }
}

void require_transposed_data_gradient(Checks& checks, const InnerConvolution& call) {
  if (!checks.ok() || !has_published_gradients(checks.product(), call.geometry.spatial)) return;
  require_volumes(checks, call);
}

void require_data_gradient(Checks& checks, const InnerConvolution& call) {
  const ConvolutionGeometry& geometry = call.geometry;
  if (!checks.ok() || geometry.spatial != 3 || !is_a2(checks.product())) return;
  if (!geometry.transposed && is_product_in_gradient(call)) return;
  Limits limits(checks, call);
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    // A single tap has no dilation.
    const int64_t dilation = call.weight[d + 2] == 1 ? kNone : 255;
    limits.axis(d, is_depth(call, d) ? AxisLimits{255, dilation, 255, kNone, kNone}
                                     : AxisLimits{63, dilation, 255, 511, kNone});
  }
  // Other 16-bit calls may reach an operator that is not published.
  const bool is_dilated =
      !all_dimensions(call, [&](uint64_t d) { return geometry.dilation[d] == 1; });
  if (call.dtype != ACL_FLOAT && geometry.groups == 1 && !is_dilated) return;
  for (uint64_t d = 1; d < geometry.spatial; ++d) {
    const Wide before = geometry.padding_before[d];
    const Wide spread = Wide{small_of(call)[d + 2]} * geometry.stride[d];
    limits.on_axis("dilation", " times (weight's size - 1) less padding", d,
                   reach(call, d) - before, 255);
    limits.on_axis(call.large.name, "'s size and padding less stride times the other image's size",
                   d, Wide{large_of(call)[d + 2]} - spread + before, 255);
  }
  limits.at_most(call.large.name, "'s width, or stride times the other image's,",
                 std::max(Wide{large_of(call)[4]}, Wide{small_of(call)[4]} * geometry.stride[2]),
                 4096);
  if (call.dtype != ACL_FLOAT) require_spread_loadable(limits, call);
}

void require_weight_gradient(Checks& checks, const InnerConvolution& call) {
  if (!checks.ok() || call.geometry.spatial != 3 || !is_a2(checks.product())) return;
  if (!call.geometry.transposed && is_product_in_gradient(call)) return;
  Limits limits(checks, call);
  for (uint64_t d = 1; d < call.geometry.spatial; ++d) {
    limits.axis(d, {kNone, 255, 255, kNone, kNone});
  }
}

}  // namespace aclnn_host
