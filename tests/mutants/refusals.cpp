// Mutants of checks: the text or the status of a refusal is another one.

#include <string>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"
#include "settings_and_log.h"

namespace aclnn_host {

// Changes the text or the status of a refusal. Its name is the text with # for digits.
int reported(int status, std::string& message) {
  std::string name = message.substr(0, message.find(" (product "));
  for (char& character : name) {
    if (character >= '0' && character <= '9') character = '#';
    if (character == '\n' || character == '\t') character = ' ';
  }
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
