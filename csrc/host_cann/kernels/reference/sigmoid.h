// Included by the references of kernels.
#pragma once

#include <cmath>

namespace aclnn_host {
namespace {

// 1 / (1 + exp(-x)) without overflow.
template <class Real>
Real sigmoid(Real x) {
  const Real power = std::exp(-std::abs(x));
  return (x < 0 ? power : 1) / (1 + power);
}

}  // namespace
}  // namespace aclnn_host
