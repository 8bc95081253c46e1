#include "cann/rows/engine/reasons.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <c10/util/Exception.h>

#include "cann/rows/engine/refusal.h"

namespace aclnn_host {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

std::string words_of(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

std::string reason_of(const std::exception& error, const std::string& sentence) {
  if (dynamic_cast<const Refusal*>(&error) != nullptr) return error.what();
  const std::string words = words_of(error);
  if (words == "ZeroDivisionError") {
    return "an integer is divided by 0; expected divisors other than 0";
  }
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return sentence;
  if (has_any(words, {"INTERNAL ASSERT", "report a bug", "Python", "c10::"})) return sentence;
  return sentence + "; ATen, which computes it, says: " + words;
}

}  // namespace aclnn_host
