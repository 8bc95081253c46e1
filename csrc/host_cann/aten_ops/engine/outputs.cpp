#include "host_cann/aten_ops/engine/outputs.h"

#include <c10/util/Exception.h>

#include "host_cann/ops/aten.h"
#include "host_cann/ops/cast.h"

namespace aclnn_host {
namespace {

// CANN takes a tensor of one element where ATen has one without dimensions.
bool same_shape(at::IntArrayRef a, at::IntArrayRef b) {
  return a == b || (a.size() + b.size() == 1 && (a.empty() ? b : a)[0] == 1);
}

// Whether two tensors lie in one stretch of memory in different ways.
bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu() || a.numel() == 0 || b.numel() == 0) return false;
  const auto begin = [](const at::Tensor& x) {
    return static_cast<const char*>(x.const_data_ptr());
  };
  const auto end = [&](const at::Tensor& x) {
    int64_t last = 0;
    for (int64_t i = 0; i < x.dim(); ++i) last += (x.size(i) - 1) * x.stride(i);
    return begin(x) + (last + 1) * static_cast<int64_t>(x.element_size());
  };
  const bool is_same =
      begin(a) == begin(b) && a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
  return !is_same && begin(a) < end(b) && begin(b) < end(a);
}

}  // namespace

void Output::expect(at::ScalarType result) const {
  TORCH_CHECK(can_cast(acl_type(result), acl_type(tensor_.scalar_type())), name_, " has dtype ",
              dtype_name(acl_type(tensor_.scalar_type())), ", expected a type that the result's ",
              dtype_name(acl_type(result)), " can be cast to");
}

Output& Output::operator=(const at::Tensor& result) {
  expect(result.scalar_type());
  copy(result);
  return *this;
}

void Output::copy(const at::Tensor& result) {
  TORCH_CHECK(same_shape(result.sizes(), tensor_.sizes()), name_, " has shape ", tensor_.sizes(),
              ", expected ", result.sizes(), ", the shape of the result");
  if (!is_written_) return;
  const at::Tensor from = result.view_as(tensor_);
  // What lies in the output's own memory, as a view of an input that the caller overlaps it with,
  // is read before anything is written.
  tensor_.copy_(share_memory(from, tensor_) ? from.clone() : from);
}

SizedOutput& SizedOutput::operator=(const at::Tensor& result) {
  const at::Tensor& memory = memory_;
  TORCH_CHECK(result.numel() <= memory.numel(), "the output has memory for ", memory.numel(),
              " elements, expected at least ", result.numel());
  memory_.expect(result.scalar_type());
  if (!memory_.is_written()) return *this;
  memory.view({-1}).narrow(0, 0, result.numel()).view(result.sizes()).copy_(result);
  shape_->assign(result.sizes().data(), result.sizes().size());
  return *this;
}

}  // namespace aclnn_host
