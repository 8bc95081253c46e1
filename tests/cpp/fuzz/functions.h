// The two-stage functions in the form that the fuzzer calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "fuzz/case.h"

namespace fuzz {

// A case's argument and, for a pointer, the object that it points to.
struct Given {
  const Argument* argument;
  void* object;
};

struct Function {
  const char* name;
  std::vector<Kind> kinds;      // of its arguments, from the prototype
  std::vector<size_t> outputs;  // the indices of its outputs
  Fit fit;
  aclnnStatus (*stage1)(const std::vector<Given>&, uint64_t* workspace_size, aclOpExecutor**);
  aclnnStatus (*stage2)(void* workspace, uint64_t size, aclOpExecutor*, aclrtStream);
};

const std::vector<Function>& functions();

}  // namespace fuzz
