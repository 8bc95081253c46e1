#pragma once

#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include "host_cann/descriptors/tensor.h"

namespace aclnn_host {

// While it exists, the calling thread's ATen calls go straight to the CPU kernels: no autograd,
// autocast, function transform, Python mode or profiler of that thread sees or changes them. ATen's
// warnings, such as deprecations, are dropped: a caller of CANN's interface cannot act on them, and
// a library does not print.
class AtenScope {
 public:
  AtenScope() {
    if (at::hasThreadLocalCallbacks()) unrecorded_.emplace();
  }

 private:
  struct DropWarnings final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };

  static constexpr c10::DispatchKeySet kIncluded{c10::DispatchKey::BackendSelect};
  static constexpr c10::DispatchKeySet kExcluded =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
      c10::functorch_transforms_ks | c10::functorch_batched_ks | c10::python_ks |
      c10::DispatchKeySet({c10::DispatchKey::Functionalize, c10::DispatchKey::PreDispatch,
                           c10::DispatchKey::PythonDispatcher});

  c10::impl::ForceDispatchKeyGuard guard_{kIncluded, kExcluded};
  DropWarnings drop_;
  c10::WarningUtils::WarningHandlerGuard warnings_{&drop_};
  std::optional<at::DisableRecordFunctionGuard> unrecorded_;
};

// The dtypes that CANN and ATen share.
constexpr std::pair<aclDataType, at::ScalarType> kSameTypes[] = {
    {ACL_FLOAT, at::kFloat},
    {ACL_FLOAT16, at::kHalf},
    {ACL_BF16, at::kBFloat16},
    {ACL_DOUBLE, at::kDouble},
    {ACL_INT8, at::kChar},
    {ACL_INT16, at::kShort},
    {ACL_INT32, at::kInt},
    {ACL_INT64, at::kLong},
    {ACL_UINT8, at::kByte},
    {ACL_UINT16, at::kUInt16},
    {ACL_UINT32, at::kUInt32},
    {ACL_UINT64, at::kUInt64},
    {ACL_BOOL, at::kBool},
    {ACL_COMPLEX32, at::kComplexHalf},
    {ACL_COMPLEX64, at::kComplexFloat},
    {ACL_COMPLEX128, at::kComplexDouble},
};

// at::ScalarType::Undefined for a dtype that ATen does not have.
constexpr at::ScalarType aten_type(aclDataType dtype) {
  for (const auto& [acl, aten] : kSameTypes) {
    if (acl == dtype) return aten;
  }
  return at::ScalarType::Undefined;
}

// ACL_DT_UNDEFINED for a dtype that CANN does not have.
constexpr aclDataType acl_type(at::ScalarType dtype) {
  for (const auto& [acl, aten] : kSameTypes) {
    if (aten == dtype) return acl;
  }
  return ACL_DT_UNDEFINED;
}

// A tensor argument as an ATen view; its strides must not be negative. Does not own the memory.
inline at::Tensor aten_tensor(const TensorView& view) {
  return at::from_blob(view.data(), {view.shape.begin(), view.shape.size()},
                       {view.strides.begin(), view.strides.size()}, aten_type(view.dtype));
}

}  // namespace aclnn_host
