// Sequences whose lengths are in a tensor: see token_sequences.h.

#include "cann/rows/attention/token_sequences.h"

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host {

std::optional<at::Tensor> lengths_from(const char* name, const at::OptionalIntArrayRef& lengths) {
  if (!lengths || lengths->empty()) return std::nullopt;
  for (const int64_t length : *lengths) {
    EXPECT(length >= 0 && length <= INT32_MAX, name, " has ", length, ", expected 0 to ",
           INT32_MAX);
  }
  return at::tensor(*lengths, at::kInt);
}

TokenSequences::TokenSequences(const char* name, const at::Tensor& tokens,
                               const std::string& layout, const char* lengths_name,
                               const std::optional<at::Tensor>& lengths,
                               const std::optional<at::Tensor>& table)
    : name_(name), lengths_name_(lengths_name), is_packed_(layout == "TND"), given_(lengths) {
  const bool is_paged = layout == "PA_BSND";
  EXPECT(layout.empty() || layout == "BSND" || is_packed_ || is_paged, "the layout of ", name,
         " is \"", layout, "\", expected BSND, TND or, of keys, PA_BSND");
  expect_dims(name, tokens, is_packed_ ? 3 : 4);
  heads_ = tokens.size(-2);
  EXPECT(tokens.numel() > 0, name, " is empty");
  EXPECT(lengths || (!is_packed_ && !is_paged), lengths_name,
         " is null, expected the lengths of sequences as the layout of ", name, " is \"", layout,
         "\"");
  if (lengths) {
    expect_dtype(lengths_name, *lengths, at::kInt);
    expect_dims(lengths_name, *lengths, 1);
    EXPECT(lengths->numel() > 0, lengths_name, " is empty");
  }
  count_ = is_packed_ || is_paged ? lengths->size(0) : tokens.size(0);
  if (lengths) expect_shape(lengths_name, *lengths, {count_});
  capacity_ = tokens.size(is_packed_ ? 0 : 1);
  if (!is_paged) return;
  EXPECT(table, "the block table is null, expected a tensor as the layout of ", name,
         " is PA_BSND");
  constexpr int64_t kMultiple = 16, kMost = 1024;
  block_ = tokens.size(1);
  EXPECT(block_ % kMultiple == 0 && block_ <= kMost, name, " has shape ", tokens.sizes(),
         ", expected blocks of a multiple of ", kMultiple, " tokens up to ", kMost);
  expect_dtype("the block table", *table, at::kInt);
  expect_dims("the block table", *table, 2);
  expect_shape("the block table", *table, {count_, table->size(1)});
  table_ = table;
  capacity_ = table->size(1) * block_;
}

void TokenSequences::measure() {
  std::vector<int64_t> given(static_cast<size_t>(count_), capacity_);
  if (given_) {
    const at::Tensor flat = given_->to(at::kLong).contiguous();
    const int64_t* const data = flat.const_data_ptr<int64_t>();
    given.assign(data, data + count_);
  }
  int64_t end = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const int64_t value = given[static_cast<size_t>(i)];
    const int64_t least = is_packed_ ? end : 0;
    EXPECT(value >= least && value <= capacity_, lengths_name_, " has ", value, ", expected ",
           least, " to ", capacity_, ", the tokens that ", name_, " has");
    lengths_.push_back(value - least);
    firsts_.push_back(is_packed_ ? end : i * capacity_);
    if (is_packed_) end = value;
  }
}

at::Tensor TokenSequences::read(const at::Tensor& tensor, int64_t sequence) const {
  const int64_t tokens = length(sequence);
  if (!table_) {
    const at::Tensor all = is_packed_ ? tensor : tensor.flatten(0, 1);
    return all.narrow(0, first(sequence), tokens).to(at::kFloat);
  }
  const int64_t blocks = (tokens + block_ - 1) / block_;
  const at::Tensor places = table_->select(0, sequence).narrow(0, 0, blocks).to(at::kLong);
  check_bounds("the block table", places, tensor.size(0));
  return tensor.index_select(0, places).flatten(0, 1).narrow(0, 0, tokens).to(at::kFloat);
}

}  // namespace aclnn_host
