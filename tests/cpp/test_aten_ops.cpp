// The operators that are rows, called as C programs call them: the refusals of stage 1 and their
// texts, the lifetime of arguments, lists, and outputs whose shape depends on the data.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "aclnn/aclnn_base.h"
#include "check.h"

extern "C" {
aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor*, const aclTensor*, const aclScalar*,
                                     aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnAdd(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor*, const aclTensor*, uint64_t*,
                                             aclOpExecutor**);
aclnnStatus aclnnInplaceCopy(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor*, aclDataType, aclTensor*, uint64_t*,
                                      aclOpExecutor**);
aclnnStatus aclnnCast(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnCatGetWorkspaceSize(const aclTensorList*, int64_t, aclTensor*, uint64_t*,
                                     aclOpExecutor**);
aclnnStatus aclnnCat(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnSplitWithSizeGetWorkspaceSize(const aclTensor*, const aclIntArray*, int64_t,
                                               aclTensorList*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnSplitWithSize(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnClampGetWorkspaceSize(const aclTensor*, const aclScalar*, const aclScalar*,
                                       aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnClamp(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor*, const aclTensor*, aclTensor*,
                                              uint64_t*, aclOpExecutor**);
aclnnStatus aclnnMaskedSelect(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnLogSigmoidGetWorkspaceSize(const aclTensor*, aclTensor*, uint64_t*,
                                            aclOpExecutor**);
aclnnStatus aclnnLogSigmoid(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnFlashAttentionScoreGetWorkspaceSize(
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclIntArray*, double, double, int64_t, int64_t,
    int64_t, char*, int64_t, int64_t, aclTensor*, aclTensor*, aclTensor*, aclTensor*, uint64_t*,
    aclOpExecutor**);
aclnnStatus aclnnFlashAttentionScoreGradGetWorkspaceSize(
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclIntArray*, double, double, int64_t, int64_t,
    int64_t, char*, int64_t, int64_t, aclTensor*, aclTensor*, aclTensor*, aclTensor*, uint64_t*,
    aclOpExecutor**);
aclnnStatus aclnnFlashAttentionScoreV4GetWorkspaceSize(
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclIntArray*, const aclIntArray*,
    const aclIntArray*, const aclIntArray*, const aclIntArray*, double, double, int64_t, int64_t,
    int64_t, char*, int64_t, int64_t, int64_t, int64_t, char*, int64_t, int64_t, aclTensor*,
    aclTensor*, aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnFlashAttentionScoreGradV4GetWorkspaceSize(
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*,
    const aclIntArray*, const aclIntArray*, const aclIntArray*, const aclIntArray*,
    const aclIntArray*, double, double, int64_t, int64_t, int64_t, char*, char*, int64_t, int64_t,
    int64_t, int64_t, int64_t, int64_t, aclTensor*, aclTensor*, aclTensor*, aclTensor*, aclTensor*,
    aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnNonzeroGetWorkspaceSize(const aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnUnique2GetWorkspaceSize(const aclTensor*, bool, bool, bool, aclTensor*, aclTensor*,
                                         aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnUniqueGetWorkspaceSize(const aclTensor*, bool, bool, aclTensor*, aclTensor*,
                                        uint64_t*, aclOpExecutor**);
aclnnStatus aclnnUnique(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnUniqueConsecutiveGetWorkspaceSize(const aclTensor*, bool, bool, int64_t,
                                                   aclTensor*, aclTensor*, aclTensor*, uint64_t*,
                                                   aclOpExecutor**);
aclnnStatus aclnnUniqueConsecutive(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnMultinomialGetWorkspaceSize(const aclTensor*, int64_t, bool, int64_t, int64_t,
                                             aclTensor*, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnRandpermGetWorkspaceSize(int64_t, int64_t, int64_t, aclTensor*, uint64_t*,
                                          aclOpExecutor**);
aclnnStatus aclnnOneHotGetWorkspaceSize(const aclTensor*, int64_t, const aclTensor*,
                                        const aclTensor*, int64_t, aclTensor*, uint64_t*,
                                        aclOpExecutor**);
aclnnStatus aclnnIndexPutImplGetWorkspaceSize(aclTensor*, const aclTensorList*, const aclTensor*,
                                              bool, bool, uint64_t*, aclOpExecutor**);
aclnnStatus aclnnIndexPutImpl(void*, uint64_t, aclOpExecutor*, aclrtStream);
aclnnStatus aclnnInplaceScatterGetWorkspaceSize(aclTensor*, int64_t, const aclTensor*,
                                                const aclTensor*, int64_t, uint64_t*,
                                                aclOpExecutor**);
aclnnStatus aclnnInplaceScatter(void*, uint64_t, aclOpExecutor*, aclrtStream);
}

namespace {

template <class T>
constexpr aclDataType kType = ACL_DT_UNDEFINED;
template <>
constexpr aclDataType kType<float> = ACL_FLOAT;
template <>
constexpr aclDataType kType<int32_t> = ACL_INT32;
template <>
constexpr aclDataType kType<int64_t> = ACL_INT64;
template <>
[[maybe_unused]] constexpr aclDataType kType<bool> = ACL_BOOL;
template <>
[[maybe_unused]] constexpr aclDataType kType<uint8_t> = ACL_UINT8;

using Sizes = std::vector<int64_t>;

// A tensor over the elements of an array, row-major unless strides are given.
template <class T>
aclTensor* tensor(T* data, const Sizes& shape, aclDataType type = kType<T>,
                  const Sizes& strides = {}, int64_t elements = 64,
                  aclFormat format = ACL_FORMAT_ND) {
  return aclCreateTensor(shape.data(), shape.size(), type,
                         strides.empty() ? nullptr : strides.data(), 0, format, &elements, 1, data);
}

aclScalar* number(float value) {
  return aclCreateScalar(&value, ACL_FLOAT);
}

// True if the calling thread's error message contains the text.
bool told(const std::string& text) {
  const char* message = aclGetRecentErrMsg();
  const bool found = message != nullptr && std::string(message).find(text) != std::string::npos;
  if (!found) {
    std::fprintf(stderr, "expected \"%s\" in \"%s\"\n", text.c_str(), message ? message : "");
  }
  return found;
}

// The results of a stage 1.
struct Stage1 {
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
};

int64_t alive() {
  return aclHostLiveObjects(nullptr);
}

// The number of bytes that the body prints to the standard error.
long printed_by(const std::function<void()>& body) {
  std::FILE* const file = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  dup2(before, STDERR_FILENO);
  close(before);
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fclose(file);
  return size;
}

}  // namespace

TEST(null_arguments_are_named_in_order) {
  const int64_t before = alive();
  float a[6] = {};
  aclTensor* x = tensor(a, {6});
  aclScalar* one = number(1);
  Stage1 s;
  CHECK_EQ(aclnnAddGetWorkspaceSize(nullptr, x, one, x, &s.size, nullptr), 161001);
  CHECK(told("aclnnAdd: executor is null"));
  CHECK_EQ(aclnnAddGetWorkspaceSize(nullptr, nullptr, one, x, nullptr, &s.executor), 161001);
  CHECK(told("workspaceSize is null"));
  CHECK_EQ(aclnnAddGetWorkspaceSize(nullptr, nullptr, one, x, &s.size, &s.executor), 161001);
  CHECK(told("aclnnAdd: self is null"));
  CHECK_EQ(aclnnAddGetWorkspaceSize(x, nullptr, nullptr, x, &s.size, &s.executor), 161001);
  CHECK(told("aclnnAdd: other is null"));
  CHECK_EQ(aclnnAddGetWorkspaceSize(x, x, nullptr, x, &s.size, &s.executor), 161001);
  CHECK(told("aclnnAdd: alpha is null"));
  CHECK_EQ(aclnnAddGetWorkspaceSize(x, x, one, nullptr, &s.size, &s.executor), 161001);
  CHECK(told("aclnnAdd: out is null"));
  CHECK(s.executor == nullptr);
  CHECK_EQ(s.size, uint64_t{99});
  aclDestroyTensor(x);
  aclDestroyScalar(one);
  CHECK_EQ(alive(), before);
}

TEST(what_does_not_fit_is_refused_in_stage_1) {
  const int64_t before = alive();
  float a[64] = {};
  int32_t n[64] = {};
  aclTensor* x = tensor(a, {2, 3});
  aclTensor* row = tensor(a, {4});
  aclTensor* big = tensor(a, {3, 3});
  aclTensor* whole = tensor(n, {2, 3});
  aclTensor* backwards = tensor(a, {3}, ACL_FLOAT, {-1});
  aclTensor* outside = tensor(a, {65});
  aclTensor* text = tensor(a, {1}, ACL_STRING);
  aclTensor* tiled = tensor(a, {2, 3}, ACL_FLOAT, {}, 64, ACL_FORMAT_FRACTAL_NZ);
  aclTensor* repeated = tensor(a, {2, 3}, ACL_FLOAT, {0, 1});
  aclTensor* half = tensor(a, {2, 3}, ACL_BF16);
  aclScalar* one = number(1);
  Stage1 s;
  const auto add = [&](const aclTensor* self, const aclTensor* other, aclTensor* out) {
    return aclnnAddGetWorkspaceSize(self, other, one, out, &s.size, &s.executor);
  };
  CHECK_EQ(add(x, row, x), 161002);
  CHECK(told(
      "aclnnAdd: the arguments do not fit together: self FLOAT [2, 3], other FLOAT [4], out FLOAT "
      "[2, 3]; ATen, which computes it, says: The size of tensor a (3) must match"));
  CHECK_EQ(add(x, x, big), 161002);
  CHECK(told("aclnnAdd: out has shape [3, 3], expected [2, 3], the shape of the result"));
  CHECK_EQ(add(x, x, whole), 161002);
  CHECK(told(
      "aclnnAdd: out has dtype INT32, but result type FLOAT can't be cast to the desired output"));
  CHECK_EQ(add(x, backwards, x), 161002);
  CHECK(told("aclnnAdd: other has a negative stride"));
  CHECK_EQ(add(outside, outside, outside), 161002);
  CHECK(told("aclnnAdd: self (shape [65]"));
  CHECK_EQ(add(text, x, x), 161002);
  CHECK(told("aclnnAdd: self has dtype STRING"));
  CHECK_EQ(add(x, tiled, x), 161002);
  CHECK(told("aclnnAdd: other has format 29"));
  CHECK_EQ(add(x, x, repeated), 161002);
  CHECK(told("out (shape [2, 3], strides [0, 1]) has elements that alias one another"));
  CHECK_EQ(aclnnLogSigmoidGetWorkspaceSize(whole, x, &s.size, &s.executor), 161002);
  CHECK(told("aclnnLogSigmoid: self has dtype INT32, expected FLOAT, FLOAT16, BFLOAT16 or DOUBLE"));
  CHECK_EQ(aclnnCastGetWorkspaceSize(x, ACL_STRING, x, &s.size, &s.executor), 161002);
  CHECK(told("aclnnCast: dtype is 13"));
  CHECK_EQ(aclHostSetProduct("Ascend310P"), ACL_SUCCESS);
  CHECK_EQ(add(half, half, half), 161002);
  CHECK(told("aclnnAdd: self has dtype BFLOAT16, which this product does not have"));
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);
  CHECK(s.executor == nullptr);
  for (auto* each : {x, row, big, whole, backwards, outside, text, tiled, repeated, half}) {
    aclDestroyTensor(each);
  }
  aclDestroyScalar(one);
  CHECK_EQ(alive(), before);
}

TEST(arguments_may_be_destroyed_before_the_stream_comes_to_it) {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const int64_t before = alive();
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  float a[6] = {1, 2, 3, 4, 5, 6};
  float b[3] = {10, 20, 30};
  float c[6] = {};
  aclTensor* tensors[] = {tensor(a, {2, 3}), tensor(b, {3}),
                          tensor(c, {2, 3}, ACL_FLOAT, {1, 2}, 6)};
  aclScalar* two = number(2);
  Stage1 s;
  CHECK_EQ(aclnnAddGetWorkspaceSize(tensors[0], tensors[1], two, tensors[2], &s.size, &s.executor),
           OK);
  CHECK_EQ(s.size, uint64_t{0});
  for (auto* each : tensors) aclDestroyTensor(each);
  aclDestroyScalar(two);
  CHECK_EQ(aclnnAdd(nullptr, 0, s.executor, stream), OK);
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  const float expected[6] = {21, 24, 42, 45, 63, 66};  // columns are contiguous
  for (int i = 0; i < 6; ++i) CHECK_EQ(c[i], expected[i]);
  CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  CHECK_EQ(alive(), before);
}

TEST(optional_numbers_may_be_absent) {
  float a[4] = {-2, -1, 1, 2};
  float b[4] = {};
  aclTensor* x = tensor(a, {4});
  aclTensor* y = tensor(b, {4});
  aclScalar* one = number(1);
  Stage1 s;
  CHECK_EQ(aclnnClampGetWorkspaceSize(x, nullptr, one, y, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnClamp(nullptr, 0, s.executor, nullptr), OK);
  CHECK_EQ(b[0], -2.0f);
  CHECK_EQ(b[3], 1.0f);
  CHECK_EQ(aclnnClampGetWorkspaceSize(x, nullptr, nullptr, y, &s.size, &s.executor), 161001);
  CHECK(told(
      "aclnnClamp: clipValueMin and clipValueMax are null, expected a number for one of them"));
  aclDestroyTensor(x);
  aclDestroyTensor(y);
  aclDestroyScalar(one);
}

TEST(lists_of_any_length_and_their_addresses) {
  const int64_t before = alive();
  constexpr int kParts = 100;
  float values[kParts];
  float others[kParts];
  float out[kParts] = {};
  std::vector<const aclTensor*> parts;
  for (int i = 0; i < kParts; ++i) {
    values[i] = static_cast<float>(i);
    others[i] = static_cast<float>(1000 + i);
    parts.push_back(tensor(&values[i], {1}, ACL_FLOAT, {}, 1));
  }
  aclTensorList* list = aclCreateTensorList(parts.data(), parts.size());
  aclTensor* y = tensor(out, {kParts}, ACL_FLOAT, {}, kParts);
  Stage1 s;
  CHECK_EQ(aclnnCatGetWorkspaceSize(list, 0, y, &s.size, &s.executor), OK);
  CHECK_EQ(aclSetAclOpExecutorRepeatable(s.executor), OK);
  CHECK_EQ(aclnnCat(nullptr, 0, s.executor, nullptr), OK);
  for (int i = 0; i < kParts; ++i) CHECK_EQ(out[i], values[i]);

  CHECK_EQ(aclSetDynamicInputTensorAddr(s.executor, 0, 70, list, &others[70]), OK);
  CHECK_EQ(aclSetDynamicTensorAddr(s.executor, 0, 99, list, &others[99]), OK);
  CHECK_EQ(aclnnCat(nullptr, 0, s.executor, nullptr), OK);
  for (int i = 0; i < kParts; ++i) CHECK_EQ(out[i], i == 70 || i == 99 ? others[i] : values[i]);

  CHECK_EQ(aclSetDynamicInputTensorAddr(s.executor, 0, 100, list, others), 161002);
  CHECK(
      told("aclSetDynamicInputTensorAddr: relativeIndex is 100, expected less than the size of the "
           "list that is input 0 of aclnnCat, 100"));
  CHECK_EQ(aclSetDynamicTensorAddr(s.executor, 1, 0, list, others), 161002);
  CHECK(
      told("aclSetDynamicTensorAddr: argument 1 of aclnnCat is a tensor, expected a list; call "
           "aclSetTensorAddr"));
  CHECK_EQ(aclSetTensorAddr(s.executor, 0, y, others), 161002);
  CHECK(
      told("aclSetTensorAddr: argument 0 of aclnnCat is a list, expected a tensor; call "
           "aclSetDynamicTensorAddr"));
  CHECK_EQ(aclSetInputTensorAddr(s.executor, 0, y, others), 161002);
  CHECK(
      told("aclSetInputTensorAddr: input 0 of aclnnCat is a list, expected a tensor; call "
           "aclSetDynamicInputTensorAddr"));
  CHECK_EQ(aclSetDynamicOutputTensorAddr(s.executor, 1, 0, list, others), 161002);
  CHECK(
      told("aclSetDynamicOutputTensorAddr: irIndex is 1, expected less than the number of tensor "
           "outputs of aclnnCat, 1"));
  CHECK_EQ(aclSetDynamicTensorAddr(s.executor, 0, 0, nullptr, others), 561103);
  // The output is the argument after the list.
  CHECK_EQ(aclSetTensorAddr(s.executor, 1, y, others), OK);
  CHECK_EQ(aclnnCat(nullptr, 0, s.executor, nullptr), OK);
  CHECK_EQ(others[3], 3.0f);
  CHECK_EQ(aclDestroyAclOpExecutor(s.executor), OK);
  aclDestroyTensorList(list);
  aclDestroyTensor(y);
  CHECK_EQ(alive(), before);
}

TEST(a_list_of_outputs) {
  float a[6] = {1, 2, 3, 4, 5, 6};
  float b[2] = {};
  float c[4] = {};
  const aclTensor* parts[] = {tensor(b, {2, 1}), tensor(c, {2, 2})};
  aclTensorList* list = aclCreateTensorList(parts, 2);
  aclTensor* x = tensor(a, {2, 3});
  const int64_t sizes[] = {1, 2};
  aclIntArray* split = aclCreateIntArray(sizes, 2);
  aclIntArray* wrong = aclCreateIntArray(sizes, 1);
  Stage1 s;
  CHECK_EQ(aclnnSplitWithSizeGetWorkspaceSize(x, split, 1, list, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnSplitWithSize(nullptr, 0, s.executor, nullptr), OK);
  CHECK_EQ(b[1], 4.0f);
  CHECK_EQ(c[3], 6.0f);
  CHECK_EQ(aclnnSplitWithSizeGetWorkspaceSize(x, wrong, 1, list, &s.size, &s.executor), 161002);
  CHECK(told("aclnnSplitWithSize: "));
  aclDestroyTensorList(list);
  aclDestroyTensor(x);
  aclDestroyIntArray(split);
  aclDestroyIntArray(wrong);
}

TEST(unique_values_and_where_they_were) {
  float a[6] = {3, 1, 3, 2, 1, 3}, values[6] = {};
  int64_t places[6] = {};
  aclTensor *x = tensor(a, {2, 3}), *v = tensor(values, {6}), *i = tensor(places, {2, 3});
  Stage1 s;
  CHECK_EQ(aclnnUniqueGetWorkspaceSize(x, true, true, v, i, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnUnique(nullptr, 0, s.executor, nullptr), OK);
  int64_t* shape = nullptr;
  uint64_t rank = 0;
  CHECK_EQ(aclGetViewShape(v, &shape, &rank), OK);
  CHECK_EQ(rank, 1u);
  CHECK_EQ(shape[0], 3);
  delete[] shape;
  for (int k = 0; k < 3; ++k) CHECK_EQ(values[k], static_cast<float>(k + 1));
  for (int k = 0; k < 6; ++k) CHECK_EQ(values[places[k]], a[k]);
  for (aclTensor* each : {x, v, i}) aclDestroyTensor(each);
}

// Two complex numbers are equal if both of their parts are, also in rows.
TEST(complex_numbers_that_follow_one_another) {
  float a[12] = {1, 2, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2}, values[12] = {};
  int64_t places[6] = {}, counts[6] = {};
  aclTensor *x = tensor(a, {3, 2}, ACL_COMPLEX64), *v = tensor(values, {6}, ACL_COMPLEX64);
  aclTensor *i = tensor(places, {3, 2}), *n = tensor(counts, {6});
  Stage1 s;
  constexpr int64_t kNoDim = 1000;
  CHECK_EQ(
      aclnnUniqueConsecutiveGetWorkspaceSize(x, true, true, kNoDim, v, i, n, &s.size, &s.executor),
      OK);
  CHECK_EQ(aclnnUniqueConsecutive(nullptr, 0, s.executor, nullptr), OK);
  const std::vector<float> expected{1, 2, 1, 3, 1, 2, 1, 3, 1, 2};
  CHECK(std::equal(expected.begin(), expected.end(), values));
  const std::vector<int64_t> numbers{2, 1, 1, 1, 1}, where{0, 0, 1, 2, 3, 4};
  CHECK(std::equal(numbers.begin(), numbers.end(), counts));
  CHECK(std::equal(where.begin(), where.end(), places));

  float rows[12] = {1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 2};
  aclTensor *y = tensor(rows, {3, 2}, ACL_COMPLEX64), *w = tensor(values, {3, 2}, ACL_COMPLEX64);
  aclTensor* j = tensor(places, {3});
  aclTensor* m = tensor(counts, {3});
  CHECK_EQ(aclnnUniqueConsecutiveGetWorkspaceSize(y, true, true, 0, w, j, m, &s.size, &s.executor),
           OK);
  CHECK_EQ(aclnnUniqueConsecutive(nullptr, 0, s.executor, nullptr), OK);
  const std::vector<float> rest{1, 2, 1, 3, 1, 2, 1, 2};
  CHECK(std::equal(rest.begin(), rest.end(), values));
  CHECK_EQ(counts[0], 2);
  CHECK_EQ(counts[1], 1);
  for (aclTensor* each : {x, v, i, n, y, w, j, m}) aclDestroyTensor(each);
}

TEST(a_shape_that_depends_on_the_data_is_written_back) {
  const int64_t before = alive();
  float a[4] = {1, 2, 3, 4};
  uint8_t mask[4] = {1, 0, 1, 1};
  float out[4] = {-1, -1, -1, -1};
  aclTensor* x = tensor(a, {4});
  aclTensor* m = tensor(mask, {4}, ACL_BOOL);
  aclTensor* y = tensor(out, {4});
  Stage1 s;
  CHECK_EQ(aclnnMaskedSelectGetWorkspaceSize(x, m, y, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnMaskedSelect(nullptr, 0, s.executor, nullptr), OK);
  int64_t* dims = nullptr;
  uint64_t rank = 0;
  CHECK_EQ(aclGetViewShape(y, &dims, &rank), OK);
  CHECK_EQ(rank, uint64_t{1});
  CHECK_EQ(dims[0], int64_t{3});
  delete[] dims;
  CHECK_EQ(out[2], 4.0f);
  CHECK_EQ(out[3], -1.0f);
  for (auto* each : {x, m, y}) aclDestroyTensor(each);
  CHECK_EQ(alive(), before);
}

TEST(too_little_room_is_an_error_of_the_stream) {
  float a[4] = {1, 2, 3, 4};
  uint8_t mask[4] = {1, 1, 1, 1};
  float out[2] = {};
  aclTensor* x = tensor(a, {4});
  aclTensor* m = tensor(mask, {4}, ACL_BOOL);
  aclTensor* y = tensor(out, {2}, ACL_FLOAT, {}, 2);
  Stage1 s;
  CHECK_EQ(aclnnMaskedSelectGetWorkspaceSize(x, m, y, &s.size, &s.executor), OK);
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(aclnnMaskedSelect(nullptr, 0, s.executor, stream), OK);
  CHECK_EQ(aclrtSynchronizeStream(stream), 507015);
  CHECK(told("aclnnMaskedSelect: the computation failed: out has memory for 2 elements"));
  aclrtDestroyStreamForce(stream);
  for (auto* each : {x, m, y}) aclDestroyTensor(each);
}

TEST(results_of_unknown_shape_are_checked_in_stage_1) {
  float a[16] = {};
  int64_t n[16] = {};
  aclTensor* x = tensor(a, {2, 3});
  aclTensor* mask = tensor(a, {2, 3}, ACL_BOOL);
  aclTensor* wide = tensor(a, {4}, ACL_BOOL);
  aclTensor* apart = tensor(a, {6}, ACL_FLOAT, {2});
  aclTensor* y = tensor(a, {6});
  aclTensor* whole = tensor(n, {6});
  aclTensor* bits = tensor(n, {6}, ACL_BOOL);
  Stage1 s;
  const auto select = [&](const aclTensor* chosen, aclTensor* out) {
    return aclnnMaskedSelectGetWorkspaceSize(x, chosen, out, &s.size, &s.executor);
  };
  CHECK_EQ(select(mask, apart), 161002);
  CHECK(told("aclnnMaskedSelect: out is not contiguous"));
  CHECK_EQ(select(wide, y), 161002);
  CHECK(told(
      "aclnnMaskedSelect: the arguments do not fit together: self FLOAT [2, 3], mask BOOL [4]"));
  CHECK_EQ(select(mask, whole), 161002);
  CHECK(told("aclnnMaskedSelect: out has dtype INT64, but result type FLOAT can't be cast"));
  CHECK_EQ(aclnnNonzeroGetWorkspaceSize(x, bits, &s.size, &s.executor), 161002);
  CHECK(told("aclnnNonzero: out has dtype BOOL, but result type INT64 can't be cast"));
  const auto unique = [&](aclTensor* values, aclTensor* inverse, aclTensor* counts) {
    return aclnnUnique2GetWorkspaceSize(x, true, true, true, values, inverse, counts, &s.size,
                                        &s.executor);
  };
  CHECK_EQ(unique(whole, whole, whole), 161002);
  CHECK(told("aclnnUnique2: valueOut has dtype INT64"));
  CHECK_EQ(unique(y, bits, whole), 161002);
  CHECK(told("aclnnUnique2: inverseOut has dtype BOOL"));
  CHECK_EQ(unique(y, whole, bits), 161002);
  CHECK(told("aclnnUnique2: countsOut has dtype BOOL"));
  CHECK(s.executor == nullptr);
  for (auto* each : {x, mask, wide, apart, y, whole, bits}) aclDestroyTensor(each);
}

TEST(random_draws_are_checked_in_stage_1) {
  float a[16] = {};
  int64_t n[16] = {};
  aclTensor* weights = tensor(a, {2, 3});
  aclTensor* cube = tensor(a, {1, 2, 3});
  aclTensor* counts = tensor(n, {2, 3});
  aclTensor* drawn = tensor(n, {2, 4});
  aclTensor* few = tensor(n, {2, 2});
  aclTensor* bits = tensor(n, {4}, ACL_BOOL);
  Stage1 s;
  const auto draw = [&](const aclTensor* self, int64_t samples, bool replacement, aclTensor* out) {
    return aclnnMultinomialGetWorkspaceSize(self, samples, replacement, 0, 0, out, &s.size,
                                            &s.executor);
  };
  CHECK_EQ(draw(weights, 4, false, drawn), 161002);
  CHECK(told("aclnnMultinomial: numsamples is 4, expected at most 3, the number of categories"));
  CHECK_EQ(draw(weights, 0, true, drawn), 161002);
  CHECK(told("aclnnMultinomial: numsamples is 0, expected 1 or more"));
  CHECK_EQ(draw(cube, 2, true, few), 161002);
  CHECK(told("aclnnMultinomial: self has 3 dimensions, expected 1 to 2"));
  CHECK_EQ(draw(counts, 2, true, few), 161002);
  CHECK(told("aclnnMultinomial: self has dtype INT64, expected FLOAT"));
  CHECK_EQ(draw(weights, 4, true, few), 161002);
  CHECK(told("aclnnMultinomial: out has shape [2, 2], expected [2, 4]"));
  CHECK_EQ(aclnnRandpermGetWorkspaceSize(4, 0, 0, bits, &s.size, &s.executor), 161002);
  CHECK(told("aclnnRandperm: out has dtype BOOL, expected an integer or floating-point type"));
  CHECK_EQ(aclnnRandpermGetWorkspaceSize(3, 0, 0, bits, &s.size, &s.executor), 161002);
  CHECK(told("aclnnRandperm: out has shape [4], expected [3]"));
  CHECK(s.executor == nullptr);
  CHECK_EQ(draw(weights, 4, true, drawn), OK);
  CHECK_EQ(aclDestroyAclOpExecutor(s.executor), OK);
  for (auto* each : {weights, cube, counts, drawn, few, bits}) aclDestroyTensor(each);
}

TEST(the_axis_of_one_hot_is_checked) {
  int32_t n[16] = {};
  aclTensor* x = tensor(n, {3});
  aclTensor* one = tensor(n, {1});
  aclTensor* out = tensor(n, {3, 4});
  Stage1 s;
  for (const int64_t axis : {-2, 2}) {
    CHECK_EQ(aclnnOneHotGetWorkspaceSize(x, 4, one, one, axis, out, &s.size, &s.executor), 161002);
    CHECK(told("aclnnOneHot: axis is " + std::to_string(axis) + ", expected -1 to 1"));
  }
  for (auto* each : {x, one, out}) aclDestroyTensor(each);
}

// A tensor without elements means a dimension that is not indexed if it looks like torch_npu's
// placeholder, and otherwise selects nothing.
TEST(empty_indices) {
  float a[4] = {1, 2, 3, 4};
  int64_t n[1] = {1};
  float nine[1] = {9};
  const auto put = [&](aclDataType empty) {
    aclTensor* x = tensor(a, {2, 2});
    aclTensor* value = tensor(nine, {1});
    const aclTensor* both[] = {tensor(n, {0}, empty), tensor(n, {1})};
    aclTensorList* indices = aclCreateTensorList(both, 2);
    Stage1 s;
    CHECK_EQ(
        aclnnIndexPutImplGetWorkspaceSize(x, indices, value, false, false, &s.size, &s.executor),
        OK);
    CHECK_EQ(aclnnIndexPutImpl(nullptr, 0, s.executor, nullptr), OK);
    aclDestroyTensorList(indices);
    aclDestroyTensor(x);
    aclDestroyTensor(value);
  };
  put(ACL_INT64);
  CHECK_EQ(a[1], 2.0f);
  CHECK_EQ(a[3], 4.0f);
  put(ACL_FLOAT);
  CHECK_EQ(a[0], 1.0f);
  CHECK_EQ(a[1], 9.0f);
  CHECK_EQ(a[3], 9.0f);
}

TEST(an_operator_may_overwrite_what_it_reads) {
  float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  aclTensor* rows = tensor(a, {3, 3});
  aclTensor* columns = tensor(a, {3, 3}, ACL_FLOAT, {1, 3});
  aclScalar* one = number(1);
  Stage1 s;
  CHECK_EQ(aclnnAddGetWorkspaceSize(rows, columns, one, rows, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnAdd(nullptr, 0, s.executor, nullptr), OK);
  const float expected[9] = {2, 6, 10, 6, 10, 14, 10, 14, 18};
  for (int i = 0; i < 9; ++i) CHECK_EQ(a[i], expected[i]);
  aclDestroyTensor(rows);
  aclDestroyTensor(columns);
  aclDestroyScalar(one);
}

TEST(what_is_copied_onto_a_part_of_itself_is_read_first) {
  float a[5] = {1, 2, 3, 4, 5};
  aclTensor* to = tensor(a + 1, {4});
  aclTensor* from = tensor(a, {4});
  Stage1 s;
  CHECK_EQ(aclnnInplaceCopyGetWorkspaceSize(to, from, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnInplaceCopy(nullptr, 0, s.executor, nullptr), OK);
  const float expected[5] = {1, 1, 2, 3, 4};
  for (int i = 0; i < 5; ++i) CHECK_EQ(a[i], expected[i]);
  aclDestroyTensor(to);
  aclDestroyTensor(from);
}

// Functions that torch_npu has but does not call on every product.
TEST(rows_that_torch_npu_seldom_reaches) {
  float a[3] = {-1, 0, 1};
  float out[3] = {};
  aclTensor* x = tensor(a, {3});
  aclTensor* y = tensor(out, {3});
  Stage1 s;
  CHECK_EQ(aclnnLogSigmoidGetWorkspaceSize(x, y, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnLogSigmoid(nullptr, 0, s.executor, nullptr), OK);
  CHECK(out[1] > -0.693148f && out[1] < -0.693147f);
  for (auto* each : {x, y}) aclDestroyTensor(each);
}

// The arguments of the fused attentions that would change the result.
struct AttentionOptions {
  aclTensor* shift = nullptr;
  aclTensor* padding_mask = nullptr;
  aclTensor* query_rope = nullptr;
  aclTensor* key_rope = nullptr;
  aclTensor* scale_q = nullptr;
  aclTensor* scale_k = nullptr;
  aclTensor* scale_v = nullptr;
  aclTensor* scale_dy = nullptr;
  aclTensor* scale_o = nullptr;
  aclTensor* sink = nullptr;
  aclIntArray* prefix = nullptr;
  aclIntArray* query_lengths = nullptr;
  aclIntArray* key_lengths = nullptr;
  aclIntArray* query_starts = nullptr;
  aclIntArray* key_starts = nullptr;
  int64_t out_dtype = 0;
  int64_t pse_type = 1;
  char* softmax_layout = nullptr;
};

// Calls of the four functions of fused attention. The destructor checks that nothing is left.
struct Attention {
  aclnnStatus forward(const AttentionOptions& with) {
    return aclnnFlashAttentionScoreGetWorkspaceSize(
        q, q, q, with.shift, nullptr, with.padding_mask, nullptr, with.prefix, 0.5, 1, 9, 9, 1,
        layout, 0, 0, statistics, statistics, nullptr, q, &s.size, &s.executor);
  }
  aclnnStatus backward(const AttentionOptions& with) {
    return aclnnFlashAttentionScoreGradGetWorkspaceSize(
        q, q, q, q, with.shift, nullptr, with.padding_mask, nullptr, statistics, statistics,
        nullptr, q, with.prefix, 0.5, 1, 9, 9, 1, layout, 0, 0, q, q, q, nullptr, &s.size,
        &s.executor);
  }
  aclnnStatus forward_v4(const AttentionOptions& with) {
    return aclnnFlashAttentionScoreV4GetWorkspaceSize(
        q, q, q, with.shift, nullptr, with.padding_mask, nullptr, with.query_rope, with.key_rope,
        with.scale_q, with.scale_k, with.scale_v, with.sink, with.prefix, with.query_lengths,
        with.key_lengths, with.query_starts, with.key_starts, 0.5, 1, 9, 9, 1, layout, 0, 0,
        with.out_dtype, with.pse_type, with.softmax_layout, 0, 0, statistics, statistics, nullptr,
        q, &s.size, &s.executor);
  }
  aclnnStatus backward_v4(const AttentionOptions& with) {
    return aclnnFlashAttentionScoreGradV4GetWorkspaceSize(
        q, q, q, q, with.shift, nullptr, with.padding_mask, nullptr, statistics, statistics,
        nullptr, q, with.sink, with.query_rope, with.key_rope, with.scale_q, with.scale_k,
        with.scale_v, with.scale_dy, with.scale_o, with.prefix, with.query_lengths,
        with.key_lengths, with.query_starts, with.key_starts, 0.5, 1, 9, 9, 1, layout,
        with.softmax_layout, 0, 0, with.pse_type, 0, 0, with.out_dtype, q, q, q, nullptr, nullptr,
        nullptr, nullptr, &s.size, &s.executor);
  }
  using Function = aclnnStatus (Attention::*)(const AttentionOptions&);

  void takes(Function function, const AttentionOptions& options) {
    CHECK_EQ((this->*function)(options), OK);
    aclDestroyAclOpExecutor(s.executor);
  }
  void refuses(Function function, const AttentionOptions& options, const std::string& start) {
    CHECK_EQ((this->*function)(options), 161002);
    CHECK(told(start));
  }
  void v4_takes(const AttentionOptions& options) {
    takes(&Attention::forward_v4, options);
    takes(&Attention::backward_v4, options);
  }
  void v4_refuses(const AttentionOptions& options, const std::string& text) {
    refuses(&Attention::forward_v4, options, "aclnnFlashAttentionScoreV4: " + text);
    refuses(&Attention::backward_v4, options, "aclnnFlashAttentionScoreGradV4: " + text);
  }

  ~Attention() {
    for (auto* each : {x, bfloat, statistics, square}) aclDestroyTensor(each);
    for (auto* each : {list, none}) aclDestroyIntArray(each);
    CHECK_EQ(alive(), before);
  }

  const int64_t before = alive();
  float a[64] = {};
  int64_t zero = 0;
  char layout[5] = "BNSD";
  aclTensor* const x = tensor(a, {1, 1, 2, 4});
  aclTensor* const bfloat = tensor(a, {1, 1, 2, 4}, ACL_BF16);
  aclTensor* const statistics = tensor(a, {1, 1, 2, 8});
  aclTensor* const square = tensor(a, {1, 1, 2, 2});
  aclIntArray* const list = aclCreateIntArray(&zero, 1);
  aclIntArray* const none = aclCreateIntArray(&zero, 0);
  aclTensor* q = x;  // query, key, value, and what has their shape
  Stage1 s;
};

TEST(attention_takes_a_shift_and_a_prefix) {
  Attention attention;
  const AttentionOptions accepted[] = {
      {}, {.shift = attention.square}, {.prefix = attention.none}, {.prefix = attention.list}};
  for (const AttentionOptions& options : accepted) {
    attention.takes(&Attention::forward, options);
    attention.takes(&Attention::backward, options);
    attention.v4_takes(options);
  }
}

TEST(attention_takes_values_that_change_nothing) {
  Attention attention;
  char nothing[] = "", as_input[] = "same_as_input";
  const AttentionOptions without_effect[] = {{.pse_type = 0},
                                             {.query_lengths = attention.list},
                                             {.key_lengths = attention.list},
                                             {.softmax_layout = as_input},
                                             {.out_dtype = 1},
                                             {.query_lengths = attention.none},
                                             {.softmax_layout = nothing},
                                             {.query_starts = attention.list},
                                             {.key_starts = attention.list}};
  for (const AttentionOptions& options : without_effect) attention.v4_takes(options);
}

TEST(attention_refuses_what_it_does_not_emulate) {
  Attention attention;
  constexpr auto kForward = &Attention::forward_v4, kBackward = &Attention::backward_v4;
  aclTensor *const x = attention.x, *const square = attention.square;
  attention.refuses(&Attention::forward, {.padding_mask = square},
                    "aclnnFlashAttentionScore: paddingMaskOptional is given");
  attention.refuses(&Attention::backward, {.padding_mask = square},
                    "aclnnFlashAttentionScoreGrad: paddingMaskOptional is given");
  attention.v4_refuses({.padding_mask = square}, "paddingMaskOptional is given, expected null");
  attention.v4_refuses({.query_rope = x}, "queryRopeOptional is given and keyRopeOptional is null");
  attention.v4_refuses({.key_rope = x}, "keyRopeOptional is given and queryRopeOptional is null");
  attention.v4_refuses({.scale_q = x}, "dScaleQOptional is given");
  attention.v4_refuses({.scale_k = x}, "dScaleKOptional is given");
  attention.v4_refuses({.scale_v = x}, "dScaleVOptional is given");
  attention.refuses(kBackward, {.scale_dy = x}, "dScaleDyOptional is given");
  attention.refuses(kBackward, {.scale_o = x}, "dScaleOOptional is given");
  attention.refuses(kForward, {.pse_type = 2},
                    "realShiftOptional is null, expected the slopes of a shift of pseType 2");
  attention.refuses(kBackward, {.pse_type = 2},
                    "pseShiftOptional is null, expected the slopes of a shift of pseType 2");
  attention.v4_refuses({.pse_type = 4}, "pseType is 4, expected 0 to 3");
  attention.v4_refuses({.pse_type = -1}, "pseType is -1, expected 0 to 3");
}

TEST(attention_knows_two_output_types) {
  Attention attention;
  attention.v4_refuses({.out_dtype = 2}, "outDtype is 2, expected 0 or 1");
  attention.v4_refuses({.out_dtype = -1}, "outDtype is -1, expected 0 or 1");
}

TEST(empty_tensors) {
  float a[1] = {};
  aclTensor* x = tensor(a, {0, 3});
  aclTensor* row = tensor(a, {1});
  aclScalar* one = number(1);
  Stage1 s;
  CHECK_EQ(aclnnAddGetWorkspaceSize(x, row, one, x, &s.size, &s.executor), OK);
  CHECK_EQ(aclnnAdd(nullptr, 0, s.executor, nullptr), OK);
  aclDestroyTensor(x);
  aclDestroyTensor(row);
  aclDestroyScalar(one);
}

// ATen warns, once in a process, that this reduction of scatter is deprecated.
TEST(what_aten_warns_of_is_not_printed) {
  float self[] = {1, 2, 3}, source[] = {10, 20};
  int64_t index[] = {0, 2};
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream created = nullptr;
  CHECK_EQ(aclrtCreateStream(&created), ACL_SUCCESS);
  const long printed = printed_by([&] {
    for (const aclrtStream stream : {aclrtStream{nullptr}, created}) {
      aclTensor* const tensors[] = {tensor(self, {3}), tensor(index, {2}), tensor(source, {2})};
      Stage1 out;
      CHECK_EQ(aclnnInplaceScatterGetWorkspaceSize(tensors[0], 0, tensors[1], tensors[2], 1,
                                                   &out.size, &out.executor),
               OK);
      CHECK_EQ(aclnnInplaceScatter(nullptr, 0, out.executor, stream), OK);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      for (const aclTensor* each : tensors) aclDestroyTensor(each);
    }
  });
  CHECK_EQ(printed, 0);
  CHECK_EQ(self[0], 21.0f);
  CHECK_EQ(self[2], 43.0f);
  CHECK_EQ(aclrtDestroyStream(created), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}
