// Records which checks of rows and of operators by name refuse a call, so that a run of the tests
// shows which of them none makes.

#include <source_location>
#include <string>

#include "cann/rows/engine/refusal.h"
#include "settings_and_log.h"

namespace aclnn_host {

void note_refusal(const std::source_location& place) {
  mutants::note(mutants::setting("PYTEST_CURRENT_TEST") + "\t" + place.file_name() + ":" +
                std::to_string(place.line()) + "\t-2\t0\n");
}

}  // namespace aclnn_host
