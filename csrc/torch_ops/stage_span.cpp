#include "torch_ops/stage_span.h"

namespace aclnn_torch {

std::atomic<bool> profile_stages = false;

}  // namespace aclnn_torch
