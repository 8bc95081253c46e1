#include <bit>
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

template <auto kFunction, class V, class R>
void map_two(Machine& machine, const int64_t* words, int64_t kind_of_result) {
  const int64_t kind = words[kKindWord];
  const int64_t count = words[kCountWord];
  Input<V> a(machine, kind, words[kFirstWord], count);
  Input<V> b(machine, kind, words[kFirstWord + 1], count);
  Output<R> out(machine, kind_of_result, words[kToWord]);
  map(count, out, kFunction, a, b);
}

template <auto kFunction, class V>
void compute(Machine& machine, const int64_t* words) {
  map_two<kFunction, V, V>(machine, words, words[kKindWord]);
}

template <auto kFunction, class V>
void compare(Machine& machine, const int64_t* words) {
  map_two<kFunction, V, uint8_t>(machine, words, kI1);
}

template <auto kFunction>
const int64_t* integers(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord],
               [&](auto value) { compute<kFunction, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

template <auto kFunction>
const int64_t* floats(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord],
             [&](auto value) { compute<kFunction, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

template <auto kFunction>
const int64_t* compare_unsigned(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord],
               [&](auto value) { compare<kFunction, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

template <auto kFunction>
const int64_t* compare_signed(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord],
               [&](auto value) { compare<kFunction, Signed<decltype(value)>>(machine, words); });
  return words + kFirstWord + 2;
}

template <auto kFunction>
const int64_t* compare_floats(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord],
             [&](auto value) { compare<kFunction, decltype(value)>(machine, words); });
  return words + kFirstWord + 2;
}

// Functions of one floating-point element.
template <auto kFunction>
const int64_t* unary(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) {
    using V = decltype(value);
    const int64_t count = words[kCountWord];
    Input<V> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<V> out(machine, words[kKindWord], words[kToWord]);
    map(count, out, kFunction, a);
  });
  return words + kFirstWord + 1;
}

// Questions about one floating-point element, whose answers are kI1.
template <auto kFunction>
const int64_t* question(Machine& machine, const int64_t* words) {
  with_float(words[kKindWord], [&](auto value) {
    const int64_t count = words[kCountWord];
    Input<decltype(value)> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<uint8_t> out(machine, kI1, words[kToWord]);
    map(count, out, kFunction, a);
  });
  return words + kFirstWord + 1;
}

const int64_t* absolute_integer(Machine& machine, const int64_t* words) {
  with_integer(words[kKindWord], [&](auto value) {
    using V = decltype(value);
    const int64_t count = words[kCountWord];
    Input<V> a(machine, words[kKindWord], words[kFirstWord], count);
    Output<V> out(machine, words[kKindWord], words[kToWord]);
    map(
        count, out,
        [](V x) { return static_cast<V>(static_cast<Signed<V>>(x) < 0 ? V(0) - x : x); }, a);
  });
  return words + kFirstWord + 1;
}

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
    map(
        count, out, [](uint8_t is_first, V x, V y) { return is_first != 0 ? x : y; }, condition, a,
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
            integers[i] =
                values[i] >= limit ? -1 : static_cast<int64_t>(static_cast<uint64_t>(values[i]));
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

// Moves addresses by offsets of an integer kind: operands addresses and offsets, bytes of an
// element.
const int64_t* move_addresses(Machine& machine, const int64_t* words) {
  const int64_t count = words[kCountWord];
  const int shift = std::countr_zero(static_cast<uint64_t>(words[kFirstWord + 2]));
  Input<int64_t> addresses(machine, kI64, words[kFirstWord], count);
  Output<int64_t> out(machine, kI64, words[kToWord]);
  with_integer(words[kKindWord], [&](auto value) {
    using Offset = Signed<decltype(value)>;
    Input<Offset> offsets(machine, words[kKindWord], words[kFirstWord + 1], count);
    if constexpr (std::is_same_v<Offset, int32_t>) {  // the usual kind, in wide vectors
      for (int64_t begin = 0; begin < count; begin += kChunk) {
        const int64_t size = std::min(kChunk, count - begin);
        move_by_offsets(addresses.read(begin, size), offsets.read(begin, size), shift, size,
                        out.begin(begin));
      }
    } else {
      map(
          count, out,
          [shift](int64_t address, Offset offset) {
            return address + (static_cast<int64_t>(offset) << shift);
          },
          addresses, offsets);
    }
  });
  return words + kFirstWord + 3;
}

// Integers wrap around. What the hardware leaves open is a value here: x / 0 and x % 0 are 0, and
// shifts by the width or more leave no bit. The type of `a` is unsigned.
constexpr auto kDivSigned = [](auto a, auto b) {
  using V = decltype(a);
  const auto divisor = static_cast<Signed<V>>(b);
  if (divisor == 0) return V(0);
  if (divisor == -1) return static_cast<V>(V(0) - a);
  return static_cast<V>(static_cast<Signed<V>>(a) / divisor);
};
constexpr auto kRemSigned = [](auto a, auto b) {
  using V = decltype(a);
  return static_cast<V>(a - static_cast<uint64_t>(b) * kDivSigned(a, b));
};
constexpr auto kShiftLeft = [](auto a, auto b) {
  return b < 8 * sizeof(a) ? static_cast<uint64_t>(a) << b : 0;
};
constexpr auto kShiftSigned = [](auto a, auto b) {
  using V = decltype(a);
  const V last = 8 * sizeof(V) - 1;
  return static_cast<V>(static_cast<Signed<V>>(a) >> (b < last ? b : last));
};
constexpr auto kIsLessSigned = [](auto a, auto b) {
  return static_cast<Signed<decltype(a)>>(a) < static_cast<Signed<decltype(b)>>(b);
};
// The upper half of the product.
constexpr auto kMulHigh = [](auto a, auto b) {
  if constexpr (sizeof(a) == 8) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(a) * b >> 64);
  } else {
    return static_cast<uint64_t>(a) * b >> 8 * sizeof(a);
  }
};
constexpr auto kIsUnordered = [](auto a, auto b) { return a != a || b != b; };

// Functions of two operands, or one.
#define OF_TWO(expression) ([](auto a, auto b) { return expression; })
#define OF_ONE(expression) ([](auto x) { return expression; })

constexpr Operation kElementwise[] = {
    {"move_addresses", move_addresses},
    {"addi", integers<OF_TWO(a + b)>},
    {"subi", integers<OF_TWO(a - b)>},
    {"muli", integers<OF_TWO(static_cast<uint64_t>(a) * b)>},
    {"divsi", integers<kDivSigned>},
    {"divui", integers<OF_TWO(b == 0 ? b : a / b)>},
    {"remsi", integers<OF_TWO(b == 0 ? b : kRemSigned(a, b))>},
    {"remui", integers<OF_TWO(b == 0 ? b : a % b)>},
    {"andi", integers<OF_TWO(a& b)>},
    {"ori", integers<OF_TWO(a | b)>},
    {"xori", integers<OF_TWO(a ^ b)>},
    {"shli", integers<kShiftLeft>},
    {"shrui", integers<OF_TWO(b < 8 * sizeof(a) ? a >> b : 0)>},
    {"shrsi", integers<kShiftSigned>},
    {"minsi", integers<OF_TWO(kIsLessSigned(a, b) ? a : b)>},
    {"maxsi", integers<OF_TWO(kIsLessSigned(a, b) ? b : a)>},
    {"minui", integers<OF_TWO(a < b ? a : b)>},
    {"maxui", integers<OF_TWO(a < b ? b : a)>},
    {"mulhiui", integers<kMulHigh>},
    {"absi", absolute_integer},
    {"addf", floats<OF_TWO(a + b)>},
    {"subf", floats<OF_TWO(a - b)>},
    {"mulf", floats<OF_TWO(a* b)>},
    {"divf", floats<OF_TWO(a / b)>},
    {"remf", floats<OF_TWO(std::fmod(a, b))>},
    // The number if the other one is NaN.
    {"minnumf", floats<OF_TWO(a < b || b != b ? a : b)>},
    {"maxnumf", floats<OF_TWO(a > b || b != b ? a : b)>},
    // NaN if one of them is.
    {"minimumf", floats<OF_TWO(a < b || a != a ? a : b)>},
    {"maximumf", floats<OF_TWO(a > b || a != a ? a : b)>},
    {"pow", floats<OF_TWO(std::pow(a, b))>},
    {"atan2", floats<OF_TWO(std::atan2(a, b))>},
    {"hypot", floats<OF_TWO(std::hypot(a, b))>},
    {"copysign", floats<OF_TWO(std::copysign(a, b))>},
    {"fma", fused},
    {"negf", unary<OF_ONE(-x)>},
    {"absf", unary<OF_ONE(std::fabs(x))>},
    {"exp", unary<OF_ONE(std::exp(x))>},
    {"exp2", unary<OF_ONE(std::exp2(x))>},
    {"expm1", unary<OF_ONE(std::expm1(x))>},
    {"log", unary<OF_ONE(std::log(x))>},
    {"log2", unary<OF_ONE(std::log2(x))>},
    {"log10", unary<OF_ONE(std::log10(x))>},
    {"log1p", unary<OF_ONE(std::log1p(x))>},
    {"sqrt", unary<OF_ONE(std::sqrt(x))>},
    {"rsqrt", unary<OF_ONE(1 / std::sqrt(x))>},
    {"reciprocal", unary<OF_ONE(1 / x)>},
    {"sin", unary<OF_ONE(std::sin(x))>},
    {"cos", unary<OF_ONE(std::cos(x))>},
    {"tan", unary<OF_ONE(std::tan(x))>},
    {"asin", unary<OF_ONE(std::asin(x))>},
    {"acos", unary<OF_ONE(std::acos(x))>},
    {"atan", unary<OF_ONE(std::atan(x))>},
    {"sinh", unary<OF_ONE(std::sinh(x))>},
    {"cosh", unary<OF_ONE(std::cosh(x))>},
    {"tanh", unary<OF_ONE(std::tanh(x))>},
    {"asinh", unary<OF_ONE(std::asinh(x))>},
    {"acosh", unary<OF_ONE(std::acosh(x))>},
    {"atanh", unary<OF_ONE(std::atanh(x))>},
    {"erf", unary<OF_ONE(std::erf(x))>},
    {"gamma", unary<OF_ONE(std::tgamma(x))>},
    {"lgamma", unary<OF_ONE(std::lgamma(x))>},
    {"floor", unary<OF_ONE(std::floor(x))>},
    {"ceil", unary<OF_ONE(std::ceil(x))>},
    {"trunc", unary<OF_ONE(std::trunc(x))>},
    {"round", unary<OF_ONE(std::round(x))>},
    {"nearbyint", unary<OF_ONE(std::nearbyint(x))>},
    {"relu", unary<OF_ONE(x > 0 || x != x ? x : decltype(x)(0))>},
    {"isnan", question<OF_ONE(x != x)>},
    {"isinf", question<OF_ONE(std::isinf(x))>},
    {"isfinite", question<OF_ONE(std::isfinite(x))>},
    {"signbit", question<OF_ONE(std::signbit(x))>},
    {"cmpi_eq", compare_unsigned<OF_TWO(a == b)>},
    {"cmpi_ne", compare_unsigned<OF_TWO(a != b)>},
    {"cmpi_slt", compare_signed<OF_TWO(a < b)>},
    {"cmpi_sle", compare_signed<OF_TWO(a <= b)>},
    {"cmpi_ult", compare_unsigned<OF_TWO(a < b)>},
    {"cmpi_ule", compare_unsigned<OF_TWO(a <= b)>},
    {"cmpf_oeq", compare_floats<OF_TWO(a == b)>},
    {"cmpf_one", compare_floats<OF_TWO(a<b || a> b)>},
    {"cmpf_olt", compare_floats<OF_TWO(a < b)>},
    {"cmpf_ole", compare_floats<OF_TWO(a <= b)>},
    {"cmpf_ord", compare_floats<OF_TWO(!kIsUnordered(a, b))>},
    {"cmpf_ueq", compare_floats<OF_TWO(a == b || kIsUnordered(a, b))>},
    {"cmpf_une", compare_floats<OF_TWO(a != b)>},
    {"cmpf_ult", compare_floats<OF_TWO(!(a >= b))>},
    {"cmpf_ule", compare_floats<OF_TWO(!(a > b))>},
    {"cmpf_uno", compare_floats<kIsUnordered>},
    {"select", select},
    {"convert", convert},
};
#undef OF_ONE
#undef OF_TWO

}  // namespace

std::span<const Operation> elementwise_operations() {
  return kElementwise;
}

}  // namespace aclnn_host::triton
