// Attention to a window of keys and to compressed keys, each of which stands for some tokens
// (DeepSeek sparse attention), and its gradients. The keys are the values.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/engine/stored.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_sparse_flash_mla_rows {

namespace {

constexpr int64_t kSize = 512;  // of one head
constexpr int64_t kNoMask = 0, kCausal = 3, kBand = 4;
constexpr int64_t kNoLimit = -1;  // of a window

struct Keys {
  at::Tensor tokens;
  SequenceLengths lengths;
  std::optional<at::Tensor> table;
};

// The arguments of a call.
struct Given {
  const char* query_name = nullptr;
  at::Tensor query;
  SequenceLengths query_lengths;
  Keys original;
  std::optional<Keys> compressed;
  std::optional<at::Tensor> lists;  // of compressed keys
  std::optional<at::Tensor> list_lengths;
  std::optional<at::Tensor> residuals;
  double scale = 0;
  int64_t ratio = 0;
  int64_t original_mask = 0;
  int64_t compressed_mask = 0;
  int64_t left = 0;
  int64_t right = 0;
  std::string query_layout;
  std::string key_layout;
  bool may_be_paged = false;
};

// The lengths of compressed keys. In pages, all that a sequence's row of the table lists count if
// there are no lengths.
SequenceLengths compressed_lengths(const Given& given) {
  const Keys& keys = *given.compressed;
  SequenceLengths lengths = keys.lengths;
  if (lengths.used || given.key_layout != "PA_BBND") return lengths;
  EXPECT(keys.table, "cmpBlockTableOptional is null, expected a tensor as layoutKvOptional is ",
         given.key_layout);
  expect_dims("cmpBlockTableOptional", *keys.table, 2);
  expect_dims("cmpKvOptional", keys.tokens, 4);
  lengths.used = at::full({keys.table->size(0)}, keys.table->size(1) * keys.tokens.size(1),
                          keys.tokens.options().dtype(at::kInt));
  return lengths;
}

// Checks an argument that has no effect without compressed keys.
void check_unused(const char* name, const std::optional<at::Tensor>& tensor, int64_t dims) {
  if (!tensor || tensor->numel() == 0) return;
  expect_dtype(name, *tensor, at::kInt);
  expect_dims(name, *tensor, dims);
}
template <class Row>
void check_without_compressed(const Row& row, int64_t query_dims) {
  check_unused("cuSeqlensCmpKvOptional", row.cuSeqlensCmpKvOptional, 1);
  check_unused("sequsedCmpKvOptional", row.sequsedCmpKvOptional, 1);
  check_unused("cmpResidualKvOptional", row.cmpResidualKvOptional, 1);
  check_unused("cmpTopkLengthOptional", row.cmpTopkLengthOptional, query_dims - 1);
}

// The keys that a query sees.
struct Seen {
  int64_t sequence;
  int64_t row;    // in the sequence
  int64_t token;  // among all
  int64_t first;  // of the original ones, in the sequence
  int64_t originals;
  at::Tensor compressed;  // their numbers in the sequence
  at::Tensor places;      // where the query's list has these
};

// The sequences of a call.
class Sequences {
 public:
  explicit Sequences(const Given& given)
      : given_(given),
        queries_({given.query_name, "layoutQOptional", "cuSeqlensQOptional", nullptr,
                  "sequsedQOptional"},
                 given.query, given.query_layout, given.query_lengths),
        originals_({"oriKvOptional", "layoutKvOptional", "cuSeqlensOriKvOptional",
                    given.may_be_paged ? "oriBlockTableOptional" : nullptr, "sequsedOriKvOptional"},
                   given.original.tokens, given.key_layout, given.original.lengths,
                   given.original.table) {
    EXPECT(given.query.size(-1) == kSize, given.query_name, " has shape ", given.query.sizes(),
           ", expected heads of ", kSize, " elements");
    check_keys("oriKvOptional", given.original.tokens, originals_);
    expect_one_of("oriMaskMode", given.original_mask, {kNoMask, kCausal, kBand});
    expect_at_least("oriWinLeft", given.left, kNoLimit);
    expect_at_least("oriWinRight", given.right, kNoLimit);
    expect_one_of("cmpMaskMode", given.compressed_mask, {kNoMask, kCausal});
    EXPECT(originals_.is_paged() || given.query_layout == given.key_layout,
           "layoutKvOptional is \"", given.key_layout, "\", expected the layout of ",
           given.query_name, ", ", given.query_layout, given.may_be_paged ? ", or PA_BBND" : "");
    check_compressed();
  }

  const TokenSequences& queries() const { return queries_; }
  const TokenSequences& originals() const { return originals_; }
  const TokenSequences& compressed() const { return *compressed_; }
  int64_t heads() const { return queries_.heads(); }
  int64_t tokens() const { return given_.query.numel() / (heads() * kSize); }
  // There is one head of keys; all heads of queries form one group.
  std::vector<int64_t> softmax_shape() const {
    if (queries_.is_packed()) return {1, tokens(), heads()};
    return {given_.query.size(0), 1, given_.query.size(1), heads()};
  }

  // Calls `compute` for each query that sees a key, with the query and its keys in FLOAT.
  template <class Compute>
  void each_query(Compute compute) {
    queries_.measure();
    originals_.measure();
    if (compressed_) compressed_->measure();
    for (int64_t i = 0; i < queries_.count(); ++i) {
      const int64_t rows = queries_.length(i), columns = originals_.length(i);
      if (rows == 0 || columns == 0) continue;
      const at::Tensor query = queries_.read(given_.query, i);
      const at::Tensor original = originals_.read(given_.original.tokens, i).squeeze(1);
      const at::Tensor compressed =
          compressed_ ? compressed_->read(given_.compressed->tokens, i).squeeze(1) : original;
      for (int64_t row = 0; row < rows; ++row) {
        const Seen seen = seen_by(i, row, rows, columns);
        if (given_.original_mask != kNoMask && columns - rows + row < 0) continue;
        const at::Tensor keys = at::cat({original.narrow(0, seen.first, seen.originals),
                                         compressed.index_select(0, seen.compressed)});
        compute(seen, query.select(0, row), keys);
      }
    }
  }

 private:
  void check_keys(const char* name, const at::Tensor& keys, const TokenSequences& sequences) const {
    expect_dtype(name, keys, given_.query);
    EXPECT(keys.size(-1) == kSize && sequences.heads() == 1, name, " has shape ", keys.sizes(),
           ", expected one head of ", kSize, " elements");
    EXPECT(sequences.count() == queries_.count(), name, " has ", sequences.count(),
           " sequences, expected ", queries_.count(), " as ", given_.query_name, " has");
  }

  void check_compressed() {
    constexpr int64_t kMostRatio = 128;
    EXPECT(given_.compressed || !given_.lists,
           "cmpKvOptional is null, expected a tensor as cmpSparseIndicesOptional is given");
    if (!given_.compressed) return;
    expect_range("cmpRatio", given_.ratio, 1, kMostRatio);
    compressed_.emplace(SequenceNames{"cmpKvOptional", "layoutKvOptional", "cuSeqlensCmpKvOptional",
                                      given_.may_be_paged ? "cmpBlockTableOptional" : nullptr,
                                      "sequsedCmpKvOptional"},
                        given_.compressed->tokens, given_.key_layout, compressed_lengths(given_),
                        given_.compressed->table);
    check_keys("cmpKvOptional", given_.compressed->tokens, *compressed_);
    EXPECT(given_.residuals || given_.compressed_mask != kCausal || given_.ratio == 1,
           "cmpResidualKvOptional is null, expected a tensor as cmpMaskMode is 3 and cmpRatio is ",
           given_.ratio);
    if (given_.residuals) {
      expect_tensor("cmpResidualKvOptional", *given_.residuals, at::kInt, {queries_.count()});
    }
    if (!given_.lists) return;
    expect_dims("cmpSparseIndicesOptional", *given_.lists, given_.query.dim());
    std::vector<int64_t> shape = with_last(given_.query.sizes(), {given_.lists->size(-1)});
    shape[shape.size() - 2] = 1;
    expect_tensor("cmpSparseIndicesOptional", *given_.lists, at::kInt, shape);
    expect_elements("cmpSparseIndicesOptional", *given_.lists);
    if (given_.list_lengths) {
      shape.pop_back();
      expect_tensor("cmpTopkLengthOptional", *given_.list_lengths, at::kInt, shape);
    }
  }

  Seen seen_by(int64_t i, int64_t row, int64_t rows, int64_t columns) const {
    // The end of the original keys that are not later than the query.
    const int64_t end = columns - rows + row + 1;
    int64_t first = 0, last = columns;
    if (given_.original_mask != kNoMask && given_.right != kNoLimit) {
      last = std::clamp<int64_t>(end + given_.right, 0, columns);
    }
    if (given_.original_mask == kBand && given_.left != kNoLimit) {
      first = std::clamp<int64_t>(end - given_.left - 1, 0, last);
    }
    const int64_t token = queries_.first(i) + row;
    Seen seen{i, row, token, first, last - first, {}, {}};
    add_compressed(seen, rows);
    return seen;
  }

  void add_compressed(Seen& seen, int64_t rows) const {
    const int64_t i = seen.sequence;
    const auto options = given_.query.options().dtype(at::kLong);
    seen.compressed = at::empty({0}, options);
    if (!compressed_) return;
    int64_t end = compressed_->length(i);
    if (given_.compressed_mask == kCausal) {
      const int64_t rest = given_.residuals ? given_.residuals->select(0, i).item().toLong() : 0;
      expect_rest("cmpResidualKvOptional", rest, given_.ratio);
      end = std::min(seen_keys(seen.row, rows, end, given_.ratio, rest), end);
    }
    if (!given_.lists) {
      seen.compressed = at::arange(end, options);
      return;
    }
    const at::Tensor list = given_.lists->reshape({tokens(), -1}).select(0, seen.token);
    int64_t most = std::min(end, list.size(0));
    if (given_.list_lengths) {
      const int64_t length = given_.list_lengths->flatten().select(0, seen.token).item().toLong();
      most = std::clamp<int64_t>(length, 0, most);
    }
    const at::Tensor listed = list.narrow(0, 0, most).to(at::kLong);
    seen.places = (((listed < 0).cumsum(0) == 0) & (listed < end)).nonzero().flatten();
    seen.compressed = listed.index_select(0, seen.places);
  }

  Given given_;
  TokenSequences queries_;
  TokenSequences originals_;
  std::optional<TokenSequences> compressed_;
};

// The bytes of a tensor of FLOAT8_E4M3FN. Each byte converts to FLOAT and back unchanged; NaNs keep
// their signs.
at::Tensor bytes_of(const at::Tensor& elements) {
  return elements.to(at::kFloat8_e4m3fn).view(at::kByte);
}

// Dequantises keys, whose bytes are: in quantMode 1 the rotary part in BFLOAT16, the other elements
// in FLOAT8, their scales in BFLOAT16 and padding; in quantMode 2 the other elements, the rotary
// part, the scales in FLOAT8_E8M0 and padding, where the scales of a page follow the elements of
// all its tokens.
at::Tensor dequantized(const char* name, const StoredTensor& keys, const std::string& layout,
                       int64_t mode) {
  constexpr int64_t kRope = 64, kRest = kSize - kRope, kGroup = 64, kScales = kRest / kGroup;
  constexpr int64_t kElements = kRest + kRope * 2, kOfScales = kScales + 1, kPadded = 608;
  const at::Tensor& stored = keys.elements;
  EXPECT(keys.dtype == ACL_FLOAT8_E4M3FN, name, " has dtype ", dtype_name(keys.dtype),
         ", expected FLOAT8_E4M3FN");
  const int64_t size = mode == 1 ? kPadded : kElements + kOfScales;
  expect_dims(name, stored, layout == "TND" ? 3 : 4);
  expect_elements(name, stored);
  EXPECT(stored.size(-1) == size && stored.size(-2) == 1, name, " has shape ", stored.sizes(),
         ", expected one head of ", size, " bytes as quantMode is ", mode);
  at::Tensor elements = bytes_of(stored), scales;
  if (mode == 1) {
    scales = elements.narrow(-1, kElements, kScales * 2).contiguous().view(at::kBFloat16);
  } else {
    const int64_t tokens = stored.size(1);
    const at::Tensor pages = elements.flatten(1);
    scales = pages.narrow(1, tokens * kElements, tokens * kOfScales)
                 .reshape(with_last(stored.sizes(), {kOfScales}))
                 .narrow(-1, 0, kScales)
                 .contiguous()
                 .view(at::kFloat8_e8m0fnu);
    elements =
        pages.narrow(1, 0, tokens * kElements).reshape(with_last(stored.sizes(), {kElements}));
  }
  const int64_t first_rope = mode == 1 ? 0 : kRest, first_rest = mode == 1 ? kRope * 2 : 0;
  const at::Tensor rope =
      elements.narrow(-1, first_rope, kRope * 2).contiguous().view(at::kBFloat16);
  const at::Tensor rest =
      elements.narrow(-1, first_rest, kRest).contiguous().view(at::kFloat8_e4m3fn).to(at::kFloat);
  const at::Tensor factors = scales.to(at::kFloat).repeat_interleave(kGroup, -1);
  return at::cat({(rest * factors).to(at::kBFloat16), rope}, -1);
}

// What the row's arguments say, except for the lengths of lists and the tables of pages.
template <class Row>
Given given_of(const Row& row, const char* query_name, const at::Tensor& query, double scale,
               const at::Tensor& original, const std::optional<at::Tensor>& compressed) {
  Given given;
  given.query_name = query_name;
  given.query = query;
  given.query_lengths.ends = row.cuSeqlensQOptional;
  given.original = {original, {row.cuSeqlensOriKvOptional, row.sequsedOriKvOptional}, {}};
  if (compressed) {
    given.compressed = {*compressed, {row.cuSeqlensCmpKvOptional, row.sequsedCmpKvOptional}, {}};
  }
  given.lists = row.cmpSparseIndicesOptional;
  given.residuals = row.cmpResidualKvOptional;
  given.scale = scale;
  given.ratio = row.cmpRatio;
  given.original_mask = row.oriMaskMode;
  given.compressed_mask = row.cmpMaskMode;
  // No sequence is longer.
  given.left = std::min<int64_t>(row.oriWinLeft, INT32_MAX);
  given.right = std::min<int64_t>(row.oriWinRight, INT32_MAX);
  given.query_layout = row.layoutQOptional;
  given.key_layout = row.layoutKvOptional;
  return given;
}

// Refuses the lengths of lists, which CANN reserves.
void expect_no_list_lengths(const char* name, const std::optional<at::Tensor>& lengths) {
  EXPECT(!lengths || lengths->numel() == 0, name, " is given, expected null or no elements");
}

// Attention with a sink for each head, whose exponent is part of the sum of the softmax only.
template <class Row>
void attend(Row& row, const at::Tensor& original, const std::optional<at::Tensor>& compressed) {
  constexpr int64_t kMetadataSize = 1024;
  const at::Tensor &query = row.q, &sinks = row.sinksOptional;
  expect_tensor("metadataOptional", row.metadataOptional, at::kInt, {kMetadataSize});
  expect_no_list_lengths("oriTopkLengthOptional", row.oriTopkLengthOptional);
  expect_no_list_lengths("cmpTopkLengthOptional", row.cmpTopkLengthOptional);
  expect_one_of("topkValueMode", row.topkValueMode, {1});
  Given given = given_of(row, "q", query, row.softmaxScale, original, compressed);
  given.may_be_paged = true;
  given.original.table = row.oriBlockTableOptional;
  if (compressed) {
    given.compressed->table = row.cmpBlockTableOptional;
  } else {
    check_without_compressed(row, query.dim());
    check_unused("cmpBlockTableOptional", row.cmpBlockTableOptional, 2);
  }
  Sequences sequences(given);
  const int64_t tokens = sequences.tokens(), heads = sequences.heads();
  expect_float("sinksOptional", sinks, {heads});
  require_asked("softmaxLseOutOptional", row.softmaxLseOutOptional, "returnSoftmaxLse",
                row.returnSoftmaxLse);
  if (row.returnSoftmaxLse) expect_float(*row.softmaxLseOutOptional, sequences.softmax_shape());

  const auto options = query.options().dtype(at::kFloat);
  const at::Tensor results = at::zeros({tokens, heads, kSize}, options);
  const at::Tensor lse = at::zeros({tokens, heads}, options);
  if (has_values(query)) {
    sequences.each_query([&](const Seen& seen, const at::Tensor& q, const at::Tensor& keys) {
      const at::Tensor scores = at::matmul(q, keys.t()) * given.scale;
      const at::Tensor log_sum = at::logsumexp(at::cat({sinks.unsqueeze(1), scores}, 1), 1);
      const at::Tensor probabilities = (scores - log_sum.unsqueeze(1)).exp();
      results.select(0, seen.token).copy_(at::matmul(probabilities, keys));
      lse.select(0, seen.token).copy_(log_sum);
    });
  }
  row.attnOutOut = results.view(query.sizes());
  if (row.returnSoftmaxLse) row.softmaxLseOutOptional = lse.view(sequences.softmax_shape());
}

// The gradients of a call, in FLOAT, with all tokens in one dimension.
struct Gradients {
  at::Tensor query;
  at::Tensor original;
  at::Tensor compressed;
  at::Tensor sinks;
  at::Tensor norms;  // the mean over heads of the probabilities of the keys in each list
};

// Adds the gradients of one query.
void add_query(const Given& given, const Sequences& sequences, const Seen& seen,
               const at::Tensor& q, const at::Tensor& keys, const at::Tensor& dout,
               const at::Tensor& out, const at::Tensor& lse, const at::Tensor& sinks,
               const Gradients& sums) {
  const at::Tensor scores = at::matmul(q, keys.t()) * given.scale;
  const at::Tensor p = (scores - lse.unsqueeze(1)).exp();
  const at::Tensor dp = at::matmul(dout, keys.t());
  const at::Tensor ds = p * (dp - (dout * out).sum(1, /*keepdim=*/true)) * given.scale;
  sums.query.select(0, seen.token).copy_(at::matmul(ds, keys));
  const at::Tensor dkeys = at::matmul(ds.t(), q) + at::matmul(p.t(), dout);
  sums.original.narrow(0, sequences.originals().first(seen.sequence) + seen.first, seen.originals)
      .add_(dkeys.narrow(0, 0, seen.originals));
  if (sinks.defined()) sums.sinks.sub_((p * dp).sum(1) * (sinks - lse).exp());
  if (!given.compressed) return;
  const int64_t count = keys.size(0) - seen.originals;
  sums.compressed.index_add_(0, seen.compressed + sequences.compressed().first(seen.sequence),
                             dkeys.narrow(0, seen.originals, count));
  if (!given.lists) return;
  sums.norms.select(0, seen.token)
      .index_copy_(0, seen.places, p.narrow(1, seen.originals, count).mean(0));
}

// An empty tensor stands for a null one.
std::optional<at::Tensor> filled(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0 ? tensor : std::nullopt;
}

// Writes the gradients of the given arguments.
template <class Row>
void write(Row& row, const Given& given, const Gradients& sums) {
  row.dQueryOut = sums.query.view(row.query.sizes());
  row.dOriKvOutOptional = sums.original.view(given.original.tokens.sizes());
  if (given.compressed) row.dCmpKvOutOptional = sums.compressed.view(row.cmpKvOptional->sizes());
  if (row.sinksOptional) row.dSinksOutOptional = sums.sinks;
  if (given.lists) row.cmpSoftmaxL1NormOptional = sums.norms.view(given.lists->sizes());
}

void require(const char* name, bool is_given, bool is_needed, const char* reason = "") {
  require_given(is_given || !is_needed, name, " is null, expected a tensor", reason);
}
// Refuses null arguments that this call needs.
template <class Row>
void require_arguments(const Row& row, const Given& given) {
  const auto is = [](const auto& argument) { return static_cast<bool>(argument); };
  const char* const as_packed = " as the layout is TND";
  const bool is_packed = given.key_layout == "TND", is_compressed = is(given.compressed);
  require("cuSeqlensQOptional", is(row.cuSeqlensQOptional), given.query_layout == "TND", as_packed);
  require("cuSeqlensOriKvOptional", is(row.cuSeqlensOriKvOptional), is_packed, as_packed);
  require("cuSeqlensCmpKvOptional", is(row.cuSeqlensCmpKvOptional), is_compressed && is_packed,
          as_packed);
  require("cmpResidualKvOptional", is(row.cmpResidualKvOptional),
          is_compressed && given.compressed_mask == kCausal && given.ratio != 1,
          " as cmpMaskMode is 3 and cmpRatio is not 1");
  require("dOriKvOutOptional", is(row.dOriKvOutOptional), true);
  require("dCmpKvOutOptional", is(row.dCmpKvOutOptional), is_compressed,
          " as cmpKvOptional is given");
  require("dSinksOutOptional", is(row.dSinksOutOptional), is(row.sinksOptional),
          " as sinksOptional is given");
  require("cmpTopkLengthOptional", is(given.list_lengths),
          is(given.lists) && given.compressed_mask == kNoMask, " as cmpMaskMode is 0");
  require("cmpSoftmaxL1NormOptional", is(row.cmpSoftmaxL1NormOptional), is(given.lists),
          " as cmpSparseIndicesOptional is given");
}

template <class Row>
void check_gradients(const Row& row, const Given& given, const Sequences& sequences) {
  constexpr int64_t kWindow = 127, kMostHeads = 128;
  EXPECT(sequences.heads() <= kMostHeads, "query has ", sequences.heads(), " heads, expected 1 to ",
         kMostHeads);
  expect_one_of("oriWinLeft", row.oriWinLeft, {kWindow});
  expect_one_of("oriWinRight", row.oriWinRight, {0});
  expect_float("lse", row.lse, sequences.softmax_shape());
  EXPECT(row.sinksOptional || !row.dSinksOutOptional,
         "dSinksOutOptional is given, expected null as sinksOptional is null");
  if (row.sinksOptional) expect_float("sinksOptional", *row.sinksOptional, {sequences.heads()});
  if (!given.lists) return;
  expect_float(*row.cmpSoftmaxL1NormOptional, given.lists->sizes());
}

template <class Row>
void gradients(Row& row) {
  const at::Tensor& query = row.query;
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  require_given(row.oriKvOptional.has_value(), "oriKvOptional is null, expected a tensor");
  const auto options = query.options().dtype(at::kFloat);
  if (query.numel() == 0) {
    for (OptionalOutput* out : {&row.dOriKvOutOptional, &row.dCmpKvOutOptional,
                                &row.dSinksOutOptional, &row.cmpSoftmaxL1NormOptional}) {
      if (*out) *out = at::zeros((**out)->sizes(), options);
    }
    return;
  }
  Given given =
      given_of(row, "query", query, row.scaleValue, *row.oriKvOptional, filled(row.cmpKvOptional));
  given.query_lengths.used = row.sequsedQOptional;
  given.lists = filled(row.cmpSparseIndicesOptional);
  given.list_lengths = row.cmpTopkLengthOptional;
  require_arguments(row, given);
  if (!given.compressed) check_without_compressed(row, query.dim());
  Sequences sequences(given);
  check_gradients(row, given, sequences);
  const int64_t tokens = sequences.tokens(), heads = sequences.heads();
  const auto of_keys = [&](const at::Tensor& keys) {
    return at::zeros({keys.numel() / kSize, kSize}, options);
  };
  const Gradients sums{
      at::zeros({tokens, heads, kSize}, options), of_keys(*row.oriKvOptional),
      given.compressed ? of_keys(given.compressed->tokens) : at::Tensor(),
      at::zeros({heads}, options),
      given.lists ? at::zeros({tokens, given.lists->size(-1)}, options) : at::Tensor()};
  if (has_values(query)) {
    const auto by_token = [&](const at::Tensor& x) {
      return x.reshape({tokens, heads, -1}).to(at::kFloat);
    };
    const at::Tensor dout = by_token(row.dOut), out = by_token(row.out);
    const at::Tensor lse = row.lse.reshape({tokens, heads});
    sequences.each_query([&](const Seen& seen, const at::Tensor& q, const at::Tensor& keys) {
      add_query(given, sequences, seen, q, keys, dout.select(0, seen.token),
                out.select(0, seen.token), lse.select(0, seen.token),
                row.sinksOptional ? *row.sinksOptional : at::Tensor(), sums);
    });
  }
  write(row, given, sums);
}

constexpr const char* kNotYet = "CANN does not support it yet";

}  // namespace

// Behaviour of SparseFlashMla, MixedQuantSparseFlashMla, SparseFlashMlaGrad: Everything is computed
// in FLOAT, and each result is rounded once. metadata distributes the work to the cores of a
// device: its values are ignored. Without sequsedCmpKv, a sequence in BSND or in pages has all the
// compressed keys that the shape of cmpKv or its row of the block table holds. Without cmpKv, the
// other arguments of compressed keys have no effect. A query that comes before all original
// keys gets zeros, and so does its logarithm of the sum. Of a list of compressed keys, the first
// elements count, as many as the query sees compressed keys; the list ends with the first negative
// number, later keys than the query sees are left out, and a number that occurs twice counts twice.
// oriWinRight counts in oriMaskMode 3 and 4, oriWinLeft in 4.
// Deviation of SparseFlashMla: The published kernel takes every oriMaskMode as 4 with oriWinRight
// 0, and every cmpMaskMode as 3. The host CANN computes what the document says.
ACLNN_STRUCT(SparseFlashMla, (Floating<In>, q), (In, oriKvOptional), (Optional<In>, cmpKvOptional),
             (Refused<In>, oriSparseIndicesOptional, kNotYet),
             (Optional<In>, cmpSparseIndicesOptional), (Optional<In>, oriBlockTableOptional),
             (Optional<In>, cmpBlockTableOptional), (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Refused<In>, sequsedQOptional, kNotYet), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Optional<In>, oriTopkLengthOptional), (Optional<In>, cmpTopkLengthOptional),
             (In, sinksOptional), (In, metadataOptional), (double, softmaxScale),
             (int64_t, cmpRatio), (int64_t, oriMaskMode), (int64_t, cmpMaskMode),
             (int64_t, oriWinLeft), (int64_t, oriWinRight), (char*, layoutQOptional),
             (char*, layoutKvOptional), (int64_t, topkValueMode), (bool, returnSoftmaxLse),
             (Like<Out>, attnOutOut, "q"), (Optional<Out>, softmaxLseOutOptional)) {
  expect_dtype("q", q, {at::kHalf, at::kBFloat16});
  expect_dims("q", q, 3, 4);
  expect_heads("q", q, {1, 2, 4, 8, 16, 32, 64, 128});
  attend(*this, oriKvOptional, cmpKvOptional);
}

// Behaviour of MixedQuantSparseFlashMla: Dequantised keys are rounded to BFLOAT16. In quantMode 2
// the scales of a page follow the elements of all its tokens, as in the published kernel.
ACLNN_STRUCT(MixedQuantSparseFlashMla, (Floating<In>, q), (Stored<In>, oriKvOptional),
             (Optional<Stored<In>>, cmpKvOptional),
             (Refused<In>, oriSparseIndicesOptional, kNotYet),
             (Optional<In>, cmpSparseIndicesOptional), (Optional<In>, oriBlockTableOptional),
             (Optional<In>, cmpBlockTableOptional), (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Refused<In>, sequsedQOptional, kNotYet), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Optional<In>, oriTopkLengthOptional), (Optional<In>, cmpTopkLengthOptional),
             (In, sinksOptional), (In, metadataOptional), (int64_t, quantMode),
             (int64_t, ropeHeadDim), (double, softmaxScale), (int64_t, cmpRatio),
             (int64_t, oriMaskMode), (int64_t, cmpMaskMode), (int64_t, oriWinLeft),
             (int64_t, oriWinRight), (char*, layoutQOptional), (char*, layoutKvOptional),
             (int64_t, topkValueMode), (bool, returnSoftmaxLse), (Like<Out>, attnOutOut, "q"),
             (Optional<Out>, softmaxLseOutOptional)) {
  constexpr int64_t kWindow = 127, kRope = 64;
  expect_dtype("q", q, at::kBFloat16);
  expect_dims("q", q, 3, 4);
  expect_heads("q", q, {2, 4, 8, 16, 32, 64, 128});
  expect_one_of("quantMode", quantMode, {1, 2});
  expect_text("layoutKvOptional", layoutKvOptional, {"BSND", "TND", "PA_BBND"});
  EXPECT(quantMode == 1 || layoutKvOptional == "PA_BBND", "layoutKvOptional is \"",
         layoutKvOptional, "\", expected PA_BBND as quantMode is 2");
  expect_one_of("ropeHeadDim", ropeHeadDim, {kRope});
  expect_one_of("oriMaskMode", oriMaskMode, {kBand});
  expect_one_of("cmpMaskMode", cmpMaskMode, {kCausal});
  expect_one_of("oriWinLeft", oriWinLeft, {kWindow});
  expect_one_of("oriWinRight", oriWinRight, {0});
  EXPECT(cmpKvOptional || cmpRatio == 1, "cmpRatio is ", cmpRatio.value(),
         ", expected 1 as cmpKvOptional is null");
  std::optional<at::Tensor> compressed;
  if (cmpKvOptional)
    compressed = dequantized("cmpKvOptional", *cmpKvOptional, layoutKvOptional, quantMode);
  attend(*this, dequantized("oriKvOptional", oriKvOptional, layoutKvOptional, quantMode),
         compressed);
}

// The keys are the values, so their gradient is the sum of both parts.
// Behaviour of SparseFlashMlaGrad: Probabilities come from lse. cmpSoftmaxL1Norm is 0 where an
// element of a list does not count. If query has no elements, the gradients are 0.
ACLNN_STRUCT(SparseFlashMlaGrad, (Floating<In>, query), (Like<Floating<In>>, dOut, "query"),
             (Like<Floating<In>>, out, "query"), (Floating<In>, lse), (Optional<In>, oriKvOptional),
             (Optional<In>, cmpKvOptional), (Refused<In>, oriSparseIndicesOptional, kNotYet),
             (Optional<In>, cmpSparseIndicesOptional), (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Optional<In>, sequsedQOptional), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Refused<In>, oriTopkLengthOptional, kNotYet), (Optional<In>, cmpTopkLengthOptional),
             (Optional<In>, sinksOptional),
             (Unused<Optional<In>>, metadataOptional, "distributes the work to a device's cores"),
             (double, scaleValue), (int64_t, cmpRatio), (int64_t, oriMaskMode),
             (int64_t, cmpMaskMode), (int64_t, oriWinLeft), (int64_t, oriWinRight),
             (char*, layoutQOptional), (char*, layoutKvOptional), (Like<Out>, dQueryOut, "query"),
             (Like<Optional<Out>>, dOriKvOutOptional, "oriKvOptional"),
             (Like<Optional<Out>>, dCmpKvOutOptional, "cmpKvOptional"),
             (Like<Optional<Out>>, dSinksOutOptional, "sinksOptional"),
             (Refused<Out>, oriSoftmaxL1NormOptional, "it is of lists of original keys"),
             (Optional<Out>, cmpSoftmaxL1NormOptional)) {
  gradients(*this);
}

}  // namespace aclnn_host::attention_sparse_flash_mla_rows
