#pragma once

#include <exception>

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace aclnn_host {

// While it lives, nothing in Python runs on the calling thread. torch in Python replaces what ATen
// does for tensors without memory by functions in Python, which do not always say what ATen says,
// would see the modes of the thread, and need Python's lock, whose holder may be waiting for this
// thread, as that of torch_npu's queue. Here ATen's own functions run, as where there is no Python.
// What ATen has only in Python ends with an exception that needs_python() knows. Stands within an
// AtenScope, which restores the dispatch keys that come with modes.
class WithoutPython {
 public:
  WithoutPython();
  ~WithoutPython();
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  c10::impl::TorchDispatchModeTLS dispatch_ = c10::impl::TorchDispatchModeTLS::get_state();
  at::impl::PythonTorchFunctionTLS function_ = at::impl::PythonTorchFunctionTLS::get_state();
};

bool needs_python(const std::exception& error);

}  // namespace aclnn_host
