// A libopapi with four faults that wraps another one: a wrong status, a wrong value, a crash and a
// hang. tests/test_verify.py builds it, and removes a function from the other one, which is a
// fifth.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_silu.h"

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen(REAL, RTLD_NOW | RTLD_NOLOAD), name));
}

}  // namespace

aclnnStatus aclnnSeluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr aclnnStatus kNullPointer = 161001, kInvalid = 161002;
  const auto function = real<decltype(aclnnSeluGetWorkspaceSize)>("aclnnSeluGetWorkspaceSize");
  const aclnnStatus status = function(self, out, workspaceSize, executor);
  return status == kInvalid ? kNullPointer : status;
}

aclnnStatus aclnnEluGetWorkspaceSize(const aclTensor* self, const aclScalar* alpha,
                                     const aclScalar* scale, const aclScalar* inputScale,
                                     aclTensor* out, uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  const auto function = real<decltype(aclnnEluGetWorkspaceSize)>("aclnnEluGetWorkspaceSize");
  return function(self, scale, alpha, inputScale, out, workspaceSize, executor);
}

aclnnStatus aclnnHardswish(void*, uint64_t, aclOpExecutor*, aclrtStream) {
  std::abort();
}

aclnnStatus aclnnSilu(void*, uint64_t, aclOpExecutor*, aclrtStream) {
  while (true) pause();
}
