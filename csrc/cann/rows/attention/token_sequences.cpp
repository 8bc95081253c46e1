// Sequences whose lengths are in a tensor: see token_sequences.h.

#include "cann/rows/attention/token_sequences.h"

#include "cann/rows/attention/heads.h"
#include "cann/rows/integers.h"
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

TokenSequences::TokenSequences(const SequenceNames& names, const at::Tensor& tokens,
                               const std::string& layout, const std::optional<at::Tensor>& lengths,
                               const std::optional<at::Tensor>& table)
    : names_(names), is_packed_(layout == "TND"), given_(lengths) {
  const bool is_paged = layout == "PA_BSND";
  if (names.table == nullptr) {
    expect_text(names.layout, layout, {"", "BSND", "TND"});
  } else {
    expect_text(names.layout, layout, {"", "BSND", "TND", "PA_BSND"});
  }
  expect_dims(names.tokens, tokens, is_packed_ ? 3 : 4);
  heads_ = tokens.size(-2);
  expect_elements(names.tokens, tokens);
  EXPECT(lengths || (!is_packed_ && !is_paged), names.lengths,
         " is null, expected the lengths of sequences as ", names.layout, " is \"", layout, "\"");
  if (lengths) {
    expect_dtype(names.lengths, *lengths, at::kInt);
    expect_dims(names.lengths, *lengths, 1);
    expect_elements(names.lengths, *lengths);
  }
  count_ = is_packed_ || is_paged ? lengths->size(0) : tokens.size(0);
  if (lengths) expect_shape(names.lengths, *lengths, {count_});
  capacity_ = tokens.size(is_packed_ ? 0 : 1);
  constexpr int64_t kMultiple = 16;
  if (is_paged) check_table(tokens, layout, table, kMultiple);
}

TokenSequences::TokenSequences(const SequenceNames& names, const at::Tensor& tokens,
                               const std::string& layout, const SequenceLengths& lengths,
                               const std::optional<at::Tensor>& table)
    : names_(names),
      is_packed_(layout == "TND"),
      given_(lengths.ends),
      used_(lengths.used),
      begins_with_0_(true) {
  const bool is_paged = layout == "PA_BBND";
  if (names.table == nullptr) {
    expect_text(names.layout, layout, {"BSND", "TND"});
  } else {
    expect_text(names.layout, layout, {"BSND", "TND", "PA_BBND"});
  }
  expect_dims(names.tokens, tokens, is_packed_ ? 3 : 4);
  heads_ = tokens.size(-2);
  expect_elements(names.tokens, tokens);
  EXPECT(is_packed_ == given_.has_value(), names.lengths,
         is_packed_ ? " is null, expected a tensor as " : " is given, expected null as ",
         names.layout, " is \"", layout, "\"");
  EXPECT(used_ || !is_paged, names.used, " is null, expected the lengths of sequences as ",
         names.layout, " is PA_BBND");
  EXPECT(is_paged || !table, names.table ? names.table : "", " is given, expected null as ",
         names.layout, " is \"", layout, "\"");
  if (given_) {
    expect_dtype(names.lengths, *given_, at::kInt);
    expect_dims(names.lengths, *given_, 1);
    EXPECT(given_->size(0) >= 2, names.lengths, " has ", given_->size(0),
           " elements, expected a 0 and the ends of one or more sequences");
  }
  count_ = is_packed_ ? given_->size(0) - 1 : is_paged ? used_->numel() : tokens.size(0);
  if (used_) expect_tensor(names.used, *used_, at::kInt, {count_});
  EXPECT(count_ > 0, names.used, " has no elements, expected the length of each sequence");
  capacity_ = tokens.size(is_packed_ ? 0 : 1);
  if (is_paged) check_table(tokens, layout, table, 1);
}

void TokenSequences::check_table(const at::Tensor& tokens, const std::string& layout,
                                 const std::optional<at::Tensor>& table, int64_t block_factor) {
  EXPECT(table, names_.table, " is null, expected a tensor as ", names_.layout, " is ", layout);
  constexpr int64_t kMost = 1024;
  block_ = tokens.size(1);
  EXPECT(block_ % block_factor == 0 && block_ <= kMost, names_.tokens, " has blocks of ", block_,
         " tokens, expected ",
         block_factor > 1 ? "a multiple of " + std::to_string(block_factor) + " up to " : "1 to ",
         kMost);
  expect_dtype(names_.table, *table, at::kInt);
  expect_dims(names_.table, *table, 2);
  expect_shape(names_.table, *table, {count_, table->size(1)});
  table_ = table;
  capacity_ = table->size(1) * block_;
}

void TokenSequences::measure_used() {
  if (!used_) return;
  const std::vector<int64_t> used = integers_in(*used_);
  for (size_t i = 0; i < used.size(); ++i) {
    EXPECT(used[i] >= 0 && used[i] <= lengths_[i], names_.used, " has ", used[i],
           ", expected 0 to ", lengths_[i], ", the tokens of the sequence");
    lengths_[i] = used[i];
  }
}

void TokenSequences::measure() {
  std::vector<int64_t> given =
      given_ ? integers_in(*given_) : std::vector<int64_t>(static_cast<size_t>(count_), capacity_);
  if (given_ && begins_with_0_) {
    EXPECT(given.front() == 0, names_.lengths, " begins with ", given.front(), ", expected 0");
    given.erase(given.begin());
  }
  int64_t end = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const int64_t value = given[static_cast<size_t>(i)];
    const int64_t least = is_packed_ ? end : 0;
    EXPECT(value >= least && value <= capacity_, names_.lengths, " has ", value, ", expected ",
           least, " to ", capacity_, ", the tokens that ", names_.tokens, " has");
    lengths_.push_back(value - least);
    firsts_.push_back(is_packed_ ? end : i * capacity_);
    if (is_packed_) end = value;
  }
  measure_used();
}

at::Tensor TokenSequences::read(const at::Tensor& tensor, int64_t sequence) const {
  const int64_t tokens = length(sequence);
  if (!table_) {
    const at::Tensor all = is_packed_ ? tensor : tensor.flatten(0, 1);
    return all.narrow(0, first(sequence), tokens).to(at::kFloat);
  }
  const int64_t count = (tokens + block_ - 1) / block_;
  const at::Tensor blocks = table_->select(0, sequence).narrow(0, 0, count).to(at::kLong);
  check_bounds(names_.table, blocks, tensor.size(0));
  return tensor.index_select(0, blocks).flatten(0, 1).narrow(0, 0, tokens).to(at::kFloat);
}

}  // namespace aclnn_host
