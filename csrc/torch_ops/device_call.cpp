#include "torch_ops/device_call.h"

#include <array>
#include <complex>
#include <span>
#include <string>

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include "torch_ops/device_product.h"
#include "torch_ops/memory_pool.h"

namespace aclnn_torch {
namespace {

// ACL_DT_UNDEFINED for dtypes that CANN does not have.
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

// True if elements share memory because a dimension was expanded. The stride of an expanded
// dimension is never symbolic.
bool is_expanded(const at::Tensor& tensor) {
  const auto sizes = tensor.sym_sizes();
  const auto strides = tensor.sym_strides();
  for (size_t i = 0; i < strides.size(); ++i) {
    if (strides[i].maybe_as_int() == 0 && sizes[i].maybe_as_int() != 1) return true;
  }
  return false;
}

// True if two shapes are known to differ; symbolic sizes are compared at run time.
bool shapes_differ(const at::Tensor& a, const at::Tensor& b) {
  const auto first = a.sym_sizes();
  const auto second = b.sym_sizes();
  if (first.size() != second.size()) return true;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto x = first[i].maybe_as_int();
    const auto y = second[i].maybe_as_int();
    if (x && y && *x != *y) return true;
  }
  return false;
}

std::span<const int64_t> span_of(at::IntArrayRef values) {
  return {values.data(), values.size()};
}

}  // namespace

std::string product_of(at::Device device) {
  const aclnn::Library& library =
      device.is_privateuseone() ? aclnn::installed() : aclnn::Library::embedded();
  using Name = const char*();
  void* function = library.find("aclHostGetProduct");
  if (function == nullptr) function = library.require("aclrtGetSocName");
  const char* name = reinterpret_cast<Name*>(function)();
  return name ? name : "unknown";
}

void refuse(const char* api, at::Device device, const std::string& text, aclnnStatus status) {
  call_translating_errors([&] {  // product_of may throw, too
    throw aclnn::Error(api, status, text + " (product " + product_of(device) + ")");
  });
  __builtin_unreachable();
}

namespace {

// Throws for torch_npu's private formats, whose elements do not lie where sizes and strides say.
void check_format(const char* api, const char* name, const at::Tensor& tensor) {
  const int32_t format = npu_backend().format(tensor);
  for (const int32_t plain : {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW}) {
    if (format == plain) return;
  }
  refuse(api, tensor.device(),
         std::string(name) + " has the private format " + std::to_string(format) +
             " of torch_npu, expected 2 (ND) or another public format; convert it with "
             "torch_npu.npu_format_cast(x, 2)");
}

}  // namespace

void check_tensors(const char* api, std::initializer_list<Named> tensors) {
  const at::Device device = tensors.begin()->tensor.device();
  for (const auto& [name, tensor, optional] : tensors) {
    if (!tensor.defined()) {
      if (optional) continue;
      raise_error(
          aclnn::Error(api, ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is not a tensor"));
    }
    if (tensor.device() != device) {
      refuse(api, device,
             std::string(name) + " is on " + tensor.device().str() + ", expected " + device.str() +
                 " as " + tensors.begin()->name + " is; move one with .to()");
    }
    if (acl_type(tensor.scalar_type()) == ACL_DT_UNDEFINED) {
      refuse(api, device,
             std::string(name) + " has dtype " + c10::toString(tensor.scalar_type()) +
                 ", expected a dtype that CANN has; cast the tensor, for example to float32");
    }
    if (device.is_privateuseone()) check_format(api, name, tensor);
  }
}

void check_same(const char* api, Named argument, Named other) {
  if (argument.tensor.scalar_type() != other.tensor.scalar_type()) {
    refuse(api, argument.tensor.device(),
           std::string(argument.name) + " has dtype " +
               c10::toString(argument.tensor.scalar_type()) + ", expected " +
               c10::toString(other.tensor.scalar_type()) + " as " + other.name +
               " has; cast one of them");
  }
  if (shapes_differ(argument.tensor, other.tensor)) {
    refuse(api, argument.tensor.device(),
           std::string(argument.name) + " has shape " + c10::str(argument.tensor.sym_sizes()) +
               ", expected " + c10::str(other.tensor.sym_sizes()) + " as " + other.name +
               " has; shapes are not broadcast, expand first");
  }
}

void check_overwritable(const char* api, Named argument) {
  if (is_expanded(argument.tensor)) {
    refuse(api, argument.tensor.device(),
           std::string(argument.name) +
               " has elements that alias one another (it was expanded), expected a tensor in which "
               "every element has its own memory; clone the tensor first");
  }
}

namespace {

aclFormat format_of(const at::Tensor& tensor) {
  switch (tensor.dim()) {
    case 3: return ACL_FORMAT_NCL;
    case 4: return ACL_FORMAT_NCHW;
    case 5: return ACL_FORMAT_NCDHW;
    default: return ACL_FORMAT_ND;
  }
}

aclnn::TensorHandle describe(const aclnn::Library& library, const at::Tensor& tensor, void* data) {
  const std::array<int64_t, 1> elements{
      static_cast<int64_t>(tensor.storage().nbytes() / tensor.dtype().itemsize())};
  return aclnn::make_tensor(library, span_of(tensor.sizes()), acl_type(tensor.scalar_type()),
                            span_of(tensor.strides()), tensor.storage_offset(), format_of(tensor),
                            elements, data);
}

}  // namespace

aclnn::TensorHandle describe(const aclnn::Library& library, const at::Tensor& input) {
  if (!input.defined()) return {};
  // Inputs are only read, but a descriptor holds a non-const pointer.
  return describe(library, input, const_cast<void*>(input.storage().data()));
}

aclnn::TensorHandle describe(const aclnn::Library& library, const Written& output) {
  if (!output.tensor.defined()) return {};
  return describe(library, output.tensor, output.tensor.storage().mutable_data());
}

aclnn::ScalarHandle describe(const aclnn::Library& library, const at::Scalar& scalar) {
  if (scalar.isComplex()) {
    const auto value = scalar.toComplexDouble();
    return aclnn::make_scalar(library, std::complex<double>(value.real(), value.imag()));
  }
  if (scalar.isFloatingPoint()) return aclnn::make_scalar(library, scalar.toDouble());
  if (scalar.isBoolean()) return aclnn::make_scalar(library, scalar.toBool());
  return aclnn::make_scalar(library, scalar.toLong());
}

aclnn::IntArrayHandle describe(const aclnn::Library& library,
                               const at::OptionalIntArrayRef& values) {
  return values ? describe(library, *values) : aclnn::IntArrayHandle();
}

at::DataPtr detail::allocate_on_npu(uint64_t size) {
  return c10::GetAllocator(c10::DeviceType::PrivateUse1)->allocate(size);
}

void* detail::CpuWorkspace::allocate(uint64_t size) {
  if (size <= sizeof(little_)) return little_;
  more_ = memory_pool().allocate(size);
  return more_.get();
}

at::Tensor new_tensor(const at::Tensor& like, c10::SymIntArrayRef sizes, at::ScalarType dtype,
                      at::MemoryFormat format) {
  if (like.is_cpu()) {  // skips the dispatcher
    return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &memory_pool(),
                                     c10::DispatchKeySet(c10::DispatchKey::CPU), dtype, format);
  }
  return at::empty_symint(sizes, like.options().dtype(dtype), format);
}

at::Tensor empty_output(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor& like = is_expanded(first) ? second : first;
  const auto with_strides = [&](const auto& allocate) {
    if (like.is_non_overlapping_and_dense()) return allocate(like.strides());
    return allocate(at::infer_dense_strides(like.sizes(), like.strides()));
  };
  // Skips the dispatcher, except for some outputs on NPUs.
  if (like.is_cpu()) {
    return with_strides([&](at::IntArrayRef strides) {
      return at::detail::empty_strided_generic(like.sizes(), strides, &memory_pool(),
                                               c10::DispatchKeySet(c10::DispatchKey::CPU),
                                               first.scalar_type());
    });
  }
  if (like.is_privateuseone()) {
    if (like.is_contiguous()) return npu_backend().empty(like.sizes(), first.options());
    return with_strides([&](at::IntArrayRef strides) {  // torch_npu 2.8's empty_like ignores them
      return at::empty_strided(like.sizes(), strides, first.options());
    });
  }
  return at::empty_like(like, first.options());
}

}  // namespace aclnn_torch
