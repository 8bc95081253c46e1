#include "fuzz/functions.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "elementwise_functions.h"

namespace fuzz {
namespace {

// ---- Prototypes

template <class T>
constexpr Kind kind_of() {
  using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
  if constexpr (std::is_same_v<Pointee, aclTensor>) return Kind::kTensor;
  if constexpr (std::is_same_v<Pointee, aclScalar>) return Kind::kScalar;
  if constexpr (std::is_same_v<Pointee, aclIntArray>) return Kind::kInts;
  if constexpr (std::is_same_v<Pointee, aclBoolArray>) return Kind::kBools;
  if constexpr (std::is_same_v<T, char*>) return Kind::kText;
  if constexpr (std::is_same_v<T, bool>) return Kind::kBool;
  if constexpr (std::is_same_v<T, int8_t>) return Kind::kInt8;
  if constexpr (std::is_same_v<T, int32_t>) return Kind::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return Kind::kInt64;
  if constexpr (std::is_floating_point_v<T>) return Kind::kReal;
}

template <class T>
T value_of(const Given& given) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(given.object);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(given.argument->real);
  } else {
    return static_cast<T>(given.argument->integer);
  }
}

template <auto kStage1>
struct Prototype;

// The parameters before workspaceSize and executor.
template <class... P, aclnnStatus (*kStage1)(P...)>
struct Prototype<kStage1> {
  using All = std::tuple<P...>;
  using Own = std::make_index_sequence<sizeof...(P) - 2>;

  template <size_t... I>
  static std::vector<Kind> kinds(std::index_sequence<I...>) {
    return {kind_of<std::tuple_element_t<I, All>>()...};
  }
  template <size_t... I>
  static aclnnStatus call(const std::vector<Given>& given, uint64_t* size, aclOpExecutor** executor,
                          std::index_sequence<I...>) {
    return kStage1(value_of<std::tuple_element_t<I, All>>(given[I])..., size, executor);
  }
};

template <auto kStage1, auto kStage2>
Function function(const char* name, std::vector<size_t> outputs, Fit fit) {
  using P = Prototype<kStage1>;
  return {name,
          P::kinds(typename P::Own()),
          std::move(outputs),
          fit,
          [](const std::vector<Given>& given, uint64_t* size, aclOpExecutor** executor) {
            return P::call(given, size, executor, typename P::Own());
          },
          kStage2};
}

// ---- Arguments that follow from others

using Arguments = std::vector<Argument>;
using Shape = std::vector<int64_t>;

const Shape& shape_of(const Arguments& arguments, size_t i) {
  return arguments[i].tensor.shape;
}

void fit_shape(Arguments& arguments, const Fitting& fitting, size_t i, Shape shape) {
  if (fitting.shape[i]) arguments[i].tensor.shape = std::move(shape);
}

void fit_dtype(Arguments& arguments, const Fitting& fitting, size_t i, aclDataType dtype) {
  if (fitting.dtype[i]) arguments[i].tensor.dtype = dtype;
}

// Gives all tensors the shape and the dtype of the first.
void fit_elementwise(Arguments& arguments, const Fitting& fitting) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].kind != Kind::kTensor) continue;
    fit_shape(arguments, fitting, i, shape_of(arguments, 0));
    fit_dtype(arguments, fitting, i, arguments[0].tensor.dtype);
  }
}

aclDataType wide(aclDataType dtype) {
  return dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

// The number of dimensions of x that gamma has: the number in its own bytes, if possible.
size_t inner_rank(const Arguments& arguments, size_t x, size_t gamma) {
  const size_t rank = shape_of(arguments, x).size();
  return std::min(std::max<size_t>(shape_of(arguments, gamma).size(), 1), rank);
}

void fit_rms_norm(Arguments& arguments, const Fitting& fitting) {
  enum { kX, kGamma, kEpsilon, kY, kRstd };
  const Shape x = shape_of(arguments, kX);
  const size_t outer = x.size() - inner_rank(arguments, kX, kGamma);
  Shape rstd = x;
  std::fill(rstd.begin() + outer, rstd.end(), 1);
  fit_shape(arguments, fitting, kGamma, Shape(x.begin() + outer, x.end()));
  fit_shape(arguments, fitting, kY, x);
  fit_shape(arguments, fitting, kRstd, rstd);
  const aclDataType dtype = arguments[kX].tensor.dtype;
  for (const size_t i : {kGamma, kY}) fit_dtype(arguments, fitting, i, dtype);
  fit_dtype(arguments, fitting, kRstd, wide(dtype));
}

void fit_rms_norm_grad(Arguments& arguments, const Fitting& fitting) {
  enum { kDy, kX, kRstd, kGamma, kDx, kDgamma };
  const Shape x = shape_of(arguments, kDy);
  const size_t outer = x.size() - inner_rank(arguments, kDy, kGamma);
  for (const size_t i : {kX, kDx}) fit_shape(arguments, fitting, i, x);
  fit_shape(arguments, fitting, kRstd, Shape(x.begin(), x.begin() + outer));
  for (const size_t i : {kGamma, kDgamma}) {
    fit_shape(arguments, fitting, i, Shape(x.begin() + outer, x.end()));
  }
  const aclDataType dtype = arguments[kDy].tensor.dtype;
  for (const size_t i : {kX, kGamma, kDx}) fit_dtype(arguments, fitting, i, dtype);
  for (const size_t i : {kRstd, kDgamma}) fit_dtype(arguments, fitting, i, wide(dtype));
}

// Sets normalizedShape to the last sizes of x, with the length in its own bytes, if possible.
// Returns the dimensions of x before them.
size_t fit_normalized(Arguments& arguments, const Fitting& fitting, size_t x, size_t normalized) {
  const Shape& shape = shape_of(arguments, x);
  Shape& inner = arguments[normalized].integers;
  if (fitting.shape[normalized]) {
    const size_t most = std::max<size_t>(shape.size(), 1);
    const size_t length = 1 + static_cast<size_t>(inner.empty() ? 0 : inner[0] & 7) % most;
    inner.assign(shape.end() - std::min(length, shape.size()), shape.end());
  }
  return shape.size() - std::min(inner.size(), shape.size());
}

void fit_layer_norm(Arguments& arguments, const Fitting& fitting) {
  enum { kInput, kNormalized, kWeight, kBias, kEps, kOut, kMean, kRstd };
  const size_t outer = fit_normalized(arguments, fitting, kInput, kNormalized);
  const Shape x = shape_of(arguments, kInput);
  Shape row = x;
  std::fill(row.begin() + static_cast<int64_t>(outer), row.end(), 1);
  for (const size_t i : {kWeight, kBias}) {
    fit_shape(arguments, fitting, i, arguments[kNormalized].integers);
  }
  fit_shape(arguments, fitting, kOut, x);
  for (const size_t i : {kMean, kRstd}) fit_shape(arguments, fitting, i, row);
  const aclDataType dtype = arguments[kInput].tensor.dtype;
  for (const size_t i : {kWeight, kBias, kOut}) fit_dtype(arguments, fitting, i, dtype);
  for (const size_t i : {kMean, kRstd}) fit_dtype(arguments, fitting, i, wide(dtype));
}

void fit_layer_norm_backward(Arguments& arguments, const Fitting& fitting) {
  enum { kGradOut, kInput, kNormalized, kMean, kRstd, kWeight, kBias, kMask };
  enum { kGradInput = kMask + 1, kGradWeight, kGradBias };
  const size_t outer = fit_normalized(arguments, fitting, kGradOut, kNormalized);
  const Shape x = shape_of(arguments, kGradOut);
  Shape row = x;
  std::fill(row.begin() + static_cast<int64_t>(outer), row.end(), 1);
  if (fitting.shape[kMask]) arguments[kMask].integers.resize(3);
  for (const size_t i : {size_t{kInput}, size_t{kGradInput}}) {
    fit_shape(arguments, fitting, i, x);
  }
  for (const size_t i : {kMean, kRstd}) fit_shape(arguments, fitting, i, row);
  for (const size_t i : {size_t{kWeight}, size_t{kBias}, size_t{kGradWeight}, size_t{kGradBias}}) {
    fit_shape(arguments, fitting, i, arguments[kNormalized].integers);
  }
  const aclDataType dtype = arguments[kGradOut].tensor.dtype;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].kind != Kind::kTensor) continue;
    fit_dtype(arguments, fitting, i, i == kMean || i == kRstd ? wide(dtype) : dtype);
  }
}

bool is_none(const Argument& reduction) {
  return !reduction.null && reduction.text == "none";
}

// Rows and classes: the first two sizes in the bytes of the tensor at `i`.
std::pair<int64_t, int64_t> rows_and_classes(Arguments& arguments, const Fitting& fitting,
                                             size_t i) {
  Shape& shape = arguments[i].tensor.shape;
  if (fitting.shape[i]) shape.resize(2, 1);
  return {shape.empty() ? 1 : shape[0], shape.size() < 2 ? 1 : shape[1]};
}

void fit_cross_entropy_loss(Arguments& arguments, const Fitting& fitting) {
  enum { kInput, kTarget, kWeight, kReduction, kIgnore, kSmoothing, kScale, kReturn };
  enum { kLoss = kReturn + 1, kLogProb, kZloss, kLse };
  const auto [rows, classes] = rows_and_classes(arguments, fitting, kInput);
  const Shape per_row = {is_none(arguments[kReduction]) ? rows : 1};
  fit_shape(arguments, fitting, kTarget, {rows});
  fit_shape(arguments, fitting, kWeight, {classes});
  fit_shape(arguments, fitting, kLoss, per_row);
  fit_shape(arguments, fitting, kLogProb, shape_of(arguments, kInput));
  fit_shape(arguments, fitting, kZloss, arguments[kReturn].integer ? per_row : Shape{0});
  fit_shape(arguments, fitting, kLse, {arguments[kScale].real != 0 ? rows : 0});
  const aclDataType dtype = arguments[kInput].tensor.dtype;
  for (const size_t i : {kLoss, kLogProb, kZloss, kLse}) fit_dtype(arguments, fitting, i, dtype);
  fit_dtype(arguments, fitting, kTarget, ACL_INT64);
  fit_dtype(arguments, fitting, kWeight, wide(dtype));
}

void fit_cross_entropy_loss_grad(Arguments& arguments, const Fitting& fitting) {
  enum { kGradLoss, kLogProb, kTarget, kWeight, kGradZloss, kLse, kReduction };
  const size_t out = arguments.size() - 1;
  const auto [rows, classes] = rows_and_classes(arguments, fitting, kLogProb);
  const Shape per_row = {is_none(arguments[kReduction]) ? rows : 1};
  fit_shape(arguments, fitting, kGradLoss, per_row);
  fit_shape(arguments, fitting, kTarget, {rows});
  fit_shape(arguments, fitting, kWeight, {classes});
  fit_shape(arguments, fitting, kGradZloss, per_row);
  fit_shape(arguments, fitting, kLse, {rows});
  fit_shape(arguments, fitting, out, shape_of(arguments, kLogProb));
  const aclDataType dtype = arguments[kLogProb].tensor.dtype;
  for (const size_t i : {size_t{kGradLoss}, size_t{kGradZloss}, size_t{kLse}, out}) {
    fit_dtype(arguments, fitting, i, dtype);
  }
  fit_dtype(arguments, fitting, kTarget, ACL_INT64);
  fit_dtype(arguments, fitting, kWeight, wide(dtype));
}

// The sizes of a linear layer: rows and their length, and the classes of the weight.
struct LinearSizes {
  int64_t rows, classes, depth;
};

LinearSizes fit_linear(Arguments& arguments, const Fitting& fitting, size_t input, size_t weight) {
  const auto [rows, depth] = rows_and_classes(arguments, fitting, input);
  const auto [classes, unused] = rows_and_classes(arguments, fitting, weight);
  fit_shape(arguments, fitting, weight, {classes, depth});
  fit_dtype(arguments, fitting, weight, arguments[input].tensor.dtype);
  return {rows, classes, depth};
}

void fit_tensor(Arguments& arguments, const Fitting& fitting, size_t i, Shape shape,
                aclDataType dtype) {
  fit_shape(arguments, fitting, i, std::move(shape));
  fit_dtype(arguments, fitting, i, dtype);
}

int64_t bytes_of_bits(int64_t count) {
  return count / 8 + (count % 8 > 0 ? 1 : 0);
}

void fit_online_max_sum(Arguments& arguments, const Fitting& fitting) {
  enum { kInput, kWeight, kTarget, kStart, kEnd, kMax, kSum, kPredicted, kMask };
  enum { kMaskedTarget = kMask + 1, kLogits };
  const auto [rows, classes, depth] = fit_linear(arguments, fitting, kInput, kWeight);
  const aclDataType dtype = arguments[kInput].tensor.dtype;
  fit_tensor(arguments, fitting, kTarget, {rows}, ACL_INT64);
  for (const size_t i : {kMax, kSum, kPredicted}) {
    fit_tensor(arguments, fitting, i, {rows}, wide(dtype));
  }
  fit_tensor(arguments, fitting, kMask, {bytes_of_bits(rows)}, ACL_UINT8);
  fit_tensor(arguments, fitting, kMaskedTarget, {rows}, arguments[kTarget].tensor.dtype);
  fit_tensor(arguments, fitting, kLogits, {rows, classes}, dtype);
}

void fit_loss_with_max_sum(Arguments& arguments, const Fitting& fitting) {
  enum { kMax, kSum, kPredicted, kSmoothing, kInput, kWeight, kLogits, kLoss, kSoftmax };
  const auto [rows, classes] = rows_and_classes(arguments, fitting, kLogits);
  const aclDataType dtype = arguments[kMax].tensor.dtype;
  for (const size_t i : {kMax, kSum, kPredicted, kLoss}) {
    fit_tensor(arguments, fitting, i, {rows}, dtype);
  }
  fit_tensor(arguments, fitting, kSoftmax, {rows, classes}, dtype);
}

void fit_linear_loss_grad(Arguments& arguments, const Fitting& fitting) {
  enum { kGrad, kInput, kWeight, kMask, kMaskedTarget, kSmoothing, kMax, kSum, kSoftmax };
  enum { kInputGrad = kSoftmax + 1, kWeightGrad };
  const auto [rows, classes, depth] = fit_linear(arguments, fitting, kInput, kWeight);
  const aclDataType dtype = arguments[kInput].tensor.dtype;
  for (const size_t i : {kGrad, kMax, kSum}) {
    fit_tensor(arguments, fitting, i, {rows}, wide(dtype));
  }
  fit_dtype(arguments, fitting, kMask, ACL_UINT8);
  const bool has_bits = arguments[kMask].tensor.dtype == ACL_UINT8;
  fit_shape(arguments, fitting, kMask, {has_bits ? bytes_of_bits(rows) : rows});
  fit_tensor(arguments, fitting, kMaskedTarget, {rows}, ACL_INT64);
  fit_tensor(arguments, fitting, kSoftmax, {rows, classes}, wide(dtype));
  fit_tensor(arguments, fitting, kInputGrad, {rows, depth}, dtype);
  fit_tensor(arguments, fitting, kWeightGrad, {classes, depth}, dtype);
}

void fit_host_linear_loss(Arguments& arguments, const Fitting& fitting) {
  enum { kInput, kWeight, kBias, kTarget, kClassWeights, kFactors, kLseIn, kIgnore, kSmoothing };
  enum { kFirst = kSmoothing + 1, kVocabulary, kLoss, kLse, kInputGrad, kWeightGrad, kBiasGrad };
  const auto [rows, classes, depth] = fit_linear(arguments, fitting, kInput, kWeight);
  const aclDataType dtype = arguments[kInput].tensor.dtype;
  for (const size_t i : {size_t{kBias}, size_t{kBiasGrad}}) {
    fit_tensor(arguments, fitting, i, {classes}, dtype);
  }
  fit_tensor(arguments, fitting, kTarget, {rows}, ACL_INT64);
  fit_tensor(arguments, fitting, kClassWeights, {classes}, wide(dtype));
  for (const size_t i : {size_t{kFactors}, size_t{kLseIn}, size_t{kLoss}, size_t{kLse}}) {
    fit_tensor(arguments, fitting, i, {rows}, wide(dtype));
  }
  fit_tensor(arguments, fitting, kInputGrad, {rows, depth}, dtype);
  fit_tensor(arguments, fitting, kWeightGrad, {classes, depth}, dtype);
  // The whole vocabulary, or its last classes.
  const int64_t others = arguments[kFirst].integer & 7;
  const bool is_part = fitting.shape[kFirst] && arguments[kClassWeights].null;
  if (fitting.shape[kFirst]) arguments[kFirst].integer = is_part ? others : 0;
  if (fitting.shape[kVocabulary]) arguments[kVocabulary].integer = is_part ? classes + others : 0;
}

// The positions of a convolution's arguments.
struct Convolution {
  size_t input, weight, stride, padding, dilation, transposed, output_padding, groups, output;
};

int64_t value_at(const Argument& array, size_t i) {
  const Shape& values = array.integers;
  if (values.size() == 1) return values[0];
  return i < values.size() ? values[i] : 1;
}

int64_t clamped(__int128 value) {
  constexpr __int128 kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp<__int128>(value, -kMost, kMost));
}

// The size of the output in one spatial dimension.
int64_t output_size(const Arguments& arguments, const Convolution& at, size_t d) {
  const Argument& padding = arguments[at.padding];
  const size_t spatial = shape_of(arguments, at.input).size() - 2;
  const bool doubled = padding.integers.size() == 2 * spatial;
  const __int128 around =
      __int128{value_at(padding, doubled ? 2 * d : d)} + value_at(padding, doubled ? 2 * d + 1 : d);
  const __int128 size = shape_of(arguments, at.input)[d + 2];
  const Shape& weight = shape_of(arguments, at.weight);
  const __int128 kernel = d + 2 < weight.size() ? weight[d + 2] : 1;
  const __int128 reach = (kernel - 1) * value_at(arguments[at.dilation], d) + 1;
  const int64_t stride = std::max<int64_t>(value_at(arguments[at.stride], d), 1);
  if (arguments[at.transposed].integer) {
    return clamped((size - 1) * stride - around + reach +
                   value_at(arguments[at.output_padding], d));
  }
  const __int128 room = size + around - reach;
  return room < 0 ? 0 : clamped(room / stride + 1);
}

// Gives strides, dilations and paddings that fit one value for each spatial dimension; strides and
// dilations are not 0.
void fit_arrays(Arguments& arguments, const Fitting& fitting, const Convolution& at,
                size_t spatial) {
  for (const size_t i : {at.stride, at.padding, at.dilation, at.output_padding}) {
    if (!fitting.shape[i]) continue;
    Shape& values = arguments[i].integers;
    values.resize(spatial);
    if (i != at.stride && i != at.dilation) continue;
    for (int64_t& value : values) value = value == 0 ? 1 : value;
  }
}

void fit_shapes(Arguments& arguments, const Fitting& fitting, const Convolution& at) {
  const int64_t groups = arguments[at.groups].integer;
  const bool transposed = arguments[at.transposed].integer;
  Shape& input = arguments[at.input].tensor.shape;
  if (input.size() < 3) {
    if (!fitting.shape[at.input]) return;
    input.resize(3, 1);
  }
  if (fitting.shape[at.input] && groups > 0) input[1] = clamped(__int128{input[1]} * groups);
  Shape& weight = arguments[at.weight].tensor.shape;
  if (fitting.shape[at.weight]) {
    weight.resize(input.size(), 1);
    weight[transposed ? 0 : 1] = transposed || groups < 1 ? input[1] : input[1] / groups;
  }
  fit_arrays(arguments, fitting, at, input.size() - 2);
  if (weight.size() < 2) return;
  Shape output = {input[0], transposed ? clamped(__int128{weight[1]} * groups) : weight[0]};
  for (size_t d = 0; d < input.size() - 2; ++d) output.push_back(output_size(arguments, at, d));
  fit_shape(arguments, fitting, at.output, output);
}

void fit_convolution(Arguments& arguments, const Fitting& fitting) {
  constexpr Convolution kAt{0, 1, 3, 4, 5, 6, 7, 8, 9};
  constexpr size_t kBias = 2;
  fit_shapes(arguments, fitting, kAt);
  const Shape& output = shape_of(arguments, kAt.output);
  fit_shape(arguments, fitting, kBias, {output.size() < 2 ? 1 : output[1]});
  for (const size_t i : {kAt.weight, kBias, kAt.output}) {
    fit_dtype(arguments, fitting, i, arguments[kAt.input].tensor.dtype);
  }
}

void fit_convolution_backward(Arguments& arguments, const Fitting& fitting) {
  constexpr Convolution kAt{1, 2, 4, 5, 6, 7, 8, 9, 0};
  enum { kBiasSizes = 3, kMask = 10, kGradInput = 12, kGradWeight, kGradBias };
  fit_shapes(arguments, fitting, kAt);
  const Shape& output = shape_of(arguments, kAt.output);
  const int64_t channels = output.size() < 2 ? 1 : output[1];
  if (fitting.shape[kBiasSizes]) arguments[kBiasSizes].integers = {channels};
  if (fitting.shape[kMask]) arguments[kMask].integers.resize(3);
  fit_shape(arguments, fitting, kGradInput, shape_of(arguments, kAt.input));
  fit_shape(arguments, fitting, kGradWeight, shape_of(arguments, kAt.weight));
  fit_shape(arguments, fitting, kGradBias, {channels});
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == Kind::kTensor && i != kAt.input) {
      fit_dtype(arguments, fitting, i, arguments[kAt.input].tensor.dtype);
    }
  }
}

// An elementwise function whose last tensor is the output.
template <auto kStage1, auto kStage2>
Function elementwise_function(const char* name) {
  Function made = function<kStage1, kStage2>(name, {}, fit_elementwise);
  const auto last = std::find(made.kinds.rbegin(), made.kinds.rend(), Kind::kTensor);
  made.outputs.push_back(static_cast<size_t>(made.kinds.rend() - last) - 1);
  return made;
}

}  // namespace

#define FUNCTION(name, ...) function<name##GetWorkspaceSize, name>(#name, __VA_ARGS__)
#define ELEMENTWISE(name) \
  elementwise_function<aclnn##name##GetWorkspaceSize, aclnn##name>("aclnn" #name),

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      ELEMENTWISE_FUNCTIONS(ELEMENTWISE) FUNCTION(aclnnConvolution, {9}, fit_convolution),
      FUNCTION(aclnnConvolutionBackward, {12, 13, 14}, fit_convolution_backward),
      FUNCTION(aclnnCrossEntropyLoss, {8, 9, 10, 11}, fit_cross_entropy_loss),
      FUNCTION(aclnnCrossEntropyLossGrad, {10}, fit_cross_entropy_loss_grad),
      FUNCTION(aclnnFusedCrossEntropyLossWithMaxSum, {7, 8}, fit_loss_with_max_sum),
      FUNCTION(aclnnFusedLinearCrossEntropyLossGrad, {9, 10}, fit_linear_loss_grad),
      FUNCTION(aclnnFusedLinearOnlineMaxSum, {5, 6, 7, 8, 9, 10}, fit_online_max_sum),
      FUNCTION(aclnnHostLinearCrossEntropy, {11, 12, 13, 14, 15}, fit_host_linear_loss),
      FUNCTION(aclnnLayerNorm, {5, 6, 7}, fit_layer_norm),
      FUNCTION(aclnnLayerNormBackward, {8, 9, 10}, fit_layer_norm_backward),
      FUNCTION(aclnnRmsNorm, {3, 4}, fit_rms_norm),
      FUNCTION(aclnnRmsNormGrad, {4, 5}, fit_rms_norm_grad),
  };
  return all;
}

}  // namespace fuzz
