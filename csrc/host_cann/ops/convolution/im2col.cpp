#include "host_cann/ops/convolution/im2col.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include "host_cann/ops/convolution/convolution_parts.h"

namespace aclnn_host {
namespace {

// Calls body(image element, row element, count) for runs of elements that are contiguous in both:
// those read by adjacent kernel elements of a row.
template <class Body>
void for_each_run(const ConvolutionSizes& sizes, Body body) {
  const int64_t channels = sizes.src_channels;
  const int64_t row_size = sizes.src[2] * channels;
  const int64_t runs = sizes.dilation[2] == 1 ? 1 : sizes.kernel[2];
  const int64_t count = sizes.kernel[2] / runs * channels;
  int64_t at = 0;
  for (int64_t z = 0; z < sizes.dst[0]; ++z) {
    for (int64_t y = 0; y < sizes.dst[1]; ++y) {
      for (int64_t x = 0; x < sizes.dst[2]; ++x) {
        for (int64_t kz = 0; kz < sizes.kernel[0]; ++kz) {
          const int64_t plane = (z * sizes.stride[0] + kz * sizes.dilation[0]) * sizes.src[1];
          for (int64_t ky = 0; ky < sizes.kernel[1]; ++ky) {
            const int64_t row = plane + y * sizes.stride[1] + ky * sizes.dilation[1];
            for (int64_t run = 0; run < runs; ++run, at += count) {
              const int64_t column = x * sizes.stride[2] + run * sizes.dilation[2];
              body(row * row_size + column * channels, at, count);
            }
          }
        }
      }
    }
  }
}

// Calls body(image, its rows) for each FLOAT image, divided among threads.
template <class Body>
void for_each_image(const ConvolutionSizes& sizes, void* images, void* matrix, Body body) {
  const int64_t image_size = sizes.src_channels * volume(sizes.src);
  const int64_t rows_size = sizes.src_channels * volume(sizes.kernel) * volume(sizes.dst);
  const int64_t parts = std::min(part_count(sizes), sizes.batch);
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = sizes.batch * begin / parts; n < sizes.batch * end / parts; ++n) {
      body(static_cast<float*>(images) + n * image_size,
           static_cast<float*>(matrix) + n * rows_size);
    }
  });
}

void im2col(const ConvolutionSizes& sizes, void* images, void* matrix) {
  for_each_image(sizes, images, matrix, [&](const float* image, float* rows) {
    for_each_run(sizes, [=](int64_t element, int64_t at, int64_t count) {
      std::memcpy(rows + at, image + element, static_cast<size_t>(count) * sizeof(float));
    });
  });
}

// The reverse: every element becomes the sum of its copies, in one order for any number of threads.
void col2im(const ConvolutionSizes& sizes, void* matrix, void* images) {
  const int64_t size = sizes.src_channels * volume(sizes.src);
  for_each_image(sizes, images, matrix, [&](float* image, const float* rows) {
    std::fill_n(image, size, 0.0F);
    for_each_run(sizes, [=](int64_t element, int64_t at, int64_t count) {
      const float* __restrict const added = rows + at;
      float* __restrict const sums = image + element;
      for (int64_t i = 0; i < count; ++i) sums[i] += added[i];
    });
  });
}

}  // namespace

bool Im2col::supports(const Problem& problem) {
  return problem.sizes.groups == 1 && problem.dtype != ACL_DOUBLE && !problem.geometry.transposed &&
         problem.sizes.padding == ConvolutionSizes::Values{} && problem.geometry.is_symmetric();
}

Form Im2col::form(const Problem&, Layout layout, aclDataType dtype) {
  return {.layout = layout,
          .weight_layout = Layout::kChannelsLast,
          .dtype = dtype,
          .image_dtype = dtype,
          .weight_dtype = dtype};
}

Im2col::Im2col(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace)
    : sizes_(problem.sizes),
      passes_(passes),
      products_(product_count(problem.sizes), form.dtype, workspace) {
  const int64_t count =
      sizes_.batch * volume(sizes_.dst) * volume(sizes_.kernel) * sizes_.src_channels;
  matrix_ = workspace.reserve(static_cast<uint64_t>(count) * aclDataTypeSize(form.dtype));
}

void Im2col::run(const Operands& operands, Results& results) const {
  const MatrixProducts products = products_.in(operands.workspace);
  const int64_t positions = sizes_.batch * volume(sizes_.dst);
  const int64_t channels = sizes_.dst_channels;
  const int64_t elements = sizes_.src_channels * volume(sizes_.kernel);
  void* const memory = static_cast<char*>(operands.workspace) + matrix_;

  const auto matrix = [](void* data, int64_t rows, int64_t columns) {
    return at::from_blob(data, {rows, columns}, at::kFloat);
  };
  const at::Tensor columns = matrix(memory, positions, elements);
  if (passes_.read_src()) im2col(sizes_, operands.src.data(), memory);
  if (passes_.weight) {
    products.multiply(matrix(operands.dst.data(), positions, channels).t(), columns, {},
                      matrix(results.weight.view.data(), channels, elements));
  }
  if (!passes_.image) return;
  if (passes_.image == Pass::kForward) {
    const at::Tensor bias = operands.bias.storage == nullptr
                                ? at::Tensor()
                                : at::from_blob(operands.bias.data(), {channels}, at::kFloat);
    products.multiply(columns, matrix(operands.weight.data(), channels, elements).t(), bias,
                      matrix(results.image.view.data(), positions, channels));
  } else {
    products.multiply(matrix(operands.dst.data(), positions, channels),
                      matrix(operands.weight.data(), channels, elements), {}, columns);
    col2im(sizes_, memory, results.image.view.data());
  }
}

}  // namespace aclnn_host
