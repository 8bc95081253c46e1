#pragma once

#include <functional>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace aclnn_torch {

// What the operators need of torch_npu. This library is not linked against it; csrc/torch_npu
// implements the interface in lib/libaclnn_npu.so, which is loaded with the first NPU tensor that
// comes.
class NpuBackend {
 public:
  // A contiguous tensor with memory of the caching allocator, made without the dispatcher.
  virtual at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) const = 0;

  // Before stage 1: hands torch.use_deterministic_algorithms on, as torch_npu does for its own
  // operators. Returns the current stream of the current device, without waiting for what the task
  // queue holds for it.
  virtual void* begin() const = 0;

  // Runs `task`, which launches stage 2 of `api` on that stream, after everything that torch_npu
  // was asked for before: through its task queue, on another thread if there is one.
  virtual void launch(const std::string& api, const std::function<int()>& task) const = 0;

  // At the beginning of that task: the thread's share of what begin() does.
  virtual void enter(void* stream) const = 0;

  // How the tensor's storage is laid out, an aclFormat.
  virtual int32_t format(const at::Tensor& tensor) const = 0;

  // The cubeMathType of torch_npu's own convolutions, from torch_npu.npu.conv.allow_hf32.
  virtual int8_t convolution_math_type() const = 0;

 protected:
  ~NpuBackend() = default;
};

// The one backend. Throws an error that says what to do if it was not built or cannot be loaded.
const NpuBackend& npu_backend();

// The function of libaclnn_npu.so that returns it, and its name there.
using GetNpuBackend = const NpuBackend*();
inline constexpr const char* kGetNpuBackend = "aclnn_torch_npu_backend";

}  // namespace aclnn_torch
