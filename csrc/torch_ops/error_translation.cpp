#include "torch_ops/error_translation.h"

namespace aclnn_torch {

RaiseInPython raise_in_python = nullptr;

}  // namespace aclnn_torch
