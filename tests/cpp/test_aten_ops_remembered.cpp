// Stage 1 of a row remembers the calls that ATen accepted. For some functions ATen has no shapes
// without memory: it throws, and of a large call stage 1 then tries a small one. Calls of that kind
// are remembered, too, so that a training step does not throw in every layer.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "check.h"

extern "C" {
aclnnStatus aclnnHistcGetWorkspaceSize(const aclTensor*, int64_t, const aclScalar*,
                                       const aclScalar*, aclTensor*, uint64_t*, aclOpExecutor**);
}

namespace {

std::atomic<int> thrown{0};

// The exceptions that stage 1 of a histogram throws on the way.
int thrown_by_stage_1(int64_t elements) {
  const int64_t bins = 4, stride = 1;
  aclTensor* const self =
      aclCreateTensor(&elements, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &elements, 1, nullptr);
  aclTensor* const out =
      aclCreateTensor(&bins, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &bins, 1, nullptr);
  float least = 0, most = 1;
  aclScalar* const low = aclCreateScalar(&least, ACL_FLOAT);
  aclScalar* const high = aclCreateScalar(&most, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const int before = thrown;
  CHECK_EQ(aclnnHistcGetWorkspaceSize(self, bins, low, high, out, &size, &executor), OK);
  const int after = thrown;
  aclDestroyAclOpExecutor(executor);
  aclDestroyScalar(high);
  aclDestroyScalar(low);
  aclDestroyTensor(out);
  aclDestroyTensor(self);
  return after - before;
}

}  // namespace

// The libraries call this one, which counts.
extern "C" [[noreturn]] void __cxa_throw(void* object, void* type, void (*destroy)(void*)) {
  ++thrown;
  using Throw = void (*)(void*, void*, void (*)(void*));
  reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"))(object, type, destroy);
  __builtin_unreachable();
}

TEST(a_large_call_is_tried_once) {
  constexpr int64_t kLarge = 5 << 20;  // more than 4 Mi elements
  CHECK(thrown_by_stage_1(kLarge) > 0);
  CHECK_EQ(thrown_by_stage_1(kLarge), 0);
  // Others are tried again, because the shapes may not fit.
  CHECK(thrown_by_stage_1(kLarge + 1) > 0);
}

TEST(a_small_call_is_tried_once) {
  CHECK(thrown_by_stage_1(1000) > 0);
  CHECK_EQ(thrown_by_stage_1(1000), 0);
}
