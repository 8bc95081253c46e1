// The kernels of all elementwise operators and of LayerNorm, in every version that this CPU can
// run, compared with the plain reference: values of every magnitude and every length. Nothing is
// written after the end.
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "check.h"
#include "elementwise_kernels.h"
#include "host_cann/kernels/layer_norm.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

bool reads_gradient(const NamedKernels& function) {
  return function.name.find("backward") != std::string_view::npos;
}

template <class T>
T rounded(double value) {
  if constexpr (kIsSmall<T>) {
    const double rounded = T::round(value);
    T element{0};  // magnitudes have the order of their bits
    for (int bit = 0x4000; bit != 0; bit >>= 1) {
      const T larger{static_cast<uint16_t>(element.bits | bit)};
      if (larger.bits <= T::kInfinity && larger.value() <= std::abs(rounded)) element = larger;
    }
    if (std::signbit(rounded)) element.bits |= 0x8000;
    return element;
  } else {
    return static_cast<T>(value);
  }
}

// From -20 to 20, with the curved part densely sampled, and zeros.
template <class T>
std::vector<T> samples() {
  std::vector<T> values;
  for (int i = -80; i <= 80; ++i) values.push_back(rounded<T>(i * std::abs(i) / 320.0));
  values.push_back(rounded<T>(-0.0));
  return values;
}

// True if the difference is within the roundings of both: relative to the largest part of a sum,
// which is at most the gradient times 1 + |x|.
template <class T>
bool close(T got, T expected, double scale) {
  const double a = value_of(got), b = value_of(expected);
  if (std::isnan(b)) return std::isnan(a);
  constexpr double kUnit = std::is_same_v<T, double>  ? 0x1p-52
                           : std::is_same_v<T, float> ? 0x1p-23
                           : std::is_same_v<T, Half>  ? 0x1p-10
                                                      : 0x1p-7;
  constexpr int kUnits = kIsSmall<T> ? 1 : 8;
  return a == b ||
         std::abs(a - b) <=
             kUnits * kUnit * std::max(std::abs(b), kIsSmall<T> ? 0x1p-10 * scale : scale);
}

template <class T>
std::vector<T> run(const NamedKernels& function, const std::vector<T>& g, const std::vector<T>& x,
                   size_t n) {
  constexpr size_t kGuard = 40;
  const T mark = rounded<T>(-77.0);
  std::vector<T> out(n + kGuard, mark);
  // More coefficients than any function reads: Softplus has two, ELU three.
  const RealOf<T> coefficients[8] = {1.5, 3, 0.5, 1, 1, 1, 1, 1};
  const bool is_backward = reads_gradient(function);
  pick<T>(function.kernels)(&coefficients, is_backward ? g.data() : x.data(),
                            is_backward ? x.data() : nullptr, out.data(), static_cast<int64_t>(n),
                            false);
  for (size_t i = n; i < out.size(); ++i) CHECK_EQ(value_of(out[i]), value_of(mark));
  out.resize(n);
  return out;
}

// What the kernels of LayerNorm write.
template <class T>
struct LayerNormResults {
  std::vector<double> sums, squares, a, products;
  std::vector<T> y, dx;
  std::vector<RealOf<T>> dgamma, dbeta;
};

// The arguments of the kernels of LayerNorm, for a number of columns.
template <class T>
struct LayerNormArguments {
  using Real = RealOf<T>;
  static constexpr int64_t kRows = 6;

  explicit LayerNormArguments(int64_t columns) : tile{kRows, columns, columns, 1} {
    for (size_t i = 0; i < static_cast<size_t>(kRows * columns); ++i) {
      x.push_back(rounded<T>(static_cast<double>(i * 7 % 13) / 4 - 1.25));
      dy.push_back(rounded<T>(static_cast<double>(i * 5 % 11) / 2 - 2));
    }
    for (int64_t i = 0; i < columns; ++i) {
      gamma.push_back(static_cast<Real>(i % 5) / 4 + 1);
      beta.push_back(static_cast<Real>(i % 3) - 1);
    }
    for (int64_t i = 0; i < kRows; ++i) {
      mean.push_back(static_cast<Real>(i) / 8);
      rstd.push_back(1 + static_cast<Real>(i) / 4);
    }
  }

  LayerNormResults<T> run(const LayerNormKernels& kernels) const {
    LayerNormResults<T> r;
    for (auto* sums : {&r.sums, &r.squares, &r.a, &r.products}) sums->resize(kRows);
    r.y.resize(x.size());
    r.dx.resize(x.size());
    r.dgamma.assign(gamma.size(), 0);
    r.dbeta.assign(gamma.size(), 0);
    kernels.sum(tile, x.data(), r.sums.data());
    kernels.sum_of_squares(tile, x.data(), mean.data(), r.squares.data());
    kernels.normalize(tile, x.data(), mean.data(), rstd.data(), gamma.data(), beta.data(),
                      r.y.data());
    kernels.sums_of_products(tile, dy.data(), x.data(), mean.data(), rstd.data(), gamma.data(),
                             r.a.data(), r.products.data());
    kernels.gradient(tile, dy.data(), x.data(), mean.data(), rstd.data(), gamma.data(),
                     mean_of_rows, mean_of_rows, r.dx.data());
    kernels.weight_gradients(tile, dy.data(), x.data(), mean.data(), rstd.data(), r.dgamma.data(),
                             r.dbeta.data());
    return r;
  }

  RowTile tile;
  std::vector<T> x, dy;
  std::vector<Real> gamma, beta, mean, rstd;
  double mean_of_rows[kRows] = {0.5, -0.25, 0, 1, 0.125, -1};
};

template <class T>
void check_close(const LayerNormResults<T>& got, const LayerNormResults<T>& expected) {
  using Real = RealOf<T>;
  const double scale = 8.0 * static_cast<double>(expected.dgamma.size());
  for (size_t i = 0; i < expected.sums.size(); ++i) {
    const auto same = [&](const std::vector<double>& a, const std::vector<double>& b) {
      CHECK(close(static_cast<Real>(a[i]), static_cast<Real>(b[i]), scale));
    };
    same(got.sums, expected.sums);
    same(got.squares, expected.squares);
    same(got.a, expected.a);
    same(got.products, expected.products);
  }
  for (size_t i = 0; i < expected.y.size(); ++i) {
    CHECK(close(got.y[i], expected.y[i], 8));
    CHECK(close(got.dx[i], expected.dx[i], 16));
  }
  for (size_t i = 0; i < expected.dgamma.size(); ++i) {
    CHECK(close(got.dgamma[i], expected.dgamma[i], 64));
    CHECK(close(got.dbeta[i], expected.dbeta[i], 64));
  }
}

}  // namespace

TEST(functions_are_those_of_the_reference) {
  for_each_type([]<class T>() {
    const std::vector<T> x = samples<T>();
    std::vector<T> g;
    for (size_t i = 0; i < x.size(); ++i) g.push_back(rounded<T>(1.5 - static_cast<double>(i % 5)));
    const std::vector<NamedKernels> reference = elementwise_kernels<Capability::kReference>();
    for_each_capability([&]<Capability kCapability>(const char*) {
      const std::vector<NamedKernels> version = elementwise_kernels<kCapability>();
      for (size_t f = 0; f < version.size(); ++f) {
        const bool is_backward = reads_gradient(version[f]);
        const auto expected = run(reference[f], g, x, x.size());
        const auto all = run(version[f], g, x, x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const double scale =
              (is_backward ? std::abs(value_of(g[i])) : 1) * (1 + std::abs(value_of(x[i])));
          CHECK(close(all[i], expected[i], scale));
        }
        for (size_t n = 0; n < 70; ++n) {
          const auto some = run(version[f], g, x, n);
          CHECK(n == 0 || std::memcmp(some.data(), all.data(), n * sizeof(T)) == 0);
        }
      }
    });
  });
}

// What docs/benchmarks.md says of large tensors of 16 bits.
TEST(functions_with_an_exponential_gain_by_lookup_in_16_bits) {
  const auto gains = [](const FloatKernels& kernels) {
    CHECK_EQ(kernels.float16.gains_by_lookup(), kernels.bfloat16.gains_by_lookup());
    CHECK(!kernels.float32.gains_by_lookup() && !kernels.float64.gains_by_lookup());
    return kernels.bfloat16.gains_by_lookup();
  };
  for_each_capability([&]<Capability kCapability>(const char* name) {
    CHECK(gains(gelu_kernels<kCapability>().forward));
    CHECK(gains(gelu_kernels<kCapability>().tanh_forward));
    const bool expected = std::string_view(name) != "avx512";
    CHECK_EQ(gains(elu_kernels<kCapability>().forward), expected);
    CHECK_EQ(gains(mish_kernels<kCapability>().forward), expected);
    CHECK_EQ(gains(silu_kernels<kCapability>().forward), expected);
    CHECK_EQ(gains(softplus_kernels<kCapability>().forward), expected);
    CHECK(!gains(elu_kernels<kCapability>().threshold));
    CHECK(!gains(hardsigmoid_kernels<kCapability>().forward));
    CHECK(!gains(hardswish_kernels<kCapability>().forward));
  });
}

TEST(layer_norm_is_that_of_the_reference) {
  for_each_type([]<class T>() {
    for (const int64_t columns : {1, 2, 7, 15, 16, 17, 33, 64, 100, 515}) {
      const LayerNormArguments<T> arguments(columns);
      const LayerNormResults<T> expected =
          arguments.run(pick<T>(layer_norm_kernels<Capability::kReference>()));
      for_each_capability([&]<Capability kCapability>(const char*) {
        check_close(arguments.run(pick<T>(layer_norm_kernels<kCapability>())), expected);
      });
    }
  });
}
