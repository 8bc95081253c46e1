#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include "cann/rows/engine/exact.h"

namespace aclnn_host {

// What a check of ours in a row throws. Stage 1 makes 161002 of it.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a row throws where an argument is null that others make necessary. Stage 1 makes 161001 of
// it.
struct NullArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A part of a refusal's text; what it views lives until the text is made. A class rather than a
// template over all types together, as torch's own checks have it: each of their instantiations
// costs the compiler more than the row that it stands in.
class Part {
 public:
  Part(const char* text) : value_(std::string_view(text)) {}
  Part(std::string_view text) : value_(text) {}
  Part(const std::string& text) : value_(std::string_view(text)) {}
  template <std::signed_integral T>
  Part(T number) : value_(static_cast<int64_t>(number)) {}
  template <std::unsigned_integral T>
  Part(T number) : value_(static_cast<uint64_t>(number)) {}
  template <class T>
    requires std::is_enum_v<T>
  Part(T number) : Part(static_cast<int64_t>(number)) {}
  Part(double number) : value_(number) {}
  template <class T>
  Part(Exact<T> number) : Part(number.value()) {}
  Part(const c10::Scalar& number);
  Part(at::ScalarType type);  // CANN's name of it
  Part(c10::IntArrayRef numbers) : value_(numbers) {}
  Part(const std::vector<int64_t>& numbers) : Part(c10::IntArrayRef(numbers)) {}
  template <size_t n>
  Part(const std::array<int64_t, n>& numbers) : Part(c10::IntArrayRef(numbers)) {}

  void append_to(std::string& text) const;

 private:
  std::variant<std::string_view, int64_t, uint64_t, double, c10::IntArrayRef> value_;
};

std::string text_of(std::initializer_list<Part> parts);
[[noreturn, gnu::cold]] void refuse(std::initializer_list<Part> parts);

}  // namespace aclnn_host

// Refuses the call if the condition does not hold, by a text of these parts: it names the argument,
// what it is and what was expected.
#define EXPECT(condition, ...)             \
  do {                                     \
    if (!(condition)) [[unlikely]] {       \
      ::aclnn_host::refuse({__VA_ARGS__}); \
    }                                      \
  } while (false)
