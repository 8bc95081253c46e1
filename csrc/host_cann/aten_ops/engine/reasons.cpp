#include "host_cann/aten_ops/engine/reasons.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <c10/util/Exception.h>

namespace aclnn_host {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Whether a check in the host CANN's sources failed: the text of an exception of torch's has the
// place behind the words.
bool is_ours(const c10::Error& error) {
  const std::string_view text = error.what();
  constexpr std::string_view kPlace = "Exception raised from ";
  const size_t place = text.rfind(kPlace);
  if (place == std::string_view::npos) return false;
  return text.substr(place, text.find('\n', place) - place).find("host_cann/") !=
         std::string_view::npos;
}

}  // namespace

std::string words_of(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

std::string reason_of(const std::exception& error, const std::string& sentence) {
  const std::string words = words_of(error);
  if (words == "ZeroDivisionError") {
    return "an integer is divided by 0; expected divisors other than 0";
  }
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return sentence;
  if (is_ours(*of_torch)) return of_torch->what_without_backtrace();
  if (has_any(words, {"INTERNAL ASSERT", "report a bug", "Python", "c10::"})) return sentence;
  return sentence + "; ATen, which computes it, says: " + words;
}

}  // namespace aclnn_host
