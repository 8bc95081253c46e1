#pragma once

#include <string>
#include <vector>

#include "cann/rows/engine/row_call.h"
#include "host_cann/arguments/argument_checks.h"

namespace aclnn_host {

// Lets ATen check a call: the shapes on tensors without memory, and the dtypes in a rehearsal,
// which runs the row on scratch memory. Returns the text of the refusal, empty if ATen accepts the
// call. `tensors` has an element for each of call.views. Throws std::bad_alloc, and NullArgument if
// the row requires an argument that is null.
std::string refusal_of_aten(RowFunction row, const Call& call,
                            const std::vector<Argument>& tensors);

}  // namespace aclnn_host
