#pragma once

#include <ATen/ExpandUtils.h>

#include "cann/rows/row.h"

namespace aclnn_host {

inline at::IntArrayRef shape_of(const at::Tensor& tensor) {
  return tensor.sizes();
}

// out = function(self, other, ...) for an elementwise function of ATen.
#define WRITE_ELEMENTWISE(out, function, self, other, ...)                           \
  out.write(                                                                         \
      at::result_type(self, other), at::infer_size(shape_of(self), shape_of(other)), \
      Output::Reads::kSameElement,                                                   \
      [&] { return function(self, other __VA_OPT__(, ) __VA_ARGS__); },              \
      [&](at::Tensor& result) { function##_out(result, self, other __VA_OPT__(, ) __VA_ARGS__); })

}  // namespace aclnn_host
