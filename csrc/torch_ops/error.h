#pragma once

#include <utility>

#include "client/error.h"

namespace aclnn_torch {

// Throws the error as the exception that Python code sees, or returns when there is no Python. The
// module installs it.
using RaiseInPython = void (*)(const aclnn::Error&);
extern RaiseInPython raise_in_python;

// Runs what the autograd engine or a function of Python's C interface calls. These hand exceptions
// on to Python by ways that know no exception type of ours, so an Error is turned into a Python
// exception here.
template <class Body>
auto call_translating_errors(Body&& body) {
  try {
    return body();
  } catch (const aclnn::Error& error) {
    if (raise_in_python != nullptr) raise_in_python(error);
    throw;
  }
}

}  // namespace aclnn_torch
