#pragma once

#include <functional>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace aclnn_torch {

// The operators' access to torch_npu. This library is not linked against torch_npu; csrc/torch_npu
// implements the interface in lib/libaclnn_npu.so, which is loaded at the first NPU tensor.
class NpuBackend {
 public:
  // Makes a contiguous tensor from the caching allocator, without the dispatcher.
  virtual at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) const = 0;

  // Call before stage 1. Forwards torch.use_deterministic_algorithms, as torch_npu does for its own
  // operators, and returns the current stream of the current device, without waiting for the work
  // in the task queue.
  virtual void* begin() const = 0;

  // Runs `task`, which launches stage 2 of `api` on that stream, after all earlier work of
  // torch_npu: through its task queue, on another thread if it has one.
  virtual void launch(const std::string& api, const std::function<int()>& task) const = 0;

  // Call first in that task: sets the thread's state, as begin() does.
  virtual void enter(void* stream) const = 0;

  // The aclFormat of the tensor's storage.
  virtual int32_t format(const at::Tensor& tensor) const = 0;

  // The cubeMathType of torch_npu's own convolutions, from torch_npu.npu.conv.allow_hf32.
  virtual int8_t convolution_math_type() const = 0;

 protected:
  ~NpuBackend() = default;
};

// Returns the backend. Throws an error with instructions if it was not built or cannot be loaded.
const NpuBackend& npu_backend();

// The type and name of the function of libaclnn_npu.so that returns the backend.
using GetNpuBackend = const NpuBackend*();
inline constexpr const char* kGetNpuBackend = "aclnn_torch_npu_backend";

}  // namespace aclnn_torch
