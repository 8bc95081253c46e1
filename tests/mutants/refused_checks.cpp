// Records which checks of rows and of operators by name refuse a call, so that a run of the tests
// shows which of them none makes.

#include <source_location>
#include <string>

#include "cann/rows/engine/refusal.h"
#include "settings_and_log.h"

namespace aclnn_host {

void note_refusal(const std::source_location& location, const std::string& text) {
  const std::string place = location.file_name() + (":" + std::to_string(location.line()));
  mutants::note(mutants::setting("PYTEST_CURRENT_TEST") + "\t" + place + "\t-2\t0\n");
  name_refusal(text, place.substr(place.rfind("/csrc/") + 1));
}

}  // namespace aclnn_host
