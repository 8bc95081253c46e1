// aclnnLayerNorm, aclnnLayerNormBackward; docs/emulation/operators.md lists the deviations from
// CANN. They share a file because they divide rows in the same way.

#include "host_cann/kernels/layer_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/ops/row_division.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT16, kAll},
                                {ACL_FLOAT, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
// The gradient's checker uses one set for all products.
constexpr DtypeRule kBackwardTypes[] = {
    {ACL_FLOAT16, kAll}, {ACL_FLOAT, kAll}, {ACL_BF16, kAll}, {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;

// ---- Checks -------------------------------------------------------------------------------------

const Dims& shape_of(Argument argument) {
  return argument.tensor->view.shape;
}

void check_rank(Checks& checks, Argument argument) {
  if (argument.tensor != nullptr) checks.rank_at_most(argument, kMaxRank);
}

void check_dtype(Checks& checks, Argument argument, DtypeRules rules) {
  if (argument.tensor != nullptr) checks.dtype_in(argument, rules);
}

// Requires weight and bias to have input's dtype, or FLOAT.
void check_weight_dtype(Checks& checks, Argument weight, Argument input, DtypeRules rules) {
  if (weight.tensor == nullptr) return;
  checks.dtype_in(weight, rules);
  if (checks.ok() && weight.tensor->view.dtype != ACL_FLOAT) checks.same_dtype(weight, input);
}

// Checks the number of normalised dimensions.
void check_normalized_rank(Checks& checks, Argument input, const aclIntArray& shape) {
  checks.require(shape.size >= 1 && shape.size <= kMaxRank,
                 "normalizedShape has %llu sizes, expected 1 to %llu",
                 static_cast<unsigned long long>(shape.size),
                 static_cast<unsigned long long>(kMaxRank));
  if (!checks.ok() || shape_of(input).size() >= shape.size) return;
  checks.require(false,
                 "input has shape %s, expected at least %llu dimensions, as many as "
                 "normalizedShape has sizes",
                 shape_text(shape_of(input)).c_str(), static_cast<unsigned long long>(shape.size));
}

// Requires the last dimensions of `argument`, or all of a weight's, to be the normalised ones.
void check_normalized(Checks& checks, Argument argument, const aclIntArray& shape, bool all) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims expected(shape.values.get(), shape.size);
  const Dims& given = shape_of(argument);
  const bool fits = (all ? given.size() == shape.size : given.size() >= shape.size) &&
                    Dims(given.end() - shape.size, shape.size) == expected;
  if (fits) return;
  checks.require(false, "%s has shape %s, expected %s%s as normalizedShape has", argument.name,
                 shape_text(given).c_str(), all ? "" : "last dimensions ",
                 shape_text(expected).c_str());
}

void check_count(Checks& checks, Argument argument, int64_t count, const char* what) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const int64_t given = element_count(shape_of(argument)).value_or(-1);
  if (given == count) return;
  checks.require(false, "%s has shape %s, expected %lld elements, one for every %s", argument.name,
                 shape_text(shape_of(argument)).c_str(), static_cast<long long>(count), what);
}

// Ascend950 checks the shape of a non-empty mean or rstd: input's, with 1 in place of every
// normalised size.
void check_statistic(Checks& checks, Argument argument, Argument input, const aclIntArray& shape) {
  if (!checks.ok() || checks.product() != Product::kAscend950) return;
  if (argument.tensor == nullptr || element_count(shape_of(argument)) == 0) return;
  Dims expected = shape_of(input);
  std::fill_n(expected.begin() + (expected.size() - shape.size), shape.size, int64_t{1});
  if (shape_of(argument) == expected) return;
  checks.require(false,
                 "%s has shape %s, expected %s: input's, with 1 in place of the normalised sizes; "
                 "reshape it",
                 argument.name, shape_text(shape_of(argument)).c_str(),
                 shape_text(expected).c_str());
}

struct Counts {
  int64_t rows;
  int64_t columns;
};

// Rows and columns of input; -1 if the count overflows. addressable() refuses such sizes, unless
// the other count is 0 and there is nothing to compute.
Counts rows_and_columns(Argument input, const aclIntArray& shape) {
  const Dims& sizes = shape_of(input);
  const uint64_t rows = sizes.size() - shape.size;
  return {element_count(Dims(sizes.begin(), rows)).value_or(-1),
          element_count(Dims(sizes.begin() + rows, shape.size)).value_or(-1)};
}

// ---- What both plans share ----------------------------------------------------------------------

// As in RmsNorm, rows stay in the cache from their sums to their results.
constexpr Group kGroup = {4096, 1};
constexpr Group kGradGroup = {16384, 4};

// A tensor argument that may be absent, in the kernels' dtype.
class Part {
 public:
  Part() = default;
  Part(const aclTensor* tensor, aclDataType dtype, Workspace& workspace) {
    if (tensor != nullptr) packed_ = Packed(tensor->view, dtype, workspace);
  }
  explicit operator bool() const { return packed_.has_value(); }
  const Packed* operator->() const { return &*packed_; }

 private:
  std::optional<Packed> packed_;
};

// gamma or beta; an absent one is filled with its neutral value.
class Weight {
 public:
  Weight() = default;
  Weight(const aclTensor* tensor, int64_t columns, aclDataType real, Workspace& workspace)
      : part_(tensor, real, workspace), columns_(columns) {
    if (!part_) {
      offset_ = workspace.reserve(static_cast<uint64_t>(columns) * aclDataTypeSize(real));
    }
  }

  template <class Real>
  const Real* read(const TensorView& view, Real absent, void* workspace) const {
    if (part_) return static_cast<const Real*>(part_->read(view, workspace));
    auto* numbers = reinterpret_cast<Real*>(static_cast<char*>(workspace) + offset_);
    std::fill_n(numbers, columns_, absent);
    return numbers;
  }

 private:
  Part part_;
  int64_t columns_ = 0;
  uint64_t offset_ = 0;
};

template <class T>
T* part_of(void* workspace, uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
}

// Runs body(real) with a float or a double.
template <class Body>
aclnnStatus run_in_real(aclDataType dtype, Body body) {
  if (dtype == ACL_DOUBLE) {
    body(double());
  } else {
    body(float());
  }
  return OK;
}

// ---- aclnnLayerNorm -----------------------------------------------------------------------------

struct LayerNormPlan {
  static constexpr size_t kMaxTensors = 6;
  enum { kInput, kWeight, kBias, kOut, kMean, kRstd };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  double epsilon;
  Packed input, out;
  Weight weight, bias;
  // Memory for a mean and rstd that the caller does not request.
  Part outputs[2];
  uint64_t kept[2] = {0, 0};
  uint64_t sums = 0;

  LayerNormPlan(const std::array<const aclTensor*, kMaxTensors>& arguments, int64_t rows,
                int64_t columns, double epsilon, Workspace& workspace)
      : division(rows, columns,
                 2 * static_cast<int64_t>(aclDataTypeSize(arguments[kInput]->view.dtype)), kGroup),
        epsilon(epsilon) {
    std::transform(arguments.begin(), arguments.end(), tensors, view_of);
    if (rows == 0) return;  // all outputs are empty
    const aclDataType dtype = tensors[kInput].dtype;
    const aclDataType real = real_type(dtype);
    input = Packed(tensors[kInput], dtype, workspace);
    out = Packed(tensors[kOut], dtype, workspace);
    weight = Weight(arguments[kWeight], columns, real, workspace);
    bias = Weight(arguments[kBias], columns, real, workspace);
    for (size_t i = 0; i < 2; ++i) {
      outputs[i] = Part(arguments[kMean + i], real, workspace);
      if (!outputs[i] && columns > 0) {
        kept[i] = workspace.reserve(static_cast<uint64_t>(rows) * aclDataTypeSize(real));
      }
    }
    if (columns == 0) return;
    sums = workspace.reserve(static_cast<uint64_t>(division.blocks * division.sums_per_block()) *
                             sizeof(double));
  }

  bool is_input(size_t i) const { return i < kOut; }
  bool is_output(size_t i) const { return i >= kOut; }

  aclnnStatus compute(void* workspace) {
    if (division.rows == 0) return OK;
    return run_in_real(tensors[kInput].dtype, [&]<class Real>(Real) { run<Real>(workspace); });
  }

 private:
  template <class Real>
  void run(void* workspace) const {
    Real* statistics[2];
    for (size_t i = 0; i < 2; ++i) {
      statistics[i] =
          static_cast<Real*>(outputs[i] ? outputs[i]->begin(tensors[kMean + i], workspace)
                                        : part_of<void>(workspace, kept[i]));
    }
    const auto [mean, rstd] = std::pair(statistics[0], statistics[1]);
    if (division.columns == 0) {  // as in CANN
      if (outputs[0]) std::fill_n(mean, division.rows, Real(0));
      if (outputs[1]) {
        std::fill_n(rstd, division.rows, std::numeric_limits<Real>::quiet_NaN());
      }
    } else {
      normalize<Real>(mean, rstd, workspace);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (outputs[i]) outputs[i]->finish(tensors[kMean + i], workspace);
    }
  }

  template <class Real>
  void normalize(Real* mean, Real* rstd, void* workspace) const {
    const aclDataType dtype = tensors[kInput].dtype;
    const aclDataType real = real_type(dtype);
    const LayerNormKernels& kernels = layer_norm_kernels().find(dtype);
    const void* x = input.read(tensors[kInput], workspace);
    const Real* gamma = weight.read(tensors[kWeight], Real(1), workspace);
    const Real* beta = bias.read(tensors[kBias], Real(0), workspace);
    void* y = out.begin(tensors[kOut], workspace);
    const int64_t columns = division.columns;
    const Real eps = static_cast<Real>(epsilon);

    division.for_each_block([&](int64_t block, int64_t begin, int64_t end) {
      double* const means = part_of<double>(workspace, sums) + block * division.sums_per_block();
      for (int64_t row = begin; row < end; row += division.rows_per_group) {
        const int64_t count = std::min(division.rows_per_group, end - row);
        const auto each_segment = [&](auto body) {
          division.for_each_segment(count, [&](int64_t segment, int64_t i, const RowTile& tile) {
            body(segment, i, tile, from(x, row * columns + i, dtype));
          });
        };
        each_segment([&](int64_t segment, int64_t, const RowTile& tile, const void* at) {
          kernels.sum(tile, at, means + segment);
        });
        division.sums_to_means(means, count);
        for (int64_t k = 0; k < count; ++k) {
          mean[row + k] = static_cast<Real>(means[k * division.segments]);
        }
        each_segment([&](int64_t segment, int64_t, const RowTile& tile, const void* at) {
          kernels.sum_of_squares(tile, at, mean + row, means + segment);
        });
        division.sums_to_means(means, count);
        for (int64_t k = 0; k < count; ++k) {
          rstd[row + k] = static_cast<Real>(1 / std::sqrt(means[k * division.segments] + eps));
        }
        each_segment([&](int64_t, int64_t i, const RowTile& tile, const void* at) {
          kernels.normalize(tile, at, mean + row, rstd + row, from(gamma, i, real),
                            from(beta, i, real), from(y, row * columns + i, dtype));
        });
      }
    });
    out.finish(tensors[kOut], workspace);
  }
};

// ---- aclnnLayerNormBackward ---------------------------------------------------------------------

struct LayerNormBackwardPlan {
  static constexpr size_t kMaxTensors = 9;
  enum { kGradOut, kInput, kMean, kRstd, kWeight, kBias, kGradInput, kGradWeight, kGradBias };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  Packed inputs[4];  // gradOut, ..., rstd
  Weight weight;
  Part grad_input;
  Part weight_gradients[2];
  uint64_t sums = 0;            // of a, and of a * xhat
  uint64_t partial = 0;         // dgamma and dbeta of up to kRowsPerSum rows, per block
  uint64_t totals[2] = {0, 0};  // dgamma, and dbeta, per block

  // `mask` selects the outputs.
  LayerNormBackwardPlan(const std::array<const aclTensor*, kMaxTensors>& arguments,
                        const bool* mask, int64_t rows, int64_t columns, Workspace& workspace)
      : division(rows, columns,
                 3 * static_cast<int64_t>(aclDataTypeSize(arguments[kInput]->view.dtype)),
                 kGradGroup) {
    std::transform(arguments.begin(), arguments.end(), tensors, view_of);
    is_empty_ = columns == 0 || !((mask[0] && rows > 0) || mask[1] || mask[2]);
    if (is_empty_) return;
    const aclDataType dtype = tensors[kInput].dtype;
    const aclDataType real = real_type(dtype);
    for (size_t i = 0; i < 4; ++i) {
      inputs[i] = Packed(tensors[i], i < kMean ? dtype : real, workspace);
    }
    weight = Weight(arguments[kWeight], columns, real, workspace);
    if (mask[0]) grad_input = Part(arguments[kGradInput], dtype, workspace);
    for (size_t i = 0; i < 2; ++i) {
      if (mask[1 + i]) weight_gradients[i] = Part(arguments[kGradWeight + i], real, workspace);
    }
    const auto blocks = static_cast<uint64_t>(division.blocks);
    const uint64_t numbers = blocks * static_cast<uint64_t>(columns);
    sums = workspace.reserve(2 * blocks * static_cast<uint64_t>(division.sums_per_block()) *
                             sizeof(double));
    partial = workspace.reserve(2 * numbers * aclDataTypeSize(real));
    for (uint64_t& total : totals) total = workspace.reserve(numbers * sizeof(double));
  }

  bool is_input(size_t i) const { return i < kGradInput; }
  bool is_output(size_t i) const { return i >= kGradInput; }

  aclnnStatus compute(void* workspace) {
    if (is_empty_) return OK;
    return run_in_real(tensors[kInput].dtype, [&]<class Real>(Real) { run<Real>(workspace); });
  }

 private:
  bool is_empty_ = false;

  template <class Real>
  void run(void* workspace) const {
    const aclDataType dtype = tensors[kInput].dtype;
    const aclDataType real = real_type(dtype);
    const LayerNormKernels& kernels = layer_norm_kernels().find(dtype);
    const void* dy = inputs[kGradOut].read(tensors[kGradOut], workspace);
    const void* x = inputs[kInput].read(tensors[kInput], workspace);
    const auto* mean = static_cast<const Real*>(inputs[kMean].read(tensors[kMean], workspace));
    const auto* rstd = static_cast<const Real*>(inputs[kRstd].read(tensors[kRstd], workspace));
    const Real* gamma = weight.read(tensors[kWeight], Real(1), workspace);
    void* dx = grad_input ? grad_input->begin(tensors[kGradInput], workspace) : nullptr;
    const bool of_weights = weight_gradients[0] || weight_gradients[1];
    const int64_t columns = division.columns;

    division.for_each_block([&](int64_t block, int64_t begin, int64_t end) {
      double* const means =
          part_of<double>(workspace, sums) + 2 * block * division.sums_per_block();
      double* const products = means + division.sums_per_block();
      Real* const of_rows = part_of<Real>(workspace, partial) + 2 * block * columns;
      double* total[2];
      for (size_t i = 0; i < 2; ++i) {
        total[i] = part_of<double>(workspace, totals[i]) + block * columns;
      }
      int64_t added = 0;  // rows added to of_rows
      for (int64_t row = begin; row < end; row += division.rows_per_group) {
        const int64_t count = std::min(division.rows_per_group, end - row);
        if (dx != nullptr) {
          division.for_each_segment(count, [&](int64_t segment, int64_t i, const RowTile& tile) {
            const int64_t at = row * columns + i;
            kernels.sums_of_products(tile, from(dy, at, dtype), from(x, at, dtype), mean + row,
                                     rstd + row, from(gamma, i, real), means + segment,
                                     products + segment);
          });
          division.sums_to_means(means, count);
          division.sums_to_means(products, count);
        }
        const bool first = row == begin;
        const bool fresh = added == 0;
        added += count;
        const bool full = added + division.rows_per_group > kRowsPerSum || row + count == end;
        division.for_each_segment(count, [&](int64_t, int64_t i, const RowTile& tile) {
          const int64_t at = row * columns + i;
          const void* const gradient = from(dy, at, dtype);
          const void* const value = from(x, at, dtype);
          if (of_weights) {
            if (first)
              for (double* sum : total) std::fill_n(sum + i, tile.columns, 0.0);
            if (fresh) {
              std::fill_n(of_rows + i, tile.columns, Real(0));
              std::fill_n(of_rows + columns + i, tile.columns, Real(0));
            }
            kernels.weight_gradients(tile, gradient, value, mean + row, rstd + row, of_rows + i,
                                     of_rows + columns + i);
            if (full) {
              add(of_rows + i, tile.columns, total[0] + i);
              add(of_rows + columns + i, tile.columns, total[1] + i);
            }
          }
          if (dx != nullptr) {
            kernels.gradient(tile, gradient, value, mean + row, rstd + row, from(gamma, i, real),
                             means, products, from(dx, at, dtype));
          }
        });
        if (full) added = 0;
      }
    });

    for (size_t i = 0; i < 2; ++i) {
      const Part& output = weight_gradients[i];
      if (!output) continue;
      const TensorView& view = tensors[kGradWeight + i];
      division.add_blocks(part_of<double>(workspace, totals[i]),
                          static_cast<Real*>(output->begin(view, workspace)), Real(0));
      output->finish(view, workspace);
    }
    if (grad_input) grad_input->finish(tensors[kGradInput], workspace);
  }
};

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnLayerNorm";
  const Argument value{"input", input}, weight{"weight", weightOptional};
  const Argument bias{"bias", biasOptional}, result{"out", out};
  const Argument mean{"meanOut", meanOutOptional}, rstd{"rstdOut", rstdOutOptional};
  const Named sizes{"normalizedShape", normalizedShape};
  const Given given[] = {value, sizes, weight, bias, Named{"eps", eps}, result, mean, rstd};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(sizes)
        .not_null(result)
        .dtype_in(value, kTypes);
    if (!checks.ok()) return checks.status();
    check_weight_dtype(checks, weight, value, kTypes);
    check_weight_dtype(checks, bias, value, kTypes);
    if (weightOptional != nullptr && biasOptional != nullptr) checks.same_dtype(bias, weight);
    for (const Argument& output : {result, mean, rstd}) check_dtype(checks, output, kTypes);
    for (const Argument& each : {value, result, weight, bias, mean, rstd}) {
      check_rank(checks, each);
    }
    if (!checks.ok()) return checks.status();
    check_normalized_rank(checks, value, *normalizedShape);
    check_normalized(checks, value, *normalizedShape, false);
    check_normalized(checks, weight, *normalizedShape, true);
    check_normalized(checks, bias, *normalizedShape, true);
    checks.same_shape(result, value);
    check_statistic(checks, mean, value, *normalizedShape);
    check_statistic(checks, rstd, value, *normalizedShape);
    if (checks.product() == Product::kAscend950 && mean.tensor != nullptr &&
        rstd.tensor != nullptr) {
      checks.same_shape(rstd, mean);
    }
    if (!checks.ok()) return checks.status();
    const Counts count = rows_and_columns(value, *normalizedShape);
    check_count(checks, mean, count.rows, "row");
    check_count(checks, rstd, count.rows, "row");
    for (const Argument& each : {value, weight, bias, result, mean, rstd}) {
      checks.addressable(each);
    }
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return LayerNormPlan(
          {input, weightOptional, biasOptional, out, meanOutOptional, rstdOutOptional}, count.rows,
          count.columns, eps, workspace);
    });
  });
}

ACLNN_STAGE2(LayerNorm)

aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclIntArray* normalizedShape,
    const aclTensor* mean, const aclTensor* rstd, const aclTensor* weightOptional,
    const aclTensor* biasOptional, const aclBoolArray* outputMask, aclTensor* gradInputOut,
    aclTensor* gradWeightOut, aclTensor* gradBiasOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnLayerNormBackward";
  const Argument gradient{"gradOut", gradOut}, value{"input", input};
  const Argument means{"mean", mean}, factors{"rstd", rstd};
  const Argument weight{"weight", weightOptional}, bias{"bias", biasOptional};
  const Argument outputs[] = {{"gradInputOut", gradInputOut},
                              {"gradWeightOut", gradWeightOut},
                              {"gradBiasOut", gradBiasOut}};
  const Named sizes{"normalizedShape", normalizedShape};
  const Named mask{"outputMask", outputMask};
  const Given given[] = {gradient, value, sizes,      means,      factors,   weight,
                         bias,     mask,  outputs[0], outputs[1], outputs[2]};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(sizes)
        .not_null(means)
        .not_null(factors)
        .not_null(mask);
    if (!checks.ok()) return checks.status();
    checks.require(outputMask->size == 3, "outputMask has %llu values, expected 3",
                   static_cast<unsigned long long>(outputMask->size));
    if (!checks.ok()) return checks.status();
    // The requested outputs.
    Argument asked[3];
    for (size_t i = 0; i < 3; ++i) {
      asked[i] = {outputs[i].name, outputMask->values[i] ? outputs[i].tensor : nullptr};
      if (outputMask->values[i]) checks.not_null(outputs[i]);
    }
    for (const Argument& each : {gradient, value, means, factors}) {
      check_dtype(checks, each, kBackwardTypes);
    }
    checks.same_dtype(gradient, value);
    check_weight_dtype(checks, weight, value, kBackwardTypes);
    check_dtype(checks, bias, kBackwardTypes);
    for (const Argument& each : outputs) check_dtype(checks, each, kBackwardTypes);
    for (const Argument& each : {gradient, value, means, factors}) check_rank(checks, each);
    for (const Argument& each : asked) check_rank(checks, each);
    if (!checks.ok()) return checks.status();
    check_normalized_rank(checks, value, *normalizedShape);
    check_normalized(checks, value, *normalizedShape, false);
    check_normalized(checks, weight, *normalizedShape, true);
    check_normalized(checks, bias, *normalizedShape, true);
    checks.same_shape(gradient, value).same_shape(means, factors);
    if (!checks.ok()) return checks.status();
    const Counts count = rows_and_columns(value, *normalizedShape);
    check_count(checks, means, count.rows, "row");
    if (asked[0].tensor != nullptr) checks.same_shape(asked[0], value);
    check_count(checks, asked[1], count.columns, "column");
    check_count(checks, asked[2], count.columns, "column");
    for (const Argument& each : {gradient, value, means, factors, weight, bias}) {
      checks.addressable(each);
    }
    for (const Argument& each : outputs) checks.addressable(each);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return LayerNormBackwardPlan({gradOut, input, mean, rstd, weightOptional, biasOptional,
                                    gradInputOut, gradWeightOut, gradBiasOut},
                                   outputMask->values.get(), count.rows, count.columns, workspace);
    });
  });
}

ACLNN_STAGE2(LayerNormBackward)
