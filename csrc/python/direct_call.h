// Calls operators from Python without the generic schema handling of torch.ops: arguments are
// converted directly to the operator's C++ types.
#pragma once

#include <pybind11/pybind11.h>

namespace aclnn_torch {

// Defines direct_call(name, otherwise). It returns a Python function that calls the operator `name`
// with all of its arguments, by position, and returns the first result. Warnings become Python
// warnings. Tensors must be exactly torch.Tensor or Parameter, numbers int or float, a shape a
// tuple or list of at most 8 int. For any other arguments, and while a TorchFunctionMode is active,
// the function returns the result of `otherwise`, which calls through torch.ops.
void define_direct_calls(pybind11::module_& m);

}  // namespace aclnn_torch
