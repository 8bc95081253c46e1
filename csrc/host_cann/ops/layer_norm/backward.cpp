// aclnnLayerNormBackward: the gradients of input, weight and bias, as kernels/layer_norm.h names
// and defines them.
#include <algorithm>
#include <array>

#include "host_cann/kernels/layer_norm.h"
#include "host_cann/ops/layer_norm/layer_norm_plans.h"

namespace aclnn_host::layer_norm {

constexpr Group kGradGroup = {16384, 4};

LayerNormBackwardPlan::LayerNormBackwardPlan(
    const std::array<const aclTensor*, kMaxTensors>& arguments, const bool* mask, int64_t rows,
    int64_t columns, Workspace& workspace)
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

// The sums of a block of rows.
template <class Real>
struct LayerNormBackwardPlan::Sums {
  double* a;                // of the rows of a group; then their means
  double* products;         // of a * xhat, likewise
  Real* weight_partial[2];  // dgamma and dbeta of up to kRowsPerSum rows
  double* weight_total[2];  // dgamma and dbeta of the rows before
};

// The operands of one run of the plan.
template <class Real>
struct LayerNormBackwardPlan::Run {
  const LayerNormKernels& kernels;
  const Division& division;
  aclDataType dtype;
  aclDataType real;
  const void* dy;
  const void* x;
  const Real* mean;
  const Real* rstd;
  const Real* gamma;
  void* dx;         // null: not requested
  bool of_weights;  // dgamma or dbeta is requested

  // A group of rows, and its place among the rows whose weight gradients are summed in Real.
  struct Rows {
    int64_t first;
    int64_t count;
    bool begins_block;
    bool begins_partial;
    bool ends_partial;
  };

  void compute_block(const Sums<Real>& sums, int64_t begin, int64_t end) const {
    int64_t added = 0;  // rows in weight_partial
    for (int64_t row = begin; row < end; row += division.rows_per_group) {
      const int64_t count = std::min(division.rows_per_group, end - row);
      const bool begins_partial = added == 0;
      added += count;
      const bool ends_partial = added + division.rows_per_group > kRowsPerSum || row + count == end;
      compute_group(sums, {row, count, row == begin, begins_partial, ends_partial});
      if (ends_partial) added = 0;
    }
  }

  void compute_group(const Sums<Real>& sums, const Rows& rows) const {
    if (dx != nullptr) find_means(sums, rows);
    division.for_each_segment(rows.count, [&](int64_t, int64_t i, const RowTile& tile) {
      if (of_weights) add_weight_gradients(sums, rows, i, tile);
      if (dx == nullptr) return;
      const int64_t at = rows.first * division.columns + i;
      kernels.gradient(tile, from(dy, at, dtype), from(x, at, dtype), mean + rows.first,
                       rstd + rows.first, from(gamma, i, real), sums.a, sums.products,
                       from(dx, at, dtype));
    });
  }

  // The means of a and of a * xhat over each row.
  void find_means(const Sums<Real>& sums, const Rows& rows) const {
    division.for_each_segment(rows.count, [&](int64_t segment, int64_t i, const RowTile& tile) {
      const int64_t at = rows.first * division.columns + i;
      kernels.sums_of_products(tile, from(dy, at, dtype), from(x, at, dtype), mean + rows.first,
                               rstd + rows.first, from(gamma, i, real), sums.a + segment,
                               sums.products + segment);
    });
    division.sums_to_means(sums.a, rows.count);
    division.sums_to_means(sums.products, rows.count);
  }

  // Adds the part of a tile, whose first column is i, to dgamma and dbeta.
  void add_weight_gradients(const Sums<Real>& sums, const Rows& rows, int64_t i,
                            const RowTile& tile) const {
    if (rows.begins_block) {
      for (double* total : sums.weight_total) std::fill_n(total + i, tile.columns, 0.0);
    }
    if (rows.begins_partial) {
      for (Real* partial : sums.weight_partial) std::fill_n(partial + i, tile.columns, Real(0));
    }
    const int64_t at = rows.first * division.columns + i;
    kernels.weight_gradients(tile, from(dy, at, dtype), from(x, at, dtype), mean + rows.first,
                             rstd + rows.first, sums.weight_partial[0] + i,
                             sums.weight_partial[1] + i);
    if (!rows.ends_partial) return;
    for (size_t k = 0; k < 2; ++k) {
      add(sums.weight_partial[k] + i, tile.columns, sums.weight_total[k] + i);
    }
  }
};

template <class Real>
LayerNormBackwardPlan::Sums<Real> LayerNormBackwardPlan::sums_of(int64_t block,
                                                                 void* workspace) const {
  const int64_t columns = division.columns;
  double* const a = part_of<double>(workspace, sums) + 2 * block * division.sums_per_block();
  Real* const dgamma = part_of<Real>(workspace, partial) + 2 * block * columns;
  return {a,
          a + division.sums_per_block(),
          {dgamma, dgamma + columns},
          {part_of<double>(workspace, totals[0]) + block * columns,
           part_of<double>(workspace, totals[1]) + block * columns}};
}

template <class Real>
void LayerNormBackwardPlan::run(void* workspace) const {
  const aclDataType dtype = tensors[kInput].dtype;
  const auto read = [&](int argument) {
    return inputs[argument].read(tensors[argument], workspace);
  };
  const Run<Real> run{layer_norm_kernels().find(dtype),
                      division,
                      dtype,
                      real_type(dtype),
                      read(kGradOut),
                      read(kInput),
                      static_cast<const Real*>(read(kMean)),
                      static_cast<const Real*>(read(kRstd)),
                      weight.read(tensors[kWeight], Real(1), workspace),
                      grad_input ? grad_input->begin(tensors[kGradInput], workspace) : nullptr,
                      weight_gradients[0] || weight_gradients[1]};
  division.for_each_block([&](int64_t block, int64_t begin, int64_t end) {
    run.compute_block(sums_of<Real>(block, workspace), begin, end);
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

aclnnStatus LayerNormBackwardPlan::compute(void* workspace) {
  if (is_empty_) return OK;
  return run_in_real(tensors[kInput].dtype, [&]<class Real>(Real) { run<Real>(workspace); });
}

}  // namespace aclnn_host::layer_norm
