// The kernels of cross entropy, in every version that this CPU can run, compared with the plain
// reference: their values, at every length; no access outside.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "host_cann/kernels/cross_entropy_loss.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

// ---- The types of elements ---------------------------------------------------------------------

// A type with its bits, its values in double, and the tolerance of the kernels.
struct Type {
  const char* name;
  const CrossEntropyLossKernels CrossEntropyLossKernelSet::* kernels;
  size_t size;
  int fraction_bits;
  int exponent_bits;
  // Relative error of an exponential and of a sum of up to 200 terms of one sign.
  double relative;
};

constexpr Type kTypes[] = {
    {"float32", &CrossEntropyLossKernelSet::float32, 4, 23, 8, 0x1p-21},
    {"float16", &CrossEntropyLossKernelSet::float16, 2, 10, 5, 0x1p-20},
    {"bfloat16", &CrossEntropyLossKernelSet::bfloat16, 2, 7, 8, 0x1p-20},
    {"float64", &CrossEntropyLossKernelSet::float64, 8, 52, 11, 0x1p-49},
};

uint64_t load(const Type& type, const void* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, type.size);
  return bits;
}

double value_of(const Type& type, uint64_t bits) {
  if (type.size == 8) return std::bit_cast<double>(bits);
  if (type.size == 4) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  // The upper half of a float has the sign and 8 bits of exponent; FLOAT16 has 3 bits fewer.
  if (type.exponent_bits == 8) return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  double value = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return bits >> 15 != 0 ? -value : value;
}

// Rounds towards zero: exact for values with few bits, which the tests use.
void store(const Type& type, double value, void* to) {
  if (type.size == 8) {
    std::memcpy(to, &value, 8);
    return;
  }
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type.size == 4) {
    std::memcpy(to, &bits, 4);
    return;
  }
  uint16_t small = static_cast<uint16_t>(bits >> 16);
  if (type.exponent_bits == 5) {
    const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
    const uint32_t fraction = bits >> 13 & 1023;
    const uint32_t magnitude = std::isnan(value) ? 0x7e00
                               : exponent >= 31  ? 0x7c00
                               : exponent <= 0   ? 0
                                                 : static_cast<uint32_t>(exponent) << 10 | fraction;
    small = static_cast<uint16_t>((bits >> 31) << 15 | magnitude);
  }
  std::memcpy(to, &small, 2);
}

// Half a unit in the last place of a result.
double half_unit(const Type& type, double value) {
  const int least = 2 - (1 << (type.exponent_bits - 1));
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(0.5, exponent - type.fraction_bits);
}

// ---- The kernels -------------------------------------------------------------------------------

struct Version {
  const char* name;
  const CrossEntropyLossKernelSet& kernels;
};

const CrossEntropyLossKernels& reference(const Type& type) {
  return cross_entropy_loss_kernels<Capability::kReference>().*type.kernels;
}

// The versions that this CPU can run, except the reference.
std::vector<Version> versions() {
  std::vector<Version> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    all.push_back({name, cross_entropy_loss_kernels<kCapability>()});
  });
  return all;
}

// Calls body(version, kernels, type) for all combinations.
template <class Body>
void for_each_version(Body body) {
  for (const Version& version : versions()) {
    for (const Type& type : kTypes) body(version, version.kernels.*type.kernels, type);
  }
}

std::string label(const Version& version, const Type& type, const char* kernel, size_t n) {
  std::ostringstream text;
  text << version.name << " " << kernel << " " << type.name << " of " << n;
  return text.str();
}

// ---- Memory ------------------------------------------------------------------------------------

constexpr size_t kLongest = 200;

// Elements between two inaccessible pages: an access outside ends the process.
class Fenced {
 public:
  Fenced() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    inside_ = (kLongest * 8 + page_ - 1) / page_ * page_;
    void* block = mmap(nullptr, inside_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED);
    block_ = static_cast<char*>(block);
    CHECK_EQ(mprotect(block_ + page_, inside_, PROT_READ | PROT_WRITE), 0);
  }
  ~Fenced() { munmap(block_, inside_ + 2 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  // `bytes` directly before the page at the end, or after the one at the beginning.
  char* place(size_t bytes, bool at_end) const {
    return block_ + page_ + (at_end ? inside_ - bytes : 0);
  }

 private:
  size_t page_;
  size_t inside_;
  char* block_;
};

// A deterministic number in [0, 1) for every i.
double scattered(size_t i) {
  return static_cast<double>(i * 2654435761u % 4096) / 4096;
}

// n elements: mostly from `low` to `low` + 8, in steps that every type represents.
std::vector<double> values(size_t n, double low) {
  std::vector<double> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = low + std::floor(scattered(i) * 128) / 16;
  return all;
}

void write(const Type& type, const std::vector<double>& from, char* to) {
  for (size_t i = 0; i < from.size(); ++i) store(type, from[i], to + i * type.size);
}

// Weights in the type in which the kernels compute.
void write_weights(const Type& type, size_t n, char* to) {
  for (size_t i = 0; i < n; ++i) {
    const double weight = 0.5 + scattered(i + 7);
    if (type.size == 8) {
      std::memcpy(to + i * 8, &weight, 8);
    } else {
      const auto narrow = static_cast<float>(weight);
      std::memcpy(to + i * 4, &narrow, 4);
    }
  }
}

size_t weight_size(const Type& type) {
  return type.size == 8 ? 8 : 4;
}

// An element of the type in which the kernels compute.
double computed_value(const Type& type, const char* from) {
  if (type.size == 8) {
    double value = 0;
    std::memcpy(&value, from, 8);
    return value;
  }
  float value = 0;
  std::memcpy(&value, from, 4);
  return value;
}

bool near(double got, double expected, double error) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::abs(got - expected) <= error;
}

// True if n results are those of the reference within its own rounding and `error`.
bool same_results(const Type& type, const char* got, const char* expected, size_t n, double error) {
  for (size_t i = 0; i < n; ++i) {
    const double one = value_of(type, load(type, got + i * type.size));
    const double other = value_of(type, load(type, expected + i * type.size));
    const double allowed = error == 0 ? 0 : error + 2 * half_unit(type, other);
    if (!near(one, other, allowed)) return false;
  }
  return true;
}

// Calls body(n, at_end) for every length, at both ends of the memory.
template <class Body>
void for_each_place(Body body) {
  for (const bool at_end : {true, false}) {
    for (size_t n = 0; n <= kLongest; ++n) body(n, at_end);
  }
}

}  // namespace

TEST(exponential_sums_are_the_references) {
  const Fenced memory;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for_each_place([&](size_t n, bool at_end) {
      char* x = memory.place(n * type.size, at_end);
      write(type, values(n, 3), x);
      const ExponentialSum got = kernels.exponential_sum(x, static_cast<int64_t>(n), false);
      const ExponentialSum expected =
          reference(type).exponential_sum(x, static_cast<int64_t>(n), false);
      const bool same =
          got.max == expected.max && near(got.sum, expected.sum, expected.sum * type.relative);
      check::report(same, __FILE__, __LINE__, label(version, type, "exponential_sum", n));
    });
  });
}

TEST(exponential_sums_of_rows_are_those_of_each) {
  constexpr int64_t kRows = 3;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for (size_t n = 1; n <= kLongest; ++n) {
      std::vector<char> x(kRows * n * type.size);
      write(type, values(kRows * n, 4), x.data());
      const auto count = static_cast<int64_t>(n);
      ExponentialSum got[kRows];
      kernels.exponential_sums(x.data(), kRows, count, got);
      for (size_t row = 0; row < kRows; ++row) {
        const char* from = x.data() + row * n * type.size;
        const ExponentialSum expected = kernels.exponential_sum(from, count, false);
        const bool same = got[row].max == expected.max && got[row].sum == expected.sum;
        check::report(same, __FILE__, __LINE__, label(version, type, "exponential_sums", n));
      }
    }
  });
}

TEST(elements_that_are_not_finite_count_as_in_the_reference) {
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for (const size_t n : {size_t{1}, size_t{9}, size_t{70}, size_t{150}}) {
      for (const size_t position : {size_t{0}, n / 2, n - 1}) {
        for (const double special : {INFINITY, -INFINITY, NAN, -NAN}) {
          for (const double rest : {1.0, -1.0, -double{INFINITY}}) {
            std::vector<double> all(n, rest);
            all[position] = special;
            std::vector<char> x(n * type.size);
            write(type, all, x.data());
            const auto count = static_cast<int64_t>(n);
            const ExponentialSum got = kernels.exponential_sum(x.data(), count, false);
            const ExponentialSum expected = reference(type).exponential_sum(x.data(), count, false);
            const bool same = got.max == expected.max &&
                              near(got.sum, expected.sum, expected.sum * type.relative);
            check::report(same, __FILE__, __LINE__, label(version, type, "special values", n));
          }
        }
      }
    }
  });
}

// Two subtractions and one rounding give the same bits.
TEST(log_probabilities_are_the_references_bits) {
  const Fenced memory, result;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for (const bool streaming : {false, true}) {
      for_each_place([&](size_t n, bool at_end) {
        char* x = memory.place(n * type.size, at_end);
        char* out = result.place(n * type.size, at_end);
        write(type, values(n, -5), x);
        std::vector<char> expected(n * type.size);
        const auto count = static_cast<int64_t>(n);
        kernels.log_prob(x, 2.9375, 1.23456789, out, count, streaming);
        reference(type).log_prob(x, 2.9375, 1.23456789, expected.data(), count, false);
        check::report(n == 0 || std::memcmp(out, expected.data(), expected.size()) == 0, __FILE__,
                      __LINE__, label(version, type, "log_prob", n));
      });
    }
  });
}

TEST(log_probabilities_and_the_next_sum_are_what_they_are_apart) {
  const Fenced memory, below, result;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for_each_place([&](size_t n, bool at_end) {
      char* x = memory.place(n * type.size, at_end);
      char* next = below.place(n * type.size, at_end);
      char* out = result.place(n * type.size, at_end);
      write(type, values(n, -5), x);
      write(type, values(n, -8), next);
      std::vector<char> expected(n * type.size);
      const auto count = static_cast<int64_t>(n);
      const ExponentialSum got =
          kernels.log_prob_and_next_sum(x, 2.9375, 1.23456789, out, next, count);
      kernels.log_prob(x, 2.9375, 1.23456789, expected.data(), count, false);
      const ExponentialSum sum = kernels.exponential_sum(next, count, false);
      check::report(got.max == sum.max && got.sum == sum.sum, __FILE__, __LINE__,
                    label(version, type, "sum of log_prob_and_next_sum", n));
      check::report(n == 0 || std::memcmp(out, expected.data(), expected.size()) == 0, __FILE__,
                    __LINE__, label(version, type, "log_prob_and_next_sum", n));
    });
  });
}

TEST(weighted_sums_are_the_references) {
  const Fenced memory, weights;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for_each_place([&](size_t n, bool at_end) {
      char* x = memory.place(n * type.size, at_end);
      char* w = weights.place(n * weight_size(type), at_end);
      write(type, values(n, -5), x);
      write_weights(type, n, w);
      for (const char* given : {static_cast<const char*>(nullptr), static_cast<const char*>(w)}) {
        const auto count = static_cast<int64_t>(n);
        const double got = kernels.weighted_sum(x, given, 2.9375, 1.25, count);
        const double expected = reference(type).weighted_sum(x, given, 2.9375, 1.25, count);
        check::report(near(got, expected, std::abs(expected) * type.relative), __FILE__, __LINE__,
                      label(version, type, "weighted_sum", n));
      }
    });
  });
}

TEST(gradients_are_the_references) {
  const Fenced memory, weights, result;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    for_each_place([&](size_t n, bool at_end) {
      char* x = memory.place(n * type.size, at_end);
      char* w = weights.place(n * weight_size(type), at_end);
      char* out = result.place(n * type.size, at_end);
      write(type, values(n, -8), x);
      write_weights(type, n, w);
      std::vector<char> expected(n * type.size);
      for (const char* given : {static_cast<const char*>(nullptr), static_cast<const char*>(w)}) {
        for (const double smoothing : {0.0, 0.125}) {
          for (const bool streaming : {false, true}) {
            const auto count = static_cast<int64_t>(n);
            kernels.gradient(x, given, 0.75, smoothing, out, count, streaming);
            reference(type).gradient(x, given, 0.75, smoothing, expected.data(), count, false);
            check::report(same_results(type, out, expected.data(), n, type.relative), __FILE__,
                          __LINE__, label(version, type, "gradient", n));
          }
        }
      }
    });
  });
}

// An element's gradient does not depend on its position in a row, so rows may be split anywhere.
TEST(gradients_may_overwrite_their_input_and_be_cut_anywhere) {
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    std::vector<char> x(kLongest * type.size), whole(x.size());
    write(type, values(kLongest, -8), x.data());
    kernels.gradient(x.data(), nullptr, 0.75, 0, whole.data(), kLongest, false);
    for (size_t cut = 0; cut <= kLongest; ++cut) {
      std::vector<char> parts = x;
      char* second = parts.data() + cut * type.size;
      kernels.gradient(parts.data(), nullptr, 0.75, 0, parts.data(), static_cast<int64_t>(cut),
                       false);
      kernels.gradient(second, nullptr, 0.75, 0, second, static_cast<int64_t>(kLongest - cut),
                       false);
      check::report(parts == whole, __FILE__, __LINE__, label(version, type, "cut", cut));
    }
  });
}

TEST(probabilities_are_the_references) {
  const Fenced memory, result;
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    const size_t size = weight_size(type);
    for_each_place([&](size_t n, bool at_end) {
      char* x = memory.place(n * type.size, at_end);
      char* out = result.place(n * size, at_end);
      write(type, values(n, -8), x);
      std::vector<char> expected(n * size);
      const auto count = static_cast<int64_t>(n);
      kernels.probability(x, 2.9375, -0.3, out, count);
      reference(type).probability(x, 2.9375, -0.3, expected.data(), count);
      bool same = true;
      for (size_t i = 0; i < n; ++i) {
        const double value = computed_value(type, expected.data() + i * size);
        same &= near(computed_value(type, out + i * size), value, std::abs(value) * type.relative);
      }
      check::report(same, __FILE__, __LINE__, label(version, type, "probability", n));
    });
  });
}

TEST(probabilities_may_overwrite_their_input_and_be_cut_anywhere) {
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    const size_t size = weight_size(type);
    std::vector<char> x(kLongest * type.size), whole(kLongest * size);
    write(type, values(kLongest, -8), x.data());
    kernels.probability(x.data(), 0.5, 0.75, whole.data(), kLongest);
    for (size_t cut = 0; cut <= kLongest; ++cut) {
      // In place, if the types of the input and the result are equal.
      std::vector<char> parts = type.size == size ? x : std::vector<char>(kLongest * size);
      char* const from = type.size == size ? parts.data() : x.data();
      kernels.probability(from, 0.5, 0.75, parts.data(), static_cast<int64_t>(cut));
      kernels.probability(from + cut * type.size, 0.5, 0.75, parts.data() + cut * size,
                          static_cast<int64_t>(kLongest - cut));
      check::report(parts == whole, __FILE__, __LINE__, label(version, type, "cut", cut));
    }
  });
}

TEST(probabilities_of_special_values_are_the_references) {
  for_each_version([&](const Version& version, const auto& kernels, const Type& type) {
    const size_t size = weight_size(type);
    const std::vector<double> special = {0, -0.0, 1, INFINITY, -INFINITY, NAN, -1000, 1000, 512};
    for (const double max : {0.0, 512.0, double{INFINITY}, -double{INFINITY}, double{NAN}}) {
      for (const double factor : {0.0, 2.0, -1.0, double{INFINITY}, double{NAN}}) {
        for (size_t n = 1; n <= 40; ++n) {
          std::vector<double> all(n);
          for (size_t i = 0; i < n; ++i) all[i] = special[(i + n) % special.size()];
          std::vector<char> x(n * type.size), got(n * size), expected(n * size);
          write(type, all, x.data());
          const auto count = static_cast<int64_t>(n);
          kernels.probability(x.data(), max, factor, got.data(), count);
          reference(type).probability(x.data(), max, factor, expected.data(), count);
          bool same = true;
          for (size_t i = 0; i < n; ++i) {
            const double value = computed_value(type, expected.data() + i * size);
            same &= near(computed_value(type, got.data() + i * size), value,
                         std::abs(value) * type.relative);
          }
          check::report(same, __FILE__, __LINE__, label(version, type, "special values", n));
        }
      }
    }
  });
}
