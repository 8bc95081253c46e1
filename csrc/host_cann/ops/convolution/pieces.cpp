#include "host_cann/ops/convolution/pieces.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/one_thread.h"

namespace aclnn_host {
namespace {

at::Tensor tensor_of(const TensorView& view, aclDataType dtype) {
  if (view.storage == nullptr) return {};
  return aten_tensor(view).to(aten_type(dtype));
}

at::Tensor place_of(const TensorView& view) {
  return view.storage == nullptr ? at::Tensor() : aten_tensor(view);
}

// A range of images of a batch. Each piece has its own weight gradient.
AtenOperands piece_of(const AtenOperands& all, int64_t first, int64_t count) {
  const auto images = [&](const at::Tensor& batch) {
    return batch.defined() ? batch.narrow(0, first, count) : batch;
  };
  AtenOperands piece = all;
  piece.src = images(all.src);
  piece.dst = images(all.dst);
  piece.image = images(all.image);
  if (all.weight_gradient.defined()) piece.weight_gradient = at::empty_like(all.weight_gradient);
  return piece;
}

TensorView describe(const at::Tensor& tensor) {
  TensorView view;
  view.shape = Dims(tensor.sizes().data(), tensor.dim());
  view.strides = Dims(tensor.strides().data(), tensor.dim());
  view.dtype = acl_type(tensor.scalar_type());
  view.storage = tensor.data_ptr();
  return view;
}

void take(const at::Tensor& from, Result& to) {
  if (!from.defined() || from.data_ptr() == to.view.storage) return;
  to.view = describe(from);
  to.memory = from;
}

}  // namespace

AtenOperands::AtenOperands(const Operands& operands, aclDataType dtype)
    : src(tensor_of(operands.src, dtype)),
      dst(tensor_of(operands.dst, dtype)),
      weight(tensor_of(operands.weight, dtype)),
      bias(tensor_of(operands.bias, dtype)) {}

AtenOperands::AtenOperands(const Operands& operands, const Results& results, aclDataType dtype)
    : AtenOperands(operands, dtype) {
  image = place_of(results.image.view);
  weight_gradient = place_of(results.weight.view);
}

AtenResults compute_in_pieces(const AtenOperands& operands, const Passes& passes,
                              const Compute& compute) {
  constexpr int64_t kMaxPieces = 8;
  const int64_t batch = (operands.src.defined() ? operands.src : operands.dst).size(0);
  const int64_t count = std::min(batch, kMaxPieces);
  std::vector<at::Tensor> images(static_cast<size_t>(count));
  std::vector<at::Tensor> weights(images.size());
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const AtenScope scope;
    // oneDNN and MKL would divide the work for threads that a parallel region does not give them.
    const OneThread alone;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = batch * i / count;
      const AtenResults piece = compute(piece_of(operands, first, batch * (i + 1) / count - first));
      images[static_cast<size_t>(i)] = piece.image;
      weights[static_cast<size_t>(i)] = piece.weight;
    }
  });
  AtenResults results;
  if (passes.image) results.image = operands.image.defined() ? operands.image : at::cat(images);
  if (passes.weight) {
    results.weight = weights[0];
    for (size_t i = 1; i < weights.size(); ++i) results.weight.add_(weights[i]);
  }
  return results;
}

void take(const AtenResults& from, Results& to) {
  take(from.image, to.image);
  take(from.weight, to.weight);
}

}  // namespace aclnn_host
