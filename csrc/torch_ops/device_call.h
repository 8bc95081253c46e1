#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/library.h>

#include "client/call.h"
#include "client/installed.h"
#include "torch_ops/error_translation.h"
#include "torch_ops/npu_backend.h"
#include "torch_ops/stage_span.h"

namespace aclnn_torch {

// A tensor argument and its name in the operator's document, for error texts. An absent optional
// argument is an undefined tensor.
struct Named {
  const char* name;
  const at::Tensor& tensor;
  bool optional = false;
};

// Converts an optional argument to a tensor (undefined if absent), and back.
inline at::Tensor tensor_of(const std::optional<at::Tensor>& optional) {
  return optional.value_or(at::Tensor());
}
inline std::optional<at::Tensor> optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// A tensor that the operator writes. Copy-on-write memory is materialised first.
struct Written {
  const at::Tensor& tensor;
};

// Throws the error that a failed check of the device's library would throw.
[[noreturn]] void refuse(const char* api, at::Device device, const std::string& text,
                         aclnnStatus status = ACLNN_ERR_PARAM_INVALID);

// Checks that need no library, identical for CPU, NPU and meta tensors, so that a compiler's trace
// fails where the run would: all tensors are on one device and have dtypes that CANN supports, ...
void check_tensors(const char* api, std::initializer_list<Named> tensors);

// ... have one dtype and, as far as sizes are known, one shape, ...
void check_same(const char* api, Named argument, Named other);

// ... and an overwritten tensor has memory for every element.
void check_overwritable(const char* api, Named argument);

// Makes a library's descriptors for torch's arguments, as torch_npu does: a tensor's storage is
// described by its number of elements, its format follows from its rank; an undefined tensor is an
// absent argument; a Scalar becomes DOUBLE, INT64, BOOL or COMPLEX128.
aclnn::TensorHandle describe(const aclnn::Library& library, const at::Tensor& input);
aclnn::TensorHandle describe(const aclnn::Library& library, const Written& output);
aclnn::ScalarHandle describe(const aclnn::Library& library, const at::Scalar& scalar);
inline aclnn::IntArrayHandle describe(const aclnn::Library& library, at::IntArrayRef values) {
  return aclnn::make_int_array(library, {values.data(), values.size()});
}
template <size_t kSize>
aclnn::BoolArrayHandle describe(const aclnn::Library& library,
                                const std::array<bool, kSize>& values) {
  return aclnn::make_bool_array(library, values);
}

// An absent list of numbers is a null pointer.
aclnn::IntArrayHandle describe(const aclnn::Library& library,
                               const at::OptionalIntArrayRef& values);

// All other arguments are passed unchanged.
template <class T>
const T& describe(const aclnn::Library&, const T& value) {
  return value;
}

namespace detail {

// Workspace for the current stream of the current NPU, from torch_npu's caching allocator.
at::DataPtr allocate_on_npu(uint64_t size);

// Workspace of one call on CPU: small ones are on the stack, larger ones come from the pool.
class CpuWorkspace {
 public:
  void* allocate(uint64_t size);

 private:
  alignas(64) char little_[4096];
  at::DataPtr more_;
};

// The device of a call: that of its first tensor.
template <class First, class... Rest>
const at::Tensor& first_tensor(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, at::Tensor>) {
    return first;
  } else if constexpr (std::is_same_v<First, Written>) {
    return first.tensor;
  } else {
    return first_tensor(rest...);
  }
}

// Calls the embedded host CANN; the result is complete on return.
template <class Op, class... Args>
void call_on_cpu(const Args&... args) {
  const aclnn::Library& library = aclnn::Library::embedded();
  CpuWorkspace workspace;
  const auto allocate = [&workspace](uint64_t size) { return workspace.allocate(size); };
  aclnn::call<Op, StageSpan>(library, allocate, nullptr, describe(library, args)...);
}

// Calls the CANN that torch_npu runs on: stage 1 immediately, stage 2 on the current stream in
// torch_npu's order. Memory that the caller frees meanwhile is reused only behind the call on that
// stream.
template <class Op, class... Args>
void call_on_npu(at::Device device, const Args&... args) {
  static const std::string api = Op::kStage2;
  const NpuBackend& npu = npu_backend();
  const aclnn::Library& library = aclnn::installed();
  const c10::DeviceGuard guard(device);
  const aclrtStream stream = npu.begin();
  using Prepared = decltype(aclnn::prepare<Op>(library, describe(library, args)...));
  // The queue copies the task. Destroying the last copy destroys the call, launched or not.
  const auto call = [&] {
    const StageSpan span(Op::kStage1);
    return std::make_shared<Prepared>(aclnn::prepare<Op>(library, describe(library, args)...));
  }();
  at::DataPtr workspace;
  if (call->workspace_size() > 0) workspace = allocate_on_npu(call->workspace_size());
  const StageSpan span(Op::kStage2);  // until enqueued, or until complete without a queue
  npu.launch(api, [&npu, call, stream, address = workspace.get()] {
    npu.enter(stream);
    call->launch(address, stream);
    return 0;
  });
}

}  // namespace detail

// One two-stage call on the tensors' device.
template <class Op, class... Args>
void call_device(const Args&... args) {
  call_translating_errors([&] {
    const at::Tensor& tensor = detail::first_tensor(args...);
    if (tensor.is_cpu()) {
      detail::call_on_cpu<Op>(args...);
    } else {
      detail::call_on_npu<Op>(tensor.device(), args...);
    }
  });
}

// Allocates a result on the device of `like`; the operator must write every element. On CPU the
// memory comes from the pool.
at::Tensor new_tensor(const at::Tensor& like, c10::SymIntArrayRef sizes, at::ScalarType dtype,
                      at::MemoryFormat format = at::MemoryFormat::Contiguous);

// The same for an elementwise operator: sizes and dtype of `first`, and its memory order, or that
// of `second` if `first` is an expanded tensor, as in ATen.
at::Tensor empty_output(const at::Tensor& first, const at::Tensor& second);

// Begins a block that registers kernels for the devices that the client supports, once per file:
// CPU, and PrivateUse1, which is torch_npu's.
#define ACLNN_IMPL_ON_DEVICES(m)                     \
  static void implement_on_devices(torch::Library&); \
  TORCH_LIBRARY_IMPL(aclnn, CPU, library) {          \
    implement_on_devices(library);                   \
  }                                                  \
  TORCH_LIBRARY_IMPL(aclnn, PrivateUse1, library) {  \
    implement_on_devices(library);                   \
  }                                                  \
  static void implement_on_devices(torch::Library& m)

}  // namespace aclnn_torch
