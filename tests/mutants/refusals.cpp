// Mutants of checks: the text or the status of a refusal is another one.

#include <regex>
#include <string>
#include <unordered_map>
#include <utility>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"
#include "settings_and_log.h"

namespace aclnn_host {

namespace {

// Of the last check of rows that refused on this thread.
thread_local std::string last_text, last_place;

// The text without what one check says in many ways: texts and lists that came, addresses, numbers,
// and the names of types, formats and products. One test may refuse thousands of calls, with few
// texts.
std::string class_of(const std::string& text) {
  static thread_local std::unordered_map<std::string, std::string> known;
  std::string& result = known[text];
  if (!result.empty()) return result;
  static const std::pair<std::regex, const char*> replacements[] = {
      {std::regex(R"([\n\t])"), " "},
      {std::regex(R"("[^"]*")"), "\"\""},
      {std::regex(R"(\[[^\]]*\])"), "[]"},
      {std::regex(R"(0x[0-9a-f]+)"), "#"},
      {std::regex(R"(-?[0-9][-+0-9.e^]*)"), "#"},
      {std::regex(R"(\b[A-Z][A-Z0-9_#]+\b)"), "T"},
      {std::regex(R"(\bT( \(#\))?((,| or| and) T( \(#\))?)+)"), "T"},
  };
  result = text;
  for (const auto& [pattern, name] : replacements) {
    result = std::regex_replace(result, pattern, name);
  }
  return result;
}

}  // namespace

void name_refusal(const std::string& text, const std::string& place) {
  last_text = text;
  last_place = place;
}

// Changes the text or the status of a refusal. Its name is the place of the check, for all
// functions that share it, or the function and the class of the text if that is not a check of
// rows.
int reported(int status, std::string& message) {
  const std::string text = message.substr(0, message.find(" (product "));
  const size_t end = text.find(": ");
  const bool is_of_row = end != std::string::npos && !last_text.empty() &&
                         text.compare(end + 2, std::string::npos, last_text) == 0;
  const std::string name = is_of_row ? last_place
                           : end == std::string::npos
                               ? class_of(text)
                               : text.substr(0, end) + class_of(text.substr(end));
  mutants::note(name, mutants::kRefusal);
  const std::string kind = mutants::change_of(name);
  if (kind == "status") return status == ACLNN_ERR_PARAM_INVALID ? 561002 : ACLNN_ERR_PARAM_INVALID;
  if (kind == "text") message = message.substr(0, message.find(':')) + ": refused";
  return status;
}

}  // namespace aclnn_host
