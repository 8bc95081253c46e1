#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "cann/rows/random/philox.h"

// Random numbers, all of them real. Those of a source are the same on every processor, with any
// number of threads and in any layout: they are computed by operations that IEEE 754 defines to the
// last bit, in the order of the elements. Tensors without memory stay without, and only the
// arguments are checked.

namespace aclnn_host {

// Evenly distributed in [from, to), with the dtype of `like`; FLOAT for integers.
at::Tensor draw_uniform(const at::Tensor& like, double from, double to, Source source);
// Normally distributed, with the dtype of `like`; FLOAT for integers.
at::Tensor draw_normal(const at::Tensor& like, double mean, double deviation, Source source);
// Exponentially distributed with the rate lambda, and never 0; of a floating-point type.
at::Tensor draw_exponential(const at::Tensor& like, double lambda, Source source);
// 1 with the given probability and 0 otherwise, in UINT8.
at::Tensor draw_bernoulli(const at::Tensor& like, double probability, Source source);
at::Tensor draw_bernoulli(const at::Tensor& like, const at::Tensor& probability, Source source);
// Integers in [from, to), with the dtype of `like`.
at::Tensor draw_integers(const at::Tensor& like, int64_t from, int64_t to, Source source);
// Integers from 0 to the largest of the dtype of `like`, or to the largest up to which a
// floating-point type has all of them.
at::Tensor draw_integers(const at::Tensor& like, Source source);
// The numbers from 0 to n - 1 in an order in which each is as likely, in INT64.
at::Tensor draw_permutation(int64_t n, Source source);
// Categories, by their weights along the last dimension.
at::Tensor draw_categories(const at::Tensor& weights, int64_t count, bool replacement,
                           Source source);
// Bytes in which each bit is 1 with the given probability.
at::Tensor draw_bits(const at::Tensor& like, double probability, Source source);

}  // namespace aclnn_host
