#pragma once

#include <utility>

#include "client/error.h"

namespace aclnn_torch {

// Throws the error as the exception that Python code sees; returns if Python is not loaded. The
// module installs it.
using RaiseInPython = void (*)(const aclnn::Error&);
extern RaiseInPython raise_in_python;

// Runs code that throws the operators' errors, and turns an Error into a Python exception at its
// origin. It can reach Python through torch's dispatcher, the autograd engine or Python's C
// interface, few of which translate custom exception types.
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
