// The kernels of ELU and SELU, in every version that this CPU can run: compared with the plain
// reference, and the reference with the formulas of CANN's documents, for integers with those of
// Ascend950's kernels; every length and alignment; no access outside.
#include <algorithm>
#include <bit>
#include <cfloat>
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
#include "host_cann/kernels/elu.h"
#include "host_cann/kernels/selu_integer.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

// ---- The types of elements ---------------------------------------------------------------------

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

template <class T>
BitsOf<T> bits_of(T element) {
  return std::bit_cast<BitsOf<T>>(element);
}

template <class T>
bool same_bits(const T* a, const T* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(T)) == 0;
}

template <class T>
const char* name_of() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  return std::is_same_v<T, Half> ? "float16" : "bfloat16";
}

// ---- The kernels -------------------------------------------------------------------------------

struct Version {
  const char* name;
  const EluKernels& kernels;
};

const EluKernels& reference() {
  return elu_kernels<Capability::kReference>();
}

// The versions that this CPU can run, except the reference.
std::vector<Version> versions() {
  std::vector<Version> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    all.push_back({name, elu_kernels<kCapability>()});
  });
  return all;
}

// One of the four functions. An exact one only multiplies, adds and selects: every version gives
// the same bits as the reference.
struct Function {
  const char* name;
  FloatKernels EluKernels::* kernels;
  int inputs;
  bool exact;
};

constexpr Function kForward = {"forward", &EluKernels::forward, 1, false};
constexpr Function kThreshold = {"threshold", &EluKernels::threshold, 1, true};
constexpr Function kFromInput = {"backward_from_input", &EluKernels::backward_from_input, 2, false};
constexpr Function kFromResult = {"backward_from_result", &EluKernels::backward_from_result, 2,
                                  true};
constexpr Function kFunctions[] = {kForward, kThreshold, kFromInput, kFromResult};

struct Scalars {
  double alpha;
  double scale;
  double input_scale;

  template <class Real>
  EluCoefficients<Real> coefficients() const {
    return {Real(scale), Real(alpha) * Real(scale), Real(input_scale)};
  }
};

// ELU, SELU, a growing exponent (input_scale < 0), negative and vanishing factors, large ones.
constexpr Scalars kFinite[] = {{1, 1, 1},           {1.6732632423543772, 1.0507009873554805, 1},
                               {0.5, 2, -1.5},      {-2, -1, 0.3},
                               {0, 1, 1},           {1, 1, 0},
                               {1, 0, -0.0},        {3, 1e30, 1e-30},
                               {1e-30, 1e-9, -1e3}, {7, 1, 1e37}};
// Stage 1 does not pass these to ELU's forward kernel, but computes another formula, as CANN's
// ComputeEluWithInfNan does. The other kernels receive them.
constexpr Scalars kSpecial[] = {
    {INFINITY, 1, 1}, {1, 1, -INFINITY}, {1, NAN, 1}, {NAN, 1, 1}, {1, INFINITY, NAN}};

template <class T>
std::vector<T> run(const FloatKernels& kernels, const Scalars& scalars, const std::vector<T>& first,
                   const std::vector<T>& second, bool streaming = false) {
  std::vector<T> out(first.size());
  const auto c = scalars.coefficients<RealOf<T>>();
  pick<T>(kernels)(&c, first.data(), second.empty() ? nullptr : second.data(), out.data(),
                   static_cast<int64_t>(first.size()), streaming);
  return out;
}

// ---- Inputs ------------------------------------------------------------------------------------

// Zeros, subnormals, limits of exp's range, infinities, NaNs, and a regular sample of all bit
// patterns: each one for 16 bits, 2^17 for wider types.
template <class T>
const std::vector<T>& samples() {
  static const std::vector<T> all = [] {
    std::vector<T> values;
    if constexpr (kIsSmall<T>) {
      for (int bits = 0; bits < 0x10000; ++bits) values.push_back({static_cast<uint16_t>(bits)});
    } else {
      using Limits = std::numeric_limits<T>;
      for (const T magnitude : {T(0),
                                Limits::denorm_min(),
                                Limits::min() - Limits::denorm_min(),
                                Limits::min(),
                                T(1e-30),
                                T(1e-8),
                                T(0.1),
                                T(0.34657359),
                                T(0.5),
                                T(1),
                                T(17.4),
                                T(20),
                                T(20.1),
                                T(87.33),
                                T(88.02),
                                T(88.72),
                                T(88.73),
                                T(89),
                                T(90),
                                T(103.27),
                                T(103.97),
                                T(105),
                                T(106),
                                T(709),
                                T(746),
                                Limits::max(),
                                Limits::infinity(),
                                Limits::quiet_NaN()}) {
        values.push_back(magnitude);
        values.push_back(-magnitude);
      }
      using Bits = BitsOf<T>;
      constexpr int kCount = 1 << 17;
      constexpr Bits kStep = ~Bits(0) / kCount | 1;
      for (int i = 0; i < kCount; ++i) {
        values.push_back(std::bit_cast<T>(static_cast<Bits>(i * kStep)));
      }
      // Most bit patterns are tiny or huge values; these are the values for which exp is neither.
      for (int i = 0; i < kCount; ++i) values.push_back(T(-120) + T(240) * T(i) / T(kCount));
    }
    return values;
  }();
  return all;
}

// As many values as samples(), in an unrelated order.
template <class T>
const std::vector<T>& gradients() {
  static const std::vector<T> all = [] {
    const std::vector<T>& from = samples<T>();
    constexpr size_t kStep = 40503;  // a prime
    std::vector<T> values(from.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = from[i * kStep % from.size()];
    return values;
  }();
  return all;
}

// ---- Comparison --------------------------------------------------------------------------------

// Maps floating-point numbers to integers of the same order: neighbours are one apart, zeros equal.
template <class T>
int64_t rank(T value) {
  constexpr BitsOf<T> kSign = BitsOf<T>(1) << (8 * sizeof(T) - 1);
  const BitsOf<T> bits = bits_of(value);
  const auto magnitude = static_cast<int64_t>(bits & ~kSign);
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

// True if the values are at most 2 units in the last place apart, as an infinity and the largest
// number are.
template <class T>
bool within_ulp(T got, T expected) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  const auto distance = static_cast<uint64_t>(rank(got)) - static_cast<uint64_t>(rank(expected));
  return distance + 2 <= 4;
}

// True if `got` is the rounding of a number at most `margin` from `exact`.
template <class T>
bool rounding_of(T got, double exact, double margin) {
  const double value = got.value();
  if (std::isnan(exact) || std::isnan(value)) return std::isnan(exact) && std::isnan(value);
  if (std::isinf(exact)) return value == exact;
  return T::round(exact - margin) <= value && value <= T::round(exact + margin);
}

// The tolerance for a 16-bit result before rounding: 2^-21 or 2^-16 for the polynomial, 2^-23 for
// the roundings of the reference and the kernel in float.
template <class T>
const double kSmallTolerance =
    std::ldexp(1, std::is_same_v<T, Half> ? -21 : -16) + std::ldexp(1, -23);

// The effect on the result of one unit of an exponential that is so small that it has few bits.
template <class T>
double unit_of_exp(const Function& function, const Scalars& scalars, double gradient) {
  if (function.name != kFromInput.name) return 0;
  const auto c = scalars.coefficients<RealOf<T>>();
  const double factor = gradient * static_cast<double>(c.input_scale * c.negative_scale);
  return std::abs(factor * std::numeric_limits<RealOf<T>>::denorm_min());
}

// Counts the differences and reports the first.
class Differences {
 public:
  explicit Differences(std::string what) : what_(std::move(what)) {}
  ~Differences() {
    std::ostringstream text;
    text << what_ << ": " << count_ << " differ, first " << first_;
    check::report(count_ == 0, __FILE__, __LINE__, text.str());
  }

  template <class T>
  void add(bool same, size_t i, T first, T second, T got, double expected) {
    if (same || count_++ > 0) return;
    std::ostringstream text;
    text.precision(17);
    text << "at " << i << ": f(" << value_of(first) << ", " << value_of(second)
         << ") = " << value_of(got) << ", expected " << expected;
    first_ = text.str();
  }

 private:
  std::string what_;
  std::string first_;
  size_t count_ = 0;
};

template <class T>
std::string label(const char* version, const Function& function, const Scalars& scalars) {
  std::ostringstream text;
  text << version << " " << function.name << " " << name_of<T>() << " alpha=" << scalars.alpha
       << " scale=" << scalars.scale << " input_scale=" << scalars.input_scale;
  return text.str();
}

template <class T>
std::vector<float> widen(const std::vector<T>& elements) {
  std::vector<float> values;
  for (const T element : elements) values.push_back(static_cast<float>(value_of(element)));
  return values;
}

template <class T>
void compare_with_reference(const Function& function, const Scalars& scalars) {
  const std::vector<T>& x = samples<T>();
  const std::vector<T>& g = gradients<T>();
  const std::vector<T> none;
  const auto& first = function.inputs == 2 ? g : x;
  const auto& second = function.inputs == 2 ? x : none;
  const auto expected = run<T>(reference().*function.kernels, scalars, first, second);
  std::vector<float> unrounded;
  if constexpr (kIsSmall<T>) {
    unrounded = run<float>(reference().*function.kernels, scalars, widen(first), widen(second));
  }
  for (const Version& version : versions()) {
    const auto got = run<T>(version.kernels.*function.kernels, scalars, first, second);
    Differences differences(label<T>(version.name, function, scalars));
    for (size_t i = 0; i < x.size(); ++i) {
      bool same = bits_of(got[i]) == bits_of(expected[i]);
      const double value = value_of(expected[i]);
      const double unit = unit_of_exp<T>(function, scalars, value_of(first[i]));
      if (!same && std::isnan(value)) {
        same = std::isnan(value_of(got[i]));  // of any sign and payload
      } else if (!same && !function.exact) {
        if constexpr (kIsSmall<T>) {
          const double margin = std::abs(unrounded[i]) * kSmallTolerance<T> + unit;
          same = rounding_of(got[i], unrounded[i], margin);
        } else {
          const T ulp = std::nextafter(std::abs(expected[i]), T(INFINITY)) - std::abs(expected[i]);
          same = within_ulp(got[i], expected[i]) ||
                 std::abs(got[i] - expected[i]) <= static_cast<T>(unit) + 2 * ulp;
        }
      }
      differences.add(same, i, first[i], x[i], got[i], value);
    }
  }
}

// ---- Memory ------------------------------------------------------------------------------------

// Memory between two inaccessible pages: an access outside ends the process.
class Fenced {
 public:
  explicit Fenced(size_t bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    inside_ = (bytes + page_ - 1) / page_ * page_;
    void* block = mmap(nullptr, inside_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    block_ = static_cast<char*>(block);
    CHECK(block != MAP_FAILED);
    CHECK_EQ(mprotect(begin(), inside_, PROT_READ | PROT_WRITE), 0);
  }
  ~Fenced() { munmap(block_, inside_ + 2 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  char* begin() const { return block_ + page_; }
  char* end() const { return begin() + inside_; }

  // n elements directly before the page at the end, or after the one at the beginning.
  template <class T>
  T* place(size_t n, bool at_end) const {
    return reinterpret_cast<T*>(at_end ? end() - n * sizeof(T) : begin());
  }

 private:
  size_t page_;
  size_t inside_;
  char* block_;
};

constexpr size_t kLongest = 200;
constexpr size_t kAlignment = 64;  // of the widest vectors
constexpr unsigned char kRedZone = 0xa5;

// n of the values, spread over all of them.
template <class T>
std::vector<T> some(const std::vector<T>& from, size_t n) {
  std::vector<T> values;
  const size_t step = from.size() / n;
  for (size_t i = 0; i < n; ++i) values.push_back(from[i * step]);
  return values;
}

// Calls body(version, function, streaming) for all combinations.
template <class Body>
void for_each_kernel(Body body) {
  for (const Version& version : versions()) {
    for (const Function& function : kFunctions) {
      for (const bool streaming : {false, true}) body(version, function, streaming);
    }
  }
}

constexpr Scalars kSomeScalars = {1.5, 0.75, 1.25};

}  // namespace

// ---- Values ------------------------------------------------------------------------------------

// Computed in long double, from the exact values of the elements. The factors are powers of two, so
// that products with them are exact; a rounded argument of exp would change the result.
TEST(the_reference_is_the_formula) {
  for_each_type([]<class T>() {
    const std::vector<T>& xs = samples<T>();
    const std::vector<T>& gs = gradients<T>();
    for (const Scalars& scalars : {Scalars{1, 1, 1}, Scalars{2, 0.5, -1}, Scalars{-1, 4, 2}}) {
      for (const Function& function : kFunctions) {
        const bool binary = function.inputs == 2;
        const auto got = run<T>(reference().*function.kernels, scalars, binary ? gs : xs,
                                binary ? xs : std::vector<T>());
        Differences differences(label<T>("formula", function, scalars));
        for (size_t i = 0; i < xs.size(); ++i) {
          const long double x = value_of(xs[i]), g = value_of(gs[i]);
          const long double scale = scalars.scale, input_scale = scalars.input_scale;
          const long double negative = scalars.alpha * scale;
          long double formula = scale * x;
          if (function.name == kForward.name) {
            if (x <= 0) formula = negative * std::expm1(input_scale * x);
          } else if (function.name == kThreshold.name) {
            if (x <= 0) formula = -negative;
          } else if (!(x <= 0)) {
            formula = g * scale;
          } else if (function.name == kFromInput.name) {
            // Products and exponentials out of the compute type's range are 0 or inf.
            formula = RealOf<T>(g * input_scale * negative) * RealOf<T>(std::exp(x * input_scale));
          } else {
            formula = RealOf<T>(g * input_scale) * RealOf<T>(x + negative);
          }
          bool same = false;
          if constexpr (kIsSmall<T>) {
            const double exact = static_cast<float>(formula);
            same = rounding_of(got[i], exact, std::abs(exact) * std::ldexp(1, -22));
          } else {
            same = within_ulp(got[i], static_cast<T>(formula));
          }
          differences.add(same, i, binary ? gs[i] : xs[i], xs[i], got[i],
                          static_cast<double>(formula));
        }
      }
    }
  });
}

// float32 and float64 differ by at most 2 units in the last place; 16-bit results are the rounding
// of a number within kSmallTolerance of the reference's. Functions without exp are equal to the
// bit; in the others the sign of a zero may differ.
TEST(every_version_computes_the_reference) {
  for_each_type([]<class T>() {
    for (const Function& function : kFunctions) {
      for (const Scalars& scalars : kFinite) compare_with_reference<T>(function, scalars);
    }
  });
}

TEST(coefficients_that_are_not_finite_count_as_in_the_reference) {
  for_each_type([]<class T>() {
    for (const Function& function : {kThreshold, kFromInput, kFromResult}) {
      for (const Scalars& scalars : kSpecial) compare_with_reference<T>(function, scalars);
    }
  });
}

// ---- Lengths, alignments, bounds ---------------------------------------------------------------

// The bits of an element do not depend on its position in a vector, on the alignment of the memory,
// or on the kind of stores.
TEST(every_length_and_alignment_gives_the_same_bits_and_touches_nothing_else) {
  for_each_type([]<class T>() {
    constexpr size_t kShifts = kAlignment / sizeof(T);
    constexpr size_t kRoom = kLongest + 2 * kShifts;
    const auto first = some(gradients<T>(), kRoom);
    const auto second = some(samples<T>(), kRoom);
    const auto c = kSomeScalars.coefficients<RealOf<T>>();
    alignas(kAlignment) T out[kRoom];
    for_each_kernel([&](const Version& version, const Function& function, bool streaming) {
      const ElementwiseKernel kernel = pick<T>(version.kernels.*function.kernels);
      const bool binary = function.inputs == 2;
      const auto whole = run<T>(version.kernels.*function.kernels, kSomeScalars, first,
                                binary ? second : std::vector<T>());
      bool equal = true, intact = true;
      for (size_t shift = 0; shift < kShifts; ++shift) {
        for (size_t n = 0; n <= kLongest; ++n) {
          std::memset(out, kRedZone, sizeof(out));
          // The inputs' alignments take all values, too, each in a different order.
          const size_t from = (shift * 3 + n) % kShifts;
          kernel(&c, first.data() + from, binary ? second.data() + from : nullptr, out + shift,
                 static_cast<int64_t>(n), streaming);
          equal = equal && same_bits(out + shift, whole.data() + from, n);
          const auto* bytes = reinterpret_cast<const unsigned char*>(out);
          const auto red = [&](size_t begin, size_t end) {
            return std::all_of(bytes + begin * sizeof(T), bytes + end * sizeof(T),
                               [](unsigned char byte) { return byte == kRedZone; });
          };
          intact = intact && red(0, shift) && red(shift + n, kRoom);
        }
      }
      const auto text = label<T>(version.name, function, kSomeScalars);
      check::report(equal, __FILE__, __LINE__, text + ": other bits at some length or alignment");
      check::report(intact, __FILE__, __LINE__, text + ": wrote outside its output");
    });
  });
}

TEST(nothing_is_accessed_outside_inputs_and_output) {
  for_each_type([]<class T>() {
    const size_t bytes = kLongest * sizeof(T);
    const Fenced first(bytes), second(bytes), out(bytes);
    const auto x = some(samples<T>(), kLongest);
    const auto c = kSomeScalars.coefficients<RealOf<T>>();
    for_each_kernel([&](const Version& version, const Function& function, bool streaming) {
      const ElementwiseKernel kernel = pick<T>(version.kernels.*function.kernels);
      for (const bool at_end : {false, true}) {
        for (size_t n = 0; n <= kLongest; ++n) {
          T* a = first.place<T>(n, at_end);
          T* b = function.inputs == 2 ? second.place<T>(n, at_end) : nullptr;
          std::memcpy(a, x.data(), n * sizeof(T));
          if (b != nullptr) std::memcpy(b, x.data(), n * sizeof(T));
          kernel(&c, a, b, out.place<T>(n, at_end), static_cast<int64_t>(n), streaming);
          CHECK(same_bits(a, x.data(), n));
          CHECK(b == nullptr || same_bits(b, x.data(), n));
        }
      }
    });
  });
}

TEST(the_output_may_be_either_input) {
  for_each_type([]<class T>() {
    const auto first = some(gradients<T>(), kLongest);
    const auto second = some(samples<T>(), kLongest);
    const auto c = kSomeScalars.coefficients<RealOf<T>>();
    for_each_kernel([&](const Version& version, const Function& function, bool streaming) {
      const FloatKernels& kernels = version.kernels.*function.kernels;
      const bool binary = function.inputs == 2;
      const auto expected =
          run<T>(kernels, kSomeScalars, first, binary ? second : std::vector<T>());
      for (size_t n = 0; n <= kLongest; ++n) {
        auto a = first, b = second;
        pick<T>(kernels)(&c, a.data(), binary ? b.data() : nullptr, a.data(),
                         static_cast<int64_t>(n), streaming);
        CHECK(same_bits(a.data(), expected.data(), n));
        CHECK(same_bits(a.data() + n, first.data() + n, kLongest - n));
        if (!binary) continue;
        a = first;
        pick<T>(kernels)(&c, a.data(), b.data(), b.data(), static_cast<int64_t>(n), streaming);
        CHECK(same_bits(b.data(), expected.data(), n));
        CHECK(same_bits(b.data() + n, second.data() + n, kLongest - n));
      }
    });
  });
}

// ---- Integers ----------------------------------------------------------------------------------

namespace {

// Ascend950's integer SELU, in double: the values are small enough that its FLOAT steps give the
// same results, except for the rounding to FLOAT16.
template <class T>
void check_integers(const std::vector<T>& values, ElementwiseKernel forward,
                    ElementwiseKernel backward, double wraps_at) {
  constexpr float kScale = 1.0507009873554805f, kNegative = 1.7580993408473766f;
  const EluCoefficients<float> c{kScale, kNegative, 1};
  const double lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
  std::vector<T> out(values.size()), same(values.size());
  const auto n = static_cast<int64_t>(values.size());
  forward(&c, values.data(), nullptr, out.data(), n, false);
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = static_cast<float>(values[i]);
    double y = std::trunc(x > 0 ? kScale * x : kNegative * std::expm1(x));
    y = wraps_at > 0 && y >= wraps_at ? y - 2 * wraps_at : std::clamp(y, lowest, highest);
    CHECK_EQ(static_cast<double>(out[i]), y);
  }
  for (const T y : values) {
    std::fill(same.begin(), same.end(), y);
    backward(&c, values.data(), same.data(), out.data(), n, false);
    const float wide = static_cast<float>(Half::round(y));
    for (size_t i = 0; i < values.size(); ++i) {
      const float g = static_cast<float>(Half::round(values[i]));
      const double gradient =
          std::nearbyint(Half::round(wide > 0 ? g * kScale : g * (wide + kNegative)));
      const double expected = std::isnan(gradient) ? 0 : std::clamp(gradient, lowest, highest);
      CHECK_EQ(static_cast<double>(out[i]), expected);
    }
  }
}

}  // namespace

TEST(integers_are_converted_as_the_specification_says) {
  std::vector<int8_t> bytes;
  for (int value = -128; value < 128; ++value) bytes.push_back(static_cast<int8_t>(value));
  check_integers<int8_t>(bytes, selu_integer_forward(ACL_INT8), selu_integer_backward(ACL_INT8),
                         128);
  check_integers<int32_t>({0, 1, -1, 2, -2, 17, 2047, 2049, -2051, 65504, -65504, 65520, 1 << 24,
                           (1 << 24) + 1, 2043883853, INT32_MAX, INT32_MIN},
                          selu_integer_forward(ACL_INT32), selu_integer_backward(ACL_INT32), 0);
  CHECK(selu_integer_forward(ACL_FLOAT) == nullptr);
  CHECK(selu_integer_backward(ACL_UINT8) == nullptr);
}
