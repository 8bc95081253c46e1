#pragma once

#include <ATen/ExpandUtils.h>

#include "cann/rows/row.h"

namespace aclnn_host {

inline at::IntArrayRef shape_of(const at::Tensor& tensor) {
  return tensor.sizes();
}

inline at::ScalarType type_if_floating(const at::Tensor& tensor) {
  return tensor.is_floating_point() ? tensor.scalar_type() : at::ScalarType::Undefined;
}

// out = function(self, other, ...) for an elementwise function of ATen.
#define WRITE_ELEMENTWISE(out, function, self, other, ...)                           \
  out.write(                                                                         \
      at::result_type(self, other), at::infer_size(shape_of(self), shape_of(other)), \
      Output::Reads::kSameElement,                                                   \
      [&] { return function(self, other __VA_OPT__(, ) __VA_ARGS__); },              \
      [&](at::Tensor& result) { function##_out(result, self, other __VA_OPT__(, ) __VA_ARGS__); })

// out = function(self). The result of a floating-point type has that type; others are converted.
#define WRITE_ELEMENTWISE_OF(out, function, self)                          \
  out.write(                                                               \
      type_if_floating(self), shape_of(self), Output::Reads::kSameElement, \
      [&] { return function(self); }, [&](at::Tensor& result) { function##_out(result, self); })

// The rows of an elementwise function of ATen and of its form in place.
#define ACLNN_ELEMENTWISE(Name, function)             \
  ACLNN(Name, (In, self), (Out, out)) {               \
    WRITE_ELEMENTWISE_OF(out, function, self);        \
  }                                                   \
  ACLNN(Inplace##Name, (InOut, selfRef)) {            \
    WRITE_ELEMENTWISE_OF(selfRef, function, selfRef); \
  }

}  // namespace aclnn_host
