// The kernels of RmsNorm, in every version that this CPU can run: compared with the plain
// reference, and the reference with the formulas of the documents of aclnnRmsNorm and
// aclnnRmsNormGrad; every length and alignment; no access outside.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "host_cann/kernels/rms_norm.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

// ---- Versions ----------------------------------------------------------------------------------

struct Version {
  const char* name;
  const RmsNormKernelsByType& kernels;
};

// The versions that this CPU can run, except the reference.
std::vector<Version> versions() {
  std::vector<Version> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    all.push_back({name, rms_norm_kernels<kCapability>()});
  });
  return all;
}

// ---- A call of all four kernels -----------------------------------------------------------------

// Numbers between 1/8 and 8 in magnitude, of either sign.
template <class T>
std::vector<T> numbers(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> all(n);
  for (T& number : all) {
    if constexpr (std::is_floating_point_v<T>) {
      const auto fraction = T(1) + T(random()) / T(uint64_t(1) << 32);
      number = std::ldexp(fraction, int(random() % 6) - 3) * (random() % 2 ? 1 : -1);
    } else {
      constexpr unsigned kFraction = std::is_same_v<T, Half> ? 10 : 7;
      constexpr unsigned kBias = std::is_same_v<T, Half> ? 15 : 127;
      const unsigned exponent = kBias - 3 + random() % 6;
      number.bits = static_cast<uint16_t>((random() % 2) << 15 | exponent << kFraction |
                                          random() % (1u << kFraction));
    }
  }
  return all;
}

template <class T>
struct Inputs {
  using Real = RealOf<T>;
  RowTile tile;
  std::vector<T> dy, x;
  std::vector<Real> rstd, gamma, dgamma;
  std::vector<double> means;  // with the same gaps as the sums

  Inputs(int64_t rows, int64_t columns, int64_t gap = 3)
      : tile{rows, columns, columns + gap, 2},
        dy(numbers<T>(rows * tile.stride, 1)),
        x(numbers<T>(rows * tile.stride, 2)),
        rstd(numbers<Real>(rows, 3)),
        gamma(numbers<Real>(columns, 4)),
        dgamma(numbers<Real>(columns, 5)),
        means(numbers<double>(2 * rows, 6)) {}

  // The inputs with positive numbers only: their sums scale the rounding errors.
  Inputs magnitudes() const {
    Inputs result = *this;
    const auto clear_signs = [](auto& all) {
      for (auto& number : all) {
        if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(number)>>) {
          number = std::abs(number);
        } else {
          number.bits &= 0x7fff;
        }
      }
    };
    clear_signs(result.dy);
    clear_signs(result.x);
    clear_signs(result.rstd);
    clear_signs(result.gamma);
    clear_signs(result.dgamma);
    return result;
  }
};

template <class T>
struct Outputs {
  std::vector<double> squares, products;
  std::vector<T> y, dx;
  std::vector<RealOf<T>> dgamma;
};

constexpr unsigned char kRedZone = 0xa5;

template <class T>
Outputs<T> run(const RmsNormKernelsByType& version, const Inputs<T>& in) {
  const RmsNormKernels& kernels = pick<T>(version);
  Outputs<T> out{std::vector<double>(in.means.size(), -1), std::vector<double>(in.means.size(), -1),
                 in.x, in.x, in.dgamma};
  for (std::vector<T>* painted : {&out.y, &out.dx}) {
    auto* bytes = reinterpret_cast<unsigned char*>(painted->data());
    std::fill_n(bytes, painted->size() * sizeof(T), kRedZone);
  }
  kernels.sum_of_squares(in.tile, in.x.data(), out.squares.data());
  kernels.normalize(in.tile, in.x.data(), in.rstd.data(), in.gamma.data(), out.y.data());
  kernels.sum_of_products(in.tile, in.dy.data(), in.x.data(), in.rstd.data(), in.gamma.data(),
                          out.products.data());
  kernels.gradients(in.tile, in.dy.data(), in.x.data(), in.rstd.data(), in.gamma.data(),
                    in.means.data(), out.dx.data(), out.dgamma.data());
  return out;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class Number>
bool all_near(const std::vector<Number>& got, const std::vector<Number>& expected,
              const std::vector<Number>& magnitude, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(double(got[i]) - double(expected[i])) <= tolerance * std::abs(magnitude[i]))) {
      return false;
    }
  }
  return true;
}

std::vector<int64_t> lengths() {
  std::vector<int64_t> all;
  for (int64_t n = 0; n <= 70; ++n) all.push_back(n);
  for (int64_t n : {127, 255, 1000, 2047, 2048}) all.push_back(n);
  return all;
}

// ---- Memory -------------------------------------------------------------------------------------

// A copy of some elements that ends at an inaccessible page.
class Fenced {
 public:
  template <class T>
  explicit Fenced(const std::vector<T>& elements) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = elements.size() * sizeof(T);
    const size_t inside = (bytes + page - 1) / page * page;
    size_ = inside + page;
    void* block = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED);
    block_ = static_cast<char*>(block);
    CHECK_EQ(mprotect(block_ + inside, page, PROT_NONE), 0);
    data_ = block_ + inside - bytes;
    if (bytes > 0) std::memcpy(data_, elements.data(), bytes);
  }
  ~Fenced() { munmap(block_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  void* data() const { return data_; }

 private:
  char* block_;
  char* data_;
  size_t size_;
};

}  // namespace

// Functions that only multiply and subtract have the reference's bits. A sum adds fewer than n / 4
// numbers in each lane, and rounds after every addition.
TEST(every_version_computes_the_reference) {
  for_each_type([]<class T>() {
    const double epsilon = std::numeric_limits<RealOf<T>>::epsilon();
    // Four rows are computed together if they have the same alignment.
    for (const auto& [rows, gap] : {std::pair(1, 3), {3, 3}, {4, 0}, {9, 0}, {5, 3}}) {
      for (const int64_t columns : lengths()) {
        const Inputs<T> in(rows, columns, gap);
        const auto& reference = rms_norm_kernels<Capability::kReference>();
        const auto expected = run(reference, in);
        const auto magnitude = run(reference, in.magnitudes());
        const double tolerance = epsilon * (double(columns) / 4 + 8);
        for (const Version& version : versions()) {
          const auto got = run(version.kernels, in);
          const std::string text =
              std::string(version.name) + " with " + std::to_string(columns) + " columns: ";
          const auto report = [&](bool ok, const char* what) {
            check::report(ok, __FILE__, __LINE__, text + what);
          };
          report(all_near(got.squares, expected.squares, magnitude.squares, tolerance), "squares");
          report(all_near(got.products, expected.products, magnitude.products, tolerance),
                 "products");
          report(same_bits(got.y, expected.y), "y");
          report(same_bits(got.dx, expected.dx), "dx");
          report(
              all_near(got.dgamma, expected.dgamma, magnitude.dgamma, epsilon * double(rows + 1)),
              "dgamma");
        }
      }
    }
  });
}

TEST(the_reference_computes_the_formulas) {
  const Inputs<double> in(3, 37);
  const auto got = run(rms_norm_kernels<Capability::kReference>(), in);
  std::vector<double> dgamma = in.dgamma;
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-12 * (1 + std::abs(b)); };
  for (int64_t row = 0; row < in.tile.rows; ++row) {
    double squares = 0, products = 0;
    const double r = in.rstd[row], mean = in.means[row * in.tile.sum_stride];
    for (int64_t i = 0; i < in.tile.columns; ++i) {
      const int64_t at = row * in.tile.stride + i;
      const double xhat = in.x[at] * r, a = in.dy[at] * in.gamma[i];
      squares += in.x[at] * in.x[at];
      products += a * xhat;
      dgamma[i] += in.dy[at] * xhat;
      CHECK(near(got.y[at], xhat * in.gamma[i]));
      CHECK(near(got.dx[at], r * (a - xhat * mean)));
    }
    CHECK(near(got.squares[row * in.tile.sum_stride], squares));
    CHECK(near(got.products[row * in.tile.sum_stride], products));
  }
  for (size_t i = 0; i < dgamma.size(); ++i) CHECK(near(got.dgamma[i], dgamma[i]));
}

// The position of a row in memory does not change its bits, and the gaps between rows are not
// written.
TEST(every_alignment_gives_the_same_bits_and_touches_no_gap) {
  for_each_type([]<class T>() {
    for (const Version& version : versions()) {
      const RmsNormKernels& kernels = pick<T>(version.kernels);
      for (const int64_t columns : lengths()) {
        const Inputs<T> packed(2, columns, /*gap=*/0);
        const auto expected = run(version.kernels, packed);
        for (const int64_t shift : {1, 3, 7, 15, 31}) {
          // The same rows with a gap before each.
          Inputs<T> in(2, columns, /*gap=*/shift);
          std::vector<T> y(in.x.size() + shift), dx(in.x.size() + shift);
          std::vector<T> dy(y.size()), x(y.size());
          std::memset(static_cast<void*>(y.data()), kRedZone, y.size() * sizeof(T));
          dx = y;
          for (int64_t row = 0; row < 2; ++row) {
            const auto to = row * in.tile.stride + shift;
            std::copy_n(packed.dy.begin() + row * columns, columns, dy.begin() + to);
            std::copy_n(packed.x.begin() + row * columns, columns, x.begin() + to);
          }
          std::vector<double> squares(4, -1), products(4, -1);
          auto dgamma = packed.dgamma;
          kernels.sum_of_squares(in.tile, x.data() + shift, squares.data());
          kernels.normalize(in.tile, x.data() + shift, packed.rstd.data(), packed.gamma.data(),
                            y.data() + shift);
          kernels.sum_of_products(in.tile, dy.data() + shift, x.data() + shift, packed.rstd.data(),
                                  packed.gamma.data(), products.data());
          kernels.gradients(in.tile, dy.data() + shift, x.data() + shift, packed.rstd.data(),
                            packed.gamma.data(), packed.means.data(), dx.data() + shift,
                            dgamma.data());
          CHECK(same_bits(squares, expected.squares));
          CHECK(same_bits(products, expected.products));
          CHECK(same_bits(dgamma, expected.dgamma));
          for (const auto& [values, wanted] : {std::pair(&y, &expected.y), {&dx, &expected.dx}}) {
            for (int64_t row = 0; row < 2; ++row) {
              const T* begin = values->data() + row * in.tile.stride;
              const auto* gap = reinterpret_cast<const unsigned char*>(begin);
              CHECK(std::all_of(gap, gap + shift * sizeof(T),
                                [](unsigned char byte) { return byte == kRedZone; }));
              CHECK(columns == 0 || std::memcmp(begin + shift, wanted->data() + row * columns,
                                                columns * sizeof(T)) == 0);
            }
          }
        }
      }
    }
  });
}

TEST(nothing_is_accessed_beyond_the_end) {
  for_each_type([]<class T>() {
    for (const Version& version : versions()) {
      const RmsNormKernels& kernels = pick<T>(version.kernels);
      for (const int64_t columns : lengths()) {
        const Inputs<T> in(5, columns, /*gap=*/0);
        const Fenced dy(in.dy), x(in.x), rstd(in.rstd), gamma(in.gamma), dgamma(in.dgamma);
        const Fenced means(in.means), sums(in.means), out(in.x);
        kernels.sum_of_squares(in.tile, x.data(), static_cast<double*>(sums.data()));
        kernels.normalize(in.tile, x.data(), rstd.data(), gamma.data(), out.data());
        kernels.sum_of_products(in.tile, dy.data(), x.data(), rstd.data(), gamma.data(),
                                static_cast<double*>(sums.data()));
        kernels.gradients(in.tile, dy.data(), x.data(), rstd.data(), gamma.data(),
                          static_cast<const double*>(means.data()), out.data(), dgamma.data());
        const auto expected = run(version.kernels, in);
        CHECK(in.x.empty() ||
              std::memcmp(out.data(), expected.dx.data(), in.x.size() * sizeof(T)) == 0);
      }
    }
  });
}

TEST(infinities_and_nans_go_through) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Version& version : versions()) {
    Inputs<float> in(1, 40);
    in.x[5] = inf;
    in.x[17] = std::numeric_limits<float>::quiet_NaN();
    in.x[33] = -inf;
    const auto got = run(version.kernels, in);
    CHECK(std::isnan(got.squares[0]));
    CHECK(std::isnan(got.products[0]));
    for (size_t i = 0; i < 40; ++i) {
      CHECK_EQ(std::isinf(got.y[i]), i == 5 || i == 33);
      CHECK_EQ(std::isnan(got.y[i]), i == 17);
      CHECK_EQ(std::isnan(got.dgamma[i]), i == 17);
      CHECK_EQ(std::isfinite(got.dx[i]), i != 5 && i != 17 && i != 33);
    }
  }
}
