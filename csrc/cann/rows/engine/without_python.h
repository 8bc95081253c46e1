#pragma once

#include <exception>

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace aclnn_host {

// Prevents Python from running on the calling thread during its lifetime. When torch is loaded in
// Python, functions in Python replace those of ATen for tensors without memory. They sometimes
// report other errors than ATen, are subject to the modes of the thread, and take the GIL, whose
// holder may be waiting for this thread, as that of torch_npu's queue does. With this guard ATen's
// own functions run, as in a process without Python. A function that exists in Python only ends
// with an exception that needs_python() recognises. Use it within an AtenScope, which restores the
// dispatch keys that modes set.
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
