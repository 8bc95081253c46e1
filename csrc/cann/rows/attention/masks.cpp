// The masks of attention for inference.
#include "cann/rows/attention/masks.h"

#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

// The size of the triangular mask from which the operator makes a band.
constexpr int64_t kTriangle = 2048;

bool is_triangle(const at::Tensor& mask) {
  return mask.size(-1) == kTriangle && mask.size(-2) == kTriangle &&
         mask.numel() == kTriangle * kTriangle;
}

}  // namespace

std::optional<VisibleBand> band_of(const InferenceArguments& arguments, int64_t queries,
                                   int64_t keys) {
  const auto clamped = [](int64_t tokens) {
    return std::clamp<int64_t>(tokens, INT32_MIN, INT32_MAX);
  };
  const VisibleBand band{-clamped(arguments.pre_tokens), clamped(arguments.next_tokens)};
  const int64_t last = keys - queries;
  switch (arguments.sparse_mode) {
    case kMask: return given(arguments.mask) ? std::optional(band) : std::nullopt;
    case kCausalFromFirst: return VisibleBand{-queries, 0};
    case kCausalFromLast: return VisibleBand{-queries, last};
    case kBand: return VisibleBand{band.least + last, band.most + last};
    default: return std::nullopt;
  }
}

std::optional<at::Tensor> mask_by_rows(const InferenceArguments& arguments, const at::Tensor& query,
                                       bool is_packed, bool sees_all) {
  const int64_t mode = arguments.sparse_mode;
  expect_range("sparseMode", mode, kMask, kBand);
  if (!given(arguments.mask)) {
    EXPECT(mode == kMask || sees_all, "attenMask is null, expected a mask for sparseMode ", mode);
    return std::nullopt;
  }
  at::Tensor mask = *arguments.mask;
  expect_dtype("attenMask", mask, {at::kBool, at::kChar, at::kByte});
  expect_dims("attenMask", mask, 2, 4);
  if (mode >= kCausalFromFirst && (is_triangle(mask) || !sees_all)) {
    EXPECT(is_triangle(mask), "attenMask has shape ", mask.sizes(),
           ", expected [2048, 2048], perhaps after dimensions of 1, for sparseMode ", mode);
    return std::nullopt;
  }
  EXPECT(!is_packed, "sparseMode is ", mode,
         ", expected 0 without a mask, or 3 or 4 with one, for a packed layout");
  if (mask.dim() == 4) {
    EXPECT(mask.size(1) == 1, "attenMask has shape ", mask.sizes(),
           ", expected a second dimension of 1");
    mask = mask.squeeze(1);
  }
  const int64_t batches = query.size(0);
  // With one query for each batch, the mask may lack the dimension of queries.
  if (mask.dim() == 2) mask = mask.unsqueeze(sees_all && mask.size(0) == batches ? 1 : 0);
  EXPECT((mask.size(0) == 1 || mask.size(0) == batches) && mask.size(1) >= query.size(2),
         "attenMask has shape ", arguments.mask->sizes(), ", expected 1 or ", batches,
         " batches of ", query.size(2), " rows");
  return mask.ne(0);
}

}  // namespace aclnn_host
