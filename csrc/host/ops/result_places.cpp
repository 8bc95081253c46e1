#include "ops/result_places.h"

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
// numbers: all other operators let it pass, and so do these two when no place is offered.
constexpr c10::DispatchKey kMode = c10::DispatchKey::VmapMode;

thread_local ResultPlaces::Places offered;

// A tensor in a place that was not taken yet; undefined if there is none.
at::Tensor take(at::IntArrayRef sizes, at::ScalarType dtype,
                std::optional<at::MemoryFormat> format) {
  for (at::Tensor& place : offered) {
    if (place.defined() && place.scalar_type() == dtype && place.sizes() == sizes &&
        place.is_contiguous(format.value_or(at::MemoryFormat::Contiguous))) {
      // Another tensor of the same memory: whoever gets it may change its sizes.
      const at::Tensor taken =
          at::from_blob(place.data_ptr(), place.sizes(), place.strides(), place.options());
      place.reset();
      return taken;
    }
  }
  return {};
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard off(kMode);
  const bool plain = layout.value_or(at::kStrided) == at::kStrided &&
                     device.value_or(at::kCPU).is_cpu() && !pin_memory.value_or(false);
  if (plain && dtype) {
    const at::Tensor taken = take(sizes, *dtype, format);
    if (taken.defined()) return taken;
  }
  return at::empty(sizes, dtype, layout, device, pin_memory, format);
}

// What is allocated without elements first.
const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes,
                          std::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard off(kMode);
  if (self.numel() == 0 && self.device().is_cpu() && self.layout() == at::kStrided) {
    const at::Tensor taken = take(sizes, self.scalar_type(), format);
    if (taken.defined()) {
      self.unsafeGetTensorImpl()->set_storage_keep_dtype(taken.storage());
      self.unsafeGetTensorImpl()->set_sizes_and_strides(taken.sizes(), taken.strides());
      return self;
    }
  }
  return self.resize_(sizes, format);
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
    if (i != place && result.defined() && places_[i].defined() && overlap(result, places_[i])) {
      const c10::impl::ExcludeDispatchKeyGuard off(kMode);
      return result.clone();
    }
  }
  return result;
}

}  // namespace aclnn_host
