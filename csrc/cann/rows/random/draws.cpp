#include "cann/rows/random/draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "cann/rows/engine/element_types.h"
#include "cann/rows/engine/refusal.h"

namespace aclnn_host {

namespace {

// Draws that must be the same everywhere call no function of the C library, because the last bits
// of its results depend on the machine.

constexpr int64_t kChunk = 256;  // numbers that are computed together

// Replaces each positive normal number by its natural logarithm, within 1e-15 of it. It has no
// branch and no call, so that the compiler vectorises the loop.
void logarithms(double* numbers, int64_t count) {
  constexpr double kLn2 = 0.69314718055994530942, kSqrtHalf = 0.70710678118654752440;
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1, kHalf = uint64_t{1022} << 52;
  // The bits of 2^52 or those of an integer below 2^52 are the bits of their sum.
  constexpr double kInteger = 0x1p52;
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint64_t>(numbers[i]);
    const double half_up = std::bit_cast<double>((bits & kMantissa) | kHalf);  // in [0.5, 1)
    const double raised =
        std::bit_cast<double>((bits >> 52) | std::bit_cast<uint64_t>(kInteger)) - (kInteger + 1022);
    const bool is_low = half_up < kSqrtHalf;
    const double mantissa = is_low ? half_up * 2 : half_up;
    const double exponent = is_low ? raised - 1 : raised;
    // log(m) = 2 artanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...) with |s| < 0.172.
    const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
    numbers[i] = exponent * kLn2 + 2 * s * sum;
  }
}

// The polynomial with these coefficients, the constant first.
template <size_t N>
double polynomial(double x, const double (&coefficients)[N]) {
  double sum = 0;
  for (size_t k = N; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

// Replaces each probability p, 0 < p < 1, by the quantile of the normal distribution, within 1e-15
// of it: algorithm AS 241, PPND16, of Wichura, "The percentage points of the normal distribution",
// Applied Statistics 37 (1988).
void normal_quantiles(double* numbers, int64_t count) {
  constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                           1.9715909503065514427e+3, 1.3731693765509461125e+4,
                           4.5921953931549871457e+4, 6.7265770927008700853e+4,
                           3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kB[] = {1.00000000000000000000e0, 4.2313330701600911252e+1,
                           6.8718700749205790830e+2, 5.3941960214247511077e+3,
                           2.1213794301586595867e+4, 3.9307895800092710610e+4,
                           2.8729085735721942674e+4, 5.2264952788528545610e+3};
  constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                           5.76949722146069140550e0,  3.64784832476320460504e0,
                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kD[] = {1.00000000000000000000e0,  2.05319162663775882187e0,
                           1.67638483018380384940e0,  6.89767334985100004550e-1,
                           1.48103976427480074590e-1, 1.51986665636164571966e-2,
                           5.47593808499534494600e-4, 1.05075007164441684324e-9};
  constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kF[] = {1.00000000000000000000e0,  5.99832206555887937690e-1,
                           1.36929880922735805310e-1, 1.48753612908506148525e-2,
                           7.86869131145613259100e-4, 1.84631831751005468180e-5,
                           1.42151175831644588870e-7, 2.04426310338993978564e-15};
  // Computes all numbers as if they were in the central region, then the others again: the compiler
  // vectorises loops without branches.
  double middles[kChunk], roots[kChunk];
  int64_t indices[kChunk], outside = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double q = numbers[i] - 0.5, r = 0.180625 - q * q;
    middles[i] = q * polynomial(r, kA) / polynomial(r, kB);
  }
  for (int64_t i = 0; i < count; ++i) {
    indices[outside] = i;
    roots[outside] = std::min(numbers[i], 1 - numbers[i]);
    outside += std::abs(numbers[i] - 0.5) > 0.425 ? 1 : 0;
  }
  logarithms(roots, outside);
  for (int64_t k = 0; k < outside; ++k) roots[k] = std::sqrt(-roots[k]);
  double sizes[kChunk];
  for (int64_t k = 0; k < outside; ++k) {
    sizes[k] = polynomial(roots[k] - 1.6, kC) / polynomial(roots[k] - 1.6, kD);
  }
  for (int64_t k = 0; k < outside; ++k) {
    const double r = roots[k];
    const double size = r <= 5 ? sizes[k] : polynomial(r - 5, kE) / polynomial(r - 5, kF);
    middles[indices[k]] = numbers[indices[k]] < 0.5 ? -size : size;
  }
  std::copy_n(middles, count, numbers);
}

// The midpoint of the interval of (0, 1) that a word selects.
double unit(uint32_t word) {
  return (word + 0.5) * 0x1p-32;
}
double unit(uint64_t word) {
  return (static_cast<double>(word >> 12) + 0.5) * 0x1p-52;
}

constexpr int64_t kGrain = 16;  // chunks that are worth a thread

// Calls use(first, count, words) for each chunk of `count` words of 32 or 64 bits.
template <class Word, class Use>
void for_words(int64_t count, Source source, Use use) {
  constexpr int64_t kPerBlock = 16 / sizeof(Word);
  const Philox philox(source);
  at::parallel_for(0, (count + kChunk - 1) / kChunk, kGrain, [&](int64_t begin, int64_t end) {
    Word words[kChunk];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      for (int64_t b = 0; b < kChunk / kPerBlock; ++b) {
        const Philox::Block block =
            philox.block(static_cast<uint64_t>(chunk * kChunk / kPerBlock + b));
        for (int64_t k = 0; k < kPerBlock; ++k) {
          if constexpr (sizeof(Word) == 8) {
            words[kPerBlock * b + k] = Philox::wide(block, static_cast<uint64_t>(k));
          } else {
            words[kPerBlock * b + k] = block[static_cast<size_t>(k)];
          }
        }
      }
      use(chunk * kChunk, std::min(kChunk, count - chunk * kChunk), words);
    }
  });
}

at::Tensor empty_as(const at::Tensor& like, at::ScalarType type) {
  return at::empty(like.sizes(), like.options().dtype(type));
}

// A tensor of number(i, word).
template <class Element, class Word, class Number>
at::Tensor draw_words(const at::Tensor& like, Source source, Number number) {
  at::Tensor numbers = empty_as(like, c10::CppTypeToScalarType<Element>::value);
  if (!numbers.is_cpu()) return numbers;
  Element* to = numbers.mutable_data_ptr<Element>();
  for_words<Word>(numbers.numel(), source, [&](int64_t first, int64_t here, const Word* words) {
    for (int64_t i = first; i < first + here; ++i) to[i] = number(i, words[i - first]);
  });
  return numbers;
}
// 1 with the probability of each element, otherwise 0.
template <class Probability>
at::Tensor draw_flags(const at::Tensor& like, Source source, Probability probability) {
  return draw_words<uint8_t, uint32_t>(like, source, [=](int64_t i, uint32_t word) {
    return word * 0x1p-32 < probability(i) ? 1 : 0;
  });
}

// Writes numbers of a continuous distribution: transform(numbers, count) replaces numbers in (0,
// 1), one for each word.
template <class Word, class Element, class Transform>
void fill(const at::Tensor& numbers, Source source, Transform transform) {
  Element* to = numbers.mutable_data_ptr<Element>();
  for_words<Word>(numbers.numel(), source, [&](int64_t first, int64_t here, const Word* words) {
    double chunk[kChunk];
    for (int64_t i = 0; i < here; ++i) chunk[i] = unit(words[i]);
    transform(chunk, here);
    for (int64_t i = 0; i < here; ++i) to[first + i] = static_cast<Element>(chunk[i]);
  });
}

// Numbers of a continuous distribution, rounded to the dtype of `like`. DOUBLE takes a 64-bit word
// for each number, other types a 32-bit word.
template <class Transform>
at::Tensor continuous(const at::Tensor& like, Source source, Transform transform) {
  const bool is_integer = at::isIntegralType(like.scalar_type(), /*includeBool=*/true);
  const at::ScalarType type = is_integer ? at::kFloat : like.scalar_type();
  const at::Tensor numbers = empty_as(like, type == at::kDouble ? at::kDouble : at::kFloat);
  if (numbers.is_cpu() && type == at::kDouble) {
    fill<uint64_t, double>(numbers, source, transform);
  } else if (numbers.is_cpu()) {
    fill<uint32_t, float>(numbers, source, transform);
  }
  return numbers.to(type);
}

// The number of bits of a number in [0, 1) in this dtype. Further bits would be rounded, possibly
// up to 1.
int unit_bits(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return std::numeric_limits<c10::Half>::digits;
    case at::kBFloat16: return std::numeric_limits<c10::BFloat16>::digits;
    case at::kDouble: return 52;
    default: return std::numeric_limits<float>::digits;
  }
}

// Returns a transformation of probabilities to normally distributed numbers.
auto scaled_normal(double mean, double deviation) {
  return [=](double* numbers, int64_t count) {
    normal_quantiles(numbers, count);
    for (int64_t i = 0; i < count; ++i) numbers[i] = mean + deviation * numbers[i];
  };
}

}  // namespace

void check_probability(const char* name, double probability) {
  EXPECT(probability >= 0 && probability <= 1, name, " is ", probability, ", expected 0 to 1");
}

at::Tensor draw_uniform(const at::Tensor& like, double from, double to, Source source) {
  EXPECT(from <= to, "from is ", from, ", expected at most to, ", to);
  EXPECT(std::isfinite(to - from), "from is ", from, " and to is ", to,
         ", expected finite numbers with a finite difference");
  const double steps = static_cast<double>(int64_t{1} << unit_bits(like.scalar_type()));
  const at::Tensor numbers = continuous(like, source, [=](double* u, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double floor = static_cast<double>(static_cast<int64_t>(u[i] * steps)) / steps;
      u[i] = from + floor * (to - from);
    }
  });
  // Rounding may give `to`, which is outside the range.
  return numbers.masked_fill_(numbers.ge(to), from);
}

at::Tensor draw_normal(const at::Tensor& like, double mean, double deviation, Source source) {
  EXPECT(deviation >= 0, "std is ", deviation, ", expected 0 or more");
  return continuous(like, source, scaled_normal(mean, deviation));
}

at::Tensor draw_exponential(const at::Tensor& like, double lambda, Source source) {
  EXPECT(lambda > 0, "lambda is ", lambda, ", expected more than 0");
  return continuous(like, source, [=](double* u, int64_t count) {
    logarithms(u, count);
    for (int64_t i = 0; i < count; ++i) u[i] = -u[i] / lambda;
  });
}

at::Tensor draw_bernoulli(const at::Tensor& like, double prob, Source source) {
  check_probability("prob", prob);
  return draw_flags(like, source, [=](int64_t) { return prob; });
}

at::Tensor draw_bernoulli(const at::Tensor& like, const at::Tensor& prob, Source source) {
  const at::Tensor each = prob.expand(like.sizes()).to(at::kDouble).contiguous();
  if (!like.is_cpu()) return empty_as(like, at::kByte);
  const double* p = each.const_data_ptr<double>();
  std::for_each_n(p, each.numel(), [](double number) { check_probability("prob", number); });
  return draw_flags(like, source, [=](int64_t i) { return p[i]; });
}

namespace {

// Refuses a number that an integer type does not hold.
void expect_held(const char* name, int64_t number, at::ScalarType type) {
  if (at::isFloatingType(type)) return;
  int64_t least = 0, most = 1;  // of BOOL
  if (type != at::kBool) {
    AT_DISPATCH_V2(type, "random", AT_WRAP([&] {
                     using Limits = std::numeric_limits<scalar_t>;
                     least = static_cast<int64_t>(Limits::lowest());
                     most = static_cast<int64_t>(
                         std::min(static_cast<uint64_t>(Limits::max()), uint64_t{INT64_MAX}));
                   }),
                   AT_EXPAND(AT_INTEGRAL_TYPES_V2));
  }
  EXPECT(number >= least && number <= most, name, " is ", number, ", expected ", least, " to ",
         most, ", the numbers of ", type);
}

}  // namespace

at::Tensor draw_integers(const at::Tensor& like, int64_t from, int64_t to, Source source) {
  EXPECT(from < to, "from is ", from, ", expected less than to, ", to);
  const at::ScalarType type = c10::toRealValueType(like.scalar_type());
  // A number below `to` may be rounded to it, so `to` becomes the largest number that is not.
  if (at::isFloatingType(type)) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "random", [&] {
      from = at::native::templates::update_from<scalar_t>(from);
      to = at::native::templates::update_to<scalar_t>(to);
    });
    EXPECT(from < to, "from and to are ", from, " and ", to, " in ", dtype_text(type),
           ", expected from to be less than to");
  }
  expect_held("from", from, type);
  expect_held("to - 1", to - 1, type);
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  return draw_words<int64_t, uint64_t>(
             like, source,
             [=](int64_t, uint64_t word) {
               return static_cast<int64_t>(static_cast<uint64_t>(from) + word % range);
             })
      .to(like.scalar_type());
}

at::Tensor draw_integers(const at::Tensor& like, Source source) {
  const at::ScalarType type = like.scalar_type();
  uint64_t most = 1;
  if (at::isFloatingType(type)) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "random", [&] {
      most = uint64_t{1} << std::numeric_limits<scalar_t>::digits;
    });
  } else if (type != at::kBool) {
    AT_DISPATCH_V2(type, "random", AT_WRAP([&] {
                     most = static_cast<uint64_t>(std::numeric_limits<scalar_t>::max());
                   }),
                   AT_EXPAND(AT_INTEGRAL_TYPES_V2));
  }
  const bool is_whole = most == std::numeric_limits<uint64_t>::max();
  return draw_words<int64_t, uint64_t>(
             like, source,
             [=](int64_t, uint64_t word) {
               return static_cast<int64_t>(is_whole ? word : word % (most + 1));
             })
      .to(type);
}

at::Tensor draw_permutation(int64_t n, Source source) {
  at::Tensor numbers = at::empty({n}, at::kLong);
  int64_t* order = numbers.mutable_data_ptr<int64_t>();
  std::iota(order, order + n, 0);
  const Philox philox(source);
  for (int64_t i = 0; i < n - 1; ++i) {  // Fisher-Yates shuffle
    const uint64_t left = static_cast<uint64_t>(n - i);
    std::swap(order[i],
              order[i + static_cast<int64_t>(philox.wide(static_cast<uint64_t>(i)) % left)]);
  }
  return numbers;
}

at::Tensor draw_categories(const at::Tensor& weights, int64_t count, bool replacement,
                           Source source) {
  std::vector<int64_t> shape = weights.sizes().vec();
  shape.back() = count;
  if (!weights.is_cpu()) return at::empty(shape, weights.options().dtype(at::kLong));
  const at::Tensor wide = weights.to(at::kDouble).contiguous();
  EXPECT(wide.isfinite().logical_and(wide.ge(0)).all().item().toBool(),
         "self has a weight that is negative, infinite or NaN, expected numbers of 0 or more");
  EXPECT(wide.gt(0).any(-1).all().item().toBool(),
         "self has a row of weights that are all 0, expected one above 0");
  if (!replacement) {
    // Sorting by the weights divided by exponentially distributed numbers gives the order of
    // drawing.
    const at::Tensor keys = wide / draw_exponential(wide, 1, source);
    if (count == 1) return at::argmax(keys, -1, /*keepdim=*/true);
    return std::get<1>(keys.sort(/*stable=*/true, -1, /*descending=*/true)).narrow(-1, 0, count);
  }
  const at::Tensor sums = at::cumsum(wide, -1);
  const at::Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);
  const at::Tensor points = draw_uniform(at::empty(shape, wide.options()), 0, 1, source).mul(total);
  return at::searchsorted(sums, at::minimum(points, at::nextafter(total, at::zeros_like(total))),
                          /*out_int32=*/false, /*right=*/true);
}

at::Tensor draw_bits(const at::Tensor& like, double probability, Source source) {
  at::Tensor bytes = empty_as(like, at::kByte);
  if (bytes.is_cpu()) {
    uint8_t* to = bytes.mutable_data_ptr<uint8_t>();
    const Philox philox(source);
    at::parallel_for(0, bytes.numel(), kGrain * kChunk, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        uint8_t bits = 0;
        for (uint64_t half = 0; half < 2; ++half) {
          const Philox::Block words = philox.block(2 * static_cast<uint64_t>(i) + half);
          for (uint64_t k = 0; k < 4; ++k) {
            bits |= static_cast<uint8_t>((words[k] * 0x1p-32 < probability) << (4 * half + k));
          }
        }
        to[i] = bits;
      }
    });
  }
  return bytes;
}

}  // namespace aclnn_host
