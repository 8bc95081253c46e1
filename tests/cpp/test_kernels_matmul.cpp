// The matrix product itself, in every version that this CPU can run: against the plain reference
// where every sum is exact; against sums in double; in pieces; nothing written outside.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "kernel_types.h"
#include "kernels/matmul.h"

using namespace aclnn_host;

namespace {

struct Version {
  const char* name;
  const MatmulKernels& kernels;
};

std::vector<Version> versions() {
  std::vector<Version> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    all.push_back({name, matmul_kernels<kCapability>()});
  });
  return all;
}

const MatmulKernels& reference() {
  return matmul_kernels<Capability::kReference>();
}

struct Sizes {
  int64_t rows, columns, depth;
};

// Around tiles of 6 and 12 rows, of 8 to 32 columns, blocks of 96 and 512, and segments of 256.
std::vector<Sizes> cases() {
  std::vector<Sizes> all;
  for (const int64_t rows : {1, 5, 6, 7, 12, 13}) {
    for (const int64_t columns : {1, 4, 8, 15, 16, 17, 31, 32, 33}) {
      for (const int64_t depth : {1, 15, 16, 17}) all.push_back({rows, columns, depth});
    }
  }
  for (const int64_t depth : {255, 256, 257, 600}) all.push_back({13, 35, depth});
  all.push_back({96, 512, 3});
  all.push_back({97, 513, 40});
  all.push_back({200, 1030, 300});
  return all;
}

constexpr float kPaint = 12345;
constexpr int64_t kGap = 3;  // between rows of the result, and elements before and behind it
constexpr int64_t kFence = 64;

// The operands in either order, rows or columns side by side, with gaps between them.
struct Call {
  Sizes sizes;
  bool left_by_columns, right_by_columns, adds;
  std::vector<float> left, right, first;

  template <class Make>
  Call(const Sizes& sizes, int order, Make make)
      : sizes(sizes),
        left_by_columns((order & 1) != 0),
        right_by_columns((order & 2) != 0),
        adds((order & 4) != 0),
        left(numbers((sizes.rows + kGap) * (sizes.depth + kGap), make)),
        right(numbers((sizes.depth + kGap) * (sizes.columns + kGap), make)),
        first(numbers(sizes.rows * sizes.columns, make)) {}

  template <class Make>
  static std::vector<float> numbers(int64_t n, Make make) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& number : all) number = make();
    return all;
  }

  MatrixView left_view() const {
    return left_by_columns ? MatrixView{left.data(), 1, sizes.rows + kGap}
                           : MatrixView{left.data(), sizes.depth + kGap, 1};
  }
  MatrixView right_view() const {
    return right_by_columns ? MatrixView{right.data(), 1, sizes.depth + kGap}
                            : MatrixView{right.data(), sizes.columns + kGap, 1};
  }

  // The result, in so many pieces of rows and columns.
  std::vector<float> run(const MatmulKernels& kernels, const std::string& what,
                         int64_t row_parts = 1, int64_t column_parts = 1) const {
    const int64_t stride = sizes.columns + kGap;
    std::vector<float> memory(static_cast<size_t>(sizes.rows * stride + 2 * kFence), kPaint);
    float* const out = memory.data() + kFence;
    for (int64_t i = 0; adds && i < sizes.rows; ++i) {
      for (int64_t j = 0; j < sizes.columns; ++j) {
        out[i * stride + j] = first[static_cast<size_t>(i * sizes.columns + j)];
      }
    }
    std::vector<float> scratch(static_cast<size_t>(kernels.scratch_size / 4) + 16 + kFence, NAN);
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
        kernels.multiply({rows, columns, sizes.depth, left_view().from(row, 0),
                          right_view().from(0, column), out + row * stride + column, stride, adds},
                         reinterpret_cast<void*>(address));
      }
    }
    std::vector<float> result;
    bool intact = true;
    for (int64_t at = 0; at < static_cast<int64_t>(memory.size()); ++at) {
      const int64_t inside = at - kFence;
      if (inside >= 0 && inside < sizes.rows * stride && inside % stride < sizes.columns) {
        result.push_back(memory[static_cast<size_t>(at)]);
      } else {
        intact &= memory[static_cast<size_t>(at)] == kPaint;
      }
    }
    check::report(intact, __FILE__, __LINE__, what + ": written outside");
    return result;
  }

  std::string text(const char* version) const {
    return std::string(version) + " " + std::to_string(sizes.rows) + "x" +
           std::to_string(sizes.depth) + "x" + std::to_string(sizes.columns) +
           (left_by_columns ? " left by columns" : "") +
           (right_by_columns ? " right by columns" : "") + (adds ? " adds" : "");
  }
};

template <class Body>
void for_each_call(Body body) {
  std::mt19937 random(7);
  for (const Sizes& sizes : cases()) {
    for (int order = 0; order < 8; ++order) body(sizes, order, random);
  }
}

}  // namespace

TEST(exact_sums_are_the_references) {
  for_each_call([](const Sizes& sizes, int order, std::mt19937& random) {
    const Call call(sizes, order,
                    [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4) / 4; });
    const std::vector<float> expected = call.run(reference(), call.text("reference"));
    for (const Version& version : versions()) {
      const std::string text = call.text(version.name);
      check::report(call.run(version.kernels, text) == expected, __FILE__, __LINE__, text);
    }
  });
}

TEST(the_reference_computes_what_it_says) {
  // 1 2   5 6   19 22
  // 3 4   7 8   43 50
  const float left[] = {1, 2, 3, 4};
  const float right[] = {5, 6, 7, 8};
  float out[] = {1, 1, 1, 1};
  reference().multiply({2, 2, 2, {left, 2, 1}, {right, 2, 1}, out, 2, false}, nullptr);
  CHECK(out[0] == 19 && out[1] == 22 && out[2] == 43 && out[3] == 50);
  // The left one transposed, added: 1*5+3*7, 1*6+3*8, 2*5+4*7, 2*6+4*8.
  reference().multiply({2, 2, 2, {left, 1, 2}, {right, 2, 1}, out, 2, true}, nullptr);
  CHECK(out[0] == 19 + 26 && out[1] == 22 + 30 && out[2] == 43 + 38 && out[3] == 50 + 44);
}

TEST(rounding_is_that_of_so_many_sums) {
  // Every sum has at most as many roundings as terms, each half an ULP of a partial sum.
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const Sizes& sizes : {Sizes{30, 70, 1000}, Sizes{7, 33, 4096}}) {
    const Call call(sizes, 0, [&] { return normal(random); });
    for (const Version& version : versions()) {
      const std::vector<float> got = call.run(version.kernels, call.text(version.name));
      double worst = 0;
      for (int64_t i = 0; i < sizes.rows; ++i) {
        for (int64_t j = 0; j < sizes.columns; ++j) {
          double sum = 0;
          double magnitude = 0;
          for (int64_t k = 0; k < sizes.depth; ++k) {
            const double term = static_cast<double>(*call.left_view().from(i, k).data) *
                                *call.right_view().from(k, j).data;
            sum += term;
            magnitude += std::abs(term);
          }
          const double bound = static_cast<double>(sizes.depth + 1) * 0x1p-24 * magnitude;
          const double error = std::abs(got[static_cast<size_t>(i * sizes.columns + j)] - sum);
          worst = std::max(worst, error / bound);
        }
      }
      check::report(worst <= 1, __FILE__, __LINE__, call.text(version.name));
    }
  }
}

TEST(pieces_have_the_same_bits) {
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  for (int order = 0; order < 8; ++order) {
    const Call call({101, 203, 530}, order, [&] { return normal(random); });
    for (const Version& version : versions()) {
      const std::string text = call.text(version.name);
      const std::vector<float> whole = call.run(version.kernels, text);
      for (const int64_t parts : {2, 3, 7}) {
        check::report(call.run(version.kernels, text, parts, 1) == whole, __FILE__, __LINE__, text);
        check::report(call.run(version.kernels, text, 1, parts) == whole, __FILE__, __LINE__, text);
        check::report(call.run(version.kernels, text, parts, parts) == whole, __FILE__, __LINE__,
                      text);
      }
    }
  }
}

TEST(infinities_and_nans_reach_their_own_rows_and_columns_only) {
  for (const Version& version : versions()) {
    Call call({14, 35, 20}, 0, [] { return 1.0f; });
    call.left[static_cast<size_t>(13 * (20 + kGap) + 5)] = INFINITY;
    call.right[static_cast<size_t>(7 * (35 + kGap) + 34)] = NAN;
    const std::vector<float> got = call.run(version.kernels, call.text(version.name));
    for (int64_t i = 0; i < 14; ++i) {
      for (int64_t j = 0; j < 35; ++j) {
        const float value = got[static_cast<size_t>(i * 35 + j)];
        CHECK(j == 34 ? std::isnan(value) : value == (i == 13 ? INFINITY : 20.0f));
      }
    }
  }
}
