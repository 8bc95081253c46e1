// Mutants of checks: the text or the status of a refusal is another one.

#include <string>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"
#include "settings_and_log.h"

namespace aclnn_host {

namespace {

// Of the last check of rows that refused on this thread.
thread_local std::string last_text, last_place;

}  // namespace

void name_refusal(const std::string& text, const std::string& place) {
  last_text = text;
  last_place = place;
}

// Changes the text or the status of a refusal. Its name is the place of the check, for all
// functions that share it, or the text, with # for digits, if that is not a check of rows.
int reported(int status, std::string& message) {
  std::string name = message.substr(0, message.find(" (product "));
  const size_t end = name.find(": ");
  const bool has_place = end != std::string::npos && !last_text.empty() &&
                         name.compare(end + 2, std::string::npos, last_text) == 0;
  for (char& character : name) {
    if (character >= '0' && character <= '9') character = '#';
    if (character == '\n' || character == '\t') character = ' ';
  }
  if (has_place) name = last_place;
  const std::string kind = mutants::setting("ACLNN_TEST_MUTANT");
  const bool is_changed = (kind == "text" || kind == "status") && mutants::is_named(name);
  mutants::note(mutants::setting("PYTEST_CURRENT_TEST") + "\t" + name + "\t-1\t" +
                (is_changed ? "1" : "0") + "\n");
  if (!is_changed) return status;
  if (kind == "status") return status == ACLNN_ERR_PARAM_INVALID ? 561002 : ACLNN_ERR_PARAM_INVALID;
  message = message.substr(0, message.find(':')) + ": refused";
  return status;
}

}  // namespace aclnn_host
