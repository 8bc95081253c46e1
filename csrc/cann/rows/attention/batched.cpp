// Attention of training and its gradients for sequences of one length, with all kinds of shifts:
// see training.h.

#include <string>
#include <vector>

#include "cann/rows/attention/batched.h"
#include "cann/rows/checks.h"
#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

// The order of the dimensions in memory: B batch, S sequence, N heads, D the elements of one head,
// H those of all heads.
class Layout {
 public:
  explicit Layout(const std::string& name) : name_(name) {
    EXPECT(name == "BNSD" || name == "BSND" || name == "BSH" || name == "SBH", "inputLayout is \"",
           name, "\", expected \"BNSD\", \"BSND\", \"BSH\" or \"SBH\"");
  }

  bool has_heads() const { return name_ == "BNSD" || name_ == "BSND"; }
  int64_t heads(const at::Tensor& tensor) const { return tensor.size(name_ == "BNSD" ? 1 : 2); }

  // Returns the tensor as B, N, S, D, in the type of the computation.
  at::Tensor read(const char* name, const at::Tensor& tensor, int64_t heads) const {
    expect_dims(name, tensor, has_heads() ? 4 : 3);
    at::Tensor wide = tensor.to(at::kFloat);
    if (name_ == "SBH") wide = wide.transpose(0, 1);
    if (!has_heads()) {
      EXPECT(heads > 0 && wide.size(2) % heads == 0, name, " has shape ", tensor.sizes(),
             ", expected a multiple of its ", heads, " heads as last dimension");
      wide = wide.unflatten(2, {heads, wide.size(2) / heads});
    }
    return name_ == "BNSD" ? wide : wide.transpose(1, 2);
  }

  // Converts B, N, S, D to the layout.
  at::Tensor written(const at::Tensor& tensor) const {
    if (name_ == "BNSD") return tensor;
    at::Tensor result = tensor.transpose(1, 2);
    if (!has_heads()) result = result.flatten(2);
    return name_ == "SBH" ? result.transpose(0, 1) : result;
  }

 private:
  std::string name_;
};

struct Batch {
  int64_t size = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t heads = 0;
};

std::optional<at::Tensor> shift_of(const AttentionArguments& arguments, const Batch& batch) {
  if (!arguments.shift) return std::nullopt;
  const at::Tensor& shift = *arguments.shift;
  if (arguments.shift_type == kDistance || arguments.shift_type == kRoot) {
    EXPECT(batch.queries == batch.keys, "query and key have ", batch.queries, " and ", batch.keys,
           " elements in a sequence, expected as many for pseType ", arguments.shift_type);
    EXPECT(shift.sizes() == at::IntArrayRef({batch.heads}) ||
               shift.sizes() == at::IntArrayRef({batch.size, batch.heads}),
           "the shift has shape ", shift.sizes(), ", expected slopes of shape [", batch.heads,
           "] or [", batch.size, ", ", batch.heads, "]");
    return distance_shift(shift.unsqueeze(-1).unsqueeze(-1), arguments.shift_type, batch.queries,
                          batch.keys, first_of(arguments.query_start),
                          first_of(arguments.key_start));
  }
  expect_dims("the shift", shift, 4);
  EXPECT((shift.size(0) == batch.size || shift.size(0) == 1) && shift.size(1) == batch.heads &&
             (shift.size(2) == batch.queries || shift.size(2) == 1) && shift.size(3) == batch.keys,
         "the shift has shape ", shift.sizes(), ", expected [", batch.size, " or 1, ", batch.heads,
         ", ", batch.queries, " or 1, ", batch.keys,
         "]; the host CANN takes no shift in another form");
  return shift.to(at::kFloat);
}

// The mask of a mode without compression, in a shape that broadcasts to the scores.
std::optional<at::Tensor> mask_of(const AttentionArguments& arguments, const Batch& batch) {
  const bool is_compressed = arguments.sparse_mode != kDefaultMask &&
                             arguments.sparse_mode != kAllMask && arguments.sparse_mode != kPrefix;
  if (!arguments.mask || is_compressed) return std::nullopt;
  const at::Tensor& mask = *arguments.mask;
  const int64_t dims = mask.dim();
  EXPECT((dims == 2 || (dims == 4 && (mask.size(0) == batch.size || mask.size(0) == 1) &&
                        (mask.size(1) == batch.heads || mask.size(1) == 1))) &&
             mask.size(dims - 2) == batch.queries && mask.size(dims - 1) == batch.keys,
         "attenMaskOptional has shape ", mask.sizes(), ", expected [", batch.queries, ", ",
         batch.keys, "] or [", batch.size, " or 1, ", batch.heads, " or 1, ", batch.queries, ", ",
         batch.keys, "]");
  return mask.to(at::kBool);
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
    const at::Tensor places =
        *hidden_scores(mode, arguments, part, (*arguments.prefix)[static_cast<size_t>(b)],
                       batch.queries, batch.keys, options);
    hidden.push_back(places.dim() == 2 ? places.unsqueeze(0) : places);
  }
  return hidden.empty() ? std::nullopt : std::optional(at::stack(hidden));
}

struct Batched {
  Batched(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
          const AttentionArguments& arguments, const std::string& layout_name,
          std::optional<Source> source, const ForwardPass& forward = {})
      : layout(layout_name), attention(inputs(query, key, value, arguments, source, forward)) {}

  AttentionInputs inputs(const at::Tensor& query_, const at::Tensor& key_, const at::Tensor& value_,
                         const AttentionArguments& arguments, std::optional<Source> source,
                         const ForwardPass& forward) {
    check_attention(query_, key_, value_, arguments);
    const at::Tensor query = layout.read("query", query_, arguments.heads);
    EXPECT(query.size(1) == arguments.heads, "headNum is ", arguments.heads, ", expected ",
           query.size(1), ", the heads of query");
    const int64_t elements = query.size(3);
    EXPECT(elements > 0, "query has shape ", query_.sizes(), ", expected ", arguments.heads,
           " heads of one element or more");
    expect_dims("key", key_, query_.dim());
    const int64_t key_heads = layout.has_heads() ? layout.heads(key_) : key_.size(2) / elements;
    const at::Tensor key = layout.read("key", key_, key_heads);
    const at::Tensor value = layout.read("value", value_, key_heads);
    EXPECT(key.size(0) == query.size(0) && key.size(3) == elements, "key has shape ", key_.sizes(),
           ", expected the batches and the elements of query's ", query_.sizes());
    EXPECT(value.size(0) == key.size(0) && value.size(1) == key.size(1) &&
               value.size(2) == key.size(2) && value.size(3) <= elements,
           "value has shape ", value_.sizes(), ", expected key's ", key_.sizes(),
           " with as many elements or fewer");
    batch = {query.size(0), query.size(2), key.size(2), query.size(1)};
    value_size = value.size(3);
    AttentionInputs result{query, key, value, arguments.scale};
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

  // Reads the result or its gradient as B, N, S, D.
  at::Tensor read_result(const char* name, const at::Tensor& tensor,
                         const at::Tensor& query) const {
    expect_dtype(name, tensor, query);
    const at::Tensor like = at::empty({batch.size, batch.heads, batch.queries, value_size},
                                      at::TensorOptions(at::kMeta));
    expect_shape(name, tensor, layout.written(like).sizes());
    return layout.read(name, tensor, batch.heads);
  }

  // Reads one of the eight copies of maxima or sums.
  std::optional<at::Tensor> read_softmax(const char* name,
                                         const std::optional<at::Tensor>& tensor) const {
    if (!tensor) return std::nullopt;
    expect_dtype(name, *tensor, at::kFloat);
    expect_shape(name, *tensor, {batch.size, batch.heads, batch.queries, kSoftmaxCopies});
    return tensor->narrow(3, 0, 1);
  }

  Layout layout;
  Batch batch;             // inputs() sets these two members
  int64_t value_size = 0;  // elements of one head of the values
  SoftmaxAttention attention;
};

}  // namespace

void write_batched_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const AttentionArguments& arguments,
                             const std::string& layout, std::optional<Source> source,
                             Output& largest, Output& sum, Output& out) {
  const Batched of(query, key, value, arguments, layout, source);
  const at::Tensor result = of.layout.written(of.attention.result());
  largest = of.attention.largest().expand({-1, -1, -1, kSoftmaxCopies});
  sum = of.attention.sum().expand({-1, -1, -1, kSoftmaxCopies});
  out = result;
}

std::optional<at::Tensor> write_batched_gradients(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& dy,
    const ForwardPass& forward, const AttentionArguments& arguments, const std::string& layout,
    std::optional<Source> source, Output& dq, Output& dk, Output& dv, OptionalOutput& dshift) {
  const Batched of(query, key, value, arguments, layout, source, forward);
  const SoftmaxAttention::Gradients gradients =
      of.attention.gradients(of.read_result("dy", dy, query));
  dq = of.layout.written(gradients.query);
  dk = of.layout.written(gradients.key);
  dv = of.layout.written(gradients.value);
  if (arguments.shift && arguments.shift_type <= kShiftThenScale) {
    dshift = gradients.shift.sum_to_size(arguments.shift->sizes());
  }
  return gradients.sink;
}

}  // namespace aclnn_host
