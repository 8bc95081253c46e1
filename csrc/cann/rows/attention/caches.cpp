// Locates the queries, keys and values of one sequence for inference attention.
#include "cann/rows/attention/caches.h"

#include "cann/rows/attention/heads.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

// The product, or -1 if it overflows; no tensor has a size of -1.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &result) ? -1 : result;
}

}  // namespace

AttentionLayout::AttentionLayout(const std::string& name, std::span<const std::string_view> known) {
  expect_text("inputLayout", name, known);
  const size_t underscore = name.find('_');
  input_ = name.substr(0, underscore);
  output_ = underscore == std::string::npos ? input_ : name.substr(underscore + 1);
}

int64_t AttentionLayout::heads(const at::Tensor& tensor, int64_t head_size) const {
  if (input_ == "BNSD") return tensor.size(1);
  return input_ == "BSND" ? tensor.size(2) : tensor.size(2) / head_size;
}

at::Tensor AttentionLayout::read(const char* name, const at::Tensor& tensor, int64_t heads) const {
  const bool joins_heads = input_ == "BSH" || input_ == "SBH";
  const int64_t rank = is_packed() || joins_heads ? 3 : 4;
  EXPECT(tensor.dim() == rank, name, " has ", tensor.dim(), " dimensions, expected ", rank,
         " as inputLayout is ", input_);
  at::Tensor result = tensor;
  if (joins_heads) {
    EXPECT(heads > 0 && tensor.size(2) % heads == 0, name, " has shape ", tensor.sizes(),
           ", expected a last dimension of ", heads, " heads");
    result = input_ == "SBH" ? tensor.transpose(0, 1) : tensor;
    result = result.unflatten(2, {heads, tensor.size(2) / heads}).transpose(1, 2);
  } else if (input_ == "BSND") {
    result = tensor.transpose(1, 2);
  } else if (input_ == "TND") {
    result = tensor.transpose(0, 1).unsqueeze(0);
  } else if (input_ == "NTD") {
    result = tensor.unsqueeze(0);
  }
  EXPECT(result.size(1) == heads, name, " has shape ", tensor.sizes(), ", expected ", heads,
         " heads as inputLayout is ", input_);
  return result;
}

at::Tensor AttentionLayout::to_layout(const at::Tensor& tensor) const {
  if (output_ == "BSH") return tensor.transpose(1, 2).flatten(2);
  if (output_ == "SBH") return tensor.permute({2, 0, 1, 3}).flatten(2);
  if (output_ == "BSND") return tensor.transpose(1, 2);
  if (output_ == "NBSD") return tensor.transpose(0, 1);
  if (output_ == "TND") return tensor.select(0, 0).transpose(0, 1);
  if (output_ == "NTD") return tensor.select(0, 0);
  return tensor;
}

std::vector<Span> packed_spans(const char* name, const Lengths& lengths, int64_t size) {
  EXPECT(lengths, name, " is null, expected the sums of the lengths of the sequences, which ",
         "the layout has one after the other");
  std::vector<Span> spans;
  int64_t start = 0;
  for (const int64_t end : *lengths) {
    EXPECT(end >= start && end <= size, name, " is ", at::IntArrayRef(*lengths),
           ", expected sums that do not fall, of at most ", size);
    spans.push_back({0, start, end - start});
    start = end;
  }
  return spans;
}

std::vector<Span> padded_spans(const char* name, const Lengths& lengths, int64_t batches,
                               int64_t size) {
  const auto count = lengths ? static_cast<int64_t>(lengths->size()) : 0;
  EXPECT(count <= 1 || count >= batches, name, " has ", count,
         " elements, expected one or one for each of ", batches, " batches");
  std::vector<Span> spans;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t length =
        count == 0 ? size : (*lengths)[static_cast<size_t>(count == 1 ? 0 : batch)];
    EXPECT(length >= 0 && length <= size, name, " has an element ", length, ", expected 0 to ",
           size);
    spans.push_back({batch, 0, length});
  }
  return spans;
}

void pad_left(const char* name, std::vector<Span>& spans, const at::Tensor& padding, int64_t size,
              bool empties) {
  expect_dtype(name, padding, at::kLong);
  const auto batches = static_cast<int64_t>(spans.size());
  EXPECT(padding.numel() == 1 || padding.numel() == batches, name, " has shape ", padding.sizes(),
         ", expected one element, or one for each of ", batches, " batches");
  const at::Tensor values = padding.flatten();
  for (Span& span : spans) {
    // A tensor without memory has no length to read, so any span is correct.
    const int64_t index = values.numel() == 1 ? 0 : span.batch;
    const int64_t given = values.is_cpu() ? values.select(0, index).item().toLong() : 0;
    span.start = size - span.length - std::clamp<int64_t>(given, 0, size);
    if (span.start >= 0) continue;
    span.start = 0;
    if (empties) span.length = 0;
  }
}

SequenceReader::SequenceReader(const char* name, const std::vector<at::Tensor>& tensors,
                               const InferenceArguments& arguments, const AttentionLayout& layout,
                               int64_t heads)
    : name_(name), table_(arguments.block_table) {
  EXPECT(!tensors.empty(), name, " is an empty list, expected one tensor or more");
  if (!table_) {
    for (const at::Tensor& tensor : tensors) tensors_.push_back(layout.read(name, tensor, heads));
    head_size_ = tensors_[0].size(3);
    for (const at::Tensor& tensor : tensors_) {
      expect_dtype(name, tensor, tensors_[0]);
      EXPECT(tensors_.size() == 1 || (tensor.size(0) == 1 && !layout.is_packed()), name,
             " is a list of tensors with ", tensor.size(0), " batches, expected 1 in each, ",
             "and no packed layout");
      EXPECT(tensor.size(3) == head_size_, name, " has tensors with heads of ", head_size_,
             " and of ", tensor.size(3), " elements, expected the same");
    }
    return;
  }
  EXPECT(tensors.size() == 1, name, " is a list of ", tensors.size(),
         " tensors, expected one as there is a block table");
  const at::Tensor& cache = tensors[0];
  expect_dims(name, cache, 3, 5);
  expect_dtype("blockTable", *table_, at::kInt);
  expect_dims("blockTable", *table_, 2);
  if (cache.dim() == 3) {
    EXPECT(cache.size(2) % heads == 0, name, " has shape ", cache.sizes(),
           ", expected a last dimension of ", heads, " heads");
    tensors_ = {cache.unflatten(2, {heads, cache.size(2) / heads}).transpose(1, 2)};
  } else if (cache.dim() == 4) {
    tensors_ = {cache};
  } else {
    // The dimensions of the blocks are block, N, D1, S, D0.
    tensors_ = {cache.transpose(2, 3).flatten(3)};
  }
  block_size_ = tensors_[0].size(2);
  head_size_ = tensors_[0].size(3);
  EXPECT(tensors_[0].size(1) == heads, name, " has shape ", cache.sizes(), ", expected ", heads,
         " heads");
  EXPECT(block_size_ > 0 && block_size_ == arguments.block_size, "blockSize is ",
         arguments.block_size, ", expected that of ", name, ", ", block_size_);
}

int64_t SequenceReader::batches() const {
  if (table_) return table_->size(0);
  return tensors_.size() > 1 ? static_cast<int64_t>(tensors_.size()) : tensors_[0].size(0);
}

int64_t SequenceReader::capacity(int64_t batch) const {
  if (table_) {
    const int64_t tokens = product(table_->size(1), block_size_);
    EXPECT(tokens >= 0, "blockTable has shape ", table_->sizes(), ", expected fewer blocks");
    return tokens;
  }
  return tensors_[tensors_.size() > 1 ? static_cast<size_t>(batch) : 0].size(2);
}

at::Tensor SequenceReader::paged(const Span& span) const {
  const int64_t count = (span.length + block_size_ - 1) / block_size_;
  const at::Tensor& blocks = tensors_[0];
  const at::Tensor indices = table_->select(0, span.batch).narrow(0, 0, count).to(at::kLong);
  check_bounds("blockTable", indices, blocks.size(0));
  return blocks.index_select(0, indices).transpose(0, 1).flatten(1, 2).narrow(1, 0, span.length);
}

at::Tensor SequenceReader::read(const Span& span) const {
  if (table_) return paged(span);
  const bool is_list = tensors_.size() > 1;
  const at::Tensor& tensor = tensors_[is_list ? static_cast<size_t>(span.batch) : 0];
  return tensor.select(0, is_list ? 0 : span.batch).narrow(1, span.start, span.length);
}

at::Tensor by_channel(const char* name, const at::Tensor& parameters, int64_t heads,
                      int64_t head_size) {
  const int64_t count = parameters.numel();
  EXPECT(count == 1 || count == heads * head_size, name, " has shape ", parameters.sizes(),
         ", expected 1 or ", heads * head_size, " elements");
  return count == 1 ? parameters.reshape({1, 1, 1}) : parameters.reshape({heads, 1, head_size});
}

at::Tensor antiquantised(const at::Tensor& elements, const Antiquantisation& antiquant,
                         const Span& span, int64_t batches) {
  enum Mode { kByChannel = 0, kByToken = 1, kByHead = 2, kByTokenAndHead = 3 };
  const char* const name = antiquant.scale_name;
  const int64_t heads = elements.size(0), end = span.start + span.length;
  const auto shaped = [&](const at::Tensor& stored) -> at::Tensor {
    const at::Tensor parameters = stored.to(at::kFloat);
    const int64_t count = parameters.numel();
    const int64_t width = parameters.dim() == 0 ? 1 : parameters.size(-1);
    switch (antiquant.mode) {
      case kByChannel: return by_channel(name, parameters, heads, elements.size(2));
      case kByHead:
        EXPECT(count == heads, name, " has shape ", parameters.sizes(), ", expected ", heads,
               " elements");
        return parameters.reshape({heads, 1, 1});
      case kByToken:
        EXPECT(width >= end && count == product(batches, width), name, " has shape ",
               parameters.sizes(), ", expected ", batches, " batches of at least ", end,
               " elements");
        return parameters.reshape({batches, width, 1})
            .select(0, span.batch)
            .narrow(0, span.start, span.length);
      case kByTokenAndHead:
        EXPECT(width >= end && count == product(product(batches, heads), width), name,
               " has shape ", parameters.sizes(), ", expected ", batches, " batches of ", heads,
               " heads of at least ", end, " elements");
        return parameters.reshape({batches, heads, width, 1})
            .select(0, span.batch)
            .narrow(1, span.start, span.length);
      default:
        EXPECT(false, antiquant.mode_name, " is ", antiquant.mode,
               ", expected 0 to 3; the host CANN does not emulate scales in pages or groups");
    }
  };
  at::Tensor result = elements.to(at::kFloat);
  if (given(antiquant.offset)) {
    EXPECT(antiquant.offset->sizes() == antiquant.scale->sizes(), antiquant.offset_name,
           " has shape ", antiquant.offset->sizes(), ", expected ", antiquant.scale->sizes());
    result = result + shaped(*antiquant.offset);
  }
  return result * shaped(*antiquant.scale);
}

}  // namespace aclnn_host
