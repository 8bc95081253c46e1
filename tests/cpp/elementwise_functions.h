// The two-stage functions of elementwise operators, once for all tests that go through them: the
// fuzzer, and the calls of tests/reliability and their faults.
#pragma once

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_backward.h"
#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_hardswish_backward.h"
#include "aclnnop/aclnn_hardswish_backward_v2.h"
#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_selu_backward.h"
#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_silu_backward.h"
#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_softplus_backward.h"

// X(name, the output's position, the arguments of a small call...): x and y are inputs of [4, 24],
// row one of [24], one is a number, out() an output of [4, 24].
#define ELEMENTWISE_FUNCTIONS(X)                              \
  X(Elu, 4, x, one, one, one, out())                          \
  X(InplaceElu, 0, out(), one, one, one)                      \
  X(EluBackward, 6, x, one, one, one, value(false), y, out()) \
  X(Selu, 1, x, out())                                        \
  X(InplaceSelu, 0, out())                                    \
  X(SeluBackward, 2, x, y, out())                             \
  X(Silu, 1, x, out())                                        \
  X(SiluBackward, 2, x, y, out())                             \
  X(Gelu, 1, x, out())                                        \
  X(GeluBackward, 2, x, row, out())                           \
  X(GeluV2, 2, x, value(int64_t{0}), out())                   \
  X(GeluBackwardV2, 3, x, y, value(none_), out())             \
  X(Hardswish, 1, x, out())                                   \
  X(InplaceHardswish, 0, out())                               \
  X(HardswishBackward, 2, x, y, out())                        \
  X(HardswishBackwardV2, 2, x, y, out())                      \
  X(Softplus, 3, x, one, one, out())                          \
  X(SoftplusBackward, 4, x, y, one, one, out())
