#pragma once

#include <string>

#include "cann/rows/engine/row_call.h"

// The calls that ATen accepted lately, so that a program that repeats itself pays for it once.

namespace aclnn_host {

// What ATen was asked about: the shapes or, in a rehearsal, the dtypes.
enum class Aspect { kShapes, kDtypes };

// Bytes that two calls share only if ATen finds the same of both in stage 1.
std::string fingerprint(RowFunction row, const Call& call, Aspect aspect);

bool was_accepted(const std::string& fingerprint);
void note_accepted(std::string fingerprint);

}  // namespace aclnn_host
