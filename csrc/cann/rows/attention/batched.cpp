// Attention of training and its gradients for sequences of one length, with all kinds of shifts:
// see training.h.

#include "cann/rows/attention/batched.h"
#include "cann/rows/attention/caches.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

constexpr std::string_view kLayouts[] = {"BNSD", "BSND", "BSH", "SBH"};

struct Batch {
  int64_t size = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t heads = 0;
};

std::optional<at::Tensor> shift_of(const AttentionArguments& arguments, const Batch& batch) {
  if (!arguments.shift) return std::nullopt;
  const at::Tensor& shift = *arguments.shift;
  const char* const name = arguments.shift_name;
  if (arguments.makes_shift()) {
    EXPECT(batch.queries == batch.keys, "key has sequences of ", batch.keys,
           " elements, expected those of query, ", batch.queries, ", for pseType ",
           arguments.shift_type);
    EXPECT(shift.sizes() == at::IntArrayRef({batch.heads}) ||
               shift.sizes() == at::IntArrayRef({batch.size, batch.heads}),
           name, " has shape ", shift.sizes(), ", expected slopes of shape [", batch.heads,
           "] or [", batch.size, ", ", batch.heads, "]");
    return distance_shift(shift.unsqueeze(-1).unsqueeze(-1), arguments.shift_type, batch.queries,
                          batch.keys, first_of("qStartIdxOptional", arguments.query_start),
                          first_of("kvStartIdxOptional", arguments.key_start));
  }
  expect_sizes(name, shift,
               {Size::or_one(batch.size), batch.heads, Size::or_one(batch.queries), batch.keys},
               "; the host CANN takes no shift in another form");
  return shift.to(at::kFloat);
}

// The mask of a mode without compression, in a shape that broadcasts to the scores.
std::optional<at::Tensor> mask_of(const AttentionArguments& arguments, const Batch& batch) {
  const bool is_compressed = arguments.sparse_mode != kDefaultMask &&
                             arguments.sparse_mode != kAllMask && arguments.sparse_mode != kPrefix;
  if (!arguments.mask || is_compressed) return std::nullopt;
  check_mask(*arguments.mask, batch.size, batch.heads, batch.queries, batch.keys);
  return arguments.mask->to(at::kBool);
}

std::optional<at::Tensor> hidden_of(const AttentionArguments& arguments, const Batch& batch,
                                    const at::TensorOptions& options) {
  const std::optional<at::Tensor> mask = mask_of(arguments, batch);
  const int64_t mode = arguments.sparse_mode;
  if (!arguments.mask || (mode != kPrefix && mode != kPrefixCompressed)) {
    return hidden_scores(mode, arguments, mask, 0, batch.queries, batch.keys, options);
  }
  const size_t count = arguments.prefix ? arguments.prefix->size() : 0;
  EXPECT(static_cast<int64_t>(count) == batch.size, "prefixOptional has ", count,
         " elements, expected ", batch.size, ", one for each batch");
  std::vector<at::Tensor> hidden;
  for (int64_t b = 0; b < batch.size; ++b) {
    std::optional<at::Tensor> part = mask;
    if (part && part->dim() == 4) part = part->select(0, part->size(0) == 1 ? 0 : b);
    const at::Tensor flags =
        *hidden_scores(mode, arguments, part, (*arguments.prefix)[static_cast<size_t>(b)],
                       batch.queries, batch.keys, options);
    hidden.push_back(flags.dim() == 2 ? flags.unsqueeze(0) : flags);
  }
  return hidden.empty() ? std::nullopt : std::optional(at::stack(hidden));
}

struct Batched {
  Batched(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
          const AttentionArguments& arguments, const std::string& layout_name,
          std::optional<Source> source, const RotaryParts& rotary, const ForwardPass& forward = {})
      : layout(layout_name, kLayouts),
        attention(inputs(query, key, value, arguments, source, rotary, forward)) {}

  AttentionInputs inputs(const at::Tensor& query_, const at::Tensor& key_, const at::Tensor& value_,
                         const AttentionArguments& arguments, std::optional<Source> source,
                         const RotaryParts& rotary, const ForwardPass& forward) {
    check_attention(query_, key_, value_, arguments);
    const at::Tensor query = read("query", query_, arguments.heads);
    const int64_t elements = query.size(3);
    EXPECT(elements > 0, "query has shape ", query_.sizes(), ", expected ", arguments.heads,
           " heads of one element or more");
    expect_dims("key", key_, query_.dim());
    const int64_t key_heads = layout.heads(key_, elements);
    const at::Tensor key = read("key", key_, key_heads);
    const at::Tensor value = read("value", value_, key_heads);
    EXPECT(key.size(0) == query.size(0) && key.size(3) == elements, "key has shape ", key_.sizes(),
           ", expected the batches and the elements of query's ", query_.sizes());
    EXPECT(value.size(0) == key.size(0) && value.size(1) == key.size(1) &&
               value.size(2) == key.size(2) && value.size(3) <= elements,
           "value has shape ", value_.sizes(), ", expected key's ", key_.sizes(),
           " with as many elements or fewer");
    batch = {query.size(0), query.size(2), key.size(2), query.size(1)};
    head_size = elements;
    value_size = value.size(3);
    AttentionInputs result{with_rotary("queryRopeOptional", query, rotary.query),
                           with_rotary(rotary.key_name, key, rotary.key), value, arguments.scale};
    result.shifts_first = arguments.shift_type == kShiftThenScale;
    result.shift = shift_of(arguments, batch);
    result.hidden = hidden_of(arguments, batch, query.options());
    result.sink = arguments.sink;
    result.forward = {read_softmax("softmaxMaxOptional", forward.largest),
                      read_softmax("softmaxSumOptional", forward.sum)};
    if (forward.result) {
      result.forward.result = read_result("attentionInOptional", *forward.result, query_);
    }
    const std::vector<int64_t> scores{batch.size, batch.heads, batch.queries, batch.keys};
    if (arguments.drop_mask) {
      result.kept = kept_of(*arguments.drop_mask, 0, scores, arguments.keep);
    } else if (source && arguments.keep < 1) {
      const at::Tensor like = at::empty(scores, query.options());
      const at::Tensor drawn = draw_bits(empty_dropout_mask(like), arguments.keep, *source);
      result.kept = unpacked_dropout_mask(drawn, like) / arguments.keep;
    }
    return result;
  }

  // Reads a tensor as B, N, S, D, in the type of the computation.
  at::Tensor read(const char* name, const at::Tensor& tensor, int64_t heads) const {
    return layout.read(name, tensor, heads).to(at::kFloat);
  }
  // Concatenates the parts of each head.
  at::Tensor with_rotary(const char* name, const at::Tensor& part,
                         const std::optional<at::Tensor>& rotary) const {
    if (!rotary) return part;
    const at::Tensor other = read(name, *rotary, part.size(1));
    EXPECT(other.size(0) == part.size(0) && other.size(2) == part.size(2), name, " has shape ",
           rotary->sizes(), ", expected ", part.size(0), " batches of ", part.size(2), " tokens");
    check_rotary_sizes(part.size(3), other.size(3));
    return at::cat({part, other}, 3);
  }
  // The gradient of a part of the heads, in the layout of the inputs.
  at::Tensor part(const at::Tensor& gradient) const {
    return layout.to_layout(gradient.narrow(3, 0, head_size));
  }
  at::Tensor rotary_part(const at::Tensor& gradient) const {
    return layout.to_layout(gradient.slice(3, head_size));
  }

  // The same for the result or its gradient.
  at::Tensor read_result(const char* name, const at::Tensor& tensor,
                         const at::Tensor& query) const {
    expect_dtype(name, tensor, query);
    const at::Tensor like = at::empty({batch.size, batch.heads, batch.queries, value_size},
                                      at::TensorOptions(at::kMeta));
    expect_shape(name, tensor, layout.to_layout(like).sizes());
    return read(name, tensor, batch.heads);
  }

  // Reads one of the eight copies of maxima or sums.
  std::optional<at::Tensor> read_softmax(const char* name,
                                         const std::optional<at::Tensor>& tensor) const {
    if (!tensor) return std::nullopt;
    expect_float(name, *tensor, {batch.size, batch.heads, batch.queries, kSoftmaxCopies});
    return tensor->narrow(3, 0, 1);
  }

  AttentionLayout layout;
  Batch batch;             // inputs() sets these three members
  int64_t head_size = 0;   // elements of one head of the queries, without the rotary part
  int64_t value_size = 0;  // elements of one head of the values
  SoftmaxAttention attention;
};

}  // namespace

void write_batched_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const AttentionArguments& arguments,
                             const std::string& layout, std::optional<Source> source,
                             Output& largest, Output& sum, Output& out, const RotaryParts& rotary) {
  const Batched batched(query, key, value, arguments, layout, source, rotary);
  const at::Tensor result = batched.layout.to_layout(batched.attention.result());
  largest = batched.attention.largest().expand({-1, -1, -1, kSoftmaxCopies});
  sum = batched.attention.sum().expand({-1, -1, -1, kSoftmaxCopies});
  out = result;
}

BatchedGradients write_batched_gradients(const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& value, const at::Tensor& dy,
                                         const ForwardPass& forward,
                                         const AttentionArguments& arguments,
                                         const std::string& layout, std::optional<Source> source,
                                         Output& dq, Output& dk, Output& dv, OptionalOutput& dshift,
                                         const RotaryParts& rotary) {
  const Batched batched(query, key, value, arguments, layout, source, rotary, forward);
  const SoftmaxAttention::Gradients gradients =
      batched.attention.gradients(batched.read_result("dy", dy, query));
  dq = batched.part(gradients.query);
  dk = batched.part(gradients.key);
  dv = batched.layout.to_layout(gradients.value);
  if (arguments.shift && arguments.shift_type <= kShiftThenScale) {
    dshift = gradients.shift.sum_to_size(arguments.shift->sizes());
  }
  BatchedGradients others{.sink = gradients.sink};
  if (rotary.query) {
    others.query_rope = batched.rotary_part(gradients.query);
    others.key_rope = batched.rotary_part(gradients.key);
  }
  return others;
}

}  // namespace aclnn_host
