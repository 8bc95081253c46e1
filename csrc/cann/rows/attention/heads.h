#pragma once

#include "cann/rows/attention/turns.h"
#include "cann/rows/row.h"

// Shared by the kinds of attention: norms, rotations and parts of heads, checks, distances of
// queries and keys.
namespace aclnn_host {

// Concatenates the elements of heads and their rotary part, if there is one.
inline at::Tensor joined(const at::Tensor& part, const std::optional<at::Tensor>& rope) {
  return rope ? at::cat({part, *rope}, -1) : part;
}

// Normalises the last dimension by its root mean square.
inline at::Tensor rms_normalized(const at::Tensor& x, const at::Tensor& gamma, double epsilon) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * wide(gamma);
}

// Rotates pairs of elements, one of each half, by their angles.
inline at::Tensor rotated_halves(const at::Tensor& x, const at::Tensor& cos,
                                 const at::Tensor& sin) {
  return x * cos + turned_halves(x) * sin;
}
// Rotates pairs of neighbours; the result has the first elements of all pairs first.
inline at::Tensor rotated_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return rotated_halves(at::cat({every_second(x, 0), every_second(x, 1)}, -1), cos, sin);
}

// All dimensions but the last, followed by `last`.
inline std::vector<int64_t> with_last(at::IntArrayRef sizes, std::initializer_list<int64_t> last) {
  std::vector<int64_t> shape(sizes.begin(), sizes.end() - 1);
  shape.insert(shape.end(), last);
  return shape;
}

inline void expect_heads(const char* name, const at::Tensor& tensor,
                         std::initializer_list<int64_t> expected) {
  std::vector<std::string> numbers;
  for (const int64_t number : expected) numbers.push_back(std::to_string(number));
  const int64_t heads = tensor.size(-2);
  EXPECT(std::ranges::count(expected, heads) > 0, name, " has ", heads,
         heads == 1 ? " head" : " heads", ", expected ", alternatives(numbers));
}
inline void expect_no_window(int64_t pre_tokens, int64_t next_tokens) {
  constexpr const char* kReason = ", the largest number, which alone is supported";
  expect_one_of("preTokens", pre_tokens, {INT64_MAX}, kReason);
  expect_one_of("nextTokens", next_tokens, {INT64_MAX}, kReason);
}

// The distance of each key after the query's position, (queries, keys).
inline at::Tensor keys_ahead(int64_t queries, int64_t keys, const at::TensorOptions& options) {
  const auto integers = options.dtype(at::kLong);
  return at::arange(keys, integers) - at::arange(queries, integers).unsqueeze(1);
}

// How many keys query `row` of a sequence sees, if queries and keys end together and a query sees
// no later key. A key stands for `ratio` tokens; `rest` tokens after the last key have none. Less
// than 0 counts as 0.
inline int64_t seen_keys(int64_t row, int64_t rows, int64_t keys, int64_t ratio = 1,
                         int64_t rest = 0) {
  return std::max<int64_t>(keys * ratio + rest - rows + row + 1, 0) / ratio;
}

// Refuses a number of tokens after the last key that would fill one more.
inline void expect_rest(const char* name, int64_t rest, int64_t ratio) {
  EXPECT(rest >= 0 && rest < ratio, name, " has ", rest, ", expected 0 to ", ratio - 1);
}

}  // namespace aclnn_host
