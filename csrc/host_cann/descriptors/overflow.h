#pragma once

#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// Whether an operator that is about to run may have a result out of range. One that moves, selects
// or fills has none, and one that converts has some only if its inputs are finite; what it
// overwrites may be an input of those, so that they are looked at before.
bool may_overflow(const char* api, const TensorArguments& arguments) noexcept;

// Whether one that may, and that has run, had such a result: an output has an infinity or a NaN.
bool has_overflowed(const TensorArguments& arguments) noexcept;

}  // namespace aclnn_host
