// Calls of operators from Python that leave out what torch.ops does for any schema: arguments go
// straight into the operator's own types.
#pragma once

#include <pybind11/pybind11.h>

namespace aclnn_torch {

// Defines direct_call(name, otherwise): a function that calls the operator `name` with all of its
// arguments, by position, and returns the first result. Warnings become Python's. Tensors are
// torch.Tensor or Parameter themselves, numbers int or float, a shape a tuple or list of up to 8
// int. With any other arguments, and while a TorchFunctionMode is on, it returns what `otherwise`
// does with them, a function that takes the way of torch.ops.
void define_direct_calls(pybind11::module_& m);

}  // namespace aclnn_torch
