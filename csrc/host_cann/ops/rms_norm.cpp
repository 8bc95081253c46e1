// aclnnRmsNorm, aclnnRmsNormGrad; docs/emulation/operators.md lists the deviations from CANN.

#include "host_cann/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/ops/no_launch.h"
#include "host_cann/ops/row_division.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr Product kA2 = Product::kAscend910B;

// x, gamma, yOut, rstdOut
constexpr DtypeRow kForwardTypes[] = {
    {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT}, kAll},
    {{ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT}, kAll},
    {{ACL_BF16, ACL_BF16, ACL_BF16, ACL_FLOAT}, kA2},
    {{ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT}, kA2},
    {{ACL_BF16, ACL_FLOAT, ACL_BF16, ACL_FLOAT}, kA2},
    {{ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE}, Product::kHost}};
// dy, x, rstd, gamma, dxOut, dgammaOut
constexpr DtypeRow kGradTypes[] = {
    {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT}, kAll},
    {{ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT}, kAll},
    {{ACL_BF16, ACL_BF16, ACL_FLOAT, ACL_BF16, ACL_BF16, ACL_FLOAT}, kA2},
    {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT}, kA2},
    {{ACL_BF16, ACL_BF16, ACL_FLOAT, ACL_FLOAT, ACL_BF16, ACL_FLOAT}, kA2},
    {{ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE, ACL_DOUBLE}, Product::kHost}};

constexpr uint64_t kMaxRank = 8;

// ---- The checks of shapes: all return 561002 ---------------------------------------------------
// Texts are formatted only for a failed check.

const Dims& shape_of(Argument argument) {
  return argument.tensor->view.shape;
}

int64_t count_of(Argument argument) {
  return element_count(shape_of(argument)).value_or(-1);
}

// The product of the sizes of dimensions [begin, end); -1 if it overflows or one is negative.
int64_t product_of(const Dims& shape, uint64_t begin, uint64_t end) {
  return element_count(Dims(shape.begin() + begin, end - begin)).value_or(-1);
}

// The number of x's dimensions before those of gamma.
uint64_t leading_rank(Argument x, Argument gamma) {
  return shape_of(x).size() - shape_of(gamma).size();
}

void check_rank(Checks& checks, Argument argument) {
  if (!checks.ok()) return;
  const uint64_t rank = shape_of(argument).size();
  checks.require_tiling(rank >= 1 && rank <= kMaxRank,
                        "%s has %llu dimensions, expected 1 to %llu; reshape it", argument.name,
                        static_cast<unsigned long long>(rank),
                        static_cast<unsigned long long>(kMaxRank));
}

void check_ranks(Checks& checks, Argument x, Argument gamma) {
  check_rank(checks, x);
  check_rank(checks, gamma);
  if (!checks.ok() || shape_of(gamma).size() <= shape_of(x).size()) return;
  checks.require_tiling(false,
                        "gamma has shape %s, expected no more dimensions than x, which has shape "
                        "%s; gamma's shape is that of the last dimensions of x",
                        shape_text(shape_of(gamma)).c_str(), shape_text(shape_of(x)).c_str());
}

void check_same_rank(Checks& checks, Argument argument, Argument other) {
  if (!checks.ok() || shape_of(argument).size() == shape_of(other).size()) return;
  checks.require_tiling(false,
                        "%s has shape %s, expected as many dimensions as %s, which has shape %s",
                        argument.name, shape_text(shape_of(argument)).c_str(), other.name,
                        shape_text(shape_of(other)).c_str());
}

void check_same_shape(Checks& checks, Argument argument, Argument other) {
  if (!checks.ok() || shape_of(argument) == shape_of(other)) return;
  checks.require_tiling(false,
                        "%s has shape %s, expected %s as %s has; shapes are not broadcast, expand "
                        "first",
                        argument.name, shape_text(shape_of(argument)).c_str(),
                        shape_text(shape_of(other)).c_str(), other.name);
}

// Requires `argument`, gamma or dgamma, to have the shape of x's last dimensions.
void check_trailing(Checks& checks, Argument argument, Argument x) {
  if (!checks.ok()) return;
  const Dims& shape = shape_of(x);
  const uint64_t rank = shape_of(argument).size();
  const Dims expected(shape.end() - rank, rank);
  if (shape_of(argument) == expected) return;
  checks.require_tiling(false,
                        "%s has shape %s, expected %s, the last dimensions of x, which has shape "
                        "%s",
                        argument.name, shape_text(shape_of(argument)).c_str(),
                        shape_text(expected).c_str(), shape_text(shape).c_str());
}

void check_rstd(Checks& checks, bool fits, Argument rstd, Argument x, Argument gamma) {
  if (!checks.ok()) return;
  const Dims& shape = shape_of(x);
  const uint64_t leading = leading_rank(x, gamma);
  if (fits && count_of(rstd) == product_of(shape, 0, leading)) return;
  Dims expected = shape;
  std::fill_n(expected.begin() + leading, shape.size() - leading, int64_t{1});
  checks.require_tiling(false,
                        "%s has shape %s, expected %s: a number for every row of x, which has "
                        "shape %s and rows of gamma's shape %s",
                        rstd.name, shape_text(shape_of(rstd)).c_str(), shape_text(expected).c_str(),
                        shape_text(shape).c_str(), shape_text(shape_of(gamma)).c_str());
}

// The rstd of the forward, an output: each size is x's or 1.
void check_rstd_out(Checks& checks, Argument rstd, Argument x, Argument gamma) {
  if (!checks.ok()) return;
  const Dims& given = shape_of(rstd);
  const Dims& shape = shape_of(x);
  bool fits = given.size() <= shape.size();
  for (uint64_t d = 0; fits && d < given.size(); ++d) fits = given[d] == shape[d] || given[d] == 1;
  check_rstd(checks, fits, rstd, x, gamma);
}

// The rstd of the gradient, an input: the leading sizes of x, without trailing dimensions of size
// 1, or with additional dimensions.
void check_rstd_in(Checks& checks, Argument rstd, Argument x, Argument gamma) {
  if (!checks.ok()) return;
  const Dims& given = shape_of(rstd);
  const uint64_t leading = leading_rank(x, gamma);
  bool fits = true;
  for (uint64_t d = 0; d < leading; ++d) {
    fits = fits && shape_of(x)[d] == (d < given.size() ? given[d] : 1);
  }
  check_rstd(checks, fits, rstd, x, gamma);
}

// Rejects an empty x with a non-empty output; `since` is the first product that accepts it.
void check_empty(Checks& checks, Argument x, Product since, const char* where) {
  if (!checks.ok() || count_of(x) != 0 || checks.product() >= since) return;
  checks.require_tiling(false,
                        "x has shape %s, expected at least one element beside an output that has "
                        "some; %s accepts it",
                        shape_text(shape_of(x)).c_str(), where);
}

// ---- How the work is divided --------------------------------------------------------------------

// Rows stay in a core's L1 cache from their sums to their results; for the gradient in its L2
// cache, because rows that kernels process together share the loads of gamma and dgamma. As
// fractions of the memory bandwidth, 4096 columns, FLOAT and BFLOAT16, groups of one row: 0.78,
// 0.67; of four: 1.10, 0.91; of eight BFLOAT16 rows: 0.92. The forward of FLOAT16, one row: 0.97;
// four: 0.93.
constexpr Group kGroup = {4096, 1};
constexpr Group kGradGroup = {16384, 4};
// `matrices` matrices of x's size are read and written.
Division division_of(Argument x, Argument gamma, int64_t matrices, Group group) {
  const auto size = static_cast<int64_t>(aclDataTypeSize(x.tensor->view.dtype));
  return {product_of(shape_of(x), 0, leading_rank(x, gamma)), count_of(gamma), matrices * size,
          group};
}

// ---- aclnnRmsNorm -------------------------------------------------------------------------------

// Ascend910's FLOAT16 kernel rounds x * rstd to FLOAT16 before multiplying by gamma, unless a row
// is too long to be normalised at once. (hicann/ops-nn, rms_norm_whole_reduce_sum.h, and
// Tiling4RmsNorm with the 256 KiB of that product's unified buffer.)
constexpr int64_t kMostColumnsAtOnce = 21728;

bool rounds_twice(Product product, aclDataType dtype, int64_t columns) {
  return product == Product::kAscend910 && dtype == ACL_FLOAT16 && columns <= kMostColumnsAtOnce;
}

struct RmsNormPlan {
  static constexpr size_t kMaxTensors = 4;
  enum { kX, kGamma, kY, kRstd };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  double epsilon;
  bool rounds_xhat;  // to x's dtype
  Packed packed[kMaxTensors];
  uint64_t sums = 0;
  uint64_t ones = 0;  // one per column, or per row of a group, if rounds_xhat

  RmsNormPlan(Argument x, Argument gamma, double epsilon, Argument y, Argument rstd,
              Product product, Workspace& workspace)
      : tensors{x.tensor->view, gamma.tensor->view, y.tensor->view, rstd.tensor->view},
        division(division_of(x, gamma, 2, kGroup)),
        epsilon(epsilon),
        rounds_xhat(rounds_twice(product, x.tensor->view.dtype, division.columns)) {
    const aclDataType dtype = tensors[kX].dtype;
    const aclDataType real = real_type(dtype);
    packed[kX] = Packed(tensors[kX], dtype, workspace);
    packed[kGamma] = Packed(tensors[kGamma], real, workspace);
    packed[kY] = Packed(tensors[kY], dtype, workspace);
    packed[kRstd] = Packed(tensors[kRstd], real, workspace);
    sums = workspace.reserve(static_cast<uint64_t>(division.blocks * division.sums_per_block()) *
                             sizeof(double));
    if (rounds_xhat) ones = workspace.reserve(count_of_ones() * sizeof(float));
  }

  bool is_input(size_t i) const { return i < kY; }
  bool is_output(size_t i) const { return i >= kY; }

  aclnnStatus compute(void* workspace) {
    if (tensors[kX].dtype == ACL_DOUBLE) {
      run<double>(workspace, epsilon);
    } else {
      run<float>(workspace, static_cast<float>(epsilon));
    }
    return OK;
  }

 private:
  uint64_t count_of_ones() const {
    return static_cast<uint64_t>(std::max(division.columns, division.rows_per_group));
  }

  template <class Real>
  void run(void* workspace, Real epsilon) const {
    const aclDataType dtype = tensors[kX].dtype;
    const aclDataType real = real_type(dtype);
    const RmsNormKernels& kernels = rms_norm_kernels().find(dtype);
    const void* x = packed[kX].read(tensors[kX], workspace);
    const void* gamma = packed[kGamma].read(tensors[kGamma], workspace);
    void* y = packed[kY].begin(tensors[kY], workspace);
    auto* rstd = static_cast<Real*>(packed[kRstd].begin(tensors[kRstd], workspace));
    const int64_t columns = division.columns;
    auto* const one = reinterpret_cast<float*>(static_cast<char*>(workspace) + ones);
    if (rounds_xhat) std::fill_n(one, count_of_ones(), 1.0f);

    division.for_each_block([&](int64_t block, int64_t begin, int64_t end) {
      double* const means = reinterpret_cast<double*>(static_cast<char*>(workspace) + sums) +
                            block * division.sums_per_block();
      for (int64_t row = begin; row < end; row += division.rows_per_group) {
        const int64_t count = std::min(division.rows_per_group, end - row);
        division.for_each_segment(count, [&](int64_t segment, int64_t i, const RowTile& tile) {
          kernels.sum_of_squares(tile, from(x, row * columns + i, dtype), means + segment);
        });
        division.sums_to_means(means, count);
        for (int64_t k = 0; k < count; ++k) {
          rstd[row + k] = static_cast<Real>(1 / std::sqrt(means[k * division.segments] + epsilon));
        }
        division.for_each_segment(count, [&](int64_t, int64_t i, const RowTile& tile) {
          const void* const scale = from(gamma, i, real);
          void* const result = from(y, row * columns + i, dtype);
          kernels.normalize(tile, from(x, row * columns + i, dtype), rstd + row,
                            rounds_xhat ? one : scale, result);
          if (rounds_xhat) kernels.normalize(tile, result, one, scale, result);
        });
      }
    });
    packed[kY].finish(tensors[kY], workspace);
    packed[kRstd].finish(tensors[kRstd], workspace);
  }
};

// ---- aclnnRmsNormGrad ---------------------------------------------------------------------------

struct RmsNormGradPlan {
  static constexpr size_t kMaxTensors = 6;
  enum { kDy, kX, kRstd, kGamma, kDx, kDgamma };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  double dgamma_of_no_rows;
  Packed packed[kMaxTensors];
  uint64_t sums = 0;
  uint64_t partial = 0;  // dgamma of up to kRowsPerSum rows, per block
  uint64_t totals = 0;   // dgamma per block

  RmsNormGradPlan(Argument dy, Argument x, Argument rstd, Argument gamma, Argument dx,
                  Argument dgamma, Product product, Workspace& workspace)
      : tensors{dy.tensor->view,    x.tensor->view,  rstd.tensor->view,
                gamma.tensor->view, dx.tensor->view, dgamma.tensor->view},
        division(division_of(x, gamma, 3, kGradGroup)),
        // PyTorch returns 0.
        dgamma_of_no_rows(product == Product::kAscend950 ? std::numeric_limits<double>::quiet_NaN()
                                                         : 0) {
    const aclDataType dtype = tensors[kX].dtype;
    const aclDataType real = real_type(dtype);
    for (const size_t i : {kDy, kX, kDx}) packed[i] = Packed(tensors[i], dtype, workspace);
    for (const size_t i : {kRstd, kGamma, kDgamma}) packed[i] = Packed(tensors[i], real, workspace);
    const auto blocks = static_cast<uint64_t>(division.blocks);
    const uint64_t numbers = blocks * static_cast<uint64_t>(division.columns);
    sums = workspace.reserve(blocks * static_cast<uint64_t>(division.sums_per_block()) *
                             sizeof(double));
    partial = workspace.reserve(numbers * aclDataTypeSize(real));
    totals = workspace.reserve(numbers * sizeof(double));
  }

  bool is_input(size_t i) const { return i < kDx; }
  bool is_output(size_t i) const { return i >= kDx; }

  aclnnStatus compute(void* workspace) {
    if (tensors[kX].dtype == ACL_DOUBLE) {
      run<double>(workspace);
    } else {
      run<float>(workspace);
    }
    return OK;
  }

 private:
  template <class T>
  static T* part(void* workspace, uint64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
  }

  template <class Real>
  void run(void* workspace) const {
    const aclDataType dtype = tensors[kX].dtype;
    const aclDataType real = real_type(dtype);
    const RmsNormKernels& kernels = rms_norm_kernels().find(dtype);
    const void* dy = packed[kDy].read(tensors[kDy], workspace);
    const void* x = packed[kX].read(tensors[kX], workspace);
    const auto* rstd = static_cast<const Real*>(packed[kRstd].read(tensors[kRstd], workspace));
    const void* gamma = packed[kGamma].read(tensors[kGamma], workspace);
    void* dx = packed[kDx].begin(tensors[kDx], workspace);
    const int64_t columns = division.columns;

    division.for_each_block([&](int64_t block, int64_t begin, int64_t end) {
      double* const means = part<double>(workspace, sums) + block * division.sums_per_block();
      Real* const rows_sum = part<Real>(workspace, partial) + block * columns;
      double* const total = part<double>(workspace, totals) + block * columns;
      int64_t added = 0;  // rows added to rows_sum
      for (int64_t row = begin; row < end; row += division.rows_per_group) {
        const int64_t count = std::min(division.rows_per_group, end - row);
        division.for_each_segment(count, [&](int64_t segment, int64_t i, const RowTile& tile) {
          const int64_t position = row * columns + i;
          kernels.sum_of_products(tile, from(dy, position, dtype), from(x, position, dtype),
                                  rstd + row, from(gamma, i, real), means + segment);
        });
        division.sums_to_means(means, count);
        const bool first = row == begin;
        const bool fresh = added == 0;
        added += count;
        const bool full = added + division.rows_per_group > kRowsPerSum || row + count == end;
        division.for_each_segment(count, [&](int64_t, int64_t i, const RowTile& tile) {
          const int64_t position = row * columns + i;
          if (first) std::fill_n(total + i, tile.columns, 0.0);
          if (fresh) std::fill_n(rows_sum + i, tile.columns, Real(0));
          kernels.gradients(tile, from(dy, position, dtype), from(x, position, dtype), rstd + row,
                            from(gamma, i, real), means, from(dx, position, dtype), rows_sum + i);
          if (full) add(rows_sum + i, tile.columns, total + i);
        });
        if (full) added = 0;
      }
    });

    auto* dgamma = static_cast<Real*>(packed[kDgamma].begin(tensors[kDgamma], workspace));
    division.add_blocks(part<double>(workspace, totals), dgamma,
                        static_cast<Real>(dgamma_of_no_rows));
    packed[kDx].finish(tensors[kDx], workspace);
    packed[kDgamma].finish(tensors[kDgamma], workspace);
  }
};

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor* x, const aclTensor* gamma, double epsilon,
                                         const aclTensor* yOut, const aclTensor* rstdOut,
                                         uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnRmsNorm";
  const Argument in{"x", x}, scale{"gamma", gamma}, out{"yOut", yOut}, rstd{"rstdOut", rstdOut};
  const std::initializer_list<Argument> all = {in, scale, out, rstd};
  const Given given[] = {in, scale, Named{"epsilon", epsilon}, out, rstd};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.not_null(in)
        .not_null(scale)
        .not_null(out)
        .not_null(rstd)
        .results_not_null(workspaceSize, executor)
        .dtype_row_in(all, kForwardTypes);
    for (const Argument& argument : all) checks.format_like_nd(argument);
    if (launches_nothing(checks, all, 2)) {
      return make_no_launch_executor(kApi, checks, all, 2, workspaceSize, executor);
    }
    check_ranks(checks, in, scale);
    check_same_shape(checks, out, in);
    check_rstd_out(checks, rstd, in, scale);
    check_trailing(checks, scale, in);
    // CANN narrows the C double before the check.
    checks.require_tiling(!(static_cast<float>(epsilon) < 0), "epsilon is %g, expected >= 0",
                          epsilon);
    check_empty(checks, in, Product::kHost, "host");
    for (const Argument& argument : all) checks.addressable(argument);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return RmsNormPlan(in, scale, epsilon, out, rstd, checks.product(), workspace);
    });
  });
}

ACLNN_STAGE2(RmsNorm)

aclnnStatus aclnnRmsNormGradGetWorkspaceSize(const aclTensor* dy, const aclTensor* x,
                                             const aclTensor* rstd, const aclTensor* gamma,
                                             const aclTensor* dxOut, const aclTensor* dgammaOut,
                                             uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnRmsNormGrad";
  const Argument gradient{"dy", dy}, value{"x", x}, factor{"rstd", rstd}, scale{"gamma", gamma};
  const Argument dx{"dxOut", dxOut}, dgamma{"dgammaOut", dgammaOut};
  const std::initializer_list<Argument> all = {gradient, value, factor, scale, dx, dgamma};
  const Given given[] = {gradient, value, factor, scale, dx, dgamma};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : all) checks.not_null(argument);
    checks.results_not_null(workspaceSize, executor).dtype_row_in(all, kGradTypes);
    for (const Argument& argument : all) checks.format_like_nd(argument);
    if (launches_nothing(checks, all, 2)) {
      return make_no_launch_executor(kApi, checks, all, 2, workspaceSize, executor);
    }

    check_ranks(checks, value, scale);
    check_same_rank(checks, gradient, value);
    check_same_rank(checks, dx, gradient);
    check_same_rank(checks, dgamma, scale);
    check_same_shape(checks, gradient, value);
    check_same_shape(checks, dx, gradient);
    if (checks.ok() && *(x->view.shape.end() - 1) == 0) {
      checks.require_tiling(false, "dy has shape %s, expected a last dimension of at least 1",
                            shape_text(x->view.shape).c_str());
    }
    check_rstd_in(checks, factor, value, scale);
    check_trailing(checks, scale, value);
    check_trailing(checks, dgamma, value);
    if (checks.ok() && checks.product() == Product::kAscend910 && count_of(scale) % 64 != 0) {
      checks.require_tiling(false,
                            "gamma has shape %s, expected a multiple of 64 elements; pad it, or "
                            "select another product",
                            shape_text(gamma->view.shape).c_str());
    }
    check_empty(checks, value, Product::kAscend950, "Ascend950");
    for (const Argument& argument : all) checks.addressable(argument);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return RmsNormGradPlan(gradient, value, factor, scale, dx, dgamma, checks.product(),
                             workspace);
    });
  });
}

ACLNN_STAGE2(RmsNormGrad)
