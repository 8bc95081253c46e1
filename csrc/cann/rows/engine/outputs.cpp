#include "cann/rows/engine/outputs.h"

#include <algorithm>

#include "cann/rows/engine/memory_range.h"
#include "cann/rows/engine/refusal.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/cast.h"

namespace aclnn_host {
namespace {

// CANN passes a tensor of one element where ATen has a tensor without dimensions.
bool same_shape(at::IntArrayRef a, at::IntArrayRef b) {
  return a == b || (a.size() + b.size() == 1 && (a.empty() ? b : a)[0] == 1);
}

// True if two tensors overlap in memory and are not the same view.
bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu() || a.numel() == 0 || b.numel() == 0) return false;
  return !is_same_view(a, b) && memory_range_of(a).overlaps(memory_range_of(b));
}

}  // namespace

void Output::expect(at::ScalarType result) const {
  const at::ScalarType expected = tensor_.scalar_type();
  // The last words are torch's own; some programs search for them.
  EXPECT(can_cast(acl_type(result), acl_type(expected)), name_, " has dtype ",
         dtype_name(acl_type(expected)), ", but result type ", result,
         " can't be cast to the desired output type ", expected);
}

Output& Output::operator=(const at::Tensor& result) {
  expect(result.scalar_type());
  copy(result);
  return *this;
}

void Output::copy(const at::Tensor& result) {
  EXPECT(same_shape(result.sizes(), tensor_.sizes()), name_, " has shape ", tensor_.sizes(),
         ", expected ", result.sizes(), ", the shape of the result");
  if (!is_written_) return;
  const at::Tensor from = result.view_as(tensor_);
  if (is_same_view(from, tensor_)) return;
  // `from` may be a view of an input that overlaps the output, so it is read completely before the
  // output is written.
  tensor_.copy_(share_memory(from, tensor_) ? from.clone() : from);
}

at::Tensor* Output::room(at::ScalarType result, at::IntArrayRef shape, Reads reads) {
  constexpr int64_t kLeastElements = 1024;
  if (!is_written_ || tensor_.scalar_type() != result || tensor_.sizes() != shape ||
      tensor_.numel() < kLeastElements || !tensor_.is_non_overlapping_and_dense()) {
    return nullptr;
  }
  if (reads == Reads::kSameElement && may_be_written_early_) return &tensor_;
  if (tensors_ == nullptr) return nullptr;
  for (const at::Tensor& other : *tensors_) {
    if (other.is_same(tensor_) || other.numel() == 0) continue;
    if (reads == Reads::kSameElement && is_same_view(other, tensor_)) continue;
    if (memory_range_of(other).overlaps(memory_range_of(tensor_))) return nullptr;
  }
  return &tensor_;
}

bool Output::is_at(const at::Tensor& before) const {
  if (!is_written_ || !is_same_view(before, tensor_)) return false;
  if (tensors_ == nullptr) return may_be_written_early_;
  return std::ranges::none_of(*tensors_, [&](const at::Tensor& other) {
    return !other.is_same(tensor_) && !other.is_same(before) && other.numel() > 0 &&
           memory_range_of(other).overlaps(memory_range_of(tensor_));
  });
}

SizedOutput& SizedOutput::operator=(const at::Tensor& result) {
  const at::Tensor& memory = memory_;
  EXPECT(result.numel() <= memory.numel(), memory_.name(), " has memory for ", memory.numel(),
         " elements, expected at least ", result.numel());
  memory_.expect(result.scalar_type());
  if (!memory_.is_written()) return *this;
  memory.view({-1}).narrow(0, 0, result.numel()).view(result.sizes()).copy_(result);
  shape_->assign(result.sizes().data(), result.sizes().size());
  return *this;
}

}  // namespace aclnn_host
