#include "host_cann/ops/convolution/requirements.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "host_cann/arguments/compute_type.h"

namespace aclnn_host {
namespace {

constexpr DtypeRule kTypes[] = {{ACL_FLOAT, Product::kAscend310P},
                                {ACL_FLOAT16, Product::kAscend310P},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr int64_t kMaxGroups = 65535;

Wide reach_of(int64_t kernel, int64_t dilation) {
  return Wide{dilation} * (Wide{kernel} - 1) + 1;
}

Wide padded_size(const ConvolutionGeometry& geometry, const Dims& shape, uint64_t d) {
  return Wide{shape[d + 2]} + geometry.padding_before[d] + geometry.padding_after[d];
}

// The output size of a convolution over dimension d. The kernel of an empty input is not checked;
// CANN truncates the quotient there, like C++.
Wide output_size(const ConvolutionGeometry& geometry, const Dims& input, const Dims& weight,
                 uint64_t d) {
  const Wide reach = reach_of(weight[d + 2], geometry.dilation[d]);
  if (geometry.transposed) {
    return (Wide{input[d + 2]} - 1) * geometry.stride[d] - geometry.padding_before[d] -
           geometry.padding_after[d] + reach + geometry.output_padding[d];
  }
  return (padded_size(geometry, input, d) - reach) / geometry.stride[d] + 1;
}

}  // namespace

std::string text_of(const aclIntArray& array) {
  return shape_text(Dims(array.values.get(), array.size));
}

// ---- One argument -------------------------------------------------------------------------------

void require_dtype(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  switch (const aclDataType dtype = argument.tensor->view.dtype) {
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E5M2:
      checks.require(false,
                     "%s has dtype %s, which the host CANN does not emulate for convolutions; "
                     "expected FLOAT, FLOAT16 or BFLOAT16, cast the tensor",
                     argument.name, dtype_name(dtype));
      break;
    default: checks.dtype_in(argument, kTypes);
  }
}

void require_rank(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims& shape = argument.tensor->view.shape;
  if (shape.size() < 3 || shape.size() > 5) {
    checks.require(false,
                   "%s has shape %s, expected 3, 4 or 5 dimensions: batch, channels, and 1 to 3 "
                   "spatial ones; reshape it",
                   argument.name, shape_text(shape).c_str());
  }
}

void require_same_rank(Checks& checks, Argument argument, Argument input) {
  if (!checks.ok()) return;
  const Dims& shape = argument.tensor->view.shape;
  const Dims& other = input.tensor->view.shape;
  if (shape.size() != other.size()) {
    checks.require(false,
                   "%s has shape %s, expected as many dimensions as %s "
                   "(shape %s)",
                   argument.name, shape_text(shape).c_str(), input.name, shape_text(other).c_str());
  }
}

// Requires ND at every rank, or the format of the rank, which has been checked.
void require_format(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const TensorView& view = argument.tensor->view;
  const uint64_t rank = view.shape.size();
  constexpr std::pair<aclFormat, const char*> kFormats[] = {
      {ACL_FORMAT_NCL, "NCL"}, {ACL_FORMAT_NCHW, "NCHW"}, {ACL_FORMAT_NCDHW, "NCDHW"}};
  const auto& [format, name] = kFormats[rank - 3];
  checks.require(view.format == ACL_FORMAT_ND || view.format == format,
                 "%s has format %d and %llu dimensions, expected ND (%d) or %s (%d)", argument.name,
                 static_cast<int>(view.format), static_cast<unsigned long long>(rank),
                 static_cast<int>(ACL_FORMAT_ND), name, static_cast<int>(format));
}

void require_at_least(Checks& checks, NamedArray array, int64_t least) {
  if (!checks.ok()) return;
  const int64_t* const begin = array.values->values.get();
  const bool good =
      std::all_of(begin, begin + array.values->size, [&](int64_t value) { return value >= least; });
  if (!good) {
    checks.require(false, "%s is %s, expected values >= %lld", array.name,
                   text_of(*array.values).c_str(), static_cast<long long>(least));
  }
}

// Requires one value for all spatial dimensions or one for each; padding may have two for each.
void require_length(Checks& checks, NamedArray array, uint64_t spatial, bool doubled) {
  if (!checks.ok()) return;
  const uint64_t size = array.values->size;
  if (size == 1 || size == spatial || (doubled && size == 2 * spatial)) return;
  const std::string more =
      doubled ? ", or " + std::to_string(2 * spatial) + " (before and after each)" : "";
  checks.require(false, "%s has %llu values, expected 1 or %llu (one per spatial dimension)%s",
                 array.name, static_cast<unsigned long long>(size),
                 static_cast<unsigned long long>(spatial), more.c_str());
}

void require_lengths(Checks& checks, const ConvolutionArguments& arguments, uint64_t spatial,
                     bool doubled_padding) {
  require_length(checks, {"stride", arguments.stride}, spatial);
  require_length(checks, {"dilation", arguments.dilation}, spatial);
  require_length(checks, {"padding", arguments.padding}, spatial, doubled_padding);
}

void require_groups(Checks& checks, int64_t groups) {
  checks.require(groups >= 1, "groups is %lld, expected 1 to %lld", static_cast<long long>(groups),
                 static_cast<long long>(kMaxGroups));
}

void require_few_groups(Checks& checks, int64_t groups) {
  checks.require(groups <= kMaxGroups, "groups is %lld, expected 1 to %lld",
                 static_cast<long long>(groups), static_cast<long long>(kMaxGroups));
}

void require_cube_math_type(Checks& checks, int8_t type, CubeMathTypes types) {
  const int8_t last = last_cube_math_type(types, checks.cann_release());
  checks.require(type >= 0 && type <= last, "cubeMathType is %d, expected %s", type,
                 cube_math_types_text(last));
}

// Products without FP32 matrix units compute FLOAT in FLOAT16 or reject it.
void require_computable(Checks& checks, aclDataType promoted, int8_t type) {
  checks.require(promoted == ACL_FLOAT16 || computes_float(type, checks.product()),
                 "cubeMathType is %d with tensors of dtype %s, which this product has no matrix "
                 "units for; pass 1 or 2 to compute in FLOAT16, or FLOAT16 tensors",
                 type, dtype_name(promoted));
}

void require_3d_supported(Checks& checks, uint64_t spatial) {
  checks.require(spatial < 3 || checks.product() >= Product::kAscend910B,
                 "input has 5 dimensions, but this product has no 3-D convolution; expected 3 or "
                 "4, or select Ascend910B or a later product");
}

void require_size(Checks& checks, Argument argument, uint64_t dim, Wide expected, const char* why) {
  if (!checks.ok()) return;
  const Dims& shape = argument.tensor->view.shape;
  if (shape[dim] != expected) {
    checks.require(false, "%s has shape %s, expected %lld at dimension %llu: %s", argument.name,
                   shape_text(shape).c_str(), static_cast<long long>(expected),
                   static_cast<unsigned long long>(dim), why);
  }
}

// ---- Shapes -------------------------------------------------------------------------------------

void require_divided(Checks& checks, Argument weight, int64_t groups) {
  const Dims& kernel = weight.tensor->view.shape;
  if (checks.ok() && kernel[0] % groups != 0) {
    checks.require(false,
                   "groups is %lld and weight has shape %s, expected groups to divide its "
                   "dimension 0",
                   static_cast<long long>(groups), shape_text(kernel).c_str());
  }
}

void require_channels(Checks& checks, const ChannelSides& channels, Argument weight,
                      int64_t groups) {
  if (!checks.ok()) return;
  const Dims& kernel = weight.tensor->view.shape;
  require_size(checks, channels.first, 1, kernel[0], "the size of weight's dimension 0");
  require_size(checks, channels.second, 1, Wide{kernel[1]} * groups,
               "groups times the size of weight's dimension 1");
}

// Requires the kernel to lie within the padded input.
void require_kernel_fits(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                         Argument weight) {
  if (!checks.ok() || geometry.transposed) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    if (padded_size(geometry, shape, d) < reach_of(kernel[d + 2], geometry.dilation[d])) {
      checks.require(false,
                     "weight has shape %s and dilation %lld, which in spatial dimension %llu is "
                     "larger than input (shape %s) with its padding; expected it to fit",
                     shape_text(kernel).c_str(), static_cast<long long>(geometry.dilation[d]),
                     static_cast<unsigned long long>(d), shape_text(shape).c_str());
    }
  }
}

void require_batch(Checks& checks, Argument output, Argument input) {
  if (!checks.ok()) return;
  const int64_t batch = input.tensor->view.shape[0];
  const Dims& shape = output.tensor->view.shape;
  if (shape[0] != batch) {
    checks.require(false, "%s has shape %s, expected %lld at dimension 0: the batch size of input",
                   output.name, shape_text(shape).c_str(), static_cast<long long>(batch));
  }
}

// Checks the spatial sizes of the convolution of input with weight.
void require_output_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                          Argument weight, Argument output) {
  if (!checks.ok()) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const Wide expected = output_size(geometry, shape, kernel, d);
    if (geometry.transposed) {
      checks.require(
          expected >= 0,
          "output would have a size < 0 in spatial dimension %llu; expected less padding",
          static_cast<unsigned long long>(d));
    }
    require_size(checks, output, d + 2, expected,
                 geometry.transposed
                     ? "(input - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1"
                     : "floor((input + 2 padding - dilation (kernel - 1) - 1) / stride) + 1");
  }
}

void require_transposed_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                              Argument weight, Argument grad_output) {
  if (!checks.ok()) return;
  const Dims& shape = grad_output.tensor->view.shape;
  ConvolutionGeometry bare = geometry;
  bare.output_padding = {};
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const Wide least = output_size(bare, input.tensor->view.shape, weight.tensor->view.shape, d);
    const Wide more = shape[d + 2] - least;
    const bool is_given =
        geometry.spatial < 3 && more == geometry.output_padding[d] && more < geometry.dilation[d];
    if (more >= 0 && (more < geometry.stride[d] || is_given)) continue;
    checks.require(false,
                   "%s has shape %s, expected %lld to %lld at dimension %llu: (input - 1) stride - "
                   "2 padding + dilation (kernel - 1) + 1, and up to stride - 1 more",
                   grad_output.name, shape_text(shape).c_str(), static_cast<long long>(least),
                   static_cast<long long>(least + geometry.stride[d] - 1),
                   static_cast<unsigned long long>(d + 2));
  }
}

// Limits of the host CANN, which must never access memory outside its buffers: oneDNN counts
// positions in 32 bits, and asymmetric padding is allocated.
void require_countable(Checks& checks, const ConvolutionGeometry& geometry, Argument src) {
  if (!checks.ok()) return;
  constexpr Wide kMax = std::numeric_limits<int32_t>::max();
  Dims padded = src.tensor->view.shape;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const Wide size = padded_size(geometry, src.tensor->view.shape, d);
    checks.require(size <= kMax && geometry.stride[d] <= kMax && geometry.dilation[d] <= kMax,
                   "stride, dilation, or padding with the size of %s exceeds 2^31 - 1 in spatial "
                   "dimension %llu",
                   src.name, static_cast<unsigned long long>(d));
    if (!checks.ok()) return;
    // An empty image with negative padding stays empty.
    padded.begin()[d + 2] = static_cast<int64_t>(std::max(size, Wide{0}));
  }
  const auto count = element_count(padded);
  checks.require(count && *count < INT64_MAX / 16, "%s with its padding has too many elements",
                 src.name);
}

// Requires an outputPadding that a convolution with this stride or dilation can produce.
void require_output_padding(Checks& checks, const ConvolutionGeometry& geometry) {
  if (!checks.ok() || !geometry.transposed) return;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const int64_t value = geometry.output_padding[d];
    checks.require(value < geometry.stride[d] || value < geometry.dilation[d],
                   "outputPadding is %lld in spatial dimension %llu, expected less than the "
                   "stride (%lld) or the dilation (%lld)",
                   static_cast<long long>(value), static_cast<unsigned long long>(d),
                   static_cast<long long>(geometry.stride[d]),
                   static_cast<long long>(geometry.dilation[d]));
  }
}

}  // namespace aclnn_host
