// Operators whose outputs overlap their inputs in memory, wholly, in part, or as another view. Each
// result equals that on separate memory, because all inputs are read before anything is written.
// The tensors are large enough that operators compute directly in the output's memory where they
// may.
#include <algorithm>
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
aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor*, const aclTensor*, aclTensor*, uint64_t*,
                                     aclOpExecutor**);
aclnnStatus aclnnMul(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnMmGetWorkspaceSize(const aclTensor*, const aclTensor*, aclTensor*, int8_t,
                                    uint64_t*, aclOpExecutor**);
aclnnStatus aclnnMm(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnTriuGetWorkspaceSize(const aclTensor*, int64_t, aclTensor*, uint64_t*,
                                      aclOpExecutor**);
aclnnStatus aclnnTriu(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnTrilGetWorkspaceSize(const aclTensor*, int64_t, aclTensor*, uint64_t*,
                                      aclOpExecutor**);
aclnnStatus aclnnTril(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnForeachMulScalarV2GetWorkspaceSize(const aclTensorList*, const aclScalar*,
                                                    aclTensorList*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnForeachMulScalarV2(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnForeachMulScalarGetWorkspaceSize(const aclTensorList*, const aclTensor*,
                                                  aclTensorList*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnForeachMulScalar(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnForeachSqrtGetWorkspaceSize(const aclTensorList*, aclTensorList*, uint64_t*,
                                             aclOpExecutor**);
aclnnStatus aclnnForeachSqrt(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnForeachCopyGetWorkspaceSize(const aclTensorList*, aclTensorList*, uint64_t*,
                                             aclOpExecutor**);
aclnnStatus aclnnForeachCopy(void*, uint64_t, aclOpExecutor*, aclrtStream);
}

namespace {

constexpr int64_t kSize = 40;
constexpr int64_t kElements = kSize * kSize;
constexpr int64_t kRoom = 8 * kElements;

// A matrix of kSize x kSize in a range of memory.
struct Place {
  int64_t offset;
  bool is_transposed = false;
};

using Memory = std::vector<float>;

Memory numbers() {
  Memory memory(kRoom);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = 1 + static_cast<float>(i * 7 % 101) / 16;
  return memory;
}

aclTensor* matrix(Memory& memory, Place place) {
  const int64_t shape[] = {kSize, kSize};
  const int64_t strides[] = {place.is_transposed ? 1 : kSize, place.is_transposed ? kSize : 1};
  return aclCreateTensor(shape, 2, ACL_FLOAT, strides, place.offset, ACL_FORMAT_ND, &kRoom, 1,
                         memory.data());
}

Memory elements(const Memory& memory, Place place) {
  Memory values;
  for (int64_t i = 0; i < kElements; ++i) {
    const int64_t row = i / kSize, column = i % kSize;
    const int64_t at = place.is_transposed ? column * kSize + row : i;
    values.push_back(memory[static_cast<size_t>(place.offset + at)]);
  }
  return values;
}

struct Stage1 {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

// A call on tensors, which it destroys: some inputs, then the outputs.
using Call = std::function<void(const std::vector<aclTensor*>& tensors)>;

// Checks that a call gives the same result if all tensors share memory and if each has its own.
void check_same(const Call& call, const std::vector<Place>& inputs,
                const std::vector<Place>& outputs) {
  Memory shared = numbers();
  std::vector<Memory> apart(inputs.size() + outputs.size(), numbers());
  std::vector<aclTensor*> in_shared, in_apart;
  for (size_t i = 0; i < apart.size(); ++i) {
    const Place place = i < inputs.size() ? inputs[i] : outputs[i - inputs.size()];
    in_shared.push_back(matrix(shared, place));
    in_apart.push_back(matrix(apart[i], place));
  }
  call(in_shared);
  call(in_apart);
  for (size_t i = 0; i < outputs.size(); ++i) {
    CHECK(elements(shared, outputs[i]) == elements(apart[inputs.size() + i], outputs[i]));
  }
}

const std::vector<Place> kPlacesOfOne = {
    {0}, {1}, {kSize}, {kElements / 2}, {2 * kElements}, {0, true}, {kSize, true}};

void destroy(const std::vector<aclTensor*>& tensors) {
  for (aclTensor* each : tensors) CHECK_EQ(aclDestroyTensor(each), 0);
}

aclTensorList* list(const std::vector<aclTensor*>& tensors, size_t from, size_t count) {
  return aclCreateTensorList(tensors.data() + from, count);
}

aclScalar* number(float value) {
  return aclCreateScalar(&value, ACL_FLOAT);
}

}  // namespace

TEST(sums_and_products_element_by_element) {
  const Call add = [](const auto& t) {
    Stage1 s;
    aclScalar* const alpha = number(2);
    CHECK_EQ(aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &s.size, &s.executor), 0);
    CHECK_EQ(aclnnAdd(nullptr, 0, s.executor, nullptr), 0);
    aclDestroyScalar(alpha);
    destroy(t);
  };
  const Call multiply = [](const auto& t) {
    Stage1 s;
    CHECK_EQ(aclnnMulGetWorkspaceSize(t[0], t[1], t[2], &s.size, &s.executor), 0);
    CHECK_EQ(aclnnMul(nullptr, 0, s.executor, nullptr), 0);
    destroy(t);
  };
  for (const Place self : kPlacesOfOne) {
    for (const Place other : kPlacesOfOne) {
      for (const Call& call : {add, multiply}) check_same(call, {self, other}, {{0}});
    }
  }
}

TEST(a_product_of_matrices) {
  const Call multiply = [](const auto& t) {
    Stage1 s;
    CHECK_EQ(aclnnMmGetWorkspaceSize(t[0], t[1], t[2], 0, &s.size, &s.executor), 0);
    CHECK_EQ(aclnnMm(nullptr, 0, s.executor, nullptr), 0);
    destroy(t);
  };
  for (const Place self : kPlacesOfOne) {
    for (const Place mat2 : kPlacesOfOne) check_same(multiply, {self, mat2}, {{0}});
  }
}

TEST(triangles) {
  for (const int64_t diagonal : {INT64_MIN, int64_t{-3}, int64_t{0}, int64_t{5}, INT64_MAX}) {
    const Call upper = [=](const auto& t) {
      Stage1 s;
      CHECK_EQ(aclnnTriuGetWorkspaceSize(t[0], diagonal, t[1], &s.size, &s.executor), 0);
      CHECK_EQ(aclnnTriu(nullptr, 0, s.executor, nullptr), 0);
      destroy(t);
    };
    const Call lower = [=](const auto& t) {
      Stage1 s;
      CHECK_EQ(aclnnTrilGetWorkspaceSize(t[0], diagonal, t[1], &s.size, &s.executor), 0);
      CHECK_EQ(aclnnTril(nullptr, 0, s.executor, nullptr), 0);
      destroy(t);
    };
    for (const Place self : kPlacesOfOne) {
      for (const Call& call : {upper, lower}) check_same(call, {self}, {{0}});
    }
  }
}

TEST(lists_whose_tensors_lie_in_one_another) {
  const Call scale = [](const auto& t) {
    Stage1 s;
    aclTensorList *x = list(t, 0, 2), *out = list(t, 2, 2);
    aclScalar* const scalar = number(3);
    CHECK_EQ(aclnnForeachMulScalarV2GetWorkspaceSize(x, scalar, out, &s.size, &s.executor), 0);
    CHECK_EQ(aclnnForeachMulScalarV2(nullptr, 0, s.executor, nullptr), 0);
    aclDestroyScalar(scalar);
    aclDestroyTensorList(x);
    aclDestroyTensorList(out);
  };
  const Call root = [](const auto& t) {
    Stage1 s;
    aclTensorList *x = list(t, 0, 2), *out = list(t, 2, 2);
    CHECK_EQ(aclnnForeachSqrtGetWorkspaceSize(x, out, &s.size, &s.executor), 0);
    CHECK_EQ(aclnnForeachSqrt(nullptr, 0, s.executor, nullptr), 0);
    aclDestroyTensorList(x);
    aclDestroyTensorList(out);
  };
  const Call copy = [](const auto& t) {
    Stage1 s;
    aclTensorList *x = list(t, 0, 2), *out = list(t, 2, 2);
    CHECK_EQ(aclnnForeachCopyGetWorkspaceSize(x, out, &s.size, &s.executor), 0);
    CHECK_EQ(aclnnForeachCopy(nullptr, 0, s.executor, nullptr), 0);
    aclDestroyTensorList(x);
    aclDestroyTensorList(out);
  };
  const Place a{0}, b{2 * kElements}, beside_a{1}, turned_a{0, true}, apart{4 * kElements};
  for (const Call& call : {scale, root, copy}) {
    for (const std::vector<Place>& x : {std::vector<Place>{a, b},
                                        {b, a},
                                        {a, a},
                                        {beside_a, b},
                                        {turned_a, b},
                                        {apart, beside_a},
                                        {apart, a}}) {
      check_same(call, x, {a, b});
    }
  }
}

TEST(a_number_in_the_memory_of_an_output) {
  // The number from the second tensor must be the one before the first output was written.
  Memory memory = numbers();
  const float before = memory[3];
  const Memory second = elements(memory, {2 * kElements});
  aclTensor* const x[] = {matrix(memory, {0}), matrix(memory, {2 * kElements})};
  aclTensor* const out[] = {matrix(memory, {0}), matrix(memory, {4 * kElements})};
  const int64_t one = 1;
  aclTensor* const scalar =
      aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 3, ACL_FORMAT_ND, &kRoom, 1, memory.data());
  aclTensorList *in = aclCreateTensorList(x, 2), *results = aclCreateTensorList(out, 2);
  Stage1 s;
  CHECK_EQ(aclnnForeachMulScalarGetWorkspaceSize(in, scalar, results, &s.size, &s.executor), 0);
  CHECK_EQ(aclnnForeachMulScalar(nullptr, 0, s.executor, nullptr), 0);
  const Memory got = elements(memory, {4 * kElements});
  for (size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], second[i] * before);
  aclDestroyTensor(scalar);
  aclDestroyTensorList(in);
  aclDestroyTensorList(results);
}
