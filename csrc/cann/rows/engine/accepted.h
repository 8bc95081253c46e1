#pragma once

#include <string>

#include "cann/rows/engine/row_call.h"

// A cache of calls that ATen accepted, so that a program that repeats a call pays for the check
// once.

namespace aclnn_host {

// The aspect that ATen checked: the shapes or, in a rehearsal, the dtypes.
enum class Aspect { kShapes, kDtypes };

// A key that two calls share only if stage 1 has the same outcome for both.
std::string fingerprint(RowFunction row, const Call& call, Aspect aspect);

bool was_accepted(const std::string& fingerprint);
void note_accepted(std::string fingerprint);

}  // namespace aclnn_host
