// Runs a case, and ends the process with a message if it violates a rule.
#pragma once

#include <optional>
#include <string>

#include "fuzz/case.h"
#include "fuzz/functions.h"

namespace fuzz {

struct Outcome {
  aclnnStatus stage1 = OK;
  std::optional<aclnnStatus> stage2;  // absent if stage 1 failed, or the case is too large to
                                      // compute
  std::optional<int> stream;          // the stream's status after a successful stage 2
};

// Replaces labels and scalars in the case by the stored values.
Outcome run(const Function& function, Case& call);

}  // namespace fuzz
