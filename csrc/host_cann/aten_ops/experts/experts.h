#pragma once

#include <cstdint>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/sort.h>
#include <c10/util/Exception.h>

// What the functions of mixtures of experts share.
namespace aclnn_host {

inline void expect_range(const char* name, int64_t value, int64_t low, int64_t high) {
  TORCH_CHECK(value >= low && value <= high, name, " is ", value, ", expected ", low, " to ", high);
}

// Tokens of which each has several experts, sorted by expert.
struct Sorted {
  explicit Sorted(const at::Tensor& of_tokens) {
    std::tie(experts, order) = at::sort(of_tokens.flatten(), /*stable=*/true, 0, false);
    places = at::argsort(order, /*stable=*/true, 0, false);
  }
  at::Tensor experts;  // in order
  at::Tensor order;    // which of the pairs of token and expert stands at a place
  at::Tensor places;   // where a pair stands
};

}  // namespace aclnn_host
