// Runs a case, and ends the process with a word when anything is wrong with what became of it.
#pragma once

#include <optional>
#include <string>

#include "fuzz/case.h"
#include "fuzz/functions.h"

namespace fuzz {

struct Outcome {
  aclnnStatus stage1 = OK;
  std::optional<aclnnStatus> stage2;  // unless stage 1 failed, or the case is too large to compute
  std::optional<int> stream;          // after a stage 2 that succeeded
};

// Fills in what the case says of labels and scalars as they were stored.
Outcome run(const Function& function, Case& call);

}  // namespace fuzz
