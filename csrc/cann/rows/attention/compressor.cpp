// Compresses the keys of neighbouring tokens to one, by a softmax over the tokens (DeepSeek sparse
// attention).

#include <unordered_map>

#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_compressor_rows {

namespace {

// The sizes of a call. A group of `ratio` tokens becomes one key of `size` elements, with the
// preceding group if `parts` is 2.
struct Sizes {
  int64_t ratio;
  int64_t parts;
  int64_t size;

  int64_t width() const { return parts * size; }
};

// The keys and scores of tokens that earlier calls have seen, in pages that a table lists. In mode
// 1 the pages of a sequence follow each other; in mode 2 it has one page, which it fills again and
// again.
class State {
 public:
  State(const at::Tensor& cache, const at::Tensor& table, int64_t mode)
      : cache_(cache),
        table_(table.to(at::kLong)),
        pages_(cache.size(0)),
        page_(cache.size(1)),
        mode_(mode) {}

  int64_t page() const { return page_; }
  // Writes the rows to a cache.
  void write_to(const at::Tensor& cache) const {
    for (const auto& [place, row] : written_) row_of(cache, place).copy_(row);
  }

  // The keys and scores of a sequence at the positions from `begin` on.
  at::Tensor read(int64_t sequence, int64_t begin, int64_t end) const {
    const auto [pages, places] = find(sequence, begin, end);
    const std::vector<int64_t> numbers = integers_in(places);
    std::vector<at::Tensor> rows;
    rows.reserve(numbers.size());
    for (const int64_t place : numbers) {
      const auto found = written_.find(place);
      rows.push_back(found == written_.end() ? row_of(cache_, place) : found->second);
    }
    return at::stack(rows);
  }
  // In mode 1, page 0 stands for none.
  void write(int64_t sequence, int64_t begin, const at::Tensor& rows) {
    const auto [pages, places] = find(sequence, begin, begin + rows.size(0));
    const at::Tensor written = (mode_ == 1 ? pages : at::ones_like(pages)).nonzero().flatten();
    const std::vector<int64_t> numbers = integers_in(places);
    for (const int64_t i : integers_in(written)) {
      written_[numbers[static_cast<size_t>(i)]] = rows.select(0, i);
    }
  }

 private:
  struct Places {
    at::Tensor pages;
    at::Tensor rows;
  };
  Places find(int64_t sequence, int64_t begin, int64_t end) const {
    const at::Tensor positions = at::arange(begin, end, table_.options());
    const at::Tensor own = table_.select(0, sequence);
    at::Tensor pages;
    if (mode_ == 2) {
      pages = own.expand({end - begin});
    } else {
      EXPECT(end <= own.size(0) * page_, "stateBlockTable has ", own.size(0),
             " pages of a sequence, expected those of ", end, " tokens");
      pages = own.index_select(0, at::div(positions, page_, "floor"));
    }
    check_bounds("stateBlockTable", pages, pages_);
    return {pages, pages * page_ + positions.remainder(page_)};
  }

  at::Tensor row_of(const at::Tensor& cache, int64_t place) const {
    return cache.select(0, place / page_).select(0, place % page_);
  }

  at::Tensor cache_;
  std::unordered_map<int64_t, at::Tensor> written_;
  at::Tensor table_;
  int64_t pages_;
  int64_t page_;
  int64_t mode_;
};

// One compressed key, from the keys and scores of the tokens from `first` on.
at::Tensor compressed(const at::Tensor& rows, int64_t first, const Sizes& sizes,
                      bool has_preceding) {
  const auto part = [&](int64_t begin, int64_t number, int64_t column) {
    return rows.narrow(0, begin, sizes.ratio).narrow(1, column + number * sizes.size, sizes.size);
  };
  const auto parts = [&](int64_t column) {
    const at::Tensor own = part(first, sizes.parts - 1, column);
    return has_preceding ? at::cat({part(first - sizes.ratio, 0, column), own}) : own;
  };
  return (at::softmax(parts(sizes.width()), 0) * parts(0)).sum(0);
}

// Compresses the whole groups of a sequence that begins at position `start`, and updates the state.
// Returns the compressed keys.
std::vector<at::Tensor> compress(const at::Tensor& fresh, int64_t sequence, int64_t start,
                                 const Sizes& sizes, int64_t mode, State& state) {
  const int64_t ratio = sizes.ratio, end = start + fresh.size(0);
  const int64_t first_group = start / ratio, last_group = end / ratio;
  std::vector<at::Tensor> results;
  if (first_group < last_group) {
    const int64_t begin = std::max<int64_t>(first_group - (sizes.parts - 1), 0) * ratio;
    const at::Tensor rows =
        begin < start ? at::cat({state.read(sequence, begin, start), fresh}) : fresh;
    for (int64_t group = first_group; group < last_group; ++group) {
      results.push_back(
          compressed(rows, group * ratio - begin, sizes, sizes.parts == 2 && group > 0));
    }
  }
  // Mode 2 keeps what later calls read.
  int64_t kept = start;
  if (mode == 2) kept = std::max(start, (last_group - (sizes.parts - 1)) * ratio);
  if (kept < end) state.write(sequence, kept, fresh.narrow(0, kept - start, end - kept));
  return results;
}

// Writes the compressed keys of all sequences to `results`, which has a row of them for each
// sequence, or all of them in one dimension. `state_of` computes the keys and scores of a sequence.
template <class StateOf>
void compress_all(TokenSequences& tokens, const std::optional<at::Tensor>& starts,
                  const Sizes& sizes, int64_t mode, StateOf state_of, State& state,
                  const at::Tensor& results) {
  tokens.measure();
  int64_t next = 0;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    const int64_t start = starts ? starts->select(0, i).item().toLong() : 0;
    const int64_t least = sizes.parts * sizes.ratio + tokens.length(i) - 1;
    EXPECT(start >= 0, "startPos has ", start, ", expected 0 or more");
    EXPECT(mode == 1 || state.page() >= least, "stateCacheRef has pages of ", state.page(),
           " tokens, expected ", least, " or more as cacheMode is 2");
    const bool is_packed = results.dim() == 2;
    if (!is_packed) next = 0;
    const at::Tensor to = is_packed ? results : results.select(0, i);
    for (const at::Tensor& key : compress(state_of(i, start), i, start, sizes, mode, state)) {
      to.select(0, next++).copy_(key);
    }
  }
}

std::vector<int64_t> shape_of_results(const at::Tensor& x, const std::optional<at::Tensor>& ends,
                                      const Sizes& sizes) {
  if (x.dim() == 3) {
    return {x.size(0), (x.size(1) + sizes.ratio - 1) / sizes.ratio, sizes.size};
  }
  EXPECT(ends, "cuSeqlens is null, expected a tensor as x has 2 dimensions");
  return {std::min(x.size(0), x.size(0) / sizes.ratio + ends->numel() - 1), sizes.size};
}

void check_weights(const at::Tensor& x, const at::Tensor& keys, const at::Tensor& gates,
                   const at::Tensor& ape, const at::Tensor& cache, const Sizes& sizes) {
  constexpr int64_t kLeast = 1024, kMost = 10240, kMultiple = 512, kMostPage = 1024;
  const int64_t hidden = x.size(-1);
  EXPECT(hidden >= kLeast && hidden <= kMost && hidden % kMultiple == 0, "x has shape ", x.sizes(),
         ", expected a multiple of ", kMultiple, " elements from ", kLeast, " to ", kMost);
  expect_one_of("the first dimension of wkv divided by coff", sizes.size, {128, 512});
  expect_shape("wkv", keys, {sizes.width(), hidden});
  expect_shape("wgate", gates, {sizes.width(), hidden});
  expect_float("ape", ape, {sizes.ratio, sizes.width()});
  expect_dtype("stateCacheRef", cache, at::kFloat);
  expect_dims("stateCacheRef", cache, 3);
  expect_elements("stateCacheRef", cache);
  EXPECT(cache.size(1) <= kMostPage && cache.size(2) == 2 * sizes.width(),
         "stateCacheRef has shape ", cache.sizes(), ", expected pages of up to ", kMostPage,
         " tokens with ", 2 * sizes.width(), " elements");
}

// Checks the arguments for sequences where x has no tokens; their shapes do not matter then.
void check_sequences_of_empty(const at::Tensor& x, const std::optional<at::Tensor>& table,
                              const std::optional<at::Tensor>& ends,
                              const std::optional<at::Tensor>& used,
                              const std::optional<at::Tensor>& starts) {
  EXPECT(!ends || x.dim() == 2, "cuSeqlens is given, expected null as x has 3 dimensions");
  require_given(table.has_value(), "stateBlockTable is null, expected a tensor");
  expect_dtype("stateBlockTable", *table, at::kInt);
  if (ends) expect_dtype("cuSeqlens", *ends, at::kInt);
  if (used) expect_dtype("seqused", *used, at::kInt);
  if (starts) expect_dtype("startPos", *starts, at::kInt);
}

}  // namespace

// The state of a token is its key and its score, x * wkv and x * wgate + ape; ape is of the token's
// position in its group. Of coff 2, the first half is for the group after the token's own.
// Behaviour of Compressor: The prototype is that of CANN's own callers: there is no second argument
// for the state cache, which the parameters in the document do not have either. Rows of cmpKv that
// get no compressed key are 0. Page 0 of the state can be read; as in the published kernel, it is
// not written in cacheMode 1 and is one like the others in cacheMode 2.
// stateBlockTable must be given, as the public checker says.
ACLNN(Compressor, (Floating<In>, x), (SameDtype<Floating<In>>, wkv, "x"),
      (SameDtype<Floating<In>>, wgate, "x"), (InOut, stateCacheRef), (In, ape),
      (Optional<In>, stateBlockTable), (Optional<In>, cuSeqlens), (Optional<In>, seqused),
      (Optional<In>, startPos), (int64_t, cmpRatio), (int64_t, coff), (int64_t, cacheMode),
      (int64_t, stateCacheStrideDim0), (SameDtype<Out>, cmpKv, "x")) {
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  expect_dims("x", x, 2, 3);
  expect_dims("wkv", wkv, 2);
  expect_one_of("cmpRatio", cmpRatio, {2, 4, 8, 16, 32, 64, 128});
  expect_one_of("coff", coff, {1, 2});
  expect_one_of("cacheMode", cacheMode, {1, 2});
  const Sizes sizes{cmpRatio, coff, wkv.size(0) / coff.value()};
  check_weights(x, wkv, wgate, ape, stateCacheRef, sizes);
  EXPECT(stateCacheStrideDim0 == 0 || stateCacheStrideDim0 == stateCacheRef->stride(0),
         "stateCacheStrideDim0 is ", stateCacheStrideDim0.value(), ", expected 0 or ",
         stateCacheRef->stride(0), ", the stride of stateCacheRef");
  const std::vector<int64_t> shape = shape_of_results(x, cuSeqlens, sizes);
  expect_shape("cmpKv", cmpKv, shape);
  if (x.numel() == 0) {
    check_sequences_of_empty(x, stateBlockTable, cuSeqlens, seqused, startPos);
    return;
  }
  const std::string layout = x.dim() == 2 ? "TND" : "BSND";
  TokenSequences tokens({"x", "the layout of x", "cuSeqlens", nullptr, "seqused"}, x.unsqueeze(-2),
                        layout, SequenceLengths{cuSeqlens, seqused});
  const int64_t count = tokens.count();
  require_given(stateBlockTable.has_value(), "stateBlockTable is null, expected a tensor");
  expect_dtype("stateBlockTable", *stateBlockTable, at::kInt);
  expect_dims("stateBlockTable", *stateBlockTable, cacheMode == 1 ? 2 : 1);
  EXPECT(stateBlockTable->size(0) == count, "stateBlockTable has shape ", stateBlockTable->sizes(),
         ", expected a row for each sequence: ", count);
  if (startPos) expect_tensor("startPos", *startPos, at::kInt, {count});

  const at::Tensor results = at::zeros(shape, wide(x).options());
  State state(stateCacheRef, *stateBlockTable, cacheMode);
  if (has_values(x)) {
    const auto state_of = [&](int64_t sequence, int64_t start) {
      const at::Tensor own = tokens.read(x, sequence);
      const at::Tensor places = (at::arange(own.size(0), own.options().dtype(at::kLong)) + start)
                                    .remainder(cmpRatio.value());
      return at::cat({at::matmul(own, wide(wkv).t()),
                      at::matmul(own, wide(wgate).t()) + ape.index_select(0, places)},
                     1);
    };
    compress_all(tokens, startPos, sizes, cacheMode, state_of, state, results);
  }
  cmpKv = results;
  const at::Tensor cache = stateCacheRef.editable();
  state.write_to(cache);
  stateCacheRef = cache;
}

}  // namespace aclnn_host::attention_compressor_rows
