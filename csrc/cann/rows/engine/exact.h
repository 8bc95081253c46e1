#pragma once

#include <compare>
#include <concepts>
#include <type_traits>

namespace aclnn_host {

// A number that converts to its own type only. ATen's functions are overloaded on bool, int64_t,
// Scalar and std::optional of these, and a plain int64_t would silently choose among them: passed
// as the correction of at::var, for example, it selects the overload with `bool unbiased`. If
// ATen takes another type, convert explicitly: c10::Scalar(n.value()).
template <class T>
class Exact {
 public:
  constexpr explicit Exact(T value) : value_(value) {}
  template <std::same_as<T> U>
  constexpr operator U() const {
    return value_;
  }
  constexpr T value() const { return value_; }

  friend constexpr bool operator==(Exact, Exact) = default;
  friend constexpr auto operator<=>(Exact, Exact) = default;
  template <class U>
    requires std::is_arithmetic_v<U>
  friend constexpr bool operator==(Exact a, U b) {
    return a.value_ == static_cast<T>(b);
  }
  template <class U>
    requires std::is_arithmetic_v<U>
  friend constexpr auto operator<=>(Exact a, U b) {
    return a.value_ <=> static_cast<T>(b);
  }

 private:
  T value_;
};

}  // namespace aclnn_host
