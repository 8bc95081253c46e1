#pragma once

#include <utility>

#include "client/error.h"

namespace aclnn_torch {

// Throws the error as the exception that Python code sees, or returns when there is no Python. The
// module installs it.
using RaiseInPython = void (*)(const aclnn::Error&);
extern RaiseInPython raise_in_python;

// Runs what throws the errors of operators. These reach Python by many ways, through torch's
// dispatcher, its autograd engine or functions of Python's C interface, few of which ask for
// exception types of ours. So an Error is turned into a Python exception where it comes up.
template <class Body>
auto call_translating_errors(Body&& body) {
  try {
    return body();
  } catch (const aclnn::Error& error) {
    if (raise_in_python != nullptr) raise_in_python(error);
    throw;
  }
}

// Throws an error of an operator.
[[noreturn]] inline void raise_error(const aclnn::Error& error) {
  call_translating_errors([&] { throw error; });
  __builtin_unreachable();
}

}  // namespace aclnn_torch
