// aclnnLayerNorm: mean and rstd of each row, and the normalised row.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "host_cann/kernels/layer_norm.h"
#include "host_cann/ops/layer_norm/layer_norm_plans.h"

namespace aclnn_host::layer_norm {

// As in RmsNorm, rows stay in the cache from their sums to their results.
constexpr Group kGroup = {4096, 1};

LayerNormPlan::LayerNormPlan(const std::array<const aclTensor*, kMaxTensors>& arguments,
                             int64_t rows, int64_t columns, double epsilon, Workspace& workspace)
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

aclnnStatus LayerNormPlan::compute(void* workspace) {
  if (division.rows == 0) return OK;
  return run_in_real(tensors[kInput].dtype, [&]<class Real>(Real) { run<Real>(workspace); });
}

template <class Real>
void LayerNormPlan::run(void* workspace) const {
  Real* statistics[2];
  for (size_t i = 0; i < 2; ++i) {
    statistics[i] = static_cast<Real*>(outputs[i] ? outputs[i]->begin(tensors[kMean + i], workspace)
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
void LayerNormPlan::normalize(Real* mean, Real* rstd, void* workspace) const {
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

}  // namespace aclnn_host::layer_norm
