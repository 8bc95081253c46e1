#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cann/rows/engine/language.h"
#include "cann/rows/engine/refusal.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/descriptors/tensor.h"

// Checks of arguments that CANN refuses and ATen would accept. The text names the argument, its
// value and the expected one; stage 1 returns it with status 161002.
namespace aclnn_host {

// "FLOAT, FLOAT16 or BFLOAT16"
std::string alternatives(const std::vector<std::string>& texts);

using OptionalTensor = std::optional<at::Tensor>;

// Refuses a null argument with 161001 where only this call needs the argument.
template <class... Text>
void require_given(bool is_given, const Text&... text) {
  if (!is_given) throw NullArgument(text_of({text...}));
}
// Refuses a null output that a flag, or an element of a mask, requests.
inline void require_asked(const char* name, const OptionalOutput& out, const char* flag,
                          bool is_asked) {
  require_given(out || !is_asked, name, " is null, expected a tensor as ", flag, " is true");
}

inline void expect_dtype(const char* name, const at::Tensor& tensor, at::ScalarType expected) {
  EXPECT(tensor.scalar_type() == expected, name, " has dtype ", dtype_text(tensor.scalar_type()),
         ", expected ", dtype_text(expected));
}
inline void expect_dtype(const char* name, const at::Tensor& tensor, const at::Tensor& like) {
  expect_dtype(name, tensor, like.scalar_type());
}
inline void expect_dtype(const Output& out, const at::Tensor& like) {
  expect_dtype(out.name(), out, like);
}

inline void expect_shape(const char* name, const at::Tensor& tensor, at::IntArrayRef expected) {
  EXPECT(tensor.sizes() == expected, name, " has shape ", tensor.sizes(), ", expected ", expected);
}
inline void expect_like(const char* name, const at::Tensor& tensor, const at::Tensor& like) {
  expect_dtype(name, tensor, like);
  expect_shape(name, tensor, like.sizes());
}

inline void expect_dims(const char* name, const at::Tensor& tensor, int64_t dims) {
  EXPECT(tensor.dim() == dims, name, " has ", tensor.dim(), " dimensions, expected ", dims);
}
inline void expect_dims(const char* name, const at::Tensor& tensor, int64_t least, int64_t most) {
  EXPECT(tensor.dim() >= least && tensor.dim() <= most, name, " has ", tensor.dim(),
         " dimensions, expected ", least, " to ", most);
}

inline void expect_tensor(const char* name, const at::Tensor& tensor, at::ScalarType dtype,
                          at::IntArrayRef shape) {
  expect_dtype(name, tensor, dtype);
  expect_shape(name, tensor, shape);
}
inline void expect_float(const char* name, const at::Tensor& tensor, at::IntArrayRef shape) {
  expect_tensor(name, tensor, at::kFloat, shape);
}
inline void expect_float(const Output& out, at::IntArrayRef shape) {
  expect_float(out.name(), out, shape);
}

// The other checks' texts may end with a reason, e.g. " where quantMode is 1".

// Refuses all dtypes but these.
void expect_dtype(const char* name, const at::Tensor& tensor,
                  std::initializer_list<at::ScalarType> accepted, const char* reason = "");
// Requires FLOAT16 or BFLOAT16.
inline void expect_reduced_float(const char* name, const at::Tensor& tensor,
                                 const char* reason = "") {
  expect_dtype(name, tensor, {at::kHalf, at::kBFloat16}, reason);
}
// Refuses all texts but these, such as modes and layouts.
void expect_text(const char* name, std::string_view text,
                 std::span<const std::string_view> accepted, const char* reason = "");
inline void expect_text(const char* name, std::string_view text,
                        std::initializer_list<std::string_view> accepted, const char* reason = "") {
  expect_text(name, text, std::span(accepted.begin(), accepted.size()), reason);
}
void expect_one_of(const char* name, int64_t value, std::initializer_list<int64_t> accepted,
                   const char* reason = "");
void expect_range(const char* name, int64_t value, int64_t low, int64_t high,
                  const char* reason = "");
// Requires a positive multiple of `factor`.
void expect_multiple(const char* name, int64_t value, int64_t factor, int64_t most,
                     const char* reason = "");
void expect_at_least(const char* name, int64_t value, int64_t low, const char* reason = "");
// Refuses one of two arguments without the other.
void expect_both_or_none(const char* first, bool has_first, const char* second, bool has_second);
// Refuses a tensor without elements.
void expect_elements(const char* name, const at::Tensor& tensor, const char* reason = "");

// The size that a dimension must have: one number or, if it broadcasts, 1, too.
class Size {
 public:
  Size(int64_t size) : size_(size) {}
  static Size or_one(int64_t size) {
    Size result(size);
    result.may_be_one_ = true;
    return result;
  }
  bool accepts(int64_t size) const { return size == size_ || (may_be_one_ && size == 1); }
  std::string text() const;

 private:
  int64_t size_;
  bool may_be_one_ = false;
};
// As expect_shape, e.g. expect_sizes("mask", mask, {Size::or_one(batch), heads, queries, keys}).
void expect_sizes(const char* name, const at::Tensor& tensor, std::initializer_list<Size> expected,
                  const char* reason = "");

// Refuses indices outside [least, limit). Some functions of ATen do not check their indices and
// would read or write outside the tensor. (A device does not refuse: it accesses other memory.)
// Tensors without memory have no values to check.
inline void check_bounds(const char* name, const at::Tensor& indices, int64_t limit,
                         int64_t least = 0) {
  if (!indices.is_cpu() || indices.numel() == 0) return;
  const auto [low, high] = at::aminmax(indices);
  EXPECT(low.item().toLong() >= least && high.item().toLong() < limit, name, " has values from ",
         low.item().toLong(), " to ", high.item().toLong(), ", expected ", least, " to ",
         limit - 1);
}

// Requires numbers in a range.
inline void check_values(const char* name, at::IntArrayRef values, int64_t least, int64_t most) {
  EXPECT(std::ranges::all_of(values, [=](int64_t x) { return x >= least && x <= most; }), name,
         " is ", values, ", expected numbers from ", least, " to ", most);
}

inline void expect_sizes_from_0(const char* name, at::IntArrayRef sizes) {
  EXPECT(std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }), name, " is ", sizes,
         ", expected sizes of 0 or more");
}

// The product of sizes, for functions of ATen that do not check it. It refuses sizes
// whose product overflows, even if a 0 follows.
inline int64_t product(at::IntArrayRef sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) {
    EXPECT(!__builtin_mul_overflow(result, size, &result), "the product of the sizes ", sizes,
           " is more than INT64 holds, expected smaller ones");
  }
  return result;
}

}  // namespace aclnn_host
