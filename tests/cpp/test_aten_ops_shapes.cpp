// Calls with shapes that do not fit: stage 1 refuses them and does not write to the output. The
// tensors are large enough that operators compute directly in the output's memory where they may.
// Also shapes for which torch in Python has another answer, which a program in Python tests, too
// (tests/test_aten_abuse.py).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "check.h"

extern "C" {
aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor*, const aclTensor*, const aclScalar*,
                                     aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnAdd(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnMmGetWorkspaceSize(const aclTensor*, const aclTensor*, aclTensor*, int8_t,
                                    uint64_t*, aclOpExecutor**);
aclnnStatus aclnnMm(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnTriuGetWorkspaceSize(const aclTensor*, int64_t, aclTensor*, uint64_t*,
                                      aclOpExecutor**);
aclnnStatus aclnnTriu(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnForeachSqrtGetWorkspaceSize(const aclTensorList*, aclTensorList*, uint64_t*,
                                             aclOpExecutor**);
aclnnStatus aclnnForeachSqrt(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnBatchNormGetWorkspaceSize(const aclTensor*, const aclTensor*, const aclTensor*,
                                           aclTensor*, aclTensor*, bool, double, double, aclTensor*,
                                           aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnBatchNorm(void*, uint64_t, aclOpExecutor*, aclrtStream);
}

namespace {

constexpr float kUntouched = 77;
constexpr int64_t kSize = 64;

// A matrix in larger memory, so that writes beyond it are detected.
struct Matrix {
  Matrix(int64_t rows, int64_t columns)
      : memory(static_cast<size_t>(2 * kSize * kSize), kUntouched) {
    const int64_t shape[] = {rows, columns}, strides[] = {columns, 1};
    const int64_t elements = rows * columns;
    tensor = aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &elements, 1,
                             memory.data());
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { aclDestroyTensor(tensor); }

  std::vector<float> memory;
  aclTensor* tensor = nullptr;
};

struct Stage1 {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

// Prepares a call that stage 1 must refuse, and checks that its output is unchanged.
void check_refused(const std::function<aclnnStatus(Stage1*)>& prepare, const Matrix& out) {
  Stage1 stage;
  CHECK_EQ(prepare(&stage), ACLNN_ERR_PARAM_INVALID);
  CHECK(std::ranges::all_of(out.memory, [](float value) { return value == kUntouched; }));
}

// Shapes with another number of elements than kSize x kSize, or the same number in another
// arrangement.
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{kSize, kSize - 1},
                                                          {kSize - 1, kSize},
                                                          {kSize / 2, kSize},
                                                          {kSize / 2, kSize * 2},
                                                          {1, kSize * kSize}};

}  // namespace

TEST(a_sum_into_another_shape) {
  const Matrix a(kSize, kSize), b(kSize, kSize);
  float one = 1;
  aclScalar* const alpha = aclCreateScalar(&one, ACL_FLOAT);
  for (const auto& [rows, columns] : kShapes) {
    const Matrix out(rows, columns);
    check_refused(
        [&](Stage1* s) {
          return aclnnAddGetWorkspaceSize(a.tensor, b.tensor, alpha, out.tensor, &s->size,
                                          &s->executor);
        },
        out);
  }
  aclDestroyScalar(alpha);
}

TEST(a_product_into_another_shape) {
  const Matrix a(kSize, kSize), b(kSize, kSize);
  for (const auto& [rows, columns] : kShapes) {
    const Matrix out(rows, columns);
    check_refused(
        [&](Stage1* s) {
          return aclnnMmGetWorkspaceSize(a.tensor, b.tensor, out.tensor, 0, &s->size, &s->executor);
        },
        out);
  }
}

TEST(a_triangle_into_another_shape) {
  const Matrix a(kSize, kSize);
  for (const auto& [rows, columns] : kShapes) {
    const Matrix out(rows, columns);
    check_refused(
        [&](Stage1* s) {
          return aclnnTriuGetWorkspaceSize(a.tensor, 0, out.tensor, &s->size, &s->executor);
        },
        out);
  }
}

TEST(a_list_into_another_shape) {
  Matrix a(kSize, kSize);
  aclTensorList* const in = aclCreateTensorList(&a.tensor, 1);
  for (const auto& [rows, columns] : kShapes) {
    Matrix out(rows, columns);
    aclTensorList* const to = aclCreateTensorList(&out.tensor, 1);
    check_refused(
        [&](Stage1* s) { return aclnnForeachSqrtGetWorkspaceSize(in, to, &s->size, &s->executor); },
        out);
    aclDestroyTensorList(to);
    out.tensor = nullptr;  // the list has destroyed it
  }
  aclDestroyTensorList(in);
  a.tensor = nullptr;
}

TEST(the_right_shape_is_accepted) {
  const Matrix a(kSize, kSize), out(kSize, kSize);
  Stage1 s;
  CHECK_EQ(aclnnTriuGetWorkspaceSize(a.tensor, 0, out.tensor, &s.size, &s.executor), 0);
  CHECK_EQ(aclnnTriu(nullptr, s.size, s.executor, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(out.memory[0], kUntouched);
  CHECK_EQ(out.memory[static_cast<size_t>(kSize)], 0.0f);
  CHECK_EQ(out.memory[static_cast<size_t>(kSize * kSize)], kUntouched);
}

// One number has no unbiased variance; torch's function in Python divides by 0 there. The mean is
// half of 1 and half of 3, the result (3 - 3) / sqrt(0 + 1).
TEST(a_batch_norm_of_one_number) {
  const int64_t five[] = {1, 1, 1, 1, 1}, one[] = {1};
  float x = 3, y = kUntouched, mean = 1, variance = 1, batch_mean = 0, batch_variance = 0;
  const auto tensor = [](const int64_t* shape, uint64_t rank, float* number) {
    return aclCreateTensor(shape, rank, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, rank, number);
  };
  aclTensor* const tensors[] = {tensor(five, 5, &x),         tensor(one, 1, &mean),
                                tensor(one, 1, &variance),   tensor(five, 5, &y),
                                tensor(one, 1, &batch_mean), tensor(one, 1, &batch_variance)};
  Stage1 s;
  CHECK_EQ(aclnnBatchNormGetWorkspaceSize(tensors[0], nullptr, nullptr, tensors[1], tensors[2],
                                          /*training=*/true, 0.5, 1.0, tensors[3], tensors[4],
                                          tensors[5], &s.size, &s.executor),
           0);
  CHECK_EQ(aclnnBatchNorm(nullptr, s.size, s.executor, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(y, 0.0f);
  CHECK_EQ(mean, 2.0f);
  CHECK(std::isnan(variance));
  CHECK_EQ(batch_mean, 3.0f);
  CHECK_EQ(batch_variance, 0.0f);
  for (aclTensor* const each : tensors) aclDestroyTensor(each);
}
