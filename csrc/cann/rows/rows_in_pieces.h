#pragma once

#include <array>

#include <ATen/Parallel.h>

#include "cann/rows/row.h"

namespace aclnn_host {

// Writes result(rows) to `out` for a few rows of `x` at a time, on all threads, so that what is
// computed of a piece in FLOAT stays in the cache. Both tensors are contiguous.
template <class Result>
void write_in_pieces(const at::Tensor& x, const at::Tensor& out, Result result) {
  constexpr int64_t kElements = 1 << 14;
  const int64_t columns = x.size(-1);
  const at::Tensor from = x.view({-1, columns}), to = out.view({from.size(0), -1});
  const int64_t rows = std::max<int64_t>(kElements / columns, 1);
  const int64_t pieces = (from.size(0) + rows - 1) / rows;
  at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    const AtenScope scope;  // of this thread
    for (int64_t first = begin * rows; first < std::min(end * rows, from.size(0)); first += rows) {
      const int64_t count = std::min(rows, from.size(0) - first);
      to.narrow(0, first, count).copy_(result(from.narrow(0, first, count)));
    }
  });
}

// True for a contiguous tensor of 16 bits that has elements, and its last dimension.
inline bool has_rows_of_16_bits(const at::Tensor& x, int64_t dim) {
  return at::isReducedFloatingType(x.scalar_type()) && x.is_contiguous() && x.numel() > 0 &&
         x.dim() > 0 && (dim == -1 || dim == x.dim() - 1);
}

// Assigns step(tensors) to the outputs, element by element: both are of one shape, but a tensor may
// be absent. Where the outputs can be written directly, a piece of all tensors is computed at a
// time, on all threads, so that what is computed on the way stays in the cache.
template <size_t kOutputs, size_t kTensors, class Step>
void update_elements(const std::array<Output*, kOutputs>& outputs,
                     const std::array<at::Tensor, kTensors>& tensors, Step step) {
  constexpr int64_t kElements = 1 << 14;
  const at::IntArrayRef shape = (*outputs[0])->sizes();
  const auto is_direct = [&](Output* out) {
    return (*out)->is_contiguous() &&
           out->room((*out)->scalar_type(), shape, Output::Reads::kSameElement) != nullptr;
  };
  const auto is_like = [&](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.is_contiguous() && tensor.sizes() == shape);
  };
  if (!std::ranges::all_of(outputs, is_direct) || !std::ranges::all_of(tensors, is_like)) {
    const std::array<at::Tensor, kOutputs> results = step(tensors);
    for (size_t i = 0; i < kOutputs; ++i) *outputs[i] = results[i];
    return;
  }
  const int64_t elements = (*outputs[0])->numel();
  at::parallel_for(0, (elements + kElements - 1) / kElements, 1, [&](int64_t begin, int64_t end) {
    const AtenScope scope;  // of this thread
    for (int64_t first = begin * kElements; first < std::min(end * kElements, elements);
         first += kElements) {
      const auto piece = [&](const at::Tensor& tensor) {
        return tensor.view({-1}).narrow(0, first, std::min(kElements, elements - first));
      };
      std::array<at::Tensor, kTensors> pieces = tensors;
      for (at::Tensor& each : pieces) {
        if (each.defined()) each = piece(each);
      }
      const std::array<at::Tensor, kOutputs> results = step(pieces);
      for (size_t i = 0; i < kOutputs; ++i) piece(*outputs[i]).copy_(results[i]);
    }
  });
}

}  // namespace aclnn_host
