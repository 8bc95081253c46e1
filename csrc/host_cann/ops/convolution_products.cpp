#include "host_cann/ops/convolution_products.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <omp.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include "host_cann/ops/aten.h"
#include "host_cann/ops/result_places.h"

// MKL's, which PyTorch contains on x86-64; elsewhere it is null.
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int count);

namespace aclnn_host {
namespace {

// Whether torch.backends lets oneDNN shorten the factors of a FLOAT convolution. The setting is the
// whole process's and its owner's; other types are out of its reach.
bool must_avoid(const at::Tensor& factor) {
  using at::Float32Precision;
  if (factor.scalar_type() != at::kFloat) return false;
  const Float32Precision precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  return precision == Float32Precision::BF16 || precision == Float32Precision::TF32;
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(at::kDouble);
}

// ---- ATen's convolution

// The parameters as ATen takes them. oneDNN has no channels-last layout of one dimension, so a line
// becomes an image of one row there.
struct Parameters {
  using Values = ConvolutionGeometry::Values;

  bool adds_row;
  uint64_t count;
  Values stride;
  Values padding;
  Values dilation;
  Values output_padding;

  Parameters(const ConvolutionGeometry& geometry, Layout layout)
      : adds_row(layout == Layout::kChannelsLast && geometry.spatial == 1),
        count(geometry.spatial + adds_row),
        stride(extended(geometry.stride, 1)),
        padding(extended(geometry.is_symmetric() ? geometry.padding_before : Values{}, 0)),
        dilation(extended(geometry.dilation, 1)),
        output_padding(extended(geometry.output_padding, 0)) {}

  Values extended(const Values& values, int64_t neutral) const {
    return adds_row ? Values{neutral, values[0]} : values;
  }
  at::IntArrayRef array(const Values& values) const { return {values.data(), count}; }
  at::Tensor with_row(const at::Tensor& tensor) const {
    return adds_row ? tensor.unsqueeze(2) : tensor;
  }
  at::Tensor without_row(const at::Tensor& tensor) const {
    return adds_row && tensor.defined() ? tensor.squeeze(2) : tensor;
  }
};

// A bias as it is added to images of so many dimensions.
at::Tensor beside(const at::Tensor& bias, int64_t dimensions) {
  std::vector<int64_t> sizes(static_cast<size_t>(dimensions), 1);
  sizes[1] = bias.size(0);
  return bias.view(sizes);
}

// ATen and oneDNN begin most of their sums with the bias, and would round at its size again and
// again. So it is added to the result; but for 16 bits, whose sums have more, and which are rounded
// only once.
at::Tensor convolve_in_aten(const Parameters& p, const ConvolutionGeometry& geometry,
                            const at::Tensor& input, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& out) {
  if (must_avoid(input)) {
    const auto wide_bias = bias ? std::optional(widened(*bias)) : std::nullopt;
    return convolve_in_aten(p, geometry, widened(input), widened(weight), wide_bias, {})
        .to(at::kFloat);
  }
  const ResultPlaces places({out});
  const bool adds = bias && input.element_size() > 2;
  const at::Tensor result =
      at::convolution(p.with_row(input), p.with_row(weight), adds ? std::nullopt : bias,
                      p.array(p.stride), p.array(p.padding), p.array(p.dilation),
                      geometry.transposed, p.array(p.output_padding), geometry.groups);
  const at::Tensor settled = p.without_row(places.settled(result, 0));
  return adds ? settled.add_(beside(*bias, settled.dim())) : settled;
}

Gradients convolve_backward_in_aten(const Parameters& p, const ConvolutionGeometry& geometry,
                                    const at::Tensor& grad_output, const at::Tensor& input,
                                    const at::Tensor& weight, std::array<bool, 2> wanted,
                                    const Gradients& out) {
  if (must_avoid(input)) {
    auto gradients = convolve_backward_in_aten(p, geometry, widened(grad_output), widened(input),
                                               widened(weight), wanted, {});
    for (at::Tensor& gradient : gradients) {
      if (gradient.defined()) gradient = gradient.to(at::kFloat);
    }
    return gradients;
  }
  const ResultPlaces places(out);
  const auto [grad_input, grad_weight, none] = at::convolution_backward(
      p.with_row(grad_output), p.with_row(input), p.with_row(weight), std::nullopt,
      p.array(p.stride), p.array(p.padding), p.array(p.dilation), geometry.transposed,
      p.array(p.output_padding), geometry.groups, std::array{wanted[0], wanted[1], false});
  return {p.without_row(places.settled(grad_input, 0)),
          p.without_row(places.settled(grad_weight, 1))};
}

// ---- Matrix products

// Images as matrices: [batch, channels, positions], or one of all images: [batch * positions,
// channels] of channels-last ones, [channels, batch * positions] with the channels outermost.
at::Tensor matrices(const at::Tensor& images, Layout layout) {
  const int64_t batch = images.size(0);
  const int64_t channels = images.size(1);
  const int64_t positions = images.numel() / (batch * channels);
  if (layout == Layout::kChannelsLast) {
    return images.as_strided({batch * positions, channels}, {channels, 1});
  }
  if (layout == Layout::kChannelsOutermost) {
    return images.as_strided({channels, batch * positions}, {images.stride(1), 1});
  }
  return images.as_strided({batch, channels, positions}, {channels * positions, positions, 1});
}

// A kernel of one element as a matrix [output channels, input channels].
at::Tensor matrix(const at::Tensor& weight, bool transposed) {
  const at::Tensor all = weight.flatten(1);
  return transposed ? all.t() : all;
}

// A channels-last kernel as a matrix [output channels, taps * input channels].
at::Tensor tap_matrix(const at::Tensor& weight) {
  const int64_t size = weight.numel() / weight.size(0);
  return weight.as_strided({weight.size(0), size}, {size, 1});
}

// out = matrix x images + bias. Without products of our own they are ATen's: of DOUBLE, to which
// the bias is added for the same reason as above; and of 16 bits as one matrix of all images, whose
// sums and bias are rounded once.
void multiply(const at::Tensor& matrix, const at::Tensor& images,
              const std::optional<at::Tensor>& bias, at::Tensor out, Layout layout,
              const MatrixProducts& products) {
  const bool last = layout == Layout::kChannelsLast;
  const at::Tensor& left = last ? images : matrix;
  const at::Tensor right = last ? matrix.t() : images;
  const at::Tensor added = !bias ? at::Tensor() : last ? *bias : bias->unsqueeze(1);
  if (products) return products.multiply(left, right, added, out);
  if (bias && out.scalar_type() != at::kDouble) {
    at::addmm_out(out, added, left, right);
    return;
  }
  if (layout == Layout::kChannelsFirst) {
    at::bmm_out(out, left.expand({right.size(0), -1, -1}), right);
  } else {
    at::mm_out(out, left, right);
  }
  if (bias) out.add_(added);
}

// sum = the sum over the positions of the products of two images' channels.
void multiply_channels(const at::Tensor& rows, const at::Tensor& columns, at::Tensor sum,
                       Layout layout, const MatrixProducts& products) {
  const bool last = layout == Layout::kChannelsLast;
  const at::Tensor left = last ? rows.t() : rows;
  const at::Tensor right = last ? columns : columns.transpose(-2, -1);
  if (products) {
    products.multiply(left, right, {}, sum);
  } else if (layout != Layout::kChannelsFirst) {
    at::mm_out(sum, left, right);
  } else {
    sum.zero_();
    for (int64_t n = 0; n < left.size(0); ++n) sum.addmm_(left[n], right[n]);
  }
}

// ---- On any number of threads

at::Tensor convolve_images(const Choice& choice, const ConvolutionGeometry& geometry,
                           const at::Tensor& input, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias, const at::Tensor& out,
                           const ProductMemory& memory) {
  if (choice.route == Route::kAten) {
    return convolve_in_aten(Parameters(geometry, choice.layout), geometry, input, weight, bias,
                            out);
  }
  if (choice.route == Route::kUnfolded) {
    unfold(input, memory.unfolded);
    multiply(tap_matrix(weight), memory.unfolded.rows.flatten(0, 1), bias,
             matrices(out, choice.layout), choice.layout, memory.products);
    return out;
  }
  multiply(matrix(weight, geometry.transposed), matrices(input, choice.layout), bias,
           matrices(out, choice.layout), choice.layout, memory.products);
  return out;
}

Gradients convolve_images_backward(const Choice& choice, const ConvolutionGeometry& geometry,
                                   const at::Tensor& grad_output, const at::Tensor& input,
                                   const at::Tensor& weight, std::array<bool, 2> wanted,
                                   const Gradients& out, const ProductMemory& memory) {
  if (choice.route == Route::kAten) {
    return convolve_backward_in_aten(Parameters(geometry, choice.layout), geometry, grad_output,
                                     input, weight, wanted, out);
  }
  const at::Tensor gradient = matrices(grad_output, choice.layout);
  if (choice.route == Route::kUnfolded) {
    const at::Tensor rows = memory.unfolded.rows.flatten(0, 1);
    if (wanted[1]) {
      unfold(input, memory.unfolded);
      multiply_channels(gradient, rows, tap_matrix(out[1]), choice.layout, memory.products);
    }
    if (wanted[0]) {
      multiply(tap_matrix(weight).t(), gradient, std::nullopt, rows, choice.layout,
               memory.products);
      fold(memory.unfolded, out[0]);
    }
    return out;
  }
  if (wanted[1]) {
    const at::Tensor images = matrices(input, choice.layout);
    const auto& [rows, columns] =
        geometry.transposed ? std::tie(images, gradient) : std::tie(gradient, images);
    multiply_channels(rows, columns, matrix(out[1], false), choice.layout, memory.products);
  }
  if (wanted[0]) {
    multiply(matrix(weight, geometry.transposed).t(), gradient, std::nullopt,
             matrices(out[0], choice.layout), choice.layout, memory.products);
  }
  return out;
}

// ---- The same bits for any number of threads

// Some images of a batch.
struct Piece {
  int64_t index;
  int64_t first;
  int64_t count;

  at::Tensor of(const at::Tensor& images) const {
    return images.defined() ? images.narrow(0, first, count) : images;
  }
  ProductMemory of(const ProductMemory& memory) const {
    return {{memory.unfolded.sizes, of(memory.unfolded.rows)}, memory.products};
  }
};

// While it lives, what the calling thread computes it computes alone. That must be said even within
// a parallel region: there oneDNN and MKL divide the work for threads that they do not get.
class OneThread {
 public:
  OneThread() {
    omp_set_num_threads(1);
    if (MKL_Set_Num_Threads_Local != nullptr) mkl_threads_ = MKL_Set_Num_Threads_Local(1);
  }
  ~OneThread() {
    if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(mkl_threads_);
    omp_set_num_threads(threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int threads_ = at::get_num_threads();
  int mkl_threads_ = 0;
};

// Divides the batch by its size alone, so that every thread sums in the order in which a single one
// does.
struct Pieces {
  static constexpr int64_t kMost = 8;

  int64_t batch;
  int64_t count;

  explicit Pieces(int64_t batch) : batch(batch), count(std::min(batch, kMost)) {}

  // Calls body(piece), each on one thread.
  template <class Body>
  void for_each(Body body) const {
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      const AtenScope scope;
      const OneThread alone;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = batch * i / count;
        body(Piece{i, first, batch * (i + 1) / count - first});
      }
    });
  }
};

using Results = std::vector<at::Tensor>;

at::Tensor sum_of(const Results& results) {
  at::Tensor sum = results[0];
  for (size_t i = 1; i < results.size(); ++i) sum.add_(results[i]);
  return sum;
}

}  // namespace

at::Tensor convolve(const Choice& choice, const ConvolutionGeometry& geometry,
                    const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, const at::Tensor& out,
                    const ProductMemory& memory) {
  if (!choice.in_pieces) {
    return convolve_images(choice, geometry, input, weight, bias, out, memory);
  }
  const Pieces pieces(input.size(0));
  Results results(static_cast<size_t>(pieces.count));
  pieces.for_each([&](const Piece& piece) {
    results[static_cast<size_t>(piece.index)] = convolve_images(
        choice, geometry, piece.of(input), weight, bias, piece.of(out), piece.of(memory));
  });
  return out.defined() ? out : at::cat(results);
}

Gradients convolve_backward(const Choice& choice, const ConvolutionGeometry& geometry,
                            const at::Tensor& grad_output, const at::Tensor& input,
                            const at::Tensor& weight, std::array<bool, 2> wanted,
                            const Gradients& out, const ProductMemory& memory) {
  if (!choice.in_pieces) {
    return convolve_images_backward(choice, geometry, grad_output, input, weight, wanted, out,
                                    memory);
  }
  const Pieces pieces(input.size(0));
  Results inputs(static_cast<size_t>(pieces.count));
  Results weights(inputs.size());
  pieces.for_each([&](const Piece& piece) {
    const auto i = static_cast<size_t>(piece.index);
    const at::Tensor sum = out[1].defined() ? at::empty_like(out[1]) : at::Tensor();
    std::tie(inputs[i], weights[i]) = std::tuple_cat(
        convolve_images_backward(choice, geometry, piece.of(grad_output), piece.of(input), weight,
                                 wanted, {piece.of(out[0]), sum}, piece.of(memory)));
  });
  return {out[0].defined() || !wanted[0] ? out[0] : at::cat(inputs),
          wanted[1] ? sum_of(weights) : at::Tensor()};
}

}  // namespace aclnn_host
