// Memory for the results of ATen's operators that have no form with an output.
#pragma once

#include <array>
#include <cstddef>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace aclnn_host {

// While it lives, the first tensor of a place's sizes, type and memory format that ATen allocates
// on the calling thread lies there. That may be a result or something that a result is made from,
// so `settled` must see every result before the places are written to.
class ResultPlaces {
 public:
  using Places = std::array<at::Tensor, 2>;

  // An undefined tensor stands for no place. Nothing that ATen reads may lie in one.
  explicit ResultPlaces(const Places& places);
  ~ResultPlaces();
  ResultPlaces(const ResultPlaces&) = delete;
  ResultPlaces& operator=(const ResultPlaces&) = delete;

  // The result for a place: in it, or in memory that is no place.
  at::Tensor settled(const at::Tensor& result, size_t place) const;

 private:
  Places places_;
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace aclnn_host
