#include <cmath>
#include <limits>

#include "cann/triton/elements.h"

// Operations that compute each element of a register from the same elements of others.
namespace aclnn_host::triton {
namespace {

// Words of an operation: number, place, kind, count, destination, operands.
constexpr int64_t kKindWord = 2;
constexpr int64_t kCountWord = 3;
constexpr int64_t kToWord = 4;
constexpr int64_t kFirstWord = 5;

template <class V>
using Signed = std::make_signed_t<V>;

// Integers wrap around. What the hardware leaves open is a value here: x / 0 and x % 0 are 0, and
// shifts by the width or more leave no bit.
struct Add {
  template <class V>
  V operator()(V a, V b) const { return static_cast<V>(a + b); }
};
struct Sub {
  template <class V>
  V operator()(V a, V b) const { return static_cast<V>(a - b); }
};
struct Mul {
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_floating_point_v<V>) return a * b;
    else return static_cast<V>(static_cast<uint64_t>(a) * b);
  }
};
struct DivS {
  template <class V>
  V operator()(V a, V b) const {
    const auto divisor = static_cast<Signed<V>>(b);
    if (divisor == 0) return 0;
    if (divisor == -1) return static_cast<V>(V(0) - a);
    return static_cast<V>(static_cast<Signed<V>>(a) / divisor);
  }
};
struct DivU {
  template <class V>
  V operator()(V a, V b) const { return b == 0 ? V(0) : static_cast<V>(a / b); }
};
struct RemS {
  template <class V>
  V operator()(V a, V b) const {
    const auto divisor = static_cast<Signed<V>>(b);
    if (divisor == 0 || divisor == -1) return 0;
    return static_cast<V>(static_cast<Signed<V>>(a) % divisor);
  }
};
struct RemU {
  template <class V>
  V operator()(V a, V b) const { return b == 0 ? V(0) : static_cast<V>(a % b); }
};
struct And {
  template <class V>
  V operator()(V a, V b) const { return static_cast<V>(a & b); }
};
struct Or {
  template <class V>
  V operator()(V a, V b) const { return static_cast<V>(a | b); }
};
struct Xor {
  template <class V>
  V operator()(V a, V b) const { return static_cast<V>(a ^ b); }
};
struct Shl {
  template <class V>
  V operator()(V a, V b) const {
    return b < 8 * sizeof(V) ? static_cast<V>(static_cast<uint64_t>(a) << b) : V(0);
  }
};
struct ShrU {
  template <class V>
  V operator()(V a, V b) const { return b < 8 * sizeof(V) ? static_cast<V>(a >> b) : V(0); }
};
struct ShrS {
  template <class V>
  V operator()(V a, V b) const {
    const V last = 8 * sizeof(V) - 1;
    return static_cast<V>(static_cast<Signed<V>>(a) >> (b < last ? b : last));
  }
};
struct MinS {
  template <class V>
  V operator()(V a, V b) const {
    return static_cast<Signed<V>>(a) < static_cast<Signed<V>>(b) ? a : b;
  }
};
struct MaxS {
  template <class V>
  V operator()(V a, V b) const {
    return static_cast<Signed<V>>(a) > static_cast<Signed<V>>(b) ? a : b;
  }
};
struct MinU {
  template <class V>
  V operator()(V a, V b) const { return a < b ? a : b; }
};
struct MaxU {
  template <class V>
  V operator()(V a, V b) const { return a > b ? a : b; }
};
// The upper half of the product.
struct MulHigh {
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (sizeof(V) == 8) {
      __extension__ using Wide = unsigned __int128;
      return static_cast<V>(static_cast<Wide>(a) * b >> 64);
    } else {
      return static_cast<V>(static_cast<uint64_t>(a) * b >> 8 * sizeof(V));
    }
  }
};

struct Div {
  template <class V>
  V operator()(V a, V b) const { return a / b; }
};
struct Rem {
  template <class V>
  V operator()(V a, V b) const { return std::fmod(a, b); }
};
// The number if the other one is NaN.
struct MinNumber {
  template <class V>
  V operator()(V a, V b) const { return a < b || b != b ? a : b; }
};
struct MaxNumber {
  template <class V>
  V operator()(V a, V b) const { return a > b || b != b ? a : b; }
};
// NaN if one of them is.
struct Minimum {
  template <class V>
  V operator()(V a, V b) const { return a < b || a != a ? a : b; }
};
struct Maximum {
  template <class V>
  V operator()(V a, V b) const { return a > b || a != a ? a : b; }
};

// Calls `f` with a value of an integer kind's unsigned type; f runs the operation.
template <class F>
void with_integer(int64_t kind, F f) {
  switch (bytes_of(kind)) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    default: return f(uint64_t());
  }
}

template <class F>
void with_float(int64_t kind, F f) {
  if (kind == kF64) return f(double());
  f(float());
}

template <class F, class V>
void map_two(Machine& machine, const int64_t* words) {
  const int64_t kind = words[kKindWord];
  const int64_t count = words[kCountWord];
  Input<V> a(machine, kind, words[kFirstWord], count);
  Input<V> b(machine, kind, words[kFirstWord + 1], count);
  Output<V> out(machine, kind, words[kToWord]);
  map(count, out, F(), a, b);
}

template <class F>
const int64_t* integers(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord], [&](auto value) { map_two<F, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

template <class F>
const int64_t* floats(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) { map_two<F, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

// Comparisons. Unordered ones hold if an element is NaN.
struct Eq {
  template <class V>
  bool operator()(V a, V b) const { return a == b; }
};
struct Ne {
  template <class V>
  bool operator()(V a, V b) const { return a < b || a > b; }
};
struct Lt {
  template <class V>
  bool operator()(V a, V b) const { return a < b; }
};
struct Le {
  template <class V>
  bool operator()(V a, V b) const { return a <= b; }
};
struct Ordered {
  template <class V>
  bool operator()(V a, V b) const { return a == a && b == b; }
};
template <class F>
struct OrUnordered {
  template <class V>
  bool operator()(V a, V b) const { return F()(a, b) || a != a || b != b; }
};
template <class F>
struct Not {
  template <class V>
  bool operator()(V a, V b) const { return !F()(a, b); }
};

template <class F, class V>
void compare(Machine& machine, const int64_t* words) {
  const int64_t kind = words[kKindWord];
  const int64_t count = words[kCountWord];
  Input<V> a(machine, kind, words[kFirstWord], count);
  Input<V> b(machine, kind, words[kFirstWord + 1], count);
  Output<uint8_t> out(machine, kI1, words[kToWord]);
  map(count, out, F(), a, b);
}

template <class F>
const int64_t* compare_unsigned(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord], [&](auto value) { compare<F, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

template <class F>
const int64_t* compare_signed(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord],
               [&](auto value) { compare<F, Signed<decltype(value)>>(machine, words); });
  return words + kFirstWord + 2;
}

template <class F>
const int64_t* compare_floats(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) { compare<F, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

// Functions of one floating-point element.
template <class F>
const int64_t* unary(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) {
    using V = decltype(value);
    const int64_t count = words[kCountWord];
    Input<V> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<V> out(machine, words[kKindWord], words[kToWord]);
    map(count, out, F(), a);
  });
  return words + kFirstWord + 1;
}

// Questions about one floating-point element, whose answers are kI1.
template <class F>
const int64_t* question(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) {
    const int64_t count = words[kCountWord];
    Input<decltype(value)> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<uint8_t> out(machine, kI1, words[kToWord]);
    map(count, out, F(), a);
  });
  return words + kFirstWord + 1;
}

struct AbsInteger {
  template <class V>
  V operator()(V a) const { return static_cast<Signed<V>>(a) < 0 ? static_cast<V>(V(0) - a) : a; }
};

const int64_t* absolute_integer(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord], [&](auto value) {
    using V = decltype(value);
    const int64_t count = words[kCountWord];
    Input<V> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<V> out(machine, words[kKindWord], words[kToWord]);
    map(count, out, AbsInteger(), a);
  });
  return words + kFirstWord + 1;
}

// Wraps a function of <cmath> as a type.
#define FUNCTION(Name, expression)                    \
  struct Name {                                       \
    template <class V>                                \
    V operator()(V x) const { return expression; }    \
  }
FUNCTION(Neg, -x);
FUNCTION(Abs, std::fabs(x));
FUNCTION(Exp, std::exp(x));
FUNCTION(Exp2, std::exp2(x));
FUNCTION(Expm1, std::expm1(x));
FUNCTION(Log, std::log(x));
FUNCTION(Log2, std::log2(x));
FUNCTION(Log10, std::log10(x));
FUNCTION(Log1p, std::log1p(x));
FUNCTION(Sqrt, std::sqrt(x));
FUNCTION(Rsqrt, V(1) / std::sqrt(x));
FUNCTION(Reciprocal, V(1) / x);
FUNCTION(Sin, std::sin(x));
FUNCTION(Cos, std::cos(x));
FUNCTION(Tan, std::tan(x));
FUNCTION(Asin, std::asin(x));
FUNCTION(Acos, std::acos(x));
FUNCTION(Atan, std::atan(x));
FUNCTION(Sinh, std::sinh(x));
FUNCTION(Cosh, std::cosh(x));
FUNCTION(Tanh, std::tanh(x));
FUNCTION(Asinh, std::asinh(x));
FUNCTION(Acosh, std::acosh(x));
FUNCTION(Atanh, std::atanh(x));
FUNCTION(Erf, std::erf(x));
FUNCTION(Gamma, std::tgamma(x));
FUNCTION(Lgamma, std::lgamma(x));
FUNCTION(Floor, std::floor(x));
FUNCTION(Ceil, std::ceil(x));
FUNCTION(Trunc, std::trunc(x));
FUNCTION(Round, std::round(x));
FUNCTION(Nearbyint, std::nearbyint(x));
FUNCTION(Relu, x > 0 || x != x ? x : V(0));
#undef FUNCTION

struct IsNan {
  template <class V>
  bool operator()(V x) const { return x != x; }
};
struct IsInf {
  template <class V>
  bool operator()(V x) const { return std::fabs(x) == std::numeric_limits<V>::infinity(); }
};
struct IsFinite {
  template <class V>
  bool operator()(V x) const { return std::fabs(x) < std::numeric_limits<V>::infinity(); }
};
struct SignBit {
  template <class V>
  bool operator()(V x) const { return std::signbit(x); }
};

struct Pow {
  template <class V>
  V operator()(V a, V b) const { return std::pow(a, b); }
};
struct Atan2 {
  template <class V>
  V operator()(V a, V b) const { return std::atan2(a, b); }
};
struct Hypot {
  template <class V>
  V operator()(V a, V b) const { return std::hypot(a, b); }
};
struct CopySign {
  template <class V>
  V operator()(V a, V b) const { return std::copysign(a, b); }
};

// a * b + c with one rounding.
const int64_t* fused(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) {
    using V = decltype(value);
    const int64_t kind = words[kKindWord];
    const int64_t count = words[kCountWord];
    Input<V> a(machine, kind, words[kFirstWord], count);
    Input<V> b(machine, kind, words[kFirstWord + 1], count);
    Input<V> c(machine, kind, words[kFirstWord + 2], count);
    Output<V> out(machine, kind, words[kToWord]);
    map(count, out, [](V x, V y, V z) { return std::fma(x, y, z); }, a, b, c);
  });
  return words + kFirstWord + 3;
}

// Takes the second operand's element where the first one's is true, and the third one's elsewhere.
const int64_t* select(Machine& machine, const int64_t* words) {
  const auto as = [&](auto value) {
    using V = decltype(value);
    const int64_t count = words[kCountWord];
    Input<uint8_t> condition(machine, kI1, words[kFirstWord], count);
    Input<V> a(machine, kI64, words[kFirstWord + 1], count);
    Input<V> b(machine, kI64, words[kFirstWord + 2], count);
    Output<V> out(machine, kI64, words[kToWord]);
    map(count, out, [](uint8_t is_first, V x, V y) { return is_first != 0 ? x : y; }, condition, a,
        b);
  };
  with_integer(words[kKindWord], as);
  return words + kFirstWord + 3;
}

// Reads integers, of which those of kI1 are 0 and 1, or 0 and -1 if they are signed.
void read_integers(Machine& machine, int64_t kind, bool is_signed, int64_t operand, int64_t begin,
                   int64_t count, int64_t* to) {
  const bool is_splat = (operand & 1) != 0;
  with_integer(kind, [&](auto value) {
    using V = decltype(value);
    const V* const from = machine.at<V>(operand >> 1) + (is_splat ? 0 : begin);
    for (int64_t i = 0; i < count; ++i) {
      const V x = from[is_splat ? 0 : i];
      to[i] = is_signed ? static_cast<int64_t>(static_cast<Signed<V>>(x)) : static_cast<int64_t>(x);
    }
  });
  if (kind == kI1 && is_signed) {
    for (int64_t i = 0; i < count; ++i) to[i] = -to[i];
  }
}

void write_integers(Machine& machine, int64_t kind, int64_t offset, int64_t begin, int64_t count,
                    const int64_t* from) {
  with_integer(kind, [&](auto value) {
    using V = decltype(value);
    V* const to = machine.at<V>(offset) + begin;
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<V>(kind == kI1 ? from[i] & 1 : from[i]);
    }
  });
}

// The nearest integer towards zero that the kind has; 0 for NaN.
int64_t integer_of(double x, double least, double most) {
  if (x != x) return 0;
  if (x <= least) return static_cast<int64_t>(least);
  // The largest numbers of 64 bits are no doubles.
  if (x >= most) return most < 0x1p63 ? static_cast<int64_t>(most) : INT64_MAX;
  return static_cast<int64_t>(x);
}

// Converts elements between kinds. Words: number, place, kind, count, destination, operand, kind of
// the destination, whether integers are signed.
const int64_t* convert(Machine& machine, const int64_t* words) {
  const int64_t from = words[kKindWord];
  const int64_t count = words[kCountWord];
  const int64_t offset = words[kToWord];
  const int64_t operand = words[kFirstWord];
  const int64_t to = words[kFirstWord + 1];
  const bool is_signed = words[kFirstWord + 2] != 0;
  const int64_t* const next = words + kFirstWord + 3;
  if (is_float(from) && is_float(to) && from != kF64 && to != kF64) {
    Input<float> in(machine, from, operand, count);
    Output<float> out(machine, to, offset);
    map(count, out, [](float x) { return x; }, in);
    return next;
  }
  int64_t integers[kChunk];
  const double limit = std::ldexp(1, static_cast<int>(8 * bytes_of(to)) - (is_signed ? 1 : 0));
  const double least = is_signed ? -limit : 0;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t size = std::min(kChunk, count - begin);
    if (!is_float(from)) {
      read_integers(machine, from, is_signed, operand, begin, size, integers);
      if (!is_float(to)) {
        write_integers(machine, to, offset, begin, size, integers);
        continue;
      }
      with_float(to, [&](auto value) {
        using V = decltype(value);
        Output<V> out(machine, to, offset);
        V* const results = out.begin(begin);
        for (int64_t i = 0; i < size; ++i) {
          results[i] = is_signed ? static_cast<V>(integers[i])
                                 : static_cast<V>(static_cast<uint64_t>(integers[i]));
        }
        out.end(begin, size);
      });
      continue;
    }
    with_float(from, [&](auto value) {
      using V = decltype(value);
      Input<V> in(machine, from, operand, size);
      const V* const values = in.read(begin, size);
      if (to == kF64) {
        std::copy_n(values, size, machine.at<double>(offset) + begin);
      } else if (is_float(to)) {
        Output<float> out(machine, to, offset);
        std::transform(values, values + size, out.begin(begin),
                       [](V x) { return static_cast<float>(x); });
        out.end(begin, size);
      } else {
        for (int64_t i = 0; i < size; ++i) {
          if (!is_signed && values[i] >= V(0x1p63)) {  // the upper half of 64 unsigned bits
            integers[i] = values[i] >= limit ? -1 : static_cast<int64_t>(static_cast<uint64_t>(values[i]));
          } else {
            integers[i] = integer_of(values[i], least, limit < 0x1p63 ? limit - 1 : limit);
          }
        }
        write_integers(machine, to, offset, begin, size, integers);
      }
    });
  }
  return next;
}

// Moves addresses by offsets of an integer kind: operands addresses and offsets, bytes of an element.
const int64_t* move_addresses(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord], [&](auto value) {
    const int64_t count = words[kCountWord];
    const int64_t bytes = words[kFirstWord + 2];
    Input<int64_t> addresses(machine, kI64, words[kFirstWord], count);
    Input<Signed<decltype(value)>> offsets(machine, words[kKindWord], words[kFirstWord + 1], count);
    Output<int64_t> out(machine, kI64, words[kToWord]);
    map(
        count, out,
        [bytes](int64_t address, auto offset) { return address + bytes * static_cast<int64_t>(offset); },
        addresses, offsets);
  });
  return words + kFirstWord + 3;
}

constexpr Operation kElementwise[] = {
    {"move_addresses", move_addresses},
    {"addi", integers<Add>},
    {"subi", integers<Sub>},
    {"muli", integers<Mul>},
    {"divsi", integers<DivS>},
    {"divui", integers<DivU>},
    {"remsi", integers<RemS>},
    {"remui", integers<RemU>},
    {"andi", integers<And>},
    {"ori", integers<Or>},
    {"xori", integers<Xor>},
    {"shli", integers<Shl>},
    {"shrui", integers<ShrU>},
    {"shrsi", integers<ShrS>},
    {"minsi", integers<MinS>},
    {"maxsi", integers<MaxS>},
    {"minui", integers<MinU>},
    {"maxui", integers<MaxU>},
    {"mulhiui", integers<MulHigh>},
    {"absi", absolute_integer},
    {"addf", floats<Add>},
    {"subf", floats<Sub>},
    {"mulf", floats<Mul>},
    {"divf", floats<Div>},
    {"remf", floats<Rem>},
    {"minnumf", floats<MinNumber>},
    {"maxnumf", floats<MaxNumber>},
    {"minimumf", floats<Minimum>},
    {"maximumf", floats<Maximum>},
    {"pow", floats<Pow>},
    {"atan2", floats<Atan2>},
    {"hypot", floats<Hypot>},
    {"copysign", floats<CopySign>},
    {"fma", fused},
    {"negf", unary<Neg>},
    {"absf", unary<Abs>},
    {"exp", unary<Exp>},
    {"exp2", unary<Exp2>},
    {"expm1", unary<Expm1>},
    {"log", unary<Log>},
    {"log2", unary<Log2>},
    {"log10", unary<Log10>},
    {"log1p", unary<Log1p>},
    {"sqrt", unary<Sqrt>},
    {"rsqrt", unary<Rsqrt>},
    {"reciprocal", unary<Reciprocal>},
    {"sin", unary<Sin>},
    {"cos", unary<Cos>},
    {"tan", unary<Tan>},
    {"asin", unary<Asin>},
    {"acos", unary<Acos>},
    {"atan", unary<Atan>},
    {"sinh", unary<Sinh>},
    {"cosh", unary<Cosh>},
    {"tanh", unary<Tanh>},
    {"asinh", unary<Asinh>},
    {"acosh", unary<Acosh>},
    {"atanh", unary<Atanh>},
    {"erf", unary<Erf>},
    {"gamma", unary<Gamma>},
    {"lgamma", unary<Lgamma>},
    {"floor", unary<Floor>},
    {"ceil", unary<Ceil>},
    {"trunc", unary<Trunc>},
    {"round", unary<Round>},
    {"nearbyint", unary<Nearbyint>},
    {"relu", unary<Relu>},
    {"isnan", question<IsNan>},
    {"isinf", question<IsInf>},
    {"isfinite", question<IsFinite>},
    {"signbit", question<SignBit>},
    {"cmpi_eq", compare_unsigned<Eq>},
    {"cmpi_ne", compare_unsigned<Not<Eq>>},
    {"cmpi_slt", compare_signed<Lt>},
    {"cmpi_sle", compare_signed<Le>},
    {"cmpi_ult", compare_unsigned<Lt>},
    {"cmpi_ule", compare_unsigned<Le>},
    {"cmpf_oeq", compare_floats<Eq>},
    {"cmpf_one", compare_floats<Ne>},
    {"cmpf_olt", compare_floats<Lt>},
    {"cmpf_ole", compare_floats<Le>},
    {"cmpf_ord", compare_floats<Ordered>},
    {"cmpf_ueq", compare_floats<OrUnordered<Eq>>},
    {"cmpf_une", compare_floats<Not<Eq>>},
    {"cmpf_ult", compare_floats<OrUnordered<Lt>>},
    {"cmpf_ule", compare_floats<OrUnordered<Le>>},
    {"cmpf_uno", compare_floats<Not<Ordered>>},
    {"select", select},
    {"convert", convert},
};

}  // namespace

std::span<const Operation> elementwise_operations() {
  return kElementwise;
}

}  // namespace aclnn_host::triton
