#pragma once

#include "cann/rows/row.h"

// Averages of bilinear samples in the cells of boxes of images (RoiAlign). Boxes are
// (image, x1, y1, x2, y2).
namespace aclnn_host {

struct AlignOptions {
  // The names of the arguments are those of RoiAlign's rows, unless given.
  AlignOptions(int64_t height, int64_t width, double scale, int64_t ratio, bool aligned,
               const char* scale_name = "spatialScale", const char* ratio_name = "samplingRatio");
  int64_t height, width;  // the numbers of cells
  int64_t ratio;          // the samples of a cell in each direction; 0 for one for each element
  double scale;
  bool aligned;  // shifts boxes by half an element; otherwise they are at least 1 wide and high
};

void expect_images(const char* name, at::IntArrayRef sizes);

// The averages: [boxes, channels, height, width].
at::Tensor aligned_averages(const char* images_name, const at::Tensor& images,
                            const char* boxes_name, const at::Tensor& boxes,
                            const AlignOptions& options);
// The gradients of images of these sizes.
at::Tensor aligned_gradients(const char* images_name, at::IntArrayRef images,
                             const at::Tensor& gradients, const char* boxes_name,
                             const at::Tensor& boxes, const AlignOptions& options);

}  // namespace aclnn_host
