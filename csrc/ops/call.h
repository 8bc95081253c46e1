#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include "aclnn/call.h"

namespace aclnn_torch {

// A tensor argument and its name in the operator's document, for error texts. An optional one that
// is absent is an undefined tensor.
struct Named {
  const char* name;
  const at::Tensor& tensor;
  bool optional = false;
};

// An optional argument as a tensor, undefined if absent, and back.
inline at::Tensor tensor_of(const std::optional<at::Tensor>& optional) {
  return optional.value_or(at::Tensor());
}
inline std::optional<at::Tensor> optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// A tensor that the operator writes. If its memory is shared until it is written, it gets its own.
struct Written {
  const at::Tensor& tensor;
};

// Throws what a failed check of the library would.
[[noreturn]] void refuse(const char* api, const std::string& text,
                         aclnnStatus status = ACLNN_ERR_PARAM_INVALID);

// The checks that need no library, on CPU and meta tensors alike, so that a compiler's trace fails
// where the run would: tensors on one device, of dtypes that CANN has, ...
void check_tensors(const char* api, std::initializer_list<Named> tensors);

// ... of one dtype and, as far as sizes are known, one shape, ...
void check_same(const char* api, Named argument, Named other);

// ... and for one that is overwritten, memory for every element.
void check_overwritable(const char* api, Named argument);

// Descriptors of a library for what torch hands over, as torch_npu makes them: a tensor's storage
// is a number of elements and its format follows from its rank; an undefined tensor is an absent
// argument; a Scalar becomes DOUBLE, INT64, BOOL or COMPLEX128.
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

// Anything else is passed as it is.
template <class T>
const T& describe(const aclnn::Library&, const T& value) {
  return value;
}

// One two-stage call on CPU tensors through the embedded host CANN, complete when it returns.
template <class Op, class... Args>
void call_host(const Args&... args) {
  const aclnn::Library& library = aclnn::Library::embedded();
  at::DataPtr workspace;
  const auto allocate = [&workspace](uint64_t size) -> void* {
    workspace = c10::GetCPUAllocator()->allocate(size);
    return workspace.get();
  };
  aclnn::call<Op>(library, allocate, nullptr, describe(library, args)...);
}

// An output for an elementwise operator on CPU or meta: sizes and dtype of `first`, and its order
// of dimensions in memory, or that of `second` if `first` is an expanded tensor; as ATen's
// operators do.
at::Tensor empty_output(const at::Tensor& first, const at::Tensor& second);

}  // namespace aclnn_torch
