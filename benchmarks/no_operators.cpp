// Functions of CANN that do nothing. torch_npu finds them before those of libopapi.so, so that what
// a call takes is torch_npu's own time. Built and loaded by npu_beside_cpu.py.
#include <cstdint>

namespace {

int executor = 0;  // what both stages hand on

}  // namespace

// Both stages of a function whose prototype has these parameters before the last two.
#define NOTHING(name, ...)                                                                      \
  extern "C" int name##GetWorkspaceSize(__VA_ARGS__, uint64_t* workspace_size, void** handle) { \
    *workspace_size = 0;                                                                        \
    *handle = &executor;                                                                        \
    return 0;                                                                                   \
  }                                                                                             \
  extern "C" int name(void*, uint64_t, void*, void*) {                                          \
    return 0;                                                                                   \
  }

NOTHING(aclnnInplaceFillScalar, void*, void*)
NOTHING(aclnnInplaceZero, void*)
NOTHING(aclnnInplaceCopy, void*, void*)
NOTHING(aclnnAdd, void*, void*, void*, void*)
NOTHING(aclnnInplaceAdd, void*, void*, void*)
NOTHING(aclnnInplaceMul, void*, void*)
NOTHING(aclnnExp, void*, void*)
NOTHING(aclnnGelu, void*, void*)
NOTHING(aclnnSoftmax, void*, int64_t, void*)
NOTHING(aclnnReduceSum, void*, void*, bool, int, void*)
