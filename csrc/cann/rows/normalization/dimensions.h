#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// Splits the dimensions of a tensor into the last ones, which gamma has, and the others.
class Dimensions {
 public:
  Dimensions(const char* name, const at::Tensor& x, at::IntArrayRef gamma)
      : count_(static_cast<int64_t>(gamma.size())) {
    EXPECT(count_ >= 1 && count_ <= x.dim() &&
               gamma == x.sizes().slice(static_cast<size_t>(x.dim() - count_)),
           "gamma has shape ", gamma, ", expected the last dimensions of ", name, ", ", x.sizes());
    statistics_ = x.sizes().vec();
    for (int64_t dim = x.dim() - count_; dim < x.dim(); ++dim) {
      statistics_[static_cast<size_t>(dim)] = 1;
    }
    for (int64_t dim = -count_; dim < 0; ++dim) dims_.push_back(dim);
  }

  at::Tensor mean(const at::Tensor& x) const { return x.mean(dims_, /*keepdim=*/true); }
  // A saved statistic, which may lack the trailing dimensions of size 1.
  at::Tensor statistic(const char* name, const at::Tensor& saved) const {
    const at::IntArrayRef leading =
        at::IntArrayRef(statistics_).slice(0, statistics_.size() - static_cast<size_t>(count_));
    if (saved.sizes() != leading) expect_shape(name, saved, statistics_);
    return saved.reshape(statistics_);
  }

 private:
  int64_t count_;
  std::vector<int64_t> statistics_;  // the shape
  std::vector<int64_t> dims_;
};

}  // namespace aclnn_host
