// Attention of training over packed sequences: see packed.h.

#include "cann/rows/attention/packed.h"

#include "cann/rows/attention/heads.h"
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

int64_t longest(const std::vector<SequencePart>& parts) {
  int64_t most = 0;
  for (const SequencePart& part : parts) most = std::max(most, part.size);
  return most;
}

namespace {

// The sums, with the last one in place of zeros at the end.
std::vector<SequencePart> parts_until_zeros(const char* name, const at::OptionalIntArrayRef& sums,
                                            int64_t total) {
  std::vector<int64_t> own = sums ? sums->vec() : std::vector<int64_t>();
  const auto is_used = [](int64_t sum) { return sum != 0; };
  const auto end = std::find_if(own.rbegin(), own.rend(), is_used).base();
  std::fill(end, own.end(), end == own.begin() ? 0 : *(end - 1));
  return parts_of(name, own, total);
}

}  // namespace

PackedSequences sequences_of(const at::Tensor& query, const at::OptionalIntArrayRef& query_sums,
                             const at::Tensor& key, const at::OptionalIntArrayRef& key_sums) {
  const PackedSequences sequences{
      parts_until_zeros("actualSeqQLenOptional", query_sums, query.size(0)),
      parts_until_zeros("actualSeqKvLenOptional", key_sums, key.size(0))};
  EXPECT(sequences.queries.size() == sequences.keys.size(), "actualSeqKvLenOptional has ",
         sequences.keys.size(), " elements, expected ", sequences.queries.size(),
         " as actualSeqQLenOptional");
  return sequences;
}

void check_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::string& layout, int64_t heads) {
  expect_text("inputLayout", layout, {"TND"});
  expect_dims("query", query, 3);
  expect_dims("key", key, 3);
  expect_dims("value", value, 3);
  EXPECT(query.size(1) == heads, "headNum is ", heads, ", expected ", query.size(1),
         ", the heads of query");
  EXPECT(key.size(1) > 0 && heads % key.size(1) == 0, "query has ", heads,
         " heads, expected a multiple of the ", key.size(1), " heads of key");
  EXPECT(key.size(2) == query.size(2) && key.size(2) > 0, "key has shape ", key.sizes(),
         ", expected query's ", query.size(2), " elements in a head, one or more");
  EXPECT(value.size(0) == key.size(0) && value.size(1) == key.size(1), "value has shape ",
         value.sizes(), ", expected the tokens and heads of key's ", key.sizes());
}

PackedAttention::PackedAttention(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const std::string& layout,
                                 const at::OptionalIntArrayRef& query_sums,
                                 const at::OptionalIntArrayRef& key_sums,
                                 const AttentionArguments& arguments)
    : query_(query), key_(key), value_(value), arguments_(arguments) {
  check_attention(query, key, value, arguments);
  check_packed(query, key, value, layout, arguments.heads);
  sequences_ = sequences_of(query, query_sums, key, key_sums);
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
  AttentionInputs inputs{read(query_, queries(i)), read(key_, keys(i)), read(value_, keys(i)),
                         arguments_.scale};
  inputs.shifts_first = arguments_.shift_type == kShiftThenScale;
  inputs.shift = shift(i);
  inputs.hidden = hidden(i);
  inputs.sink = arguments_.sink;
  inputs.forward = std::move(forward);
  if (arguments_.drop_mask) {
    inputs.kept = kept_of(*arguments_.drop_mask, scores_before_[i] * arguments_.heads,
                          {1, arguments_.heads, queries(i).size, keys(i).size}, arguments_.keep);
  }
  return SoftmaxAttention(std::move(inputs));
}

void PackedAttention::measure() {
  longest_queries_ = longest(sequences_.queries);
  longest_keys_ = longest(sequences_.keys);
  for (size_t i = 0; i < count(); ++i) {
    scores_before_.push_back(scores_);
    int64_t scores = 0;
    int64_t of_heads = 0;
    EXPECT(!__builtin_mul_overflow(queries(i).size, keys(i).size, &scores) &&
               !__builtin_add_overflow(scores_, scores, &scores_) &&
               !__builtin_mul_overflow(scores_, arguments_.heads, &of_heads),
           "query and key have shapes ", query_.sizes(), " and ", key_.sizes(),
           ", expected fewer scores");
    if (scores == 0) continue;
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
  EXPECT(arguments_.sparse_mode != kRightDownCausalThenBand, arguments_.shift_name,
         " is given, expected null for sparseMode 7");
  const at::Tensor& shift = *arguments_.shift;
  const char* const name = arguments_.shift_name;
  const int64_t heads = arguments_.heads;
  const auto sequences = static_cast<int64_t>(count());
  if (arguments_.makes_shift()) {
    EXPECT(shift.sizes() == at::IntArrayRef({heads}) ||
               shift.sizes() == at::IntArrayRef({sequences, heads}),
           name, " has shape ", shift.sizes(), ", expected slopes of shape [", heads, "] or [",
           sequences, ", ", heads, "]");
    for (size_t i = 0; i < count(); ++i) check_made_shift(i);
    return;
  }
  if (shift.dim() == 1) {
    const int64_t of_keys = total(sequences_.keys) * heads;
    EXPECT(shift.numel() == of_keys || shift.numel() == scores(), name, " has ", shift.numel(),
           " elements, expected ", scores(), ", one for each score, or ", of_keys,
           ", one for each key");
    return;
  }
  expect_sizes(name, shift,
               {Size::or_one(sequences), heads, Size::or_one(longest_queries_), longest_keys_},
               "; the host CANN takes no shift in another form");
}

void PackedAttention::check_mask() const {
  if (!has_whole_mask()) return;
  if (masks_all_sequences()) return;
  aclnn_host::check_mask(*arguments_.mask, static_cast<int64_t>(count()), arguments_.heads,
                         longest_queries_, longest_keys_, ", the longest sequences");
}

bool PackedAttention::masks_all_sequences() const {
  const at::IntArrayRef sizes = arguments_.mask->sizes();
  return sizes != at::IntArrayRef({longest_queries_, longest_keys_}) &&
         sizes == at::IntArrayRef({total(sequences_.queries), total(sequences_.keys)});
}

std::optional<at::Tensor> PackedAttention::shift(size_t i) const {
  if (!arguments_.shift) return std::nullopt;
  const at::Tensor& shift = *arguments_.shift;
  const SequencePart &queries = sequences_.queries[i], &keys = sequences_.keys[i];
  const int64_t heads = arguments_.heads;
  if (arguments_.makes_shift()) return made_shift(i);
  if (shift.dim() == 1 && shift.numel() == total(sequences_.keys) * heads) {
    return shift.narrow(0, keys.first * heads, keys.size * heads)
        .view({1, heads, 1, keys.size})
        .to(at::kFloat);
  }
  if (shift.dim() == 1) {
    return shift.narrow(0, scores_before_[i] * heads, queries.size * keys.size * heads)
        .view({1, heads, queries.size, keys.size})
        .to(at::kFloat);
  }
  const int64_t sequence = shift.size(0) == 1 ? 0 : static_cast<int64_t>(i);
  const at::Tensor whole = shift.narrow(0, sequence, 1).narrow(3, 0, keys.size).to(at::kFloat);
  return shift.size(2) == longest_queries_ ? whole.narrow(2, 0, queries.size) : whole;
}

std::pair<int64_t, int64_t> PackedAttention::starts(size_t i) const {
  // In this mode, sequences that were cut apart have a start in the first sequence only.
  if (arguments_.sparse_mode == kBandThenLeftUpCausal && i != 0) return {0, 0};
  return {first_of("qStartIdxOptional", arguments_.query_start),
          first_of("kvStartIdxOptional", arguments_.key_start)};
}

void PackedAttention::check_made_shift(size_t i) const {
  const int64_t queries = sequences_.queries[i].size, keys = sequences_.keys[i].size;
  const auto [query_start, key_start] = starts(i);
  const bool is_cut = arguments_.sparse_mode == kBandThenLeftUpCausal && i == 0 &&
                      queries - keys + query_start - key_start == 0;
  EXPECT(queries == keys || is_cut, "sequence ", i, " has ", queries, " tokens of query and ", keys,
         " of key, expected as many for pseType ", arguments_.shift_type);
}

at::Tensor PackedAttention::made_shift(size_t i) const {
  const auto [query_start, key_start] = starts(i);
  const at::Tensor& slopes = *arguments_.shift;
  const at::Tensor own =
      slopes.dim() == 2 ? slopes.narrow(0, static_cast<int64_t>(i), 1) : slopes.unsqueeze(0);
  return distance_shift(own.unsqueeze(-1).unsqueeze(-1), arguments_.shift_type, queries(i).size,
                        keys(i).size, query_start, key_start);
}

std::optional<at::Tensor> PackedAttention::mask(size_t i) const {
  if (!has_whole_mask()) return std::nullopt;
  const at::Tensor& mask = *arguments_.mask;
  const SequencePart &queries = sequences_.queries[i], &keys = sequences_.keys[i];
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
                       queries(i).size, keys(i).size, query_.options());
}

bool is_as_input(const char* name, const std::string& layout) {
  expect_text(name, layout, {"", "same_as_input"});
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

void write_softmax(const at::Tensor& packed, const SequencePart& part, const at::Tensor& values,
                   bool as_input) {
  const at::Tensor copies = values.squeeze(0).expand({-1, -1, kSoftmaxCopies});
  const at::Tensor own = packed.narrow(0, part.first, part.size);
  own.copy_(as_input ? copies.transpose(0, 1) : copies.reshape(own.sizes()));
}

// Reads the softmax that write_softmax() wrote.
at::Tensor read_softmax(const at::Tensor& packed, const SequencePart& part, bool as_input) {
  const at::Tensor own = packed.narrow(0, part.first, part.size);
  const at::Tensor by_head =
      as_input ? own.transpose(0, 1) : own.reshape({own.size(1), own.size(0), own.size(2)});
  return by_head.narrow(2, 0, 1).unsqueeze(0);
}

}  // namespace

PackedResults::PackedResults(const at::Tensor& query, const at::Tensor& value)
    : largest(at::zeros({query.size(0), query.size(1), kSoftmaxCopies},
                        query.options().dtype(at::kFloat))),
      sum(at::zeros_like(largest)),
      results(at::zeros({query.size(0), query.size(1), value.size(2)}, largest.options())) {}

void PackedResults::write(const SequencePart& part, const SoftmaxAttention& attention,
                          bool as_input) const {
  write_softmax(largest, part, attention.largest(), as_input);
  write_softmax(sum, part, attention.sum(), as_input);
  PackedAttention::write(results, part, attention.result());
}

void write_attention(const at::Tensor& query, const at::Tensor& value,
                     const PackedAttention& sequences, bool as_input, Output& softmax_max,
                     Output& softmax_sum, Output& out) {
  check_softmax("softmaxMaxOut", softmax_max, query, as_input);
  check_softmax("softmaxSumOut", softmax_sum, query, as_input);
  const PackedResults packed(query, value);
  for (size_t i = 0; has_values(query) && i < sequences.count(); ++i) {
    if (sequences.queries(i).size == 0) continue;
    packed.write(sequences.queries(i), sequences.attention(i), as_input);
  }
  softmax_max = packed.largest.view(softmax_max->sizes());
  softmax_sum = packed.sum.view(softmax_sum->sizes());
  out = packed.results;
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
  return at::cat({part, *rotary}, 2);
}

void check_rotary(const RotaryParts& rotary, const AttentionArguments& arguments) {
  expect_both_or_none("queryRope", rotary.query.has_value(), rotary.key_name,
                      rotary.key.has_value());
  if (!rotary.query) return;
  EXPECT(!arguments.shift, arguments.shift_name, " is given, expected null with rotary parts");
  EXPECT(!arguments.drop_mask, "dropMaskOptional is given, expected null with rotary parts");
  EXPECT(arguments.mask, "attenMaskOptional is null, expected a mask with rotary parts");
  EXPECT(arguments.keep == 1, "keepProb is ", arguments.keep, ", expected 1 with rotary parts");
  EXPECT(arguments.shift_type == kScaleThenShift || arguments.shift_type == kShiftThenScale,
         "pseType is ", arguments.shift_type, ", expected 0 or 1 with rotary parts");
}

}  // namespace aclnn_host
