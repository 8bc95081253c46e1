// Records which checks of rows and of operators by name refuse a call, so that a run of the tests
// shows which of them none makes.

#include <source_location>
#include <string>

#include "cann/rows/engine/refusal.h"
#include "settings_and_log.h"

namespace aclnn_host {

void note_refusal(const std::source_location& location, const std::string& text) {
  const std::string place = location.file_name() + (":" + std::to_string(location.line()));
  const std::string in_tree = place.substr(place.rfind("/csrc/") + 1);
  mutants::note(in_tree, mutants::kCheck);
  name_refusal(text, in_tree);
}

}  // namespace aclnn_host
