// Attention for inference, one sequence at a time: with the scores S = scale Q K^T + shift, some of
// them masked, the result is softmax(S) V. Sequences may be shorter than their tensors.
#include "cann/rows/attention/inference.h"

#include "cann/rows/attention/caches.h"
#include "cann/rows/attention/head_sequences.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/masks.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One scale for the whole tensor. A scale of UINT64 has the bits of a FLOAT in its lower half.
at::Tensor single_scale(const char* name, const std::optional<at::Tensor>& scale) {
  EXPECT(given(scale) && scale->numel() == 1, name, " is ",
         scale ? "a tensor of several elements" : "null",
         ", expected a scale of one element for a query of INT8");
  expect_dtype(name, *scale, {at::kFloat, at::kBFloat16, at::kUInt64});
  const at::Tensor one = scale->reshape({1});
  if (one.scalar_type() != at::kUInt64) return one.to(at::kFloat);
  return one.contiguous().view(at::kFloat).narrow(0, 0, 1);
}

class Inference {
 public:
  Inference(const InferenceArguments& arguments, const Output& out)
      : a_(arguments),
        layout_(a_.layout.empty() ? "BSH" : a_.layout, a_.layouts),
        heads_(positive_heads()),
        key_heads_(a_.key_heads == 0 ? heads_ : a_.key_heads),
        query_(layout_.read("query", a_.query, heads_)),
        keys_("key", a_.key, a_, layout_, checked_key_heads()),
        values_("value", a_.value, a_, layout_, key_heads_) {
    check_dtypes(out);
    expect_range("innerPrecise", a_.inner_precise, 0, 3);
    EXPECT(query_.size(3) == keys_.head_size(), "key has heads of ", keys_.head_size(),
           " elements, expected those of query, ", query_.size(3));
    find_spans();
    add_rope();
    check_prefix();
    check_shift();
    check_blocks();
    mask_ = mask_by_rows(a_, query_, layout_.is_packed(), sees_all());
  }

  void run(Output& out, OptionalOutput* lse) {
    const auto options = a_.query.options().dtype(at::kFloat);
    const int64_t batches = query_.size(0);
    const int64_t size = query_.size(2);
    at::Tensor result = at::zeros({batches, heads_, size, values_.head_size()}, options);
    at::Tensor sums = at::full({batches, heads_, size, 1}, kInfinity, options);
    for (size_t i = 0; i < queries_.size(); ++i) {
      const Span& query = queries_[i];
      if (query.length == 0 || key_size(i) == 0) continue;
      const auto [x, sum] = attention(i);
      result.select(0, query.batch).narrow(1, query.start, query.length).copy_(x);
      sums.select(0, query.batch).narrow(1, query.start, query.length).copy_(sum);
    }
    if (out->scalar_type() == at::kChar) result = quantised(result);
    const at::Tensor in_layout = layout_.to_layout(result);
    expect_shape(out.name(), out, in_layout.sizes());
    out = out->scalar_type() == at::kChar ? in_layout.to(at::kChar) : in_layout;
    if (lse == nullptr) return;
    EXPECT(*lse, "softmaxLse is null, expected a tensor as softmaxLseFlag is true");
    expect_dtype("softmaxLse", **lse, at::kFloat);
    if (!a_.sums_have_last) sums = sums.squeeze(3);
    *lse = layout_.is_packed() ? sums.select(0, 0).transpose(0, 1) : sums;
  }

 private:
  int64_t positive_heads() const {
    expect_at_least("numHeads", a_.heads, 1);
    return a_.heads;
  }
  int64_t checked_key_heads() const {
    EXPECT(key_heads_ > 0 && heads_ % key_heads_ == 0, "numKeyValueHeads is ", key_heads_,
           ", expected 0 or a divisor of numHeads, ", heads_);
    EXPECT(given(a_.query_rope) || heads_ / key_heads_ <= 64, "numKeyValueHeads is ", key_heads_,
           ", expected ", (heads_ + 63) / 64, " or more, one for 64 of numHeads, ", heads_);
    return key_heads_;
  }

  bool is_quantised() const { return a_.query.scalar_type() == at::kChar; }
  // True if position masks do not apply, because a single query is the last token of its sequence.
  bool sees_all() const {
    return a_.single_query_sees_all && !layout_.is_packed() && query_.size(2) == 1 &&
           !given(a_.query_rope);
  }

  void check_dtypes(const Output& out) const {
    const at::ScalarType type = a_.query.scalar_type();
    expect_dtype("query", a_.query, {at::kHalf, at::kBFloat16, at::kFloat, at::kChar});
    const at::Tensor& key = a_.key[0];
    expect_dtype("value", a_.value[0], key);
    if (key.scalar_type() != at::kChar || is_quantised()) expect_dtype("key", key, a_.query);
    if (key.scalar_type() == at::kChar && !is_quantised()) {
      EXPECT(a_.key_antiquant.is_given() && a_.value_antiquant.is_given(),
             "key has dtype INT8, expected the dtype of query, or scales in ",
             a_.key_antiquant.scale_name);
    }
    for (const Antiquantisation* each : {&a_.key_antiquant, &a_.value_antiquant}) {
      static constexpr auto kTypes = {at::kHalf, at::kBFloat16, at::kFloat};
      if (given(each->scale)) expect_dtype(each->scale_name, *each->scale, kTypes);
      if (given(each->offset)) expect_dtype(each->offset_name, *each->offset, kTypes);
    }
    const at::ScalarType out_type = out->scalar_type();
    const bool is_plain = is_quantised() ? out_type == at::kHalf : out_type == type;
    EXPECT(is_plain || out_type == at::kChar, out.name(), " has dtype ", dtype_text(out_type),
           ", expected ", is_quantised() ? "FLOAT16" : dtype_text(type), " or INT8");
    EXPECT(given(a_.quant_scale2) == (out_type == at::kChar), "quantScale2 is ",
           given(a_.quant_scale2) ? "given" : "null", ", expected ",
           out_type == at::kChar ? "a scale" : "null", " as ", out.name(), " has dtype ",
           dtype_text(out_type));
    EXPECT(!given(a_.quant_offset2) || out_type == at::kChar,
           "quantOffset2 is given, expected null as ", out.name(), " has dtype ",
           dtype_text(out_type));
    if (is_quantised()) {
      EXPECT(!a_.single_query_sees_all || query_.size(2) != 1,
             "query has dtype INT8, expected FLOAT16 or BFLOAT16 for a single query of each ",
             "sequence");
      single_scale("deqScale1", a_.dequant_scale1);
      single_scale("quantScale1", a_.quant_scale1);
      single_scale("deqScale2", a_.dequant_scale2);
    } else {
      refuse_given({{"deqScale1", given(a_.dequant_scale1)},
                    {"quantScale1", given(a_.quant_scale1)},
                    {"deqScale2", given(a_.dequant_scale2)}});
    }
  }

  void find_spans() {
    const int64_t size = query_.size(2);
    constexpr int64_t kMostBatches = 65536;  // the limit in the documents
    EXPECT(query_.size(0) <= kMostBatches, "query has ", query_.size(0),
           " batches, expected at most ", kMostBatches);
    if (layout_.is_packed()) {
      queries_ = packed_spans("actualSeqLengths", a_.query_lengths, size);
      const auto batches = static_cast<int64_t>(queries_.size());
      if (keys_.is_paged()) {
        expect_batches("blockTable", keys_.batches(), batches);
      } else {
        key_spans_ = packed_spans(a_.key_lengths_name, a_.key_lengths, keys_.capacity(0));
        expect_batches(a_.key_lengths_name, static_cast<int64_t>(key_spans_.size()), batches);
      }
    } else {
      const Lengths& lengths = size == 1 && a_.single_query_sees_all ? Lengths() : a_.query_lengths;
      queries_ = padded_spans("actualSeqLengths", lengths, query_.size(0), size);
      expect_batches(keys_.is_paged() ? "blockTable" : "key", keys_.batches(), query_.size(0));
    }
    expect_batches("value", values_.batches(), keys_.batches());
    EXPECT(a_.key_lengths || !keys_.is_paged(), a_.key_lengths_name, " is null, expected the ",
           "lengths of the sequences as there is a block table");
    if (key_spans_.empty()) {
      const auto batches = static_cast<int64_t>(queries_.size());
      int64_t capacity = 0;
      for (int64_t i = 0; i < batches; ++i) capacity = std::max(capacity, keys_.capacity(i));
      key_spans_ = padded_spans(a_.key_lengths_name, a_.key_lengths, batches, capacity);
    }
    for (Span& span : key_spans_) {
      const int64_t capacity = keys_.capacity(span.batch);
      if (!a_.key_lengths) span.length = capacity;
      EXPECT(span.length <= capacity, a_.key_lengths_name, " has an element ", span.length,
             ", expected at most ", capacity, " for batch ", span.batch);
      EXPECT(values_.capacity(span.batch) == capacity, "value has sequences of ",
             values_.capacity(span.batch), " elements, expected those of key, ", capacity);
    }
    pad();
  }
  void expect_batches(const char* name, int64_t found, int64_t expected) const {
    EXPECT(found == expected, name, " has ", found, " batches, expected ", expected);
  }

  // A padding on the left is read only if there are lengths, too.
  void pad() {
    const int64_t size = query_.size(2);
    if (given(a_.query_padding) && a_.query_lengths && size > 1) {
      refuse_padding_beside("queryPaddingSize");
      pad_left("queryPaddingSize", queries_, *a_.query_padding, size, /*empties=*/false);
    }
    if (given(a_.key_padding) && a_.key_lengths) {
      refuse_padding_beside("kvPaddingSize");
      pad_left("kvPaddingSize", key_spans_, *a_.key_padding, keys_.capacity(0),
               /*empties=*/size == 1 && a_.single_query_sees_all);
    }
  }
  void refuse_padding_beside(const char* name) {
    EXPECT(!layout_.is_packed() && !keys_.is_paged() && a_.key.size() == 1 && !given(a_.key_prefix),
           name, " is given, expected null beside a block table, a list of keys, a prefix or",
           " a packed layout");
    is_padded_ = true;
  }

  void add_rope() {
    EXPECT(given(a_.query_rope) == given(a_.key_rope), "keyRope is ",
           given(a_.key_rope) ? "given" : "null", ", expected queryRope and keyRope together");
    if (!given(a_.query_rope)) return;
    expect_dtype("queryRope", *a_.query_rope, a_.query);
    expect_dtype("keyRope", *a_.key_rope, a_.key[0]);
    EXPECT(!is_quantised() && a_.key.size() == 1 && a_.key[0].scalar_type() != at::kChar,
           "queryRope is given, expected null with keys of INT8 or a list of keys");
    const at::Tensor rope = layout_.read("queryRope", *a_.query_rope, heads_);
    ropes_.emplace("keyRope", std::vector<at::Tensor>{*a_.key_rope}, a_, layout_, key_heads_);
    EXPECT(rope.sizes().slice(0, 3) == query_.sizes().slice(0, 3) &&
               rope.size(3) == ropes_->head_size(),
           "queryRope has shape ", a_.query_rope->sizes(),
           ", expected the one of query but for the elements of a head, which are keyRope's");
    expect_batches("keyRope", ropes_->batches(), keys_.batches());
    for (const Span& span : key_spans_) {
      EXPECT(ropes_->capacity(span.batch) == keys_.capacity(span.batch), "keyRope has shape ",
             a_.key_rope->sizes(), ", expected sequences as long as those of key");
    }
    query_ = at::cat({query_, rope}, 3);
  }

  void check_prefix() {
    EXPECT(given(a_.key_prefix) == given(a_.value_prefix), "valueSharedPrefix is ",
           given(a_.value_prefix) ? "given" : "null",
           ", expected keySharedPrefix and valueSharedPrefix together");
    if (!given(a_.key_prefix)) return;
    EXPECT(!layout_.is_packed() && !keys_.is_paged() && a_.key.size() == 1 && !is_quantised() &&
               !given(a_.query_rope),
           "keySharedPrefix is given, expected null beside a block table, a list of keys, a ",
           "packed layout, queryRope or a query of INT8");
    expect_dtype("keySharedPrefix", *a_.key_prefix, a_.key[0]);
    expect_dtype("valueSharedPrefix", *a_.value_prefix, a_.value[0]);
    const at::Tensor key = layout_.read("keySharedPrefix", *a_.key_prefix, key_heads_);
    const at::Tensor value = layout_.read("valueSharedPrefix", *a_.value_prefix, key_heads_);
    EXPECT(key.size(0) == 1 && key.size(3) == keys_.head_size(), "keySharedPrefix has shape ",
           a_.key_prefix->sizes(), ", expected one batch of heads of ", keys_.head_size(),
           " elements");
    EXPECT(
        value.size(0) == 1 && value.size(3) == values_.head_size() && value.size(2) == key.size(2),
        "valueSharedPrefix has shape ", a_.value_prefix->sizes(), ", expected one batch of ",
        key.size(2), " elements, in heads of ", values_.head_size());
    const std::vector<Span> spans =
        padded_spans("actualSharedPrefixLen", a_.prefix_length, 1, key.size(2));
    prefix_size_ = spans[0].length;
    key_prefix_ = key.select(0, 0).narrow(1, 0, prefix_size_);
    value_prefix_ = value.select(0, 0).narrow(1, 0, prefix_size_);
  }

  void check_shift() const {
    if (!given(a_.shift)) return;
    const at::Tensor& shift = *a_.shift;
    EXPECT(!layout_.is_packed(), "pseShift is given, expected null for a packed layout");
    const bool is_half = is_quantised() && shift.scalar_type() == at::kHalf;
    if (!is_half) expect_dtype("pseShift", shift, a_.query);
    EXPECT(shift.dim() == 4 && (shift.size(0) == 1 || shift.size(0) == query_.size(0)) &&
               shift.size(1) == heads_ && shift.size(2) >= query_.size(2),
           "pseShift has shape ", shift.sizes(), ", expected 1 or ", query_.size(0), " batches of ",
           heads_, " heads with ", query_.size(2), " rows");
  }

  void check_blocks() const {
    if (!a_.blocks) return;
    expect_tensor("sabi", a_.blocks->lists, at::kUInt16,
                  {query_.size(0), heads_, count_of_blocks(query_.size(2), a_.blocks->block[0]),
                   count_of_blocks(keys_.capacity(0), a_.blocks->block[1])});
  }

  int64_t key_size(size_t i) const { return prefix_size_ + key_spans_[i].length; }

  // The part of a mask or a shift that belongs to one sequence. Its last two dimensions are those
  // of the scores.
  at::Tensor part(const char* name, const at::Tensor& whole, size_t i) const {
    const Span& query = queries_[i];
    const Span& key = key_spans_[i];
    EXPECT(whole.size(-1) >= key.start + key_size(i), name, " has ", whole.size(-1),
           " columns, expected at least ", key.start + key_size(i));
    return whole.select(0, whole.size(0) == 1 ? 0 : query.batch)
        .narrow(-2, query.start, query.length)
        .narrow(-1, key.start, key_size(i));
  }

  // Flags of the scores that masks or blocks hide; nothing if none are hidden.
  std::optional<at::Tensor> hidden(size_t i, const at::Tensor& scores) const {
    std::optional<at::Tensor> result = masked(i, scores);
    if (!a_.blocks) return result;
    const at::Tensor own = a_.blocks->lists.select(0, queries_[i].batch).to(at::kLong);
    const at::Tensor flags =
        listed_blocks("sabi", own, own.ne(ListedBlocks::kNoBlock), own.size(2));
    const at::Tensor outside =
        outside_of_blocks(flags, a_.blocks->block, queries_[i].length, key_size(i));
    return result ? result->logical_or(outside) : outside;
  }

  // Flags of the masked scores; nothing if none are masked.
  std::optional<at::Tensor> masked(size_t i, const at::Tensor& scores) const {
    std::optional<at::Tensor> result;
    if (mask_) result = part("attenMask", *mask_, i);
    const int64_t queries = queries_[i].length;
    const int64_t keys = key_size(i);
    const auto band = band_of(a_, queries, keys);
    if (!band || sees_all() || (a_.sparse_mode == kMask && is_padded_)) return result;
    EXPECT(!given(a_.quant_offset2) || band->leaves_keys_for(queries, keys),
           "quantOffset2 is given, expected null where masks leave a query without keys");
    const at::Tensor ahead = keys_ahead(queries, keys, scores.options());
    const at::Tensor outside = ahead.gt(band->most).logical_or(ahead.lt(band->least));
    return result ? result->logical_or(outside) : outside;
  }

  at::Tensor read(const SequenceReader& reader, const Antiquantisation& antiquant,
                  const std::optional<at::Tensor>& prefix, size_t i) const {
    const Span& span = key_spans_[i];
    const auto read_as_float = [&](const at::Tensor& elements, const Span& part) {
      if (elements.scalar_type() != at::kChar || is_quantised()) return elements.to(at::kFloat);
      Antiquantisation parameters = antiquant;
      if (antiquant.is_joint && query_.size(2) > 1) parameters.mode = 0;
      return antiquantised(elements, parameters, part, static_cast<int64_t>(key_spans_.size()));
    };
    const at::Tensor result = read_as_float(reader.read(span), span);
    if (!prefix) return result;
    return at::cat({read_as_float(*prefix, {span.batch, 0, prefix_size_}), result}, 1);
  }

  // The result and the log-sum-exp of a sequence that has queries and keys.
  std::pair<at::Tensor, at::Tensor> attention(size_t i) const {
    const Span& span = queries_[i];
    const at::Tensor query =
        query_.select(0, span.batch).narrow(1, span.start, span.length).to(at::kFloat);
    at::Tensor key = read(keys_, a_.key_antiquant, key_prefix_, i);
    if (ropes_) key = at::cat({key, ropes_->read(key_spans_[i]).to(at::kFloat)}, 2);
    const at::Tensor value = read(values_, a_.value_antiquant, value_prefix_, i);
    // Consecutive heads of queries share a head of keys and values.
    const auto by_key_heads = [&](const at::Tensor& tensor) {
      return tensor.reshape({key_heads_, heads_ / key_heads_ * span.length, tensor.size(2)});
    };
    at::Tensor scores = at::matmul(by_key_heads(query), key.transpose(1, 2))
                            .reshape({heads_, span.length, key.size(1)});
    if (is_quantised()) scores = scores * single_scale("deqScale1", a_.dequant_scale1);
    scores = scores * a_.scale;
    if (given(a_.shift)) scores = scores + part("pseShift", *a_.shift, i).to(at::kFloat);
    if (const auto mask = hidden(i, scores)) scores = scores.masked_fill(*mask, -kInfinity);
    // A query whose keys are all masked has the result 0.
    const at::Tensor largest = at::amax(scores, 2, /*keepdim=*/true);
    const at::Tensor no_keys = largest.eq(-kInfinity);
    at::Tensor weights = (scores - largest.masked_fill(no_keys, 0)).exp();
    const at::Tensor sum = weights.sum(2, /*keepdim=*/true);
    // A device quantises the weights before it divides them by their sum.
    if (is_quantised()) {
      weights = rounded_to_int8(weights * single_scale("quantScale1", a_.quant_scale1));
    }
    at::Tensor result =
        at::matmul(by_key_heads(weights), value).reshape({heads_, span.length, value.size(2)});
    if (is_quantised()) result = result * single_scale("deqScale2", a_.dequant_scale2);
    return {result / sum.masked_fill(no_keys, 1),
            (sum.log() + largest).masked_fill(no_keys, kInfinity)};
  }

  // Quantises the result to INT8, with scales for the whole tensor or for each element of the
  // heads.
  at::Tensor quantised(const at::Tensor& result) const {
    const auto shaped = [&](const char* name, const at::Tensor& parameters) {
      expect_dtype(name, parameters, {at::kFloat, at::kBFloat16});
      return by_channel(name, parameters.to(at::kFloat), heads_, result.size(3));
    };
    at::Tensor scaled = result * shaped("quantScale2", *a_.quant_scale2);
    if (given(a_.quant_offset2)) {
      expect_like("quantOffset2", *a_.quant_offset2, *a_.quant_scale2);
      scaled = scaled + shaped("quantOffset2", *a_.quant_offset2);
    }
    return rounded_to_int8(scaled);
  }

  const InferenceArguments& a_;
  AttentionLayout layout_;
  int64_t heads_;
  int64_t key_heads_;
  at::Tensor query_;  // B, N, S, D
  SequenceReader keys_;
  SequenceReader values_;
  std::optional<SequenceReader> ropes_;
  std::vector<Span> queries_;
  std::vector<Span> key_spans_;
  bool is_padded_ = false;
  int64_t prefix_size_ = 0;
  std::optional<at::Tensor> key_prefix_;  // N, S, D
  std::optional<at::Tensor> value_prefix_;
  std::optional<at::Tensor> mask_;  // B, S of queries, S of keys
};

}  // namespace

at::Tensor rounded_to_int8(const at::Tensor& x) {
  return at::clamp(at::nan_to_num(at::round(x), 0.0, 127, -128), -128, 127);
}

Lengths lengths_of(const at::OptionalIntArrayRef& array) {
  return given(array) ? Lengths(array->vec()) : std::nullopt;
}

void refuse_given(std::initializer_list<std::pair<const char*, bool>> arguments) {
  for (const auto& [name, is_given] : arguments) {
    EXPECT(!is_given, name, " is given, expected null; the host CANN does not emulate ",
           "attention with this argument here");
  }
}

void split_antiquant(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, int64_t mode) {
  if (!given(scale)) return;
  EXPECT(scale->dim() > 0 && scale->size(0) == 2, "antiquantScale has shape ", scale->sizes(),
         ", expected a first dimension of 2, for key and value");
  EXPECT(!given(offset) || offset->sizes() == scale->sizes(), "antiquantOffset has shape ",
         offset->sizes(), ", expected ", scale->sizes());
  const auto half = [](const std::optional<at::Tensor>& both, int64_t i) {
    return given(both) ? std::optional(both->select(0, i)) : std::nullopt;
  };
  arguments.key_antiquant = {"antiquantScale",
                             "antiquantOffset",
                             "antiquantMode",
                             half(scale, 0),
                             half(offset, 0),
                             mode,
                             true};
  arguments.value_antiquant = {"antiquantScale",
                               "antiquantOffset",
                               "antiquantMode",
                               half(scale, 1),
                               half(offset, 1),
                               mode,
                               true};
}

void infer_attention(const InferenceArguments& arguments, Output& out, OptionalOutput* lse) {
  Inference(arguments, out).run(out, lse);
}

}  // namespace aclnn_host
