#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "cann/rows/random/philox.h"

// Random numbers. A source determines them on every processor, with any number of
// threads and in any layout: they are computed in the order of the elements, by operations that
// IEEE 754 defines to the last bit. For tensors without memory only the arguments are checked.

namespace aclnn_host {

// Refuses a probability outside [0, 1].
void check_probability(const char* name, double probability);

// Uniformly distributed in [from, to), with the dtype of `like`; FLOAT for integers.
at::Tensor draw_uniform(const at::Tensor& like, double from, double to, Source source);
// Normally distributed, with the dtype of `like`; FLOAT for integers.
at::Tensor draw_normal(const at::Tensor& like, double mean, double deviation, Source source);
// Exponentially distributed with the rate lambda, and never 0; of a floating-point type.
at::Tensor draw_exponential(const at::Tensor& like, double lambda, Source source);
// UINT8: 1 with the probability `prob`, the argument of all callers, otherwise 0.
at::Tensor draw_bernoulli(const at::Tensor& like, double prob, Source source);
at::Tensor draw_bernoulli(const at::Tensor& like, const at::Tensor& prob, Source source);
// Integers in [from, to), with the dtype of `like`; the real parts if it is complex.
at::Tensor draw_integers(const at::Tensor& like, int64_t from, int64_t to, Source source);
// Integers from 0 to the largest of the dtype of `like`; for a floating-point type, to the largest
// up to which it represents all integers.
at::Tensor draw_integers(const at::Tensor& like, Source source);
// The numbers from 0 to n - 1 in a random order, all orders equally likely, in INT64.
at::Tensor draw_permutation(int64_t n, Source source);
// Categories, weighted along the last dimension.
at::Tensor draw_categories(const at::Tensor& weights, int64_t count, bool replacement,
                           Source source);
// Bytes in which each bit is 1 with the given probability, which callers have checked.
at::Tensor draw_bits(const at::Tensor& like, double probability, Source source);

}  // namespace aclnn_host
