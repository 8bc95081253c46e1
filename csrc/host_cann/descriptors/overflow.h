#pragma once

#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// Whether an operator that has run had a result out of range: an output has an infinity or a NaN,
// and the operator computes. One that moves, selects or fills never has; one that converts has if
// its inputs were finite.
bool has_overflowed(const char* api, const TensorArguments& arguments) noexcept;

}  // namespace aclnn_host
