// Error texts, the last error, the product and number formats: the state of the runtime besides
// devices.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "host_cann/runtime/cann_release.h"
#include "host_cann/runtime/product.h"
#include "runtime_support.h"

using namespace aclnn_host;

// Set before anything reads it.
static const int environment =
    setenv("ACLNN_TORCH_PRODUCT", "Ascend910Bogus", 1) + setenv("ACLNN_TORCH_CANN", "9.9", 1);

TEST(messages_are_returned_once_newest_first) {
  CHECK_EQ(environment, 0);
  CHECK(aclGetRecentErrMsg() == nullptr);
  CHECK_EQ(fail(161002, "first %d", 1), 161002);
  CHECK_EQ(fail(161001, "second"), 161001);
  const char* text = aclGetRecentErrMsg();
  CHECK_EQ(std::string(text), std::string("second\nfirst 1"));
  CHECK(aclGetRecentErrMsg() == nullptr);
}

TEST(messages_belong_to_their_thread) {
  fail(100000, "here");
  std::thread([] {
    CHECK(aclGetRecentErrMsg() == nullptr);
    fail(100000, "there");
    CHECK_EQ(messages(), std::string("there"));
  }).join();
  CHECK_EQ(messages(), std::string("here"));
}

TEST(messages_are_bounded_and_the_newest_stay) {
  for (int i = 0; i < 1000; ++i) fail(100000, "message %d", i);
  const std::string text = messages();
  CHECK(text.starts_with("message 999\n"));
  CHECK(contains(text, "message 936"));
  CHECK(!contains(text, "message 935"));
}

TEST(messages_of_any_length_are_whole) {
  const std::string longest(100000, 'x');
  fail(100000, "%s", longest.c_str());
  CHECK_EQ(messages(), longest);
}

TEST(messages_move_from_thread_to_thread_in_order) {
  std::string moved;
  std::thread([&] {
    fail(100000, "one");
    fail(100000, "two");
    moved = take_messages();
    CHECK(aclGetRecentErrMsg() == nullptr);
  }).join();
  CHECK_EQ(moved, std::string("one\ntwo"));
  put_messages(moved);
  CHECK_EQ(messages(), std::string("two\none"));
}

TEST(last_error_is_the_runtimes_and_get_forgets_it) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  CHECK_EQ(aclrtMalloc(nullptr, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  fail(161002, "an operator's status has its own way");
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  std::thread([] { CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); }).join();
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  messages();
}

TEST(product_of_a_bad_environment_is_the_default_and_says_so) {
  CHECK_EQ(std::string(aclHostGetProduct()), std::string("Ascend910B"));
  const char* problem = aclHostProductProblem();
  CHECK(problem != nullptr);
  CHECK(problem != nullptr && contains(problem, "Ascend910Bogus"));
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);
  CHECK(aclHostProductProblem() == nullptr);
}

TEST(cann_release_of_a_bad_environment_is_the_default_and_says_so) {
  CHECK_EQ(std::string(aclHostGetCannRelease()), std::string("later"));
  const char* problem = aclHostCannReleaseProblem();
  CHECK_EQ(std::string(problem != nullptr ? problem : ""),
           std::string("ACLNN_TORCH_CANN=9.9 does not name a release of CANN, so later applies; "
                       "the releases are 8.5, 9.0, 9.1 and later"));
  CHECK_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(messages(), std::string("aclInit: ") + problem);
  CHECK_EQ(aclHostSetCannRelease("later"), ACL_SUCCESS);
  CHECK(aclHostCannReleaseProblem() == nullptr);
}

TEST(cann_releases_are_ordered_and_others_are_refused) {
  CannRelease last = CannRelease::k8_5;
  for (const char* name : {"8.5", "9.0", "9.1", "later"}) {
    CHECK_EQ(aclHostSetCannRelease(name), ACL_SUCCESS);
    CHECK_EQ(std::string(aclHostGetCannRelease()), std::string(name));
    CHECK(current_cann_release() >= last);
    last = current_cann_release();
  }
  CHECK(last == CannRelease::kLater);
  for (const char* wrong : {"", "9", "9.1.0", "9.2", "Later"}) {
    CHECK_EQ(aclHostSetCannRelease(wrong), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(messages(), std::string("aclHostSetCannRelease: ") + wrong +
                             " does not name a release of CANN; the releases are 8.5, 9.0, 9.1 "
                             "and later");
  }
  CHECK_EQ(aclHostSetCannRelease(nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(std::string(aclHostGetCannRelease()), std::string("later"));
  messages();
}

TEST(product_names_and_soc_names_select) {
  const std::vector<std::vector<std::string>> rows = {
      // requested product, product, SoC name
      {"Ascend310P", "Ascend310P", "Ascend310P3"},
      {"Ascend310P1", "Ascend310P", "Ascend310P3"},
      {"Ascend910", "Ascend910", "Ascend910A"},
      {"Ascend910PremiumA", "Ascend910", "Ascend910A"},
      {"Ascend910B", "Ascend910B", "Ascend910B2"},
      {"Ascend910B4-1", "Ascend910B", "Ascend910B2"},
      {"Ascend910_93", "Ascend910_93", "Ascend910_9391"},
      {"Ascend910_9362", "Ascend910_93", "Ascend910_9391"},
      {"Ascend950", "Ascend950", "Ascend950PR_9589"},
      {"Ascend910_9599", "Ascend950", "Ascend950PR_9589"},
      {"Ascend950DT_9582", "Ascend950", "Ascend950PR_9589"},
      {"host", "host", "Ascend910B2"},
  };
  for (const auto& row : rows) {
    CHECK_EQ(aclHostSetProduct(row[0].c_str()), ACL_SUCCESS);
    CHECK_EQ(std::string(aclHostGetProduct()), row[1]);
    CHECK_EQ(std::string(aclrtGetSocName()), row[2]);
    CHECK_EQ(std::string(product_name(current_product())), row[1]);
  }
  for (const char* wrong : {"", "ascend910b", "Ascend910C", "Ascend310", "Ascend910Bx", "Host"}) {
    CHECK_EQ(aclHostSetProduct(wrong), ACL_ERROR_INVALID_PARAM);
  }
  CHECK_EQ(aclHostSetProduct(nullptr), ACL_ERROR_INVALID_PARAM);
  CHECK_EQ(std::string(aclHostGetProduct()), std::string("host"));
  CHECK_EQ(aclHostSetProduct("Ascend910B"), ACL_SUCCESS);
  messages();
}

TEST(bfloat16_exists_from_910b_on) {
  CHECK(!has_bfloat16(Product::kAscend310P));
  CHECK(!has_bfloat16(Product::kAscend910));
  CHECK(has_bfloat16(Product::kAscend910B));
  CHECK(has_bfloat16(Product::kAscend950));
  CHECK(has_bfloat16(Product::kHost));
}

TEST(data_type_sizes) {
  CHECK_EQ(aclDataTypeSize(ACL_FLOAT), size_t{4});
  CHECK_EQ(aclDataTypeSize(ACL_FLOAT16), size_t{2});
  CHECK_EQ(aclDataTypeSize(ACL_BF16), size_t{2});
  CHECK_EQ(aclDataTypeSize(ACL_INT8), size_t{1});
  CHECK_EQ(aclDataTypeSize(ACL_BOOL), size_t{1});
  CHECK_EQ(aclDataTypeSize(ACL_DOUBLE), size_t{8});
  CHECK_EQ(aclDataTypeSize(ACL_INT64), size_t{8});
  CHECK_EQ(aclDataTypeSize(ACL_COMPLEX32), size_t{4});
  CHECK_EQ(aclDataTypeSize(ACL_COMPLEX64), size_t{8});
  CHECK_EQ(aclDataTypeSize(ACL_COMPLEX128), size_t{16});
  CHECK_EQ(aclDataTypeSize(ACL_FLOAT8_E5M2), size_t{1});
  for (aclDataType none : {ACL_DT_UNDEFINED, ACL_STRING, ACL_INT4, ACL_UINT1, ACL_FLOAT4_E2M1}) {
    CHECK_EQ(aclDataTypeSize(none), size_t{0});
  }
}

// The value of a binary16, by its definition.
static double half_value(uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const double mantissa = half & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(half_to_float_is_exact_for_every_half) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = aclFloat16ToFloat(half);
    if ((half & 0x7C00) == 0x7C00) {
      wrong += (half & 0x3FF) != 0 ? !std::isnan(value) : !std::isinf(value);
    } else {
      wrong += value != half_value(half);
    }
    wrong += std::signbit(value) != ((half & 0x8000) != 0);
    if (!std::isnan(value)) wrong += aclFloatToFloat16(value) != half;
  }
  CHECK_EQ(wrong, 0);
}

TEST(float_to_half_rounds_to_nearest_even) {
  int wrong = 0;
  for (uint16_t half = 0; half < 0x7BFF; ++half) {
    // The midpoint of two neighbours, which a float represents exactly, and the floats next to it.
    const auto middle = static_cast<float>((half_value(half) + half_value(half + 1)) / 2);
    const uint16_t even = half % 2 == 0 ? half : half + 1;
    wrong += aclFloatToFloat16(middle) != even;
    wrong += aclFloatToFloat16(-middle) != (even | 0x8000);
    wrong += aclFloatToFloat16(std::nextafter(middle, 0.0f)) != half;
    wrong += aclFloatToFloat16(std::nextafter(middle, 1e30f)) != half + 1;
  }
  CHECK_EQ(wrong, 0);
  CHECK_EQ(aclFloatToFloat16(65519.996f), 0x7BFF);
  CHECK_EQ(aclFloatToFloat16(65520.0f), 0x7C00);
  CHECK_EQ(aclFloatToFloat16(-std::numeric_limits<float>::infinity()), 0xFC00);
  CHECK_EQ(aclFloatToFloat16(std::numeric_limits<float>::denorm_min()), 0);
  CHECK_EQ(aclFloatToFloat16(-0.0f), 0x8000);
  const aclFloat16 nan = aclFloatToFloat16(std::nanf(""));
  CHECK((nan & 0x7C00) == 0x7C00 && (nan & 0x3FF) != 0);
}

TEST(live_objects_knows_its_kinds) {
  for (const char* kind : {"tensor", "scalar", "array", "list", "executor", "device_block",
                           "host_block", "stream", "event", "context"}) {
    CHECK_EQ(aclHostLiveObjects(kind), 0);
  }
  CHECK_EQ(aclHostLiveObjects(nullptr), 0);
  CHECK_EQ(aclHostLiveObjects("banana"), -1);
}
