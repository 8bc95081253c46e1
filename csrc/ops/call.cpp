#include "ops/call.h"

#include <array>
#include <complex>
#include <span>
#include <string>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>

namespace aclnn_torch {
namespace {

[[noreturn]] void fail(const char* api, const std::string& text) {
  throw aclnn::Error(api, ACLNN_ERR_PARAM_INVALID, text);
}

// ACL_DT_UNDEFINED for what CANN has no type for.
aclDataType acl_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return ACL_FLOAT;
    case at::kHalf: return ACL_FLOAT16;
    case at::kBFloat16: return ACL_BF16;
    case at::kDouble: return ACL_DOUBLE;
    case at::kChar: return ACL_INT8;
    case at::kShort: return ACL_INT16;
    case at::kInt: return ACL_INT32;
    case at::kLong: return ACL_INT64;
    case at::kByte: return ACL_UINT8;
    case at::kUInt16: return ACL_UINT16;
    case at::kUInt32: return ACL_UINT32;
    case at::kUInt64: return ACL_UINT64;
    case at::kBool: return ACL_BOOL;
    case at::kComplexHalf: return ACL_COMPLEX32;
    case at::kComplexFloat: return ACL_COMPLEX64;
    case at::kComplexDouble: return ACL_COMPLEX128;
    case at::kFloat8_e5m2: return ACL_FLOAT8_E5M2;
    case at::kFloat8_e4m3fn: return ACL_FLOAT8_E4M3FN;
    case at::kFloat8_e8m0fnu: return ACL_FLOAT8_E8M0;
    default: return ACL_DT_UNDEFINED;
  }
}

// Whether elements share memory because a dimension was expanded. Its stride is never symbolic.
bool is_expanded(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return false;
  for (const c10::SymInt& stride : tensor.sym_strides()) {
    if (stride.maybe_as_int() == 0) return true;
  }
  return false;
}

std::span<const int64_t> span_of(at::IntArrayRef values) {
  return {values.data(), values.size()};
}

}  // namespace

void check_tensors(const char* api, std::initializer_list<Named> tensors) {
  const at::Device device = tensors.begin()->tensor.device();
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) {
      throw aclnn::Error(api, ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is not a tensor");
    }
    if (tensor.device() != device) {
      fail(api, std::string(name) + " is on " + tensor.device().str() + ", expected " +
                    device.str() + " as " + tensors.begin()->name + " is; move one with .to()");
    }
    if (tensor.layout() != at::kStrided) {
      fail(api, std::string(name) + " has layout " + c10::str(tensor.layout()) +
                    ", expected a dense tensor; convert it with .to_dense()");
    }
  }
}

void check_overwritable(const char* api, Named argument) {
  if (at::has_internal_overlap(argument.tensor) == at::MemOverlap::Yes) {
    fail(api, std::string(argument.name) +
                  " has elements that share memory (it was expanded), expected an element a place; "
                  "clone it first");
  }
}

aclnn::TensorHandle describe(const aclnn::Library& library, const char* api,
                             const at::Tensor& tensor) {
  const aclDataType type = acl_type(tensor.scalar_type());
  if (type == ACL_DT_UNDEFINED) {
    fail(api, "a tensor has dtype " + std::string(c10::toString(tensor.scalar_type())) +
                  ", which CANN does not know; cast it");
  }
  const at::Storage& storage = tensor.storage();
  const std::array<int64_t, 1> elements{
      static_cast<int64_t>(storage.nbytes() / tensor.dtype().itemsize())};
  // An input is only read, but the descriptor has one pointer for both.
  void* data = const_cast<void*>(storage.data());
  return aclnn::make_tensor(library, span_of(tensor.sizes()), type, span_of(tensor.strides()),
                            tensor.storage_offset(), ACL_FORMAT_ND, elements, data);
}

aclnn::ScalarHandle describe(const aclnn::Library& library, const char*, const at::Scalar& scalar) {
  if (scalar.isComplex()) {
    const auto value = scalar.toComplexDouble();
    return aclnn::make_scalar(library, std::complex<double>(value.real(), value.imag()));
  }
  if (scalar.isFloatingPoint()) return aclnn::make_scalar(library, scalar.toDouble());
  if (scalar.isBoolean()) return aclnn::make_scalar(library, scalar.toBool());
  return aclnn::make_scalar(library, scalar.toLong());
}

at::Tensor empty_output(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor& like = is_expanded(first) ? second : first;
  // The common case, without the dispatcher.
  if (like.is_cpu() && like.is_non_overlapping_and_dense()) {
    return at::detail::empty_strided_cpu(like.sizes(), like.strides(), first.scalar_type());
  }
  return at::empty_like(like, first.options());
}

}  // namespace aclnn_torch
