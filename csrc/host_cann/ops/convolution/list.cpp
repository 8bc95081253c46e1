// The heuristics of convolution: an ordered list of algorithms, each with the problems for which it
// is fast. This is the only place that selects an algorithm. docs/convolution.md gives the
// measurements, with the same entries in the same order.
#include "host_cann/ops/convolution/list.h"

#include <algorithm>
#include <iterator>

#include <ATen/Context.h>

#include "host_cann/kernels/capability.h"
#include "host_cann/runtime/context.h"

namespace aclnn_host {
namespace {

double product(const ConvolutionSizes::Values& sizes) {
  return static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) *
         static_cast<double>(sizes[2]);
}

bool is_strided(const Problem& p) {
  return p.sizes.stride != ConvolutionSizes::Values{1, 1, 1};
}

bool has_many_channels(const Problem& p) {
  return p.sizes.src_channels >= 16 && p.sizes.dst_channels >= 16;
}

// Many channels, but not a multiple of the vector length.
bool has_odd_channels(const Problem& p, int64_t width) {
  return has_many_channels(p) &&
         (p.sizes.src_channels % width != 0 || p.sizes.dst_channels % width != 0);
}

// True if images are large enough to amortise their conversion to channels-last.
bool is_wide(const Problem& p) {
  return product(p.sizes.dst) > 14 * 14;
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

// ---- Direct loops

// True if the padded planes of the direct loops fit into the L2 cache: neither dilation nor padding
// spreads a few elements over much memory.
bool has_small_planes(const ConvolutionSizes& sizes) {
  constexpr double kMaxElements = 1 << 22;
  double plane = static_cast<double>(sizes.src_channels + sizes.dst_channels);
  for (int d = 0; d < 3; ++d) {
    plane *= static_cast<double>(sizes.dst[d]) * static_cast<double>(sizes.stride[d]) +
             static_cast<double>(sizes.kernel[d]) * static_cast<double>(sizes.dilation[d]);
  }
  return plane <= kMaxElements;
}

// An upper limit for the elements that the direct loops visit per tap: a plane of dst, enlarged by
// dilation.
double plane_count(const ConvolutionSizes& sizes) {
  double plane = 1;
  for (int d = 0; d < 3; ++d) {
    const auto reach = static_cast<double>((sizes.kernel[d] - 1) * sizes.dilation[d]);
    plane *= static_cast<double>(sizes.dst[d]) + reach / static_cast<double>(sizes.stride[d]);
  }
  return product_count(sizes) / product(sizes.dst) * plane;
}

// The direct loops process the image by rows, and a row of one element costs as much as a row of a
// whole vector.
bool is_tiny(const Problem& p) {
  constexpr double kMaxProducts = 1 << 17;
  constexpr double kMaxRows = 20 << 10;
  const double products = product_count(p.sizes);
  return products <= kMaxProducts && products <= kMaxRows * static_cast<double>(p.sizes.dst[2]) &&
         plane_count(p.sizes) <= 2 * kMaxProducts && has_small_planes(p.sizes);
}

// Every thread reorders the weights for itself, so they must fit into its cache.
bool is_channels_last_depthwise(const Problem& p) {
  constexpr double kMaxWeights = 1 << 18;
  const double weights = static_cast<double>(p.sizes.groups) * product(p.sizes.kernel);
  return p.channels_last && p.sizes.groups > 1 && weights <= kMaxWeights;
}

bool is_depthwise(const Problem& p) {
  return p.sizes.src_channels == 1 && p.sizes.groups > 1 && has_small_planes(p.sizes);
}

// ---- Matrix products of kernels of one element

// BFLOAT16 products of ATen, where the project's kernels do not support the dtype.
bool is_bfloat16_of_aten(const Problem& p) {
  return !MatrixProducts::supports(p.dtype) && AtenConvolution::supports_bfloat16(p);
}

// Excludes channels-last BFLOAT16 images, which oneDNN need not pack (except for gradWeight of many
// channels). Images of one channel or one position are also channels-first.
bool pays_packing(const Problem& p) {
  const int64_t channels = std::min(p.sizes.src_channels, p.sizes.dst_channels);
  const bool is_faster_unpacked =
      p.channels_last && p.geometry.spatial > 1 && product(p.sizes.dst) > 1 && channels > 1 &&
      AtenConvolution::supports_bfloat16(p) && (channels < 64 || p.pass != Pass::kBackwardWeight);
  return !is_faster_unpacked;
}

bool pays_packing_of_wide(const Problem& p) {
  return product(p.sizes.dst) >= 10 * 10 && pays_packing(p);
}

// ---- Kernels whose stride equals their size

// oneDNN takes 3 to 15 times as long for backward-data with few channels, such as RGB images, and
// 1.1 to 2.2 times as long for backward-weight channels-last.
bool is_patches(const Problem& p) {
  const bool is_faster =
      p.pass == Pass::kBackwardData ? p.sizes.src_channels < 16 : p.channels_last;
  return is_faster && product(p.sizes.kernel) > 1 && !is_bfloat16_of_aten(p);
}

// ---- im2col

// True if dst is small (slow in oneDNN), im2col's matrix stays in a cache, and computing the output
// takes longer than reordering the weight.
bool has_few_positions(const Problem& p) {
  constexpr double kMaxPositions = 8 * 8;
  constexpr double kMaxElements = 1 << 20;
  constexpr double kMaxWeights = 1 << 18;
  const double positions = product(p.sizes.dst);
  const double products = product_count(p.sizes);
  return positions <= kMaxPositions &&
         products <= kMaxElements * static_cast<double>(p.sizes.dst_channels) &&
         (p.is_gradient ||
          products <= kMaxWeights * positions * static_cast<double>(p.sizes.batch));
}

// ---- Implicit GEMM

// True if the rows of the result are long enough for vectors.
bool has_long_rows(const Problem& p) {
  constexpr int64_t kMinWidth = 8;
  const int64_t width =
      p.pass == Pass::kBackwardData ? p.sizes.src[2] / p.sizes.stride[2] : p.sizes.dst[2];
  return !p.channels_last && (width >= kMinWidth || p.pass == Pass::kBackwardWeight);
}

// Few channels, such as RGB images: oneDNN takes 2 to 5 times as long for the forward pass, and for
// backward-data if several kernel elements contribute to each position. Backward-weight is
// excluded, because its innermost dimension is the channels.
bool has_few_channels(const Problem& p) {
  const bool meets =
      p.pass == Pass::kForward ||
      (p.pass == Pass::kBackwardData && product(p.sizes.kernel) > product(p.sizes.stride));
  return meets && p.sizes.groups == 1 && p.sizes.src_channels < 16 && p.sizes.dst_channels >= 16 &&
         has_long_rows(p);
}

// 1-D, where oneDNN's results are large relative to the work, and channel counts that are not a
// multiple of its vector length.
bool is_1d_or_odd(const Problem& p) {
  const uint64_t max_spatial = has_odd_channels(p, 8) ? 2 : 1;
  return has_many_channels(p) && p.geometry.spatial <= max_spatial && has_long_rows(p);
}

// Large gradWeights that take little work, from images too small for oneDNN.
bool is_large_weight(const Problem& p) {
  constexpr double kMinElements = 1 << 20;
  constexpr double kMaxPositions = 10 * 10;
  const double elements =
      static_cast<double>(p.sizes.src_channels * p.sizes.dst_channels) * product(p.sizes.kernel);
  return p.pass == Pass::kBackwardWeight && p.geometry.spatial == 2 && p.sizes.groups == 1 &&
         elements >= kMinElements && product(p.sizes.dst) <= kMaxPositions &&
         p.sizes.src_channels >= 16 && has_long_rows(p);
}

// BFLOAT16 problems that the project's kernels support and that match the FLOAT entries below.
// Excluded are problems that oneDNN computes faster (the forward pass with few channels, and large
// weights without a stride) and gradWeight of a single image, which has no second image to be
// packed with.
bool is_bfloat16_of_ours(const Problem& p) {
  return p.dtype == ACL_BF16 && MatrixProducts::supports(p.dtype) &&
         !(p.pass == Pass::kBackwardWeight && p.sizes.batch == 1) &&
         ((has_few_channels(p) && p.pass == Pass::kBackwardData) || is_1d_or_odd(p) ||
          (is_large_weight(p) && is_strided(p)));
}

// ---- ATen's convolution

bool is_bfloat16(const Problem& p) {
  return AtenConvolution::supports_bfloat16(p);
}

// AMX takes channels-last directly. Without AMX, channels-last is faster in 1-D, for odd channel
// counts, and where a stride enlarges images.
bool is_wide_bfloat16(const Problem& p) {
  const bool enlarges = p.pass == Pass::kBackwardData && is_strided(p);
  return AtenConvolution::supports_bfloat16(p) && is_wide(p) &&
         (has_amx_bf16() || p.geometry.spatial == 1 || has_odd_channels(p, 16) || enlarges);
}

// FLOAT problems that oneDNN computes several times slower in channels-first: transposed
// convolutions, and gradients with positions that no product contributes to. Other FLOAT problems
// take the same time in both layouts, on an idle machine.
bool is_slow_channels_first(const Problem& p) {
  const bool has_gaps = p.sizes.kernel[2] < p.sizes.stride[2];
  return p.dtype != ACL_DOUBLE && p.geometry.is_symmetric() && p.geometry.spatial > 1 &&
         is_wide(p) && (p.is_gradient ? has_gaps : p.geometry.transposed);
}

// Large images whose gradients oneDNN computes faster in channels-last, including the conversions:
// backward-data with a stride and, on Intel processors, both gradients without one. Backward-weight
// with a stride takes up to twice as long.
bool is_large_gradient(const Problem& p) {
  const bool faster = is_strided(p) ? p.pass == Pass::kBackwardData : is_intel();
  return p.is_gradient && !p.geometry.transposed && faster && p.dtype != ACL_DOUBLE &&
         p.geometry.is_symmetric() && p.geometry.spatial == 2 && product(p.sizes.src) > 40 * 40 &&
         has_many_channels(p);
}

bool is_any(const Problem&) {
  return true;
}

// ---- The list

// The treatment of 16-bit operands: kept, or widened to FLOAT.
enum class Numbers { k16Bits, kFloat };

struct Entry {
  const char* name;
  bool (*pays)(const Problem& problem);
  bool (*supports)(const Problem& problem);
  Form (*form)(const Problem& problem, Layout layout, aclDataType dtype);
  Choice::Make make;
  Layout layout;
  Layout layout_of_last;  // if the input is channels-last
  Numbers numbers;
};

template <class A>
constexpr Entry entry(const char* name, bool (*pays)(const Problem&), Layout layout,
                      Layout layout_of_last, Numbers numbers) {
  const auto make = [](const Problem& problem, const Form& form, const Passes& passes,
                       Workspace& workspace) -> Algorithm {
    return A(problem, form, passes, workspace);
  };
  return {name, pays, A::supports, A::form, make, layout, layout_of_last, numbers};
}

constexpr Layout kGiven = Layout::kAsGiven;
constexpr Layout kFirst = Layout::kChannelsFirst;
constexpr Layout kLast = Layout::kChannelsLast;
constexpr Layout kOutermost = Layout::kChannelsOutermost;
constexpr Numbers k16Bits = Numbers::k16Bits;
constexpr Numbers kFloat = Numbers::kFloat;

// clang-format off
constexpr Entry kEntries[] = {
    entry<Direct>("direct: tiny", is_tiny, kFirst, kFirst, k16Bits),
    entry<DepthwiseChannelsLast>("depthwise: channels-last", is_channels_last_depthwise, kLast, kLast, k16Bits),
    entry<Direct>("direct: depthwise", is_depthwise, kFirst, kFirst, k16Bits),
    entry<Pointwise>("pointwise: BFLOAT16 by ATen", is_bfloat16_of_aten, kOutermost, kLast, k16Bits),
    entry<Pointwise>("pointwise: wide", pays_packing_of_wide, kFirst, kLast, kFloat),
    entry<Pointwise>("pointwise", pays_packing, kOutermost, kLast, kFloat),
    entry<Patches>("patches", is_patches, kOutermost, kLast, kFloat),
    entry<ImplicitGemm>("implicit GEMM: BFLOAT16", is_bfloat16_of_ours, kFirst, kFirst, k16Bits),
    entry<AtenConvolution>("ATen: wide BFLOAT16", is_wide_bfloat16, kLast, kLast, k16Bits),
    entry<AtenConvolution>("ATen: BFLOAT16", is_bfloat16, kGiven, kGiven, k16Bits),
    entry<Im2col>("im2col", has_few_positions, kLast, kLast, kFloat),
    entry<ImplicitGemm>("implicit GEMM: few channels", has_few_channels, kFirst, kFirst, kFloat),
    entry<ImplicitGemm>("implicit GEMM: 1-D, odd channels", is_1d_or_odd, kFirst, kFirst, kFloat),
    entry<ImplicitGemm>("implicit GEMM: large weight", is_large_weight, kFirst, kFirst, kFloat),
    entry<AtenConvolution>("ATen: slow channels-first", is_slow_channels_first, kLast, kLast, kFloat),
    entry<AtenConvolution>("ATen: large gradient", is_large_gradient, kLast, kLast, kFloat),
    entry<AtenConvolution>("ATen: any", is_any, kGiven, kGiven, kFloat),
};
// clang-format on

}  // namespace

bool wants_same_bits() {
  return wants_determinism() || at::globalContext().deterministicAlgorithms();
}

Choice choose(const Problem& problem) {
  const Entry& entry =
      *std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& candidate) {
        return candidate.pays(problem) && candidate.supports(problem);
      });
  const aclDataType dtype =
      entry.numbers == Numbers::kFloat ? sum_type(problem.dtype) : problem.dtype;
  const Layout layout = problem.channels_last ? entry.layout_of_last : entry.layout;
  return {entry.name, entry.make, entry.form(problem, layout, dtype)};
}

}  // namespace aclnn_host
