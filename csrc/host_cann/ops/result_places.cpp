#include "host_cann/ops/result_places.h"

#include <memory>
#include <optional>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/library.h>

namespace aclnn_host {
namespace {

// A mode that is on where places are offered. The key is vmap's own, of functions that draw random
// numbers: all other operators let it pass, and so do these two where no place is offered.
constexpr c10::DispatchKey kMode = c10::DispatchKey::VmapMode;

thread_local ResultPlaces::Places offered;

bool is_offered() {
  return offered[0].defined() || offered[1].defined();
}

// A tensor in a place that was not taken yet; undefined if there is none.
at::Tensor take(c10::SymIntArrayRef symbolic_sizes, at::ScalarType dtype,
                std::optional<at::MemoryFormat> format) {
  const at::MemoryFormat order = format.value_or(at::MemoryFormat::Contiguous);
  const std::optional<at::IntArrayRef> sizes = c10::asIntArrayRefSlowOpt(symbolic_sizes);
  if (!sizes) return {};
  for (at::Tensor& place : offered) {
    if (place.defined() && place.scalar_type() == dtype && place.sizes() == *sizes &&
        place.is_contiguous(order)) {
      // Another tensor of the same memory, as ATen would make it: whoever gets it may change it.
      at::Tensor taken = at::from_blob(place.data_ptr(), *sizes, place.options());
      taken.unsafeGetTensorImpl()->empty_tensor_restride(order);
      place.reset();
      return taken;
    }
  }
  return {};
}

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard off(kMode);
  const bool plain = layout.value_or(at::kStrided) == at::kStrided &&
                     device.value_or(at::kCPU).is_cpu() && !pin_memory.value_or(false);
  if (is_offered() && plain && dtype) {
    const at::Tensor taken = take(sizes, *dtype, format);
    if (taken.defined()) return taken;
  }
  return at::empty_symint(sizes, dtype, layout, device, pin_memory, format);
}

// What is allocated without elements first.
const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef sizes,
                          std::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard off(kMode);
  if (is_offered() && self.device().is_cpu() && self.layout() == at::kStrided &&
      self.numel() == 0 && self.storage_offset() == 0) {
    const at::Tensor taken = take(sizes, self.scalar_type(), format);
    if (taken.defined()) {
      self.unsafeGetTensorImpl()->set_storage_keep_dtype(taken.storage());
      self.unsafeGetTensorImpl()->set_sizes_and_strides(taken.sizes(), taken.strides());
      return self;
    }
  }
  return self.resize__symint(sizes, format);
}

// The mode, unless a second copy of this library finds that it is there: then results are copied.
std::unique_ptr<torch::Library> make_mode() {
  const auto operator_handle =
      c10::Dispatcher::singleton().findSchema({"aten::empty", "memory_format"});
  if (!operator_handle || operator_handle->hasKernelForDispatchKey(kMode)) return nullptr;
  auto library =
      std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kMode, __FILE__, __LINE__);
  library->impl("empty.memory_format", empty);
  library->impl("resize_", resize_);
  return library;
}
const std::unique_ptr<torch::Library> mode = make_mode();

c10::DispatchKeySet included(bool on) {
  const c10::DispatchKeySet keys = c10::impl::tls_local_dispatch_key_set().included_;
  return on ? keys.add(kMode) : keys;
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* const first = static_cast<const char*>(a.const_data_ptr());
  const auto* const second = static_cast<const char*>(b.const_data_ptr());
  return first < second + b.nbytes() && second < first + a.nbytes();
}

// Whether two tensors have every element at the same place.
bool has_same_elements(const at::Tensor& a, const at::Tensor& b) {
  if (a.const_data_ptr() != b.const_data_ptr() || a.sizes() != b.sizes()) return false;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

}  // namespace

ResultPlaces::ResultPlaces(const Places& places)
    : places_(places),
      guard_(included(mode != nullptr),
             c10::impl::tls_local_dispatch_key_set().excluded_.remove(kMode)) {
  offered = places;
}

ResultPlaces::~ResultPlaces() {
  offered = {};
}

at::Tensor ResultPlaces::settled(const at::Tensor& result, size_t place) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (result.defined() && places_[i].defined() && overlap(result, places_[i]) &&
        !(i == place && has_same_elements(result, places_[i]))) {
      const c10::impl::ExcludeDispatchKeyGuard off(kMode);
      return result.clone();
    }
  }
  return result;
}

}  // namespace aclnn_host
