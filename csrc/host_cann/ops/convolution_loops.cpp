#include "host_cann/ops/convolution_loops.h"

#include <algorithm>
#include <atomic>

#include <ATen/Parallel.h>

#include "host_cann/kernels/convolution_depthwise.h"

namespace aclnn_host {
namespace {

// Products for which another thread is worth waking.
constexpr double kGrain = 1 << 17;

int64_t part_count(const ConvolutionSizes& sizes) {
  return std::clamp<int64_t>(static_cast<int64_t>(product_count(sizes) / kGrain), 1,
                             at::get_num_threads());
}

// Whether windows reach beyond the large image.
bool reach_beyond(const ConvolutionSizes& sizes) {
  for (int d = 0; d < 3; ++d) {
    const int64_t last = (sizes.small[d] - 1) * sizes.stride[d] - sizes.padding[d] +
                         (sizes.kernel[d] - 1) * sizes.dilation[d];
    if (sizes.padding[d] > 0 || last >= sizes.large[d]) return true;
  }
  return false;
}

int64_t volume(const ConvolutionSizes::Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

}  // namespace

DirectProducts::DirectProducts(const ConvolutionSizes& sizes, const Choice& choice,
                               Workspace& workspace)
    : sizes(sizes), choice_(choice), parts_(part_count(sizes)) {
  scratch_size_ = (kernels().scratch_size(sizes) + 63) / 64 * 64;
  offset_ = workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_));
}

const DirectKernels& DirectProducts::kernels() const {
  const bool last = choice_.layout == Layout::kChannelsLast;
  return (last ? convolution_depthwise_kernels() : convolution_direct_kernels())
      .find(choice_.dtype);
}

void DirectProducts::run(Kernel kernel, int64_t items, const ConvolutionTensors& from, void* to,
                         void* workspace) const {
  char* const scratch = static_cast<char*>(workspace) + offset_;
  at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernel(sizes, from, items * i / parts_, items * (i + 1) / parts_, to,
             scratch + i * scratch_size_);
    }
  });
}

// ---- Pairs

Pairs::Pairs(int64_t outer, int64_t count, int64_t inner, Workspace& workspace)
    : outer_(outer),
      count_(count),
      inner_(inner),
      offset_(workspace.reserve(static_cast<uint64_t>(outer * ((count + 1) / 2) * inner) *
                                sizeof(float))) {}

const float* Pairs::of(const void* tensor, void* workspace) const {
  constexpr int64_t kWords = 1 << 15;  // for which another thread is worth waking
  auto* const words = reinterpret_cast<float*>(static_cast<char*>(workspace) + offset_);
  at::parallel_for(0, outer_ * ((count_ + 1) / 2) * inner_, kWords,
                   [&](int64_t begin, int64_t end) {
                     convolution_windows_kernels().pair(static_cast<const BFloat16*>(tensor),
                                                        count_, inner_, begin, end, words);
                   });
  return words;
}

// ---- Windows

WindowProducts::WindowProducts(const ConvolutionSizes& sizes, Pass pass, aclDataType dtype,
                               Workspace& workspace)
    : sizes_(sizes), words_(sizes), pass_(pass), dtype_(dtype), parts_(part_count(sizes)) {
  if (dtype == ACL_BF16) make_pairs(workspace);
  const WindowPass& chosen = kernels().*pass;
  scratch_size_ = chosen.scratch_size(words_);
  shared_ = workspace.reserve(static_cast<uint64_t>(chosen.shared_size(words_)));
  scratch_ = workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_));
}

const WindowKernels& WindowProducts::kernels() const {
  return dtype_ == ACL_BF16 ? convolution_windows_kernels().bfloat16
                            : convolution_windows_kernels().float32;
}

WindowProducts::Pass WindowProducts::pass_of(Sum sum) {
  switch (sum) {
    case Sum::kSmall: return &WindowKernels::small;
    case Sum::kLarge: return &WindowKernels::large;
    default: return &WindowKernels::weight;
  }
}

bool WindowProducts::fit(const ConvolutionSizes& sizes, Pass pass) {
  constexpr int64_t kMostTaps = 512;
  constexpr int64_t kMostReach = 1024;
  constexpr int64_t kMostPhases = 64;  // of the large image's positions by the stride
  constexpr int64_t kMostScratch = 16 << 20;
  int64_t taps = 1;
  int64_t phases = 1;
  for (int d = 0; d < 3; ++d) {
    const bool reaches = sizes.kernel[d] > kMostTaps || sizes.stride[d] > kMostReach ||
                         sizes.dilation[d] > kMostReach ||
                         (sizes.kernel[d] - 1) * sizes.dilation[d] > kMostReach;
    if (reaches) return false;
    taps *= sizes.kernel[d];
    phases *= std::min(sizes.stride[d], sizes.large[d]);
  }
  if (taps > kMostTaps || (pass == &WindowKernels::large && phases > kMostPhases)) return false;
  return (convolution_windows_kernels().float32.*pass).scratch_size(sizes) <= kMostScratch;
}

void WindowProducts::make_pairs(Workspace& workspace) {
  const int64_t images = sizes_.batch * sizes_.groups;
  const int64_t large = sizes_.large_channels * volume(sizes_.large);
  const int64_t small = sizes_.small_channels * volume(sizes_.small);
  const int64_t taps = volume(sizes_.kernel);
  const auto half = [](int64_t& count) { count = (count + 1) / 2; };
  if (pass_ == &WindowKernels::weight) {
    large_ = Pairs(1, sizes_.batch, sizes_.groups * large, workspace);
    small_ = Pairs(1, sizes_.batch, sizes_.groups * small, workspace);
    half(words_.batch);
  } else if (pass_ == &WindowKernels::small) {
    large_ = Pairs(images, sizes_.large_channels, volume(sizes_.large), workspace);
    weight_ = Pairs(sizes_.groups * sizes_.small_channels, sizes_.large_channels, taps, workspace);
    half(words_.large_channels);
  } else {
    small_ = Pairs(images, sizes_.small_channels, volume(sizes_.small), workspace);
    weight_ = Pairs(sizes_.groups, sizes_.small_channels, sizes_.large_channels * taps, workspace);
    half(words_.small_channels);
  }
}

ConvolutionTensors WindowProducts::paired(const ConvolutionTensors& from, void* workspace) const {
  ConvolutionTensors to = from;
  if (pass_ != &WindowKernels::large) to.large = large_.of(from.large, workspace);
  if (pass_ != &WindowKernels::small) to.small = small_.of(from.small, workspace);
  if (pass_ != &WindowKernels::weight) to.weight = weight_.of(from.weight, workspace);
  return to;
}

bool WindowProducts::are_finite(const void* values, int64_t count) const {
  constexpr int64_t kValues = 1 << 16;  // for which another thread is worth waking
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype_));
  const auto* const all = static_cast<const char*>(values);
  std::atomic<bool> finite = true;
  at::parallel_for(0, count, kValues, [&](int64_t begin, int64_t end) {
    if (!kernels().are_finite(all + begin * size, end - begin)) finite = false;
  });
  return finite;
}

bool WindowProducts::are_exact(const ConvolutionTensors& from) const {
  if (pass_ != &WindowKernels::large && !reach_beyond(sizes_)) return true;
  const int64_t channels = sizes_.groups * sizes_.small_channels;
  if (pass_ == &WindowKernels::weight) {
    return are_finite(from.small, sizes_.batch * channels * volume(sizes_.small));
  }
  return are_finite(from.weight, channels * sizes_.large_channels * volume(sizes_.kernel));
}

void WindowProducts::compute(const ConvolutionTensors& from, void* to, void* workspace) const {
  const WindowPass& pass = kernels().*pass_;
  const ConvolutionTensors words = dtype_ == ACL_BF16 ? paired(from, workspace) : from;
  char* const memory = static_cast<char*>(workspace);
  const auto for_each_part = [&](auto body) {
    at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) body(part);
    });
  };
  for_each_part([&](int64_t part) { pass.prepare(words_, words, part, parts_, memory + shared_); });
  for_each_part([&](int64_t part) {
    pass.compute(words_, words, part, parts_, memory + shared_, to,
                 memory + scratch_ + part * scratch_size_);
  });
}

}  // namespace aclnn_host
