// The rounding kernels, in every version that this CPU can run, compared with the plain reference,
// and the reference with values computed by hand; every length and alignment; nothing is written
// outside. HF32 drops 12 bits on Ascend910B and 13 on Ascend950, ties to even (SetHF32TransMode).
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "host_cann/kernels/rounding.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

using Member = RoundingKernel RoundingKernels::*;
constexpr Member kFormats[] = {&RoundingKernels::half, &RoundingKernels::bfloat16,
                               &RoundingKernels::hf32_11, &RoundingKernels::hf32_10};

const RoundingKernels& reference() {
  return rounding_kernels<Capability::kReference>();
}

// The versions that this CPU can run, except the reference.
std::vector<const RoundingKernels*> versions() {
  std::vector<const RoundingKernels*> all;
  for_each_capability([&all]<Capability kCapability>(const char*) {
    all.push_back(&rounding_kernels<kCapability>());
  });
  return all;
}

// Every sign, exponent and leading mantissa bits, each with remainders around the ties of all
// formats.
std::vector<float> samples() {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 1u << 16; ++upper) {
    for (uint32_t lower :
         {0x0000, 0x0001, 0x07ff, 0x0800, 0x0801, 0x0fff, 0x1000, 0x1001, 0x17ff, 0x1800, 0x1801,
          0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return values;
}

float rounded(RoundingKernel kernel, float value) {
  kernel(&value, 1);
  return value;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST(every_version_gives_the_bits_of_the_reference) {
  const std::vector<float> values = samples();
  for (Member format : kFormats) {
    std::vector<float> expected = values;
    (reference().*format)(expected.data(), static_cast<int64_t>(expected.size()));
    for (const RoundingKernels* version : versions()) {
      std::vector<float> got = values;
      (version->*format)(got.data(), static_cast<int64_t>(got.size()));
      CHECK(same_bits(got, expected));
    }
  }
}

TEST(any_length_and_alignment) {
  constexpr size_t kSize = 200;
  std::vector<float> values(kSize);
  for (size_t i = 0; i < kSize; ++i) values[i] = 1.0f + static_cast<float>(i) / 8191;
  for (const RoundingKernels* version : versions()) {
    for (size_t begin : {0, 1, 7}) {
      for (size_t n = 0; begin + n < kSize; ++n) {
        std::vector<float> expected = values;
        for (size_t i = begin; i < begin + n; ++i) {
          expected[i] = rounded(reference().hf32_11, values[i]);
        }
        std::vector<float> got = values;
        version->hf32_11(got.data() + begin, static_cast<int64_t>(n));
        CHECK(same_bits(got, expected));
      }
    }
  }
}

TEST(hf32_of_the_specification) {
  struct Row {
    float value, with_11_bits, with_10_bits;
  };
  constexpr Row kRows[] = {{0.33333334f, 0.3333740234375f, 0.333251953125f},
                           {1.1f, 1.10009765625f, 1.099609375f},
                           {3.1415927f, 3.1416015625f, 3.140625f},
                           {0.001f, 0.0009999275207519531f, 0.0010004043579101562f},
                           {1 + 0x1p-12f, 1, 1},
                           {1 + 0x1p-11f, 1.00048828125f, 1},
                           {65504, 65504, 65504},
                           {FLT_MAX, INFINITY, INFINITY}};
  for (const Row& row : kRows) {
    CHECK_EQ(rounded(reference().hf32_11, row.value), row.with_11_bits);
    CHECK_EQ(rounded(reference().hf32_10, row.value), row.with_10_bits);
    CHECK_EQ(rounded(reference().hf32_11, -row.value), -row.with_11_bits);
  }
}

TEST(half_and_bfloat16_at_their_edges) {
  const RoundingKernel half = reference().half;
  CHECK_EQ(rounded(half, 65519.0f), 65504.0f);
  CHECK_EQ(rounded(half, 65520.0f), INFINITY);
  CHECK_EQ(rounded(half, -65520.0f), -INFINITY);
  CHECK_EQ(rounded(half, 1 + 0x1p-11f), 1.0f);
  CHECK_EQ(rounded(half, 1 + 0x1.8p-10f), 1 + 0x1p-9f);
  CHECK_EQ(rounded(half, 0x1p-24f), 0x1p-24f);
  CHECK_EQ(rounded(half, 0x1p-25f), 0.0f);
  CHECK_EQ(rounded(half, 0x1.8p-25f), 0x1p-24f);
  CHECK(std::signbit(rounded(half, -0x1p-30f)));
  CHECK(std::isnan(rounded(half, NAN)));
  CHECK_EQ(rounded(reference().bfloat16, 1 + 0x1p-8f), 1.0f);
  CHECK_EQ(rounded(reference().bfloat16, 1 + 0x1.8p-7f), 1 + 0x1p-6f);
  CHECK_EQ(rounded(reference().bfloat16, FLT_MAX), INFINITY);
}
