#pragma once

#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// True if an operator about to run may have a result out of range. Operators that move, select or
// fill cannot; those that convert can only if their inputs are finite. Called before the run,
// because the operator may overwrite its inputs.
bool may_overflow(const char* api, const TensorArguments& arguments) noexcept;

// True if such an operator, after its run, has an infinity or a NaN in an output.
bool has_overflowed(const TensorArguments& arguments) noexcept;

}  // namespace aclnn_host
