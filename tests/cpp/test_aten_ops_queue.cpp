// Calls with shapes that do not fit, from a thread that Python does not know, as torch_npu's queue
// is one: stage 1 cannot ask ATen about the shapes there, so the stream finds them, and does not
// write to the output. The tensors have so many elements that operators compute in the output's own
// memory if they may.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "check.h"

extern "C" {
// Python's, for which the program stands in: no thread has a state.
void* PyGILState_GetThisThreadState() {
  return nullptr;
}

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
}

namespace {

constexpr float kUntouched = 77;
constexpr int64_t kSize = 64;

// A matrix, of which the memory is larger, so that what is written beyond it is seen.
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
using Run = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

// Runs a call, which one of the stages or the stream refuses, and looks at its output.
void check_refused(const std::function<aclnnStatus(Stage1*)>& prepare, Run run, const Matrix& out) {
  Stage1 stage;
  aclnnStatus status = prepare(&stage);
  if (status == 0) status = run(nullptr, stage.size, stage.executor, nullptr);
  if (status == 0) status = aclrtSynchronizeStream(nullptr);
  CHECK(status != 0);
  CHECK(std::ranges::all_of(out.memory, [](float value) { return value == kUntouched; }));
}

// Shapes of an output that has other elements than kSize x kSize, or the same in another order.
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
        aclnnAdd, out);
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
        aclnnMm, out);
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
        aclnnTriu, out);
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
        aclnnForeachSqrt, out);
    aclDestroyTensorList(to);
    out.tensor = nullptr;  // which the list destroyed
  }
  aclDestroyTensorList(in);
  a.tensor = nullptr;
}

// What was accepted for its dtypes alone is asked about again where shapes can be.
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
