#include "host_cann/ops/convolution/implicit_gemm.h"

#include <algorithm>
#include <atomic>

#include <ATen/Parallel.h>

#include "host_cann/kernels/sizes.h"
#include "host_cann/ops/convolution/convolution_parts.h"

namespace aclnn_host {
namespace {

// True if the kernel reads positions outside src.
bool reaches_beyond(const ConvolutionSizes& sizes) {
  for (int d = 0; d < 3; ++d) {
    const int64_t last = (sizes.dst[d] - 1) * sizes.stride[d] - sizes.padding[d] +
                         (sizes.kernel[d] - 1) * sizes.dilation[d];
    if (sizes.padding[d] > 0 || last >= sizes.src[d]) return true;
  }
  return false;
}

const ImplicitGemmPass& kernels_of(const ImplicitGemmKernels& kernels, Pass pass) {
  switch (pass) {
    case Pass::kForward: return kernels.forward;
    case Pass::kBackwardData: return kernels.backward_data;
    default: return kernels.backward_weight;
  }
}

}  // namespace

// ---- VNNI packing

VnniPacked::VnniPacked(int64_t outer, int64_t count, int64_t inner, Workspace& workspace)
    : outer_(outer),
      count_(count),
      inner_(inner),
      offset_(workspace.reserve(static_cast<uint64_t>(outer * divide_up(count, 2) * inner) *
                                sizeof(float))) {}

const float* VnniPacked::pack(const void* tensor, void* workspace) const {
  constexpr int64_t kGrain = 1 << 15;  // packed pairs that justify another thread
  auto* const packed = reinterpret_cast<float*>(static_cast<char*>(workspace) + offset_);
  at::parallel_for(0, outer_ * divide_up(count_, 2) * inner_, kGrain,
                   [&](int64_t begin, int64_t end) {
                     convolution_implicit_gemm_kernels().pack(static_cast<const BFloat16*>(tensor),
                                                              count_, inner_, begin, end, packed);
                   });
  return packed;
}

// ---- One pass

ImplicitGemmProducts::ImplicitGemmProducts(const ConvolutionSizes& sizes, Pass pass,
                                           aclDataType dtype, Workspace& workspace)
    : sizes_(sizes), packed_(sizes), pass_(pass), dtype_(dtype), parts_(part_count(sizes)) {
  if (dtype == ACL_BF16) book_packed(workspace);
  const ImplicitGemmPass& chosen = kernels_of(kernels(), pass);
  scratch_size_ = chosen.scratch_size(packed_);
  shared_ = workspace.reserve(static_cast<uint64_t>(chosen.shared_size(packed_)));
  scratch_ = workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_));
}

const ImplicitGemmKernels& ImplicitGemmProducts::kernels() const {
  const ImplicitGemmKernelsByType& kernels = convolution_implicit_gemm_kernels();
  return dtype_ == ACL_BF16 ? kernels.bfloat16 : kernels.float32;
}

void ImplicitGemmProducts::book_packed(Workspace& workspace) {
  const int64_t images = sizes_.batch * sizes_.groups;
  const int64_t src = volume(sizes_.src);
  const int64_t dst = volume(sizes_.dst);
  const int64_t taps = volume(sizes_.kernel);
  const auto halve = [](int64_t& count) { count = divide_up(count, 2); };
  if (pass_ == Pass::kBackwardWeight) {
    src_ = VnniPacked(1, sizes_.batch, sizes_.groups * sizes_.src_channels * src, workspace);
    dst_ = VnniPacked(1, sizes_.batch, sizes_.groups * sizes_.dst_channels * dst, workspace);
    halve(packed_.batch);
  } else if (pass_ == Pass::kForward) {
    src_ = VnniPacked(images, sizes_.src_channels, src, workspace);
    weight_ = VnniPacked(sizes_.groups * sizes_.dst_channels, sizes_.src_channels, taps, workspace);
    halve(packed_.src_channels);
  } else {
    dst_ = VnniPacked(images, sizes_.dst_channels, dst, workspace);
    weight_ = VnniPacked(sizes_.groups, sizes_.dst_channels, sizes_.src_channels * taps, workspace);
    halve(packed_.dst_channels);
  }
}

ConvolutionTensors ImplicitGemmProducts::packed(const ConvolutionTensors& from,
                                                void* workspace) const {
  ConvolutionTensors to = from;
  if (pass_ != Pass::kBackwardData) to.src = src_.pack(from.src, workspace);
  if (pass_ != Pass::kForward) to.dst = dst_.pack(from.dst, workspace);
  if (pass_ != Pass::kBackwardWeight) to.weight = weight_.pack(from.weight, workspace);
  return to;
}

bool ImplicitGemmProducts::are_finite(const void* values, int64_t count) const {
  constexpr int64_t kGrain = 1 << 16;  // values that justify another thread
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype_));
  const auto* const all = static_cast<const char*>(values);
  std::atomic<bool> finite = true;
  at::parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    if (!kernels().are_finite(all + begin * size, end - begin)) finite = false;
  });
  return finite;
}

bool ImplicitGemmProducts::are_exact(const ConvolutionTensors& from) const {
  if (pass_ != Pass::kBackwardData && !reaches_beyond(sizes_)) return true;
  const int64_t channels = sizes_.groups * sizes_.dst_channels;
  if (pass_ == Pass::kBackwardWeight) {
    return are_finite(from.dst, sizes_.batch * channels * volume(sizes_.dst));
  }
  return are_finite(from.weight, channels * sizes_.src_channels * volume(sizes_.kernel));
}

void ImplicitGemmProducts::compute(const ConvolutionTensors& from, void* to,
                                   void* workspace) const {
  const ImplicitGemmPass& pass = kernels_of(kernels(), pass_);
  const ConvolutionTensors operands = dtype_ == ACL_BF16 ? packed(from, workspace) : from;
  char* const memory = static_cast<char*>(workspace);
  const auto for_each_part = [&](auto body) {
    at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) body(part);
    });
  };
  for_each_part(
      [&](int64_t part) { pass.prepare(packed_, operands, part, parts_, memory + shared_); });
  for_each_part([&](int64_t part) {
    pass.compute(packed_, operands, part, parts_, memory + shared_, to,
                 memory + scratch_ + part * scratch_size_);
  });
}

// ---- The algorithm

bool ImplicitGemm::supports(const Problem& problem) {
  constexpr int64_t kMaxTaps = 512;
  constexpr int64_t kMaxReach = 1024;
  constexpr int64_t kMaxPhases = 64;  // phases of src's positions modulo the stride
  constexpr int64_t kMaxScratch = 16 << 20;
  if (problem.dtype == ACL_DOUBLE || !problem.geometry.is_symmetric()) return false;
  const ConvolutionSizes& sizes = problem.sizes;
  int64_t taps = 1;
  int64_t phases = 1;
  for (int d = 0; d < 3; ++d) {
    const bool reaches = sizes.kernel[d] > kMaxTaps || sizes.stride[d] > kMaxReach ||
                         sizes.dilation[d] > kMaxReach ||
                         (sizes.kernel[d] - 1) * sizes.dilation[d] > kMaxReach;
    if (reaches) return false;
    taps *= sizes.kernel[d];
    phases *= std::min(sizes.stride[d], sizes.src[d]);
  }
  if (taps > kMaxTaps || (problem.pass == Pass::kBackwardData && phases > kMaxPhases)) return false;
  const ImplicitGemmKernels& kernels = convolution_implicit_gemm_kernels().float32;
  return kernels_of(kernels, problem.pass).scratch_size(sizes) <= kMaxScratch;
}

Form ImplicitGemm::form(const Problem& problem, Layout layout, aclDataType dtype) {
  Form form = AtenConvolution::form(problem, layout, dtype);  // the fallback's form
  form.weight_layout = Layout::kChannelsFirst;
  form.image_dtype = form.weight_dtype = ACL_FLOAT;
  form.placement = dtype == ACL_FLOAT ? form.placement : Placement::kAnywhere;
  form.allocates = false;
  form.in_pieces = false;
  return form;
}

ImplicitGemm::ImplicitGemm(const Problem& problem, const Form& form, const Passes& passes,
                           Workspace& workspace)
    : passes_(passes),
      exact_(problem, AtenConvolution::form(problem, form.layout, ACL_FLOAT), passes, workspace) {
  if (passes.image) {
    image_ = ImplicitGemmProducts(problem.sizes, *passes.image, form.dtype, workspace);
  }
  if (passes.weight) {
    weight_ = ImplicitGemmProducts(problem.sizes, Pass::kBackwardWeight, form.dtype, workspace);
  }
}

void ImplicitGemm::run(const Operands& operands, Results& results) const {
  const ConvolutionTensors from = operands.data();
  if ((passes_.image && !image_.are_exact(from)) || (passes_.weight && !weight_.are_exact(from))) {
    return exact_.run(operands, results);
  }
  if (passes_.weight) {
    weight_.compute(from, results.weight.view.data(), operands.workspace);
  }
  if (passes_.image) image_.compute(from, results.image.view.data(), operands.workspace);
}

}  // namespace aclnn_host
