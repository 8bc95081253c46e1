#include "host_cann/arguments/cast.h"

#include <limits>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace aclnn_host {
namespace {

bool is_complex(aclDataType dtype) {
  return dtype == ACL_COMPLEX32 || dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128;
}

bool is_integer(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64:
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32:
    case ACL_UINT64: return true;
    default: return false;
  }
}

bool is_floating(aclDataType dtype) {
  return !is_complex(dtype) && !is_integer(dtype) && dtype != ACL_BOOL && dtype != ACL_STRING &&
         dtype != ACL_DT_UNDEFINED;
}

template <class T>
T saturate(double value) {
  using Limits = std::numeric_limits<T>;
  if (value != value) return 0;
  // max() + 1 is a power of two, hence exact; max() itself may not be.
  constexpr T kHalf = Limits::max() / 2 + 1;
  if (value >= static_cast<double>(kHalf) * 2) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(value);
}

template <class From, class To>
void cast(const void* from, void* to, int64_t n) {
  const auto* source = static_cast<const From*>(from);
  auto* target = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, c10::complex<c10::Half>>) {
      target[i] = To(c10::Half(static_cast<float>(source[i])), c10::Half(0.0f));
    } else if constexpr (c10::is_complex<To>::value) {
      target[i] = To(static_cast<typename To::value_type>(source[i]), 0);
    } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
      target[i] = saturate<To>(static_cast<double>(source[i]));
    } else if constexpr (std::is_integral_v<To>) {
      target[i] = saturate<To>(source[i]);
    } else {
      target[i] = static_cast<To>(source[i]);
    }
  }
}

template <class From>
CastFunction find_cast_from(aclDataType to) {
  switch (to) {
    case ACL_FLOAT: return cast<From, float>;
    case ACL_FLOAT16: return cast<From, c10::Half>;
    case ACL_BF16: return cast<From, c10::BFloat16>;
    case ACL_DOUBLE: return cast<From, double>;
    case ACL_INT8: return cast<From, int8_t>;
    case ACL_INT32: return cast<From, int32_t>;
    case ACL_COMPLEX32: return cast<From, c10::complex<c10::Half>>;
    case ACL_COMPLEX64: return cast<From, c10::complex<float>>;
    case ACL_COMPLEX128: return cast<From, c10::complex<double>>;
    default: return nullptr;
  }
}

}  // namespace

bool can_cast(aclDataType from, aclDataType to) noexcept {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integer(to)) return false;
  return from == ACL_BOOL || to != ACL_BOOL;
}

aclDataType promote_type(aclDataType a, aclDataType b) noexcept {
  if (a == b) return a;
  const auto rank = [](aclDataType dtype) {
    switch (dtype) {
      case ACL_BOOL:
      case ACL_INT8:
      case ACL_INT16:
      case ACL_INT32:
      case ACL_INT64:
      case ACL_UINT8: return 0;
      case ACL_FLOAT16:
      case ACL_BF16: return 1;
      case ACL_FLOAT: return 2;
      case ACL_DOUBLE: return 3;
      default: return -1;
    }
  };
  const int of_a = rank(a), of_b = rank(b);
  if (of_a < 0 || of_b < 0 || (of_a == 0 && of_b == 0)) return ACL_DT_UNDEFINED;
  if (of_a == of_b) return ACL_FLOAT;  // the two 16-bit types
  return of_a > of_b ? a : b;
}

CastFunction find_cast(aclDataType from, aclDataType to) noexcept {
  switch (from) {
    case ACL_FLOAT: return find_cast_from<float>(to);
    case ACL_FLOAT16: return find_cast_from<c10::Half>(to);
    case ACL_BF16: return find_cast_from<c10::BFloat16>(to);
    case ACL_DOUBLE: return find_cast_from<double>(to);
    case ACL_INT8: return find_cast_from<int8_t>(to);
    case ACL_INT16: return find_cast_from<int16_t>(to);
    case ACL_INT32: return find_cast_from<int32_t>(to);
    case ACL_INT64: return find_cast_from<int64_t>(to);
    case ACL_UINT8: return find_cast_from<uint8_t>(to);
    case ACL_BOOL: return find_cast_from<bool>(to);
    default: return nullptr;
  }
}

}  // namespace aclnn_host
