// Causal convolutions of one dimension: each channel of a token is a weighted sum of this channel
// in the token and the tokens before it.

#include "cann/rows/integers.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::convolution_causal_convolution_rows {

namespace {

constexpr int64_t kWidth = 3;  // the only published kernel size of most functions

// The sum over k of weight[k] x[i + k] for the first `count` indices i of the first dimension.
at::Tensor weighted(const at::Tensor& x, const at::Tensor& weight, int64_t count) {
  at::Tensor sum = x.narrow(0, 0, count) * weight.select(0, 0);
  for (int64_t k = 1; k < weight.size(0); ++k) {
    sum = sum + x.narrow(0, k, count) * weight.select(0, k);
  }
  return sum;
}

// ---- with a mask

// x is (sequence, batch, channels); mask is (batch, sequence).
void check_masked(const char* name, const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& mask) {
  expect_dims(name, x, 3);
  expect_dtype(name, x, {at::kHalf, at::kBFloat16});
  constexpr int64_t kLeastChannels = 384, kMostChannels = 24576, kMultiple = 64;
  constexpr int64_t kMostTokens = 512 * 1024;
  const int64_t channels = x.size(2);
  EXPECT(channels >= kLeastChannels && channels <= kMostChannels && channels % kMultiple == 0,
         "the last dimension of ", name, " is ", channels, ", expected a multiple of ", kMultiple,
         " from ", kLeastChannels, " to ", kMostChannels);
  EXPECT(x.size(0) > 0 && x.size(1) > 0 && x.size(0) <= kMostTokens / x.size(1), name,
         " has shape ", x.sizes(), ", expected 1 to ", kMostTokens, " tokens");
  expect_shape("weight", weight, {kWidth, channels});
  if (!mask) return;
  expect_tensor("maskOptional", *mask, at::kBool, {x.size(1), x.size(0)});
}

// x where the mask is 1, and 0 elsewhere.
at::Tensor masked(const at::Tensor& x, const std::optional<at::Tensor>& mask) {
  return mask ? x.masked_fill(mask->t().unsqueeze(-1).logical_not(), 0) : x;
}
// x with zeros before or after the tokens.
at::Tensor padded(const at::Tensor& x, int64_t before, int64_t after) {
  return at::constant_pad_nd(x, {0, 0, 0, 0, before, after});
}

// ---- with states of earlier tokens

void expect_number_for_each(const char* name, const std::optional<at::Tensor>& numbers,
                            int64_t batch) {
  if (!numbers) return;
  expect_tensor(name, *numbers, at::kInt, {batch});
}

// Checks x of (tokens, channels) or (batch, tokens, channels), and returns the number of channels.
int64_t checked_channels(const at::Tensor& x) {
  constexpr int64_t kLeastChannels = 64, kMostChannels = 16384, kMultiple = 16;
  const int64_t channels = x.size(-1);
  EXPECT(channels >= kLeastChannels && channels <= kMostChannels && channels % kMultiple == 0,
         "the last dimension of x is ", channels, ", expected a multiple of ", kMultiple, " from ",
         kLeastChannels, " to ", kMostChannels);
  expect_elements("x", x);
  return channels;
}

// True if states are also saved at block boundaries, so that sequences with a common prefix can
// share them. `row` is the struct of a function, here and below.
template <class Row>
bool keeps_blocks(const Row& row) {
  return row.blockIdxFirstScheduledToken && row.blockIdxLastScheduledToken && row.initialStateIdx &&
         row.numComputedTokens && row.cacheIndices;
}

// Checks everything that does not depend on values, and returns the number of sequences.
template <class Row>
int64_t check(const Row& row) {
  const at::Tensor& x = row.x;
  const at::Tensor& states = row.convStates;
  expect_dims("x", x, 2, 3);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  constexpr int64_t kMostBatch = 256;
  const int64_t channels = checked_channels(x);
  expect_shape("weight", row.weight, {kWidth, channels});
  expect_dims("convStates", states, 3);
  constexpr int64_t kMostDrafts = 7;
  const int64_t length = states.size(1);
  EXPECT(length >= kWidth - 1 && length <= kWidth - 1 + kMostDrafts && states.size(0) > 0,
         "convStates has shape ", states.sizes(), ", expected states of ", kWidth - 1, " to ",
         kWidth - 1 + kMostDrafts, " tokens");
  expect_shape("convStates", states, {states.size(0), length, channels});
  EXPECT(x.dim() == 3 || row.queryStartLoc,
         "queryStartLoc is null, expected a tensor as x has two dimensions");
  if (row.queryStartLoc) {
    expect_dtype("queryStartLoc", *row.queryStartLoc, at::kInt);
    expect_dims("queryStartLoc", *row.queryStartLoc, 1);
  }
  const int64_t batch = x.dim() == 3 ? x.size(0) : row.queryStartLoc->size(0) - 1;
  EXPECT(batch >= 1 && batch <= kMostBatch, x.dim() == 3 ? "x" : "queryStartLoc", " has ", batch,
         " sequences, expected 1 to ", kMostBatch);
  if (row.queryStartLoc) expect_shape("queryStartLoc", *row.queryStartLoc, {batch + 1});
  EXPECT(states.size(0) >= batch, "convStates has shape ", states.sizes(), ", expected ", batch,
         " states or more, as there are sequences");
  if (row.cacheIndices) {
    const at::Tensor& indices = *row.cacheIndices;
    expect_dtype("cacheIndices", indices, at::kInt);
    expect_dims("cacheIndices", indices, keeps_blocks(row) ? 2 : 1);
    EXPECT(indices.size(0) == batch && indices.numel() > 0, "cacheIndices has shape ",
           indices.sizes(), ", expected ", batch, " rows, as there are sequences");
  }
  expect_number_for_each("numAcceptedTokens", row.numAcceptedTokens, batch);
  expect_number_for_each("numComputedTokens", row.numComputedTokens, batch);
  expect_number_for_each("blockIdxFirstScheduledToken", row.blockIdxFirstScheduledToken, batch);
  expect_number_for_each("blockIdxLastScheduledToken", row.blockIdxLastScheduledToken, batch);
  expect_number_for_each("initialStateIdx", row.initialStateIdx, batch);
  expect_one_of("residualConnection", row.residualConnection, {0, 1});
  expect_one_of("convMode", row.convMode, {0, 1});
  EXPECT(row.convMode == 0 || row.numComputedTokens,
         "numComputedTokens is null, expected a tensor as convMode is 1");
  // As in the published check, only states in blocks need their size.
  if (keeps_blocks(row)) expect_at_least("blockSize", row.blockSize, 2);
  // None of these changes the result: CANN reads neither mode, and sizes its buffers by the length
  // of the longest sequence.
  expect_range("activationMode", row.activationMode, 0, 2);
  expect_one_of("runMode", row.runMode, {0, 1});
  EXPECT(row.maxQueryLen > 0 || (row.maxQueryLen == -1 && x.dim() == 3), "maxQueryLen is ",
         row.maxQueryLen, ", expected 1 or more, or -1 with x of three dimensions");
  return batch;
}

// Convolves the sequences of one call, one after the other, and updates their states.
class Convolution {
 public:
  template <class Row>
  Convolution(const Row& row, int64_t batch)
      : x_(static_cast<const at::Tensor&>(row.x).flatten(0, -2)),
        weight_(wide(row.weight)),
        count_(row.convStates->size(0)),
        skipped_(row.padSlotId),
        residual_(row.residualConnection == 1),
        resets_(row.convMode == 1),
        block_(row.blockSize) {
    read(row, batch);
    for (size_t i = 0; i < indices_.size(); ++i) lines_used_.push_back(indices_[i]);
    if (!row.cacheIndices) {
      for (int64_t i = 0; i < batch; ++i) lines_used_.push_back(i);
    }
    std::erase_if(lines_used_, [&](int64_t line) { return line < 0 || line >= count_; });
    std::ranges::sort(lines_used_);
    lines_used_.erase(std::unique(lines_used_.begin(), lines_used_.end()), lines_used_.end());
    states_ = row.convStates->index_select(0, at::tensor(lines_used_, at::kLong));
  }

  // Writes the states of the lines that the call uses.
  void write_states(Output& out) const {
    const at::Tensor all = out.editable();
    out = all.index_copy_(0, at::tensor(lines_used_, at::kLong), states_);
  }

  // Returns the results; sequences that are not computed keep their values in `start`.
  at::Tensor result(const at::Tensor& start) {
    at::Tensor y = start.clone();
    for (size_t i = 0; i + 1 < starts_.size(); ++i) {
      if (line("cacheIndices", i, initial_, 0) == skipped_ && !indices_.empty()) continue;
      y.narrow(0, starts_[i], starts_[i + 1] - starts_[i]).copy_(sequence(i));
    }
    return y;
  }

 private:
  static void read_optional(const std::optional<at::Tensor>& tensor, std::vector<int64_t>& values) {
    if (tensor) values = integers_in(*tensor);
  }
  template <class Row>
  void read(const Row& row, int64_t batch) {
    const int64_t tokens = x_.size(0);
    if (row.queryStartLoc) {
      starts_ = integers_in(*row.queryStartLoc);
    } else {
      for (int64_t i = 0; i <= batch; ++i) starts_.push_back(i * (tokens / batch));
    }
    EXPECT(starts_.front() == 0 && starts_.back() == tokens, "queryStartLoc goes from ",
           starts_.front(), " to ", starts_.back(), ", expected 0 to ", tokens);
    for (size_t i = 1; i < starts_.size(); ++i) {
      EXPECT(starts_[i] > starts_[i - 1], "queryStartLoc has ", starts_[i - 1], " before ",
             starts_[i], ", expected numbers that increase");
    }
    read_optional(row.cacheIndices, indices_);
    lines_ = row.cacheIndices ? row.cacheIndices->numel() / batch : 0;
    read_optional(row.numAcceptedTokens, accepted_);
    read_optional(row.numComputedTokens, computed_);
    for (const int64_t count : computed_) {
      EXPECT(count >= 0, "numComputedTokens has ", count, ", expected 0 or more");
    }
    if (!keeps_blocks(row)) return;
    read_optional(row.blockIdxFirstScheduledToken, first_block_);
    read_optional(row.blockIdxLastScheduledToken, last_block_);
    read_optional(row.initialStateIdx, initial_);
  }

  // The index of a sequence's state in cacheIndices, in the column of a block if there are blocks.
  int64_t line(const char* name, size_t i, const std::vector<int64_t>& blocks,
               int64_t added) const {
    if (indices_.empty()) return static_cast<int64_t>(i);
    const int64_t column = blocks.empty() ? 0 : blocks[i] + added;
    EXPECT(column >= 0 && column < lines_, name, " asks for block ", column, ", expected 0 to ",
           lines_ - 1);
    return indices_[i * static_cast<size_t>(lines_) + static_cast<size_t>(column)];
  }
  at::Tensor state(int64_t line) const {
    EXPECT(line >= 0 && line < count_, "cacheIndices has ", line, ", expected 0 to ", count_ - 1);
    return states_.select(0, std::ranges::lower_bound(lines_used_, line) - lines_used_.begin());
  }

  // The number of tokens in the state that precede those in the window of the first token.
  int64_t offset(size_t i, int64_t length) const {
    if (!computed_.empty() && computed_[i] == 0) return 0;
    if (accepted_.empty()) return states_.size(1) - (kWidth - 1);
    EXPECT(accepted_[i] >= 1 && accepted_[i] <= length &&
               accepted_[i] <= states_.size(1) - (kWidth - 2),
           "numAcceptedTokens has ", accepted_[i], ", expected 1 to ",
           std::min(length, states_.size(1) - (kWidth - 2)));
    return accepted_[i] - 1;
  }

  at::Tensor sequence(size_t i) {
    const at::Tensor tokens = x_.narrow(0, starts_[i], starts_[i + 1] - starts_[i]);
    const int64_t length = tokens.size(0), skip = offset(i, length), before = skip + kWidth - 1;
    const bool is_first = !computed_.empty() && computed_[i] == 0;
    const at::Tensor read = state(line("initialStateIdx", i, initial_, 0));
    const at::Tensor parts[] = {
        is_first ? at::zeros({before, x_.size(1)}, x_.options()) : read.narrow(0, 0, before),
        tokens};
    const at::Tensor all = at::cat(at::TensorList(parts), 0);
    const int64_t kept = std::min(states_.size(1), all.size(0));
    state(line("blockIdxLastScheduledToken", i, last_block_, 0))
        .narrow(0, states_.size(1) - kept, kept)
        .copy_(all.narrow(0, all.size(0) - kept, kept));
    const at::Tensor counted = all.narrow(0, skip, length + kWidth - 1);
    keep_blocks(i, counted, length);
    at::Tensor result = weighted(wide(counted), weight_, length);
    if (resets_) {
      const int64_t zeros = std::clamp<int64_t>(kWidth - 1 - computed_[i], 0, length);
      result.narrow(0, 0, zeros).zero_();
    }
    return residual_ ? result + wide(tokens) : result;
  }

  // Saves the state at the end of each block that the sequence fills.
  void keep_blocks(size_t i, const at::Tensor& counted, int64_t length) {
    if (first_block_.empty()) return;
    const int64_t first = first_block_[i], count = last_block_[i] - first;
    EXPECT(count >= 0 && count < lines_, "blockIdxLastScheduledToken has ", last_block_[i],
           ", expected ", first, " to ", lines_ - 1);
    const int64_t missing = block_ - computed_[i] % block_;
    int64_t rest = (length - missing) % block_;
    if (rest < 0) rest += block_;
    const int64_t last = rest == 0 ? length - block_ : length - rest;
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      const int64_t distance = count - chunk - 1;
      EXPECT(distance <= length / block_ && last - distance * block_ > 0,
             "blockIdxLastScheduledToken has ", last_block_[i], ", ", count, " after ", first,
             ", expected no more blocks than the ", length, " tokens of the sequence fill");
      state(line("blockIdxFirstScheduledToken", i, first_block_, chunk))
          .narrow(0, states_.size(1) - (kWidth - 1), kWidth - 1)
          .copy_(counted.narrow(0, last - distance * block_, kWidth - 1));
    }
  }

  at::Tensor x_;  // (tokens, channels)
  at::Tensor weight_;
  int64_t count_;
  std::vector<int64_t> lines_used_;  // in order
  at::Tensor states_;                // of these lines
  int64_t skipped_;
  bool residual_;
  bool resets_;
  int64_t block_;
  std::vector<int64_t> starts_;
  std::vector<int64_t> indices_;
  int64_t lines_ = 0;  // the columns of cacheIndices
  std::vector<int64_t> accepted_;
  std::vector<int64_t> computed_;
  std::vector<int64_t> first_block_;
  std::vector<int64_t> last_block_;
  std::vector<int64_t> initial_;
};

// Writes y and the states, unless the tensors have no values. Sequences that are not computed keep
// their values in `start`.
template <class Row>
void convolve(Row& row, const at::Tensor& start, Output& y) {
  const int64_t batch = check(row);
  const at::Tensor& x = row.x;
  if (!has_values(x)) {
    y = at::empty_like(x);
    return;
  }
  Convolution convolution(row, batch);
  y = convolution.result(start.flatten(0, -2)).view(x.sizes());
  convolution.write_states(row.convStates);
}

// ---- with a bias and an activation, for the first tokens of sequences (Fn) or the next (Update)

// Checks what both functions have, and returns the number of sequences.
template <class Row>
int64_t check_sequences(const Row& row) {
  const at::Tensor& x = row.x;
  const at::Tensor& states = row.convStatesRef;
  expect_dims("x", x, 2, 3);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  const int64_t channels = checked_channels(x);
  expect_dims("weight", row.weight, 2);
  const int64_t width = row.weight.size(0);
  expect_range("the first dimension of weight", width, 2, 4);
  expect_shape("weight", row.weight, {width, channels});
  if (row.biasOptional) expect_shape("biasOptional", *row.biasOptional, {channels});
  const OptionalTensor& starts = row.queryStartLocOptional;
  EXPECT(starts || x.dim() == 3,
         "queryStartLocOptional is null, expected a tensor as x has two dimensions");
  if (starts) {
    expect_dtype("queryStartLocOptional", *starts, at::kInt);
    expect_dims("queryStartLocOptional", *starts, 1);
  }
  constexpr int64_t kMostBatch = 1024;
  const int64_t batch = starts ? starts->size(0) - 1 : x.size(0);
  EXPECT(batch >= 1 && batch <= kMostBatch, starts ? "queryStartLocOptional" : "x", " has ", batch,
         " sequences, expected 1 to ", kMostBatch);
  expect_dims("convStatesRef", states, 3);
  EXPECT(states.size(1) >= width - 1 && states.size(0) >= batch, "convStatesRef has shape ",
         states.sizes(), ", expected ", batch, " states or more of ", width - 1, " tokens or more");
  expect_shape("convStatesRef", states, {states.size(0), states.size(1), channels});
  expect_number_for_each("cacheIndicesOptional", row.cacheIndicesOptional, batch);
  expect_number_for_each("blockIdxLastScheduledTokenOptional",
                         row.blockIdxLastScheduledTokenOptional, batch);
  expect_number_for_each("initialStateIdxOptional", row.initialStateIdxOptional, batch);
  expect_text("activation", row.activation, {"silu", "none", ""});
  return batch;
}

// The first token of each sequence, and the number of all tokens.
std::vector<int64_t> starts_of(const OptionalTensor& given, int64_t batch, int64_t tokens) {
  std::vector<int64_t> starts;
  if (given) {
    starts = integers_in(*given);
  } else {
    for (int64_t i = 0; i <= batch; ++i) starts.push_back(i * (tokens / batch));
  }
  EXPECT(starts.front() == 0 && starts.back() == tokens && std::ranges::is_sorted(starts),
         "queryStartLocOptional is ", starts, ", expected numbers from 0 to ", tokens,
         " that do not decrease");
  return starts;
}

// The tokens of a sequence after those that precede them, and which of these are saved: `count`
// from `first`, at the position `saved_at` of the sequence's state.
struct Window {
  at::Tensor tokens;
  int64_t first, saved_at, count;
};

// Convolves each sequence and updates its state. `window_of` is a function of the number of a
// sequence, its tokens and its state before the call. Sequences that are left out have zeros.
template <class Row, class WindowOf>
void convolve_sequences(Row& row, int64_t batch, WindowOf window_of) {
  const at::Tensor& x = row.x;
  if (!has_values(x)) {
    row.y = at::empty_like(x);
    return;
  }
  const at::Tensor tokens = x.flatten(0, -2), weight = wide(row.weight);
  const at::Tensor& before = row.convStatesRef;
  const std::vector<int64_t> starts = starts_of(row.queryStartLocOptional, batch, tokens.size(0));
  std::vector<int64_t> lines;
  if (row.cacheIndicesOptional) lines = integers_in(*row.cacheIndicesOptional);
  const at::Tensor y = at::zeros(tokens.sizes(), weight.options());
  std::vector<std::pair<int64_t, Window>> windows;  // and the line of each
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const int64_t count = starts[i + 1] - starts[i];
    const int64_t line = lines.empty() ? static_cast<int64_t>(i) : lines[i];
    if (count == 0 || (!lines.empty() && line == row.nullBlockId)) continue;
    EXPECT(line >= 0 && line < before.size(0), "cacheIndicesOptional has ", line,
           ", expected 0 to ", before.size(0) - 1);
    const Window window = window_of(i, tokens.narrow(0, starts[i], count), before.select(0, line));
    at::Tensor sum = weighted(wide(window.tokens), weight, count);
    if (row.biasOptional) sum = sum + wide(*row.biasOptional);
    y.narrow(0, starts[i], count).copy_(row.activation == "none" ? sum : at::silu(sum));
    windows.emplace_back(line, window);
  }
  const at::Tensor after = row.convStatesRef.editable();
  for (const auto& [line, window] : windows) {
    after.select(0, line)
        .narrow(0, window.saved_at, window.count)
        .copy_(window.tokens.narrow(0, window.first, window.count));
  }
  row.y = y.view(x.sizes());
  row.convStatesRef = after;
}

}  // namespace

// Behaviour of *CausalConv1d*: Everything is computed in FLOAT and rounded once; states are copied
// as they are. A sequence that is left out has zeros, or stays as it is in place.
ACLNN(MaskedCausalConv1d, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
      (Optional<In>, maskOptional), (SameDtype<Out>, out, "x")) {
  check_masked("x", x, weight, maskOptional);
  out = masked(weighted(padded(wide(x), kWidth - 1, 0), wide(weight), x.size(0)), maskOptional);
}
ACLNN(MaskedCausalConv1dBackward, (Floating<In>, gradY), (Like<Floating<In>>, x, "gradY"),
      (SameDtype<Floating<In>>, weight, "gradY"), (Optional<In>, maskOptional),
      (SameDtype<Out>, gradXOut, "gradY"), (SameDtype<Out>, gradWeightOut, "gradY")) {
  check_masked("gradY", gradY, weight, maskOptional);
  const int64_t length = gradY.size(0);
  const at::Tensor gradient = padded(masked(wide(gradY), maskOptional), 0, kWidth - 1);
  std::vector<at::Tensor> of_weight;
  of_weight.reserve(kWidth);
  for (int64_t k = 0; k < kWidth; ++k) {
    of_weight.push_back(
        (gradient.narrow(0, kWidth - 1 - k, length) * wide(x)).sum(at::IntArrayRef{0, 1}));
  }
  gradXOut = weighted(gradient, wide(weight).flip(0), length);
  gradWeightOut = at::stack(of_weight);
}

ACLNN_STRUCT(FusedCausalConv1d, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
             (SameDtype<InOut>, convStates, "x"), (Optional<In>, queryStartLoc),
             (Optional<In>, cacheIndices),
             (Unused<Optional<In>>, initialStateMode, "has no effect in CANN either"),
             (Unused<Optional<In>>, bias, "has no effect in CANN either"),
             (Optional<In>, numAcceptedTokens), (Optional<In>, numComputedTokens),
             (Optional<In>, blockIdxFirstScheduledToken),
             (Optional<In>, blockIdxLastScheduledToken), (Optional<In>, initialStateIdx),
             (int64_t, activationMode), (int64_t, padSlotId), (int64_t, runMode),
             (int64_t, maxQueryLen), (int64_t, residualConnection), (int64_t, blockSize),
             (int64_t, convMode), (SameDtype<Out>, y, "x")) {
  convolve(*this, at::zeros_like(x), y);
}
ACLNN_STRUCT(InplaceFusedCausalConv1d, (Floating<InOut>, x), (SameDtype<Floating<In>>, weight, "x"),
             (SameDtype<InOut>, convStates, "x"), (Optional<In>, queryStartLoc),
             (Optional<In>, cacheIndices),
             (Unused<Optional<In>>, initialStateMode, "has no effect in CANN either"),
             (Unused<Optional<In>>, bias, "has no effect in CANN either"),
             (Optional<In>, numAcceptedTokens), (Optional<In>, numComputedTokens),
             (Optional<In>, blockIdxFirstScheduledToken),
             (Optional<In>, blockIdxLastScheduledToken), (Optional<In>, initialStateIdx),
             (int64_t, activationMode), (int64_t, padSlotId), (int64_t, runMode),
             (int64_t, maxQueryLen), (int64_t, residualConnection), (int64_t, blockSize),
             (int64_t, convMode)) {
  convolve(*this, x, x);
}

// The last row of weight belongs to the token itself. A state that is longer than the tokens keeps
// its first ones.
// Behaviour of CausalConv1dFn, CausalConv1dUpdate: The order of weight and the zeros before a
// sequence are those of CANN's kernel; the document's formula has the opposite order, and zeros as
// results of the first tokens. Block indices, lengths and sizes of blocks have no effect, as in
// CANN's public code. convStatesRef has a state or more for each sequence with
// cacheIndicesOptional, too, as the documents' constraints say; their tables of parameters require
// it without it only.
ACLNN_STRUCT(CausalConv1dFn, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
             (SameDtype<InOut>, convStatesRef, "x"), (SameDtype<Optional<In>>, biasOptional, "x"),
             (Optional<In>, queryStartLocOptional), (Optional<In>, cacheIndicesOptional),
             (Optional<In>, initialStateModeOptional),
             (Optional<In>, blockIdxFirstScheduledTokenOptional),
             (Optional<In>, blockIdxLastScheduledTokenOptional),
             (Optional<In>, initialStateIdxOptional), (Optional<In>, numComputedTokensOptional),
             (char*, activation), (int64_t, nullBlockId),
             (Unused<int64_t>, blockSizeToAlign, "has no effect in CANN either"),
             (Like<Out>, y, "x")) {
  const int64_t batch = check_sequences(*this);
  expect_number_for_each("initialStateModeOptional", initialStateModeOptional, batch);
  expect_number_for_each("blockIdxFirstScheduledTokenOptional", blockIdxFirstScheduledTokenOptional,
                         batch);
  expect_number_for_each("numComputedTokensOptional", numComputedTokensOptional, batch);
  constexpr int64_t kMostLength = 16384, kMostTokens = 1024 * 1024;
  if (x.dim() == 3) {
    expect_range("the second dimension of x", x.size(1), 2, kMostLength);
    EXPECT(batch == x.size(0), "queryStartLocOptional has ", batch, " sequences, expected ",
           x.size(0));
  } else {
    expect_range("the first dimension of x", x.size(0), batch, kMostTokens);
  }
  std::vector<int64_t> modes;
  if (initialStateModeOptional) {
    check_bounds("initialStateModeOptional", *initialStateModeOptional, 2);
    if (has_values(x)) modes = integers_in(*initialStateModeOptional);
  }
  const int64_t before = weight.size(0) - 1;
  convolve_sequences(
      *this, batch, [&](size_t i, const at::Tensor& tokens, const at::Tensor& state) {
        const at::Tensor first = state.narrow(0, 0, before);
        const bool reads_state = !modes.empty() && modes[i] == 1;
        const at::Tensor all = at::cat({reads_state ? first : at::zeros_like(first), tokens}, 0);
        const int64_t saved = std::min(state.size(0), all.size(0));
        return Window{all, all.size(0) - saved, state.size(0) - saved, saved};
      });
}
// With numAcceptedTokensOptional, for speculative decoding, the tokens that precede a sequence
// begin after all accepted tokens of the state but the last.
ACLNN_STRUCT(CausalConv1dUpdate, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
             (SameDtype<InOut>, convStatesRef, "x"), (SameDtype<Optional<In>>, biasOptional, "x"),
             (Optional<In>, queryStartLocOptional), (Optional<In>, cacheIndicesOptional),
             (Optional<In>, numAcceptedTokensOptional),
             (Optional<In>, blockIdxLastScheduledTokenOptional),
             (Optional<In>, initialStateIdxOptional), (char*, activation), (int64_t, nullBlockId),
             (Unused<int64_t>, maxQueryLen, "has no effect in CANN either"), (Like<Out>, y, "x")) {
  const int64_t batch = check_sequences(*this), width = weight.size(0);
  expect_number_for_each("numAcceptedTokensOptional", numAcceptedTokensOptional, batch);
  EXPECT(!numAcceptedTokensOptional || width == 4, "weight has ", width,
         " rows, expected 4 as numAcceptedTokensOptional is given");
  constexpr int64_t kMostLength = 8;
  if (x.dim() == 3) {
    EXPECT(x.size(1) == 1, "the second dimension of x is ", x.size(1), ", expected 1");
  } else {
    EXPECT(numAcceptedTokensOptional,
           "numAcceptedTokensOptional is null, expected a tensor as x has two dimensions");
    expect_range("the first dimension of x", x.size(0), batch, batch * kMostLength);
  }
  std::vector<int64_t> accepted;
  if (numAcceptedTokensOptional && has_values(x)) {
    accepted = integers_in(*numAcceptedTokensOptional);
  }
  convolve_sequences(
      *this, batch, [&](size_t i, const at::Tensor& tokens, const at::Tensor& state) {
        EXPECT(!accepted.empty() || tokens.size(0) == 1, "a sequence has ", tokens.size(0),
               " tokens, expected 1 as numAcceptedTokensOptional is null");
        const int64_t most = state.size(0) - (width - 1),
                      count = accepted.empty() ? 0 : accepted[i];
        EXPECT(count >= 0 && count <= most, "numAcceptedTokensOptional has ", count,
               ", expected 0 to ", most);
        const int64_t skipped = std::max<int64_t>(count - 1, 0);
        const at::Tensor all = at::cat({state.narrow(0, skipped, width - 1), tokens}, 0);
        return Window{all, 1, 0, std::min(state.size(0), all.size(0) - 1)};
      });
}

}  // namespace aclnn_host::convolution_causal_convolution_rows
