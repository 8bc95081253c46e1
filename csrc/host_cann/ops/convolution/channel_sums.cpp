#include "host_cann/ops/convolution/channel_sums.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "host_cann/arguments/compute_type.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/kernels/layout.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

// Rows of a channels-last tensor that are summed together.
constexpr int64_t kRows = 512;

}  // namespace

ChannelSums::ChannelSums(const TensorView& view, Workspace& workspace)
    : channels_last_(lies(view, Layout::kChannelsLast) && !lies(view, Layout::kChannelsFirst)),
      channels_(view.shape[1]),
      dtype_(view.dtype) {
  operand_ = Operand(view, dtype_, nullptr,
                     channels_last_ ? Layout::kChannelsLast : Layout::kChannelsFirst, workspace);
  const int64_t rows = element_count(view.shape).value() / channels_;
  parts_ = channels_last_ ? divide_up(rows, kRows) : view.shape[0];
  offset_ = workspace.reserve(static_cast<uint64_t>(parts_ * channels_) * sizeof(double));
}

void ChannelSums::compute(const TensorView& view, void* workspace) const {
  const TensorView from = operand_.read(view, workspace);
  auto* const sums = reinterpret_cast<double*>(static_cast<char*>(workspace) + offset_);
  const LayoutKernels& kernels = layout_kernels().find(dtype_);
  const char* const elements = from.data();
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype_));
  const int64_t rows = element_count(view.shape).value() / channels_;
  constexpr int64_t kElements = 32768;  // minimum work for another thread
  if (channels_last_) {
    at::parallel_for(0, parts_, std::max<int64_t>(1, kElements / (kRows * channels_)),
                     [&](int64_t begin, int64_t end) {
                       std::fill(sums + begin * channels_, sums + end * channels_, 0.0);
                       for (int64_t i = begin; i < end; ++i) {
                         kernels.add_rows(elements + i * kRows * channels_ * size,
                                          std::min(kRows, rows - i * kRows), channels_,
                                          sums + i * channels_);
                       }
                     });
  } else {
    const int64_t row = rows / parts_;
    at::parallel_for(0, parts_ * channels_, std::max<int64_t>(1, kElements / row),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         sums[i] = kernels.sum(elements + i * row * size, row);
                       }
                     });
  }
  for (int64_t i = channels_; i < parts_ * channels_; ++i) sums[i % channels_] += sums[i];
}

void ChannelSums::store(const TensorView& to, void* workspace) const {
  void* const memory = static_cast<char*>(workspace) + offset_;
  TensorView sums = dense(to.shape, Layout::kChannelsFirst, ACL_DOUBLE, memory);
  if (to.dtype != dtype_ && dtype_ != ACL_DOUBLE) {
    // Rounded in place to the narrower dtype; the values stay DOUBLE.
    auto* const values = static_cast<double*>(memory);
    for (int64_t i = 0; i < channels_; ++i) {
      auto value = static_cast<float>(values[i]);
      if (const RoundingKernel kernel = rounding_to(dtype_)) kernel(&value, 1);
      values[i] = value;
    }
  }
  copy_elements(sums, to);
}

}  // namespace aclnn_host
