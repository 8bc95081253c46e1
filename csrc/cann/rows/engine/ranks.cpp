#include "cann/rows/engine/ranks.h"

#include <algorithm>

namespace aclnn_host {
namespace {

// Functions whose public check has no limit, or that flatten the additional dimensions;
// tests/aten_ops/ranks.tsv has the source of each.
constexpr std::string_view kOfAnyRank[] = {
    "aclnnApplyAdamW",
    "aclnnApplyAdamWV2",
    "aclnnBinaryCrossEntropy",
    "aclnnConfusionTranspose",
    "aclnnCummax",
    "aclnnCummin",
    "aclnnCumprod",
    "aclnnFusedAdamw",
    "aclnnGeGluBackward",
    "aclnnGeGluV3Backward",
    "aclnnInplaceCumprod",
    "aclnnInplaceZero",
    "aclnnLogSigmoid",
    "aclnnLogSigmoidBackward",
    "aclnnLogSigmoidForward",
    "aclnnScatterNdUpdate",
    "aclnnShrink",
    "aclnnSign",
    "aclnnSort",
    "aclnnViewCopy",
};

}  // namespace

bool takes_more_dimensions(std::string_view api) {
  return std::ranges::find(kOfAnyRank, api) != std::ranges::end(kOfAnyRank);
}

}  // namespace aclnn_host
