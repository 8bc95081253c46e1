// Uses the reference of the direct kernels; needs no memory.

#include "host_cann/kernels/convolution_implicit_gemm.h"

#include <algorithm>
#include <cmath>

namespace aclnn_host {
namespace {

const DirectKernels& direct() {
  return convolution_direct_kernels<Capability::kReference>().float32;
}

int64_t none(const ConvolutionSizes&) {
  return 0;
}

void prepare(const ConvolutionSizes&, const ConvolutionTensors&, int64_t, int64_t, void*) {}

void forward(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
             int64_t parts, const void*, void* out, void*) {
  const int64_t items = sizes.batch * sizes.groups;
  direct().forward(sizes, from, items * part / parts, items * (part + 1) / parts, out, nullptr);
}

void backward_data(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                   int64_t parts, const void*, void* out, void*) {
  const int64_t items = sizes.batch * sizes.groups;
  direct().backward_data(sizes, from, items * part / parts, items * (part + 1) / parts, out,
                         nullptr);
}

void backward_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                     int64_t parts, const void*, void* out, void*) {
  const int64_t items = sizes.groups;
  direct().backward_weight(sizes, from, items * part / parts, items * (part + 1) / parts, out,
                           nullptr);
}

bool are_finite(const void* values, int64_t count) {
  const auto* const all = static_cast<const float*>(values);
  return std::all_of(all, all + count, [](float value) { return std::isfinite(value); });
}

}  // namespace

template <>
const ImplicitGemmKernelsByType&
convolution_implicit_gemm_kernels<Capability::kReference>() noexcept {
  static constexpr ImplicitGemmKernelsByType kKernels = {{{none, none, prepare, forward},
                                                          {none, none, prepare, backward_data},
                                                          {none, none, prepare, backward_weight},
                                                          are_finite},
                                                         {},
                                                         nullptr};
  return kKernels;
}

const ImplicitGemmKernelsByType& convolution_implicit_gemm_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return convolution_implicit_gemm_kernels<kVersion>(); });
}

}  // namespace aclnn_host
