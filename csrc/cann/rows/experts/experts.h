#pragma once

#include <tuple>

#include "cann/rows/row.h"

// Shared by the functions of mixtures of experts. A dropped row counts as zeros.
namespace aclnn_host {

// Positions are INT32.
inline constexpr int64_t kMostExperts = std::numeric_limits<int32_t>::max();

// Tokens with several experts each, sorted by expert.
struct Sorted {
  explicit Sorted(const at::Tensor& of_tokens) {
    std::tie(experts, order) = at::sort(of_tokens.flatten(), /*stable=*/true, 0, false);
    positions = at::argsort(order, /*stable=*/true, 0, false);
  }
  at::Tensor experts;    // the experts, sorted
  at::Tensor order;      // the index of the (token, expert) pair at each position
  at::Tensor positions;  // the position of each pair
};

// The number of rows of each token, if `count` rows are divided equally.
inline int64_t rows_per_token(const char* name, int64_t count, int64_t tokens) {
  EXPECT(tokens > 0 ? count % tokens == 0 : count == 0, name, " has ", count,
         " elements, expected a multiple of ", tokens, ", the number of tokens");
  return tokens > 0 ? count / tokens : 1;
}

// The number of experts of each token.
inline int64_t experts_per_token(const char* name, const at::Tensor& experts,
                                 const at::Tensor& tokens) {
  const int64_t count = experts.dim() == 1 ? 1 : experts.size(1);
  EXPECT(experts.size(0) == tokens.size(0) && count > 0, name, " has shape ", experts.sizes(),
         ", expected ", tokens.size(0), " rows, as there are tokens, of 1 or more");
  return count;
}

inline at::Tensor is_in_range(const at::Tensor& positions, int64_t limit) {
  return (positions >= 0) & (positions < limit);
}

// The rows at some positions; zeros for positions out of range.
inline at::Tensor gather_rows(const at::Tensor& rows, const at::Tensor& positions) {
  const int64_t limit = rows.size(0);
  if (limit == 0) return at::zeros({positions.size(0), rows.size(1)}, rows.options());
  const at::Tensor valid = is_in_range(positions, limit);
  return rows.index_select(0, at::where(valid, positions, 0)).masked_fill(~valid.unsqueeze(1), 0);
}

// The positions whose rows are read: a row of probability 0 is skipped, whatever its values.
inline at::Tensor positions_to_read(const at::Tensor& positions,
                                    const std::optional<at::Tensor>& probs) {
  return probs ? at::where(probs->flatten() != 0, positions, -1) : positions;
}

// The inverse of gather_rows(): `count` rows, with the given rows at the positions and zeros
// elsewhere.
inline at::Tensor scatter_rows(const at::Tensor& rows, const at::Tensor& positions, int64_t count) {
  const at::Tensor row = at::where(is_in_range(positions, count), positions, count);
  const at::Tensor all = at::zeros({count + 1, rows.size(1)}, rows.options());
  return all.index_copy(0, row, rows).narrow(0, 0, count);
}

}  // namespace aclnn_host
