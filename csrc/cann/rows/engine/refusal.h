#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <source_location>
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

// Thrown by the checks of a row. Stage 1 returns status 161002.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by a row where other arguments require one that is null. Stage 1 returns status 161001.
struct NullArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A part of an error text; it views memory that must live until the text is made. This is a class,
// not one template over all types together, as torch's own checks are: each instantiation of those
// costs the compiler more than the row that contains it.
class Part {
 public:
  Part(const char* text) : value_(std::string_view(text)) {}
  Part(std::string_view text) : value_(text) {}
  Part(const std::string& text) : value_(std::string_view(text)) {}
  template <std::signed_integral T>
  Part(T number) : value_(static_cast<int64_t>(number)) {}
  template <std::same_as<bool> T>
  Part(T flag) : value_(std::string_view(flag ? "true" : "false")) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Part(T number) : value_(static_cast<uint64_t>(number)) {}
  template <class T>
    requires std::is_enum_v<T>
  Part(T number) : Part(static_cast<int64_t>(number)) {}
  Part(double number) : value_(number) {}
  template <class T>
  Part(Exact<T> number) : Part(number.value()) {}
  Part(const c10::Scalar& number);
  Part(at::ScalarType type);  // CANN's name of the type
  Part(c10::IntArrayRef numbers) : value_(numbers) {}
  Part(const std::vector<int64_t>& numbers) : Part(c10::IntArrayRef(numbers)) {}
  template <size_t n>
  Part(const std::array<int64_t, n>& numbers) : Part(c10::IntArrayRef(numbers)) {}

  void append_to(std::string& text) const;

 private:
  std::variant<std::string_view, int64_t, uint64_t, double, c10::IntArrayRef> value_;
};

std::string text_of(std::initializer_list<Part> parts);
// Called by refuse() with the source location of the check. In releases, it does nothing. A test
// build records which checks refused (tests/mutants).
void note_refusal(const std::source_location& location, const std::string& text);
[[noreturn, gnu::cold]] void refuse(
    std::initializer_list<Part> parts,
    std::source_location location = std::source_location::current());

}  // namespace aclnn_host

// Refuses the call if the condition does not hold. The parts form the error text, which names the
// argument, its value and the expected one.
#define EXPECT(condition, ...)             \
  do {                                     \
    if (!(condition)) [[unlikely]] {       \
      ::aclnn_host::refuse({__VA_ARGS__}); \
    }                                      \
  } while (false)
