// Attention of training over packed sequences: see packed.h.

#include "cann/rows/attention/packed.h"

#include <algorithm>
#include <utility>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host {

std::vector<SequencePart> parts_of(const char* name, const at::OptionalIntArrayRef& sums,
                                   int64_t total) {
  EXPECT(sums && !sums->empty(), name,
         " is null or empty, expected the sum of lengths up to each sequence");
  std::vector<SequencePart> parts;
  int64_t last = 0;
  for (const int64_t sum : *sums) {
    EXPECT(sum >= last && sum <= total, name, " is ", *sums, ", expected sums of lengths up to ",
           total);
    parts.push_back({last, sum - last});
    last = sum;
  }
  return parts;
}

PackedAttention::PackedAttention(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const std::string& layout,
                                 const at::OptionalIntArrayRef& query_sums,
                                 const at::OptionalIntArrayRef& key_sums,
                                 const AttentionArguments& arguments)
    : query_(query), key_(key), value_(value), arguments_(arguments) {
  check_attention(query, key, value, arguments);
  EXPECT(layout == "TND", "inputLayout is \"", layout, "\", expected \"TND\"");
  expect_dims("query", query, 3);
  expect_dims("key", key, 3);
  expect_dims("value", value, 3);
  EXPECT(query.size(1) == arguments.heads, "headNum is ", arguments.heads, ", expected ",
         query.size(1), ", the heads of query");
  EXPECT(key.size(1) > 0 && query.size(1) % key.size(1) == 0, "query has ", query.size(1),
         " heads, expected a multiple of the ", key.size(1), " heads of key");
  EXPECT(key.size(2) == query.size(2) && key.size(2) > 0, "key has shape ", key.sizes(),
         ", expected query's ", query.size(2), " elements in a head, one or more");
  EXPECT(value.size(0) == key.size(0) && value.size(1) == key.size(1), "value has shape ",
         value.sizes(), ", expected the elements and heads of key's ", key.sizes());
  queries_ = parts_of("actualSeqQLenOptional", query_sums, query.size(0));
  keys_ = parts_of("actualSeqKvLenOptional", key_sums, key.size(0));
  EXPECT(queries_.size() == keys_.size(), "actualSeqKvLenOptional has ", keys_.size(),
         " elements, expected ", queries_.size(), " as actualSeqQLenOptional");
  measure();
  check_mode();
  check_shift();
  check_mask();
  if (arguments.drop_mask) {
    const int64_t bytes = scores() / 8 + (scores() % 8 != 0);
    EXPECT(arguments.drop_mask->numel() >= bytes, "dropMaskOptional has ",
           arguments.drop_mask->numel(), " bytes, expected at least ", bytes,
           ", one bit for each score");
  }
}

at::Tensor PackedAttention::read(const at::Tensor& packed, const SequencePart& part) {
  return packed.narrow(0, part.first, part.size).to(at::kFloat).transpose(0, 1).unsqueeze(0);
}
void PackedAttention::write(const at::Tensor& packed, const SequencePart& part,
                            const at::Tensor& elements) {
  packed.narrow(0, part.first, part.size).copy_(elements.squeeze(0).transpose(0, 1));
}

SoftmaxAttention PackedAttention::attention(size_t i, ForwardPass forward) const {
  AttentionInputs inputs{read(query_, queries_[i]), read(key_, keys_[i]), read(value_, keys_[i]),
                         arguments_.scale};
  inputs.shifts_first = arguments_.shift_type == kShiftThenScale;
  inputs.shift = shift(i);
  inputs.hidden = hidden(i);
  inputs.sink = arguments_.sink;
  inputs.forward = std::move(forward);
  if (arguments_.drop_mask) {
    inputs.kept = kept_of(*arguments_.drop_mask, scores_before_[i] * arguments_.heads,
                          {1, arguments_.heads, queries_[i].size, keys_[i].size}, arguments_.keep);
  }
  return SoftmaxAttention(std::move(inputs));
}

void PackedAttention::measure() {
  const auto by_size = [](const SequencePart& a, const SequencePart& b) { return a.size < b.size; };
  most_queries_ = std::max_element(queries_.begin(), queries_.end(), by_size)->size;
  most_keys_ = std::max_element(keys_.begin(), keys_.end(), by_size)->size;
  for (size_t i = 0; i < count(); ++i) {
    scores_before_.push_back(scores_);
    int64_t scores = 0;
    int64_t of_heads = 0;
    EXPECT(!__builtin_mul_overflow(queries_[i].size, keys_[i].size, &scores) &&
               !__builtin_add_overflow(scores_, scores, &scores_) &&
               !__builtin_mul_overflow(scores_, arguments_.heads, &of_heads),
           "query and key have shapes ", query_.sizes(), " and ", key_.sizes(),
           ", expected fewer scores");
    if (queries_[i].size == 0 || keys_[i].size == 0) continue;
    if (!first_filled_) first_filled_ = i;
    last_filled_ = i;
  }
}

void PackedAttention::check_mode() const {
  const int64_t mode = arguments_.sparse_mode;
  EXPECT(mode >= kDefaultMask && mode <= kBandThenLeftUpCausal && mode != kPrefix, "sparseMode is ",
         mode, ", expected 0 to 8 other than 5 for packed sequences");
  if (mode == kPrefixCompressed && arguments_.mask) {
    const size_t size = arguments_.prefix ? arguments_.prefix->size() : 0;
    EXPECT(size == count(), "prefixOptional has ", size, " elements, expected ", count(),
           ", one for each sequence");
  }
}

void PackedAttention::check_shift() const {
  if (!arguments_.shift) return;
  EXPECT(arguments_.sparse_mode != kRightDownCausalThenBand,
         "the shift is given, expected null for sparseMode 7");
  const at::Tensor& shift = *arguments_.shift;
  const int64_t heads = arguments_.heads;
  const auto sequences = static_cast<int64_t>(count());
  if (makes_shift()) {
    EXPECT(shift.sizes() == at::IntArrayRef({heads}) ||
               shift.sizes() == at::IntArrayRef({sequences, heads}),
           "the shift has shape ", shift.sizes(), ", expected slopes of shape [", heads, "] or [",
           sequences, ", ", heads, "]");
    for (size_t i = 0; i < count(); ++i) check_made_shift(i);
    return;
  }
  if (shift.dim() == 1) {
    EXPECT(shift.numel() == keys_in_all() * heads || shift.numel() == scores_ * heads,
           "the shift has ", shift.numel(), " elements, expected ", scores_ * heads,
           ", one for each score, or ", keys_in_all() * heads, ", one for each key");
    return;
  }
  EXPECT(shift.dim() == 4 && (shift.size(0) == sequences || shift.size(0) == 1) &&
             shift.size(1) == heads && (shift.size(2) == most_queries_ || shift.size(2) == 1) &&
             shift.size(3) == most_keys_,
         "the shift has shape ", shift.sizes(), ", expected [", sequences, " or 1, ", heads, ", ",
         most_queries_, " or 1, ", most_keys_, "]; the host CANN takes no shift in another form");
}

void PackedAttention::check_mask() const {
  if (!has_whole_mask()) return;
  const at::Tensor& mask = *arguments_.mask;
  const int64_t dims = mask.dim();
  const auto sequences = static_cast<int64_t>(count());
  const bool fits = (dims == 2 && ((mask.size(0) == most_queries_ && mask.size(1) == most_keys_) ||
                                   masks_all_sequences())) ||
                    (dims == 4 && (mask.size(0) == sequences || mask.size(0) == 1) &&
                     (mask.size(1) == arguments_.heads || mask.size(1) == 1) &&
                     mask.size(2) == most_queries_ && mask.size(3) == most_keys_);
  EXPECT(fits, "attenMaskOptional has shape ", mask.sizes(), ", expected [", most_queries_, ", ",
         most_keys_, "] or [", sequences, " or 1, ", arguments_.heads, " or 1, ", most_queries_,
         ", ", most_keys_, "], the longest sequences");
}

bool PackedAttention::masks_all_sequences() const {
  const at::Tensor& mask = *arguments_.mask;
  return mask.dim() == 2 && mask.size(0) == queries_in_all() && mask.size(1) == keys_in_all() &&
         (mask.size(0) != most_queries_ || mask.size(1) != most_keys_);
}

std::optional<at::Tensor> PackedAttention::shift(size_t i) const {
  if (!arguments_.shift) return std::nullopt;
  const at::Tensor& shift = *arguments_.shift;
  const auto sequence = static_cast<int64_t>(i);
  const SequencePart& queries = queries_[i];
  const SequencePart& keys = keys_[i];
  const int64_t heads = arguments_.heads;
  if (makes_shift()) return made_shift(i);
  if (shift.dim() == 1 && shift.numel() == keys_in_all() * heads) {
    return shift.narrow(0, keys.first * heads, keys.size * heads)
        .view({1, heads, 1, keys.size})
        .to(at::kFloat);
  }
  if (shift.dim() == 1) {
    return shift.narrow(0, scores_before_[i] * heads, queries.size * keys.size * heads)
        .view({1, heads, queries.size, keys.size})
        .to(at::kFloat);
  }
  const at::Tensor own = shift.narrow(0, shift.size(0) == 1 ? 0 : sequence, 1).to(at::kFloat);
  const at::Tensor rows = shift.size(2) == most_queries_ ? own.narrow(2, 0, queries.size) : own;
  return rows.narrow(3, 0, keys.size);
}

std::pair<int64_t, int64_t> PackedAttention::starts(size_t i) const {
  // In this mode, sequences that were cut apart have a start in the first sequence only.
  if (arguments_.sparse_mode == kBandThenLeftUpCausal && i != 0) return {0, 0};
  return {first_of(arguments_.query_start), first_of(arguments_.key_start)};
}

void PackedAttention::check_made_shift(size_t i) const {
  const int64_t queries = queries_[i].size;
  const int64_t keys = keys_[i].size;
  const auto [query_start, key_start] = starts(i);
  const bool is_cut = arguments_.sparse_mode == kBandThenLeftUpCausal && i == 0 &&
                      queries - keys + query_start - key_start == 0;
  EXPECT(queries == keys || is_cut, "a sequence has ", queries, " queries and ", keys,
         " keys, expected as many for pseType ", arguments_.shift_type);
}

at::Tensor PackedAttention::made_shift(size_t i) const {
  const auto [query_start, key_start] = starts(i);
  const at::Tensor& slopes = *arguments_.shift;
  const at::Tensor own =
      slopes.dim() == 2 ? slopes.narrow(0, static_cast<int64_t>(i), 1) : slopes.unsqueeze(0);
  return distance_shift(own.unsqueeze(-1).unsqueeze(-1), arguments_.shift_type, queries_[i].size,
                        keys_[i].size, query_start, key_start);
}

std::optional<at::Tensor> PackedAttention::mask(size_t i) const {
  if (!has_whole_mask()) return std::nullopt;
  const at::Tensor& mask = *arguments_.mask;
  const SequencePart& queries = queries_[i];
  const SequencePart& keys = keys_[i];
  if (masks_all_sequences()) {
    return mask.narrow(0, queries.first, queries.size)
        .narrow(1, keys.first, keys.size)
        .to(at::kBool);
  }
  const at::Tensor own =
      mask.dim() == 4 && mask.size(0) != 1 ? mask.narrow(0, static_cast<int64_t>(i), 1) : mask;
  return own.narrow(-2, 0, queries.size).narrow(-1, 0, keys.size).to(at::kBool);
}

// Modes 7 and 8 apply one mode to the last or first sequence and another one to the others.
int64_t PackedAttention::mode(size_t i) const {
  const int64_t mode = arguments_.sparse_mode;
  if (mode == kRightDownCausalThenBand) {
    return i == last_filled_ ? kBandFromLast : kRightDownCausal;
  }
  if (mode == kBandThenLeftUpCausal) return i == first_filled_ ? kBandFromLast : kLeftUpCausal;
  return mode;
}

std::optional<at::Tensor> PackedAttention::hidden(size_t i) const {
  const bool has_prefix = arguments_.sparse_mode == kPrefixCompressed && arguments_.mask;
  return hidden_scores(mode(i), arguments_, mask(i), has_prefix ? (*arguments_.prefix)[i] : 0,
                       queries_[i].size, keys_[i].size, query_.options());
}

bool is_as_input(const char* name, const std::string& layout) {
  EXPECT(layout.empty() || layout == "same_as_input", name, " is \"", layout,
         "\", expected \"\" or \"same_as_input\"");
  return !layout.empty();
}

namespace {

void check_softmax(const char* name, const at::Tensor& tensor, const at::Tensor& query,
                   bool as_input) {
  const int64_t t = query.size(0);
  const int64_t n = query.size(1);
  EXPECT(tensor.sizes() == at::IntArrayRef({t, n, kSoftmaxCopies}) ||
             (!as_input && tensor.sizes() == at::IntArrayRef({n, t, kSoftmaxCopies})),
         name, " has shape ", tensor.sizes(), ", expected [", t, ", ", n, ", ", kSoftmaxCopies,
         "]");
}

// Checks the tensor and returns it as (tokens, heads, copies).
std::optional<at::Tensor> softmax_of(const char* name, const std::optional<at::Tensor>& tensor,
                                     const at::Tensor& query, bool as_input) {
  if (!tensor) return std::nullopt;
  expect_dtype(name, *tensor, at::kFloat);
  check_softmax(name, *tensor, query, as_input);
  return tensor->reshape({query.size(0), query.size(1), kSoftmaxCopies});
}

}  // namespace

void write_softmax(const at::Tensor& packed, const SequencePart& part, const at::Tensor& values,
                   bool as_input) {
  const at::Tensor copies = values.squeeze(0).expand({-1, -1, kSoftmaxCopies});
  const at::Tensor own = packed.narrow(0, part.first, part.size);
  own.copy_(as_input ? copies.transpose(0, 1) : copies.reshape(own.sizes()));
}

at::Tensor read_softmax(const at::Tensor& packed, const SequencePart& part, bool as_input) {
  const at::Tensor own = packed.narrow(0, part.first, part.size);
  const at::Tensor by_head =
      as_input ? own.transpose(0, 1) : own.reshape({own.size(1), own.size(0), own.size(2)});
  return by_head.narrow(2, 0, 1).unsqueeze(0);
}

void write_attention(const at::Tensor& query, const at::Tensor& value,
                     const PackedAttention& sequences, bool as_input, Output& softmax_max,
                     Output& softmax_sum, Output& out) {
  const int64_t heads = query.size(1);
  check_softmax("softmaxMaxOut", softmax_max, query, as_input);
  check_softmax("softmaxSumOut", softmax_sum, query, as_input);
  const auto options = query.options().dtype(at::kFloat);
  const at::Tensor largest = at::zeros({query.size(0), heads, kSoftmaxCopies}, options);
  const at::Tensor sum = at::zeros_like(largest);
  const at::Tensor results = at::zeros({query.size(0), heads, value.size(2)}, options);
  if (has_values(query)) {
    for (size_t i = 0; i < sequences.count(); ++i) {
      if (sequences.queries(i).size == 0) continue;
      const SoftmaxAttention attention = sequences.attention(i);
      write_softmax(largest, sequences.queries(i), attention.largest(), as_input);
      write_softmax(sum, sequences.queries(i), attention.sum(), as_input);
      PackedAttention::write(results, sequences.queries(i), attention.result());
    }
  }
  softmax_max = largest.view(softmax_max->sizes());
  softmax_sum = sum.view(softmax_sum->sizes());
  out = results;
}

PackedGradients packed_gradients(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const at::Tensor& dy,
                                 const ForwardPass& forward, bool as_input,
                                 const PackedAttention& sequences) {
  expect_dtype("dy", dy, query);
  expect_shape("dy", dy, {query.size(0), query.size(1), value.size(2)});
  const ForwardPass given{softmax_of("softmaxMaxOptional", forward.largest, query, as_input),
                          softmax_of("softmaxSumOptional", forward.sum, query, as_input),
                          forward.result};
  if (given.result) expect_like("attentionInOptional", *given.result, dy);
  const auto zeros = [](const at::Tensor& like) { return at::zeros_like(like, at::kFloat); };
  PackedGradients results{zeros(query), zeros(key), zeros(value),
                          at::zeros({query.size(1)}, query.options().dtype(at::kFloat))};
  if (!has_values(query)) return results;
  for (size_t i = 0; i < sequences.count(); ++i) {
    const SequencePart& queries = sequences.queries(i);
    if (queries.size == 0) continue;
    ForwardPass own;
    if (given.largest) own.largest = read_softmax(*given.largest, queries, as_input);
    if (given.sum) own.sum = read_softmax(*given.sum, queries, as_input);
    if (given.result) own.result = PackedAttention::read(*given.result, queries);
    const SoftmaxAttention::Gradients gradients =
        sequences.attention(i, std::move(own)).gradients(PackedAttention::read(dy, queries));
    PackedAttention::write(results.query, queries, gradients.query);
    PackedAttention::write(results.key, sequences.keys(i), gradients.key);
    PackedAttention::write(results.value, sequences.keys(i), gradients.value);
    if (gradients.sink) results.sink.add_(*gradients.sink);
  }
  return results;
}

void check_value_size(const at::Tensor& key, const at::Tensor& value) {
  EXPECT(value.dim() != 3 || key.dim() != 3 || value.size(2) <= key.size(2), "value has shape ",
         value.sizes(), ", expected at most key's ", key.size(2), " elements in a head");
}

at::Tensor with_rotary(const char* name, const at::Tensor& part,
                       const std::optional<at::Tensor>& rotary) {
  if (!rotary) return part;
  expect_dtype(name, *rotary, part);
  EXPECT(part.dim() == 3 && rotary->dim() == 3 && rotary->size(0) == part.size(0) &&
             rotary->size(1) == part.size(1) && rotary->size(2) <= part.size(2),
         name, " has shape ", rotary->sizes(), ", expected ", part.sizes(),
         " with as many elements in a head or fewer");
  const at::Tensor parts[] = {part, *rotary};
  return at::cat(at::TensorList(parts), 2);
}

void check_rotary(const RotaryParts& rotary, const AttentionArguments& arguments) {
  EXPECT(rotary.query.has_value() == rotary.key.has_value(),
         "one of the rotary parts of query and key is null, expected both or none");
  if (!rotary.query) return;
  EXPECT(!arguments.shift, "the shift is given, expected null with rotary parts");
  EXPECT(!arguments.drop_mask, "dropMaskOptional is given, expected null with rotary parts");
  EXPECT(arguments.mask, "attenMaskOptional is null, expected a mask with rotary parts");
  EXPECT(arguments.keep == 1, "keepProb is ", arguments.keep, ", expected 1 with rotary parts");
  EXPECT(arguments.shift_type == kScaleThenShift || arguments.shift_type == kShiftThenScale,
         "pseType is ", arguments.shift_type, ", expected 0 or 1 with rotary parts");
}

}  // namespace aclnn_host
