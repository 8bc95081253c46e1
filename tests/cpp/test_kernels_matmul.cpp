// The matrix product of FLOAT, DOUBLE and BFLOAT16, in every version that this CPU can run:
// compared with the plain reference where every sum is exact, and with sums in double; in pieces;
// with several terms, and added to the result; nothing is written outside.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "check.h"
#include "host_cann/kernels/matmul.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

// The types of elements, with independent conversions.
template <class T>
T element(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    const auto rounded = static_cast<float>(Brain::round(value));
    return {static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16)};
  }
}
double number(float element) {
  return element;
}
double number(double element) {
  return element;
}
double number(BFloat16 element) {
  return Brain{element.bits}.value();
}

template <class T>
constexpr bool kIsReal = std::is_floating_point_v<T>;

template <class T, class Result>
const MatmulKernel<T, Result>& kernel_of(const MatmulKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return kernels.float64;
  } else if constexpr (kIsReal<Result>) {
    return kernels.bfloat16_sums;
  } else {
    return kernels.bfloat16;
  }
}

template <class T, class Result = T>
struct Version {
  const char* name;
  const MatmulKernel<T, Result>& kernel;
};

template <class T, class Result = T>
std::vector<Version<T, Result>> versions() {
  std::vector<Version<T, Result>> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    if (!kIsReal<T> && !multiplies_bfloat16<kCapability>()) return;
    all.push_back({name, kernel_of<T, Result>(matmul_kernels<kCapability>())});
  });
  return all;
}

template <class T, class Result = T>
const MatmulKernel<T, Result>& reference() {
  return kernel_of<T, Result>(matmul_kernels<Capability::kReference>());
}

// Calls body.operator()<T, Result>() for all types of elements and of results.
template <class Body>
void for_all_types(Body body) {
  body.template operator()<float, float>();
  body.template operator()<double, double>();
  body.template operator()<BFloat16, BFloat16>();
  body.template operator()<BFloat16, float>();
}

// Calls body.operator()<T, Result>() for the combinations whose results are sums.
template <class Body>
void for_types_of_sums(Body body) {
  body.template operator()<float, float>();
  body.template operator()<double, double>();
  body.template operator()<BFloat16, float>();
}

struct Sizes {
  int64_t rows, columns, depth;
  int64_t terms = 1;
};

// Sizes around tiles of 6 and 12 rows, of 8 to 32 columns, blocks of 96, 384 and 512, and segments
// of 256 and 512.
std::vector<Sizes> cases() {
  std::vector<Sizes> all;
  for (const int64_t rows : {1, 5, 6, 7, 12, 13}) {
    for (const int64_t columns : {1, 4, 8, 15, 16, 17, 31, 32, 33}) {
      for (const int64_t depth : {1, 15, 16, 17}) all.push_back({rows, columns, depth});
    }
  }
  for (const int64_t depth : {255, 256, 257, 511, 512, 513, 600}) all.push_back({13, 35, depth});
  for (const int64_t depth : {1, 49, 300}) all.push_back({14, 40, depth, 3});
  all.push_back({385, 33, 20, 2});
  all.push_back({96, 512, 3});
  all.push_back({97, 513, 40});
  all.push_back({200, 1030, 300});
  return all;
}

constexpr float kPaint = 12345;
constexpr int64_t kGap = 3;  // between rows of the result, and elements before and after it
constexpr int64_t kFence = 64;

enum class Bias { kNone, kOfRows, kOfColumns };

// The operands in either order, with contiguous rows or columns, and gaps between them.
template <class T, class Result = T>
struct Call {
  Sizes sizes;
  bool left_by_columns, right_by_columns;
  Bias bias;
  std::vector<T> left, right;
  std::vector<Result> biases;
  // If not 0, the product of this many terms is computed first, and that of the others is added.
  int64_t first_terms = 0;
  bool adds = false;  // to the initial fill

  template <class Make>
  Call(const Sizes& sizes, int order, Bias bias, Make make)
      : sizes(sizes),
        left_by_columns((order & 1) != 0),
        right_by_columns((order & 2) != 0),
        bias(bias),
        left(numbers<T>(left_size() * sizes.terms, make)),
        right(numbers<T>(right_size() * sizes.terms, make)),
        biases(numbers<Result>(bias == Bias::kOfRows ? sizes.rows : sizes.columns, make)) {}

  template <class Type, class Make>
  static std::vector<Type> numbers(int64_t n, Make make) {
    std::vector<Type> all(static_cast<size_t>(n));
    for (Type& one : all) one = element<Type>(make());
    return all;
  }

  // The sizes for one term.
  int64_t left_size() const { return (sizes.rows + kGap) * (sizes.depth + kGap); }
  int64_t right_size() const { return (sizes.depth + kGap) * (sizes.columns + kGap); }

  MatrixView<T> left_view() const {
    return left_by_columns ? MatrixView<T>{left.data(), 1, sizes.rows + kGap}
                           : MatrixView<T>{left.data(), sizes.depth + kGap, 1};
  }
  MatrixView<T> right_view() const {
    return right_by_columns ? MatrixView<T>{right.data(), 1, sizes.depth + kGap}
                            : MatrixView<T>{right.data(), sizes.columns + kGap, 1};
  }

  MatrixView<Result> bias_view() const {
    if (bias == Bias::kNone) return {};
    const bool of_rows = bias == Bias::kOfRows;
    return {biases.data(), of_rows ? 1 : 0, of_rows ? 0 : 1};
  }

  // The result, computed in this many pieces of rows and columns.
  std::vector<Result> run(const MatmulKernel<T, Result>& kernel, const std::string& what,
                          int64_t row_parts = 1, int64_t column_parts = 1) const {
    const int64_t stride = sizes.columns + kGap;
    const auto paint = element<Result>(kPaint);
    std::vector<Result> memory(static_cast<size_t>(sizes.rows * stride + 2 * kFence), paint);
    Result* const out = memory.data() + kFence;
    std::vector<float> scratch(static_cast<size_t>(kernel.scratch_size / 4) + 16 + kFence, NAN);
    auto address = reinterpret_cast<uintptr_t>(scratch.data());
    address = (address + 63) / 64 * 64;
    const auto cut = [](int64_t part, int64_t parts, int64_t size) { return size * part / parts; };
    for (int64_t i = 0; i < row_parts; ++i) {
      for (int64_t j = 0; j < column_parts; ++j) {
        const int64_t row = cut(i, row_parts, sizes.rows);
        const int64_t column = cut(j, column_parts, sizes.columns);
        const int64_t rows = cut(i + 1, row_parts, sizes.rows) - row;
        const int64_t columns = cut(j + 1, column_parts, sizes.columns) - column;
        if (rows == 0 || columns == 0) continue;
        MatrixProduct<T, Result> product{.rows = rows,
                                         .columns = columns,
                                         .depth = sizes.depth,
                                         .left = left_view().from(row, 0),
                                         .right = right_view().from(0, column),
                                         .out = out + row * stride + column,
                                         .out_stride = stride,
                                         .bias = bias_view().from(row, column),
                                         .terms = sizes.terms,
                                         .left_term = left_size(),
                                         .right_term = right_size(),
                                         .adds = adds};
        if (first_terms > 0) {
          MatrixProduct<T, Result> first = product;
          first.bias = {};
          first.terms = first_terms;
          kernel.multiply(first, reinterpret_cast<void*>(address));
          product.left.data += first_terms * left_size();
          product.right.data += first_terms * right_size();
          product.terms -= first_terms;
          product.adds = true;
        }
        kernel.multiply(product, reinterpret_cast<void*>(address));
      }
    }
    std::vector<Result> result;
    bool intact = true;
    for (int64_t at = 0; at < static_cast<int64_t>(memory.size()); ++at) {
      const int64_t inside = at - kFence;
      if (inside >= 0 && inside < sizes.rows * stride && inside % stride < sizes.columns) {
        result.push_back(memory[static_cast<size_t>(at)]);
      } else {
        intact &= memory[static_cast<size_t>(at)] == paint;
      }
    }
    check::report(intact, __FILE__, __LINE__, what + ": written outside");
    return result;
  }

  std::string text(const char* version) const {
    return std::string(version) +
           (std::is_same_v<T, float>    ? " float "
            : std::is_same_v<T, double> ? " double "
            : kIsReal<Result>           ? " bfloat16 sums "
                                        : " bfloat16 ") +
           std::to_string(sizes.rows) + "x" + std::to_string(sizes.depth) + "x" +
           std::to_string(sizes.columns) + " in " + std::to_string(sizes.terms) +
           (left_by_columns ? " left by columns" : "") +
           (right_by_columns ? " right by columns" : "") +
           (bias == Bias::kNone     ? ""
            : bias == Bias::kOfRows ? " and a bias of rows"
                                    : " and a bias of columns");
  }
};

// Every combination of a size, an order and a bias.
template <class Body>
void for_each_call(Body body) {
  constexpr std::array kBiases{Bias::kNone, Bias::kOfRows, Bias::kOfColumns};
  std::mt19937 random(7);
  size_t first = 0;
  for (const Sizes& sizes : cases()) {
    for (int order = 0; order < 4; ++order) {
      body(sizes, order, kBiases[(first + order) % kBiases.size()], random);
    }
    ++first;
  }
}

}  // namespace

TEST(exact_sums_are_the_references) {
  for_all_types([]<class T, class Result>() {
    for_each_call([](const Sizes& sizes, int order, Bias bias, std::mt19937& random) {
      const auto quarters = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
      const Call<T, Result> call(sizes, order, bias, [&] { return quarters() / 4; });
      const std::vector<Result> expected = call.run(reference<T, Result>(), call.text("reference"));
      for (const Version<T, Result>& version : versions<T, Result>()) {
        const std::string text = call.text(version.name);
        check::report(call.run(version.kernel, text) == expected, __FILE__, __LINE__, text);
      }
    });
  });
}

TEST(the_reference_computes_what_it_says) {
  for_all_types([]<class T, class Result>() {
    // 1 2   5 6   19 22
    // 3 4   7 8   43 50
    const auto matrix = []<class Type>(Type, double a, double b, double c, double d) {
      return std::array{element<Type>(a), element<Type>(b), element<Type>(c), element<Type>(d)};
    };
    const auto result = std::bind_front(matrix, Result());
    const auto lefts = matrix(T(), 1, 2, 3, 4);
    const auto rights = matrix(T(), 5, 6, 7, 8);
    auto out = result(1, 1, 1, 1);
    const T* const left = lefts.data();
    const T* const right = rights.data();
    const auto& multiply = reference<T, Result>().multiply;
    multiply({2, 2, 2, {left, 2, 1}, {right, 2, 1}, out.data(), 2}, nullptr);
    CHECK(out == result(19, 22, 43, 50));
    // The left operand transposed, and a bias: 1*5+3*7, 1*6+3*8, 2*5+4*7, 2*6+4*8.
    const std::array bias{element<Result>(100), element<Result>(50)};
    multiply({2, 2, 2, {left, 1, 2}, {right, 2, 1}, out.data(), 2, {bias.data(), 1, 0}}, nullptr);
    CHECK(out == result(100 + 26, 100 + 30, 50 + 38, 50 + 44));
    multiply({2, 2, 2, {left, 1, 2}, {right, 2, 1}, out.data(), 2, {bias.data(), 0, 1}}, nullptr);
    CHECK(out == result(100 + 26, 50 + 30, 100 + 38, 50 + 44));
    // Two terms of one row and one column each: (1)(5 6) + (2)(7 8) and so on.
    multiply({2, 2, 1, {left, 2, 1}, {right, 2, 1}, out.data(), 2, {}, 2, 1, 2}, nullptr);
    CHECK(out == result(19, 22, 43, 50));
  });
}

// Not for the reference, which sums in DOUBLE and rounds each product once.
TEST(what_is_added_has_the_bits_of_further_terms) {
  for_types_of_sums([]<class T, class Result>() {
    for_each_call([](Sizes sizes, int order, Bias bias, std::mt19937& random) {
      std::normal_distribution<double> normal;
      sizes.terms = std::max<int64_t>(sizes.terms, 2);
      Call<T, Result> call(sizes, order, bias, [&] { return normal(random); });
      for (const Version<T, Result>& version : versions<T, Result>()) {
        const std::string text = call.text(version.name);
        call.first_terms = 0;
        const std::vector<Result> whole = call.run(version.kernel, text);
        for (call.first_terms = 1; call.first_terms < sizes.terms; ++call.first_terms) {
          check::report(call.run(version.kernel, text) == whole, __FILE__, __LINE__, text);
        }
      }
    });
  });
}

TEST(what_is_there_is_added) {
  for_types_of_sums([]<class T, class Result>() {
    for_each_call([](const Sizes& sizes, int order, Bias bias, std::mt19937& random) {
      const auto quarters = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
      Call<T, Result> call(sizes, order, bias, [&] { return quarters() / 4; });
      const MatmulKernel<T, Result>& plain = reference<T, Result>();
      std::vector<Result> expected = call.run(plain, call.text("reference"));
      for (Result& value : expected) value += kPaint;  // exact
      call.adds = true;
      std::vector<Version<T, Result>> all = versions<T, Result>();
      all.push_back({"reference", plain});
      for (const Version<T, Result>& version : all) {
        const std::string text = call.text(version.name);
        check::report(call.run(version.kernel, text) == expected, __FILE__, __LINE__, text);
      }
    });
  });
}

TEST(rounding_is_that_of_so_many_sums) {
  // Every sum has at most as many roundings as terms, each half an ULP of a partial sum; BFLOAT16
  // is rounded once more.
  for_all_types([]<class T, class Result>() {
    std::mt19937 random(11);
    std::normal_distribution<double> normal;
    for (const Sizes& sizes : {Sizes{30, 70, 1000}, Sizes{7, 33, 4096}}) {
      const Call<T, Result> call(sizes, 0, Bias::kNone, [&] { return normal(random); });
      for (const Version<T, Result>& version : versions<T, Result>()) {
        const std::vector<Result> got = call.run(version.kernel, call.text(version.name));
        double worst = 0;
        for (int64_t i = 0; i < sizes.rows; ++i) {
          for (int64_t j = 0; j < sizes.columns; ++j) {
            long double sum = 0;
            double magnitude = 0;
            for (int64_t k = 0; k < sizes.depth; ++k) {
              const long double term =
                  static_cast<long double>(number(*call.left_view().from(i, k).data)) *
                  number(*call.right_view().from(k, j).data);
              sum += term;
              magnitude += std::abs(static_cast<double>(term));
            }
            const double unit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
            double bound = static_cast<double>(sizes.depth + 1) * unit * magnitude;
            if (!kIsReal<Result>) bound += std::abs(static_cast<double>(sum)) * 0x1p-8;
            const double result = number(got[static_cast<size_t>(i * sizes.columns + j)]);
            worst = std::max(worst, std::abs(static_cast<double>(result - sum)) / bound);
          }
        }
        check::report(worst <= 1, __FILE__, __LINE__, call.text(version.name));
      }
    }
  });
}

TEST(a_bias_costs_one_rounding_however_large_it_is) {
  // Exact sums over more than one segment, and biases whose last place is an eighth.
  for (const Bias bias : {Bias::kOfRows, Bias::kOfColumns}) {
    std::mt19937 random(17);
    const auto quarter = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4) / 4; };
    Call<float> call({13, 35, 1400}, 0, bias, quarter);
    for (const Version<float>& version : versions<float>()) {
      const std::string text = call.text(version.name);
      std::fill(call.biases.begin(), call.biases.end(), 0.0f);
      std::vector<float> expected = call.run(version.kernel, text);
      for (size_t i = 0; i < call.biases.size(); ++i) {
        call.biases[i] = 0x1p20f + static_cast<float>(2 * i + 1) / 8;
      }
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += call.biases[bias == Bias::kOfRows ? i / 35 : i % 35];
      }
      check::report(call.run(version.kernel, text) == expected, __FILE__, __LINE__, text);
    }
  }
}

TEST(sums_of_bfloat16_are_rounded_once) {
  struct Sum {
    double bias, begin, rest;  // and the terms
    double rounded;
  };
  // The exact result is 258. Segments rounded on their own would give 256, and so would a rounded
  // product.
  for (const Sum& sum : {Sum{2, 254, 0x1p-9, 258}, Sum{1, 255, 0x1p-9, 258}}) {
    const int64_t depth = 1025;
    Call<BFloat16> call({3, 35, depth}, 0, Bias::kOfRows, [] { return 1.0f; });
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t k = 0; k < depth; ++k) {
        call.left[static_cast<size_t>(i * (depth + kGap) + k)] =
            element<BFloat16>(k == 0 ? sum.begin : sum.rest);
      }
    }
    for (BFloat16& bias : call.biases) bias = element<BFloat16>(sum.bias);
    for (const Version<BFloat16>& version : versions<BFloat16>()) {
      for (const BFloat16 value : call.run(version.kernel, call.text(version.name))) {
        CHECK(value == element<BFloat16>(sum.rounded));
      }
    }
  }
}

TEST(pieces_have_the_same_bits) {
  for_all_types([]<class T, class Result>() {
    std::mt19937 random(13);
    std::normal_distribution<double> normal;
    for (int order = 0; order < 8; ++order) {
      const Bias bias = (order & 4) != 0 ? Bias::kOfColumns : Bias::kOfRows;
      const Call<T, Result> call({101, 203, 530}, order, bias, [&] { return normal(random); });
      for (const Version<T, Result>& version : versions<T, Result>()) {
        const std::string text = call.text(version.name);
        const std::vector<Result> whole = call.run(version.kernel, text);
        const auto is_whole = [&](int64_t rows, int64_t columns) {
          check::report(call.run(version.kernel, text, rows, columns) == whole, __FILE__, __LINE__,
                        text);
        };
        for (const int64_t parts : {2, 3, 7}) {
          is_whole(parts, 1);
          is_whole(1, parts);
          is_whole(parts, parts);
        }
      }
    }
  });
}

TEST(infinities_and_nans_reach_their_own_rows_and_columns_only) {
  for_all_types([]<class T, class Result>() {
    for (const Version<T, Result>& version : versions<T, Result>()) {
      Call<T, Result> call({14, 35, 20}, 0, Bias::kNone, [] { return 1.0f; });
      call.left[static_cast<size_t>(13 * (20 + kGap) + 5)] = element<T>(INFINITY);
      call.right[static_cast<size_t>(7 * (35 + kGap) + 34)] = element<T>(NAN);
      const std::vector<Result> got = call.run(version.kernel, call.text(version.name));
      for (int64_t i = 0; i < 14; ++i) {
        for (int64_t j = 0; j < 35; ++j) {
          const double value = number(got[static_cast<size_t>(i * 35 + j)]);
          CHECK(j == 34 ? std::isnan(value) : value == (i == 13 ? INFINITY : 20.0f));
        }
      }
    }
  });
}
