// Results out of range, as reported in a float status (runtime/float_status.h).
#include "host_cann/descriptors/overflow.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace aclnn_host {
namespace {

// Operators whose result elements are each an element of an input, a given number, 0 or 1; names
// without aclnn, aclop and Inplace, in alphabetical order.
constexpr std::string_view kMoves[] = {
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "Amax",
    "Amin",
    "Aminmax",
    "AminmaxAll",
    "AminmaxDim",
    "ApplyTopKTopP",
    "ArgMaxWithValue",
    "ArgMinWithValue",
    "AsStrided",
    "BroadcastTo",
    "Cat",
    "ChannelShuffle",
    "ChunkCat",
    "CircularPad2d",
    "CircularPad3d",
    "Clamp",
    "ClampMax",
    "ClampMaxTensor",
    "ClampMin",
    "ClampMinTensor",
    "ClampTensor",
    "ClipByValue",
    "ClipByValueV2",
    "ConcatD",
    "ConfusionTranspose",
    "ConfusionTransposeD",
    "ConstantPadNd",
    "Cummax",
    "Cummin",
    "Diag",
    "DiagFlat",
    "DiagPart",
    "Embedding",
    "Expand",
    "Expandv",
    "Eye",
    "Fill",
    "FillDiagonal",
    "FillScalar",
    "FillTensor",
    "Flatten",
    "Flip",
    "ForeachMaximumList",
    "ForeachMaximumScalar",
    "ForeachMaximumScalarList",
    "ForeachMaximumScalarV2",
    "ForeachMinimumList",
    "ForeachMinimumScalar",
    "ForeachMinimumScalarList",
    "ForeachMinimumScalarV2",
    "ForeachZeroInplace",
    "Gather",
    "GatherElements",
    "GatherNd",
    "GatherPaKvCache",
    "GatherV2",
    "GatherV2D",
    "GatherV3",
    "GlobalMaxPool",
    "Identity",
    "Im2col",
    "Index",
    "IndexCopy",
    "IndexFill",
    "IndexFillD",
    "IndexFillTensor",
    "IndexSelect",
    "Kthvalue",
    "MaskedFill",
    "MaskedFillRange",
    "MaskedFillScalar",
    "MaskedFillTensor",
    "MaskedScatter",
    "MaskedSelect",
    "Max",
    "MaxDim",
    "MaxN",
    "MaxPool",
    "MaxPool2dWithIndices",
    "MaxPool2dWithMask",
    "MaxPool3D",
    "MaxPool3dWithArgmax",
    "MaxPoolV3",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "MaxV2",
    "Maximum",
    "Median",
    "MedianDim",
    "Min",
    "MinDim",
    "MinN",
    "Minimum",
    "MirrorPad",
    "MoeInitRouting",
    "MoeInitRoutingV2",
    "MoeReRouting",
    "MoeTokenPermute",
    "MoeTokenPermuteWithEp",
    "MoeTokenPermuteWithRoutingMap",
    "NanMedian",
    "NanMedianDim",
    "NpuFormatCast",
    "One",
    "OneHot",
    "OneHotD",
    "OnesLike",
    "Pack",
    "Pad",
    "PadV3",
    "Permute",
    "ReduceMax",
    "ReduceMin",
    "ReduceMinV2",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "Repeat",
    "RepeatInterleave",
    "RepeatInterleaveInt",
    "RepeatInterleaveIntWithDim",
    "RepeatInterleaveTensor",
    "RepeatInterleaveWithDim",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ReverseV2",
    "Roll",
    "RotatedNMS",
    "SWhere",
    "ScatterList",
    "ScatterNdUpdate",
    "ScatterPaCache",
    "ScatterPaKvCache",
    "ScatterUpdate",
    "ScatterValue",
    "ShuffleChannel",
    "Slice",
    "SliceV2",
    "Sort",
    "SortV2",
    "SortWithIndex",
    "SplitTensor",
    "SplitWithSize",
    "Stack",
    "StridedSlice",
    "StridedSliceAssignV2",
    "Take",
    "TensorMove",
    "Tile",
    "TopKV2",
    "Topk",
    "TopkV2",
    "TransData",
    "Transpose",
    "Tril",
    "Triu",
    "Unique",
    "Unique2",
    "UniqueConsecutive",
    "UniqueDim",
    "UniqueWithCountsAndSorting",
    "UpsampleNearest1d",
    "UpsampleNearest1dV2",
    "UpsampleNearest2d",
    "UpsampleNearest2dV2",
    "UpsampleNearest3d",
    "UpsampleNearestExact1d",
    "UpsampleNearestExact2d",
    "UpsampleNearestExact3d",
    "Zero",
    "ZerosLike",
};

// Operators that move elements, too, but may change them: by conversion to another dtype, or by
// adding several in one place.
constexpr std::string_view kConverts[] = {
    "Cast",       "CastV3", "Copy",    "ForeachCopy",     "IndexPutImpl",
    "IndexPutV2", "Put",    "Scatter", "ScatterElements", "ViewCopy",
};

static_assert(std::ranges::is_sorted(kMoves) && std::ranges::is_sorted(kConverts));

// "Copy" of "aclnnInplaceCopy".
std::string_view name_of(std::string_view api) {
  for (const std::string_view prefix : {"aclnn", "aclop ", "Inplace"}) {
    if (api.starts_with(prefix)) api.remove_prefix(prefix.size());
  }
  return api;
}

// True if any of `count` words, `stride` words apart, has all exponent bits set.
template <class Word>
bool has_special(const char* begin, int64_t count, int64_t stride, Word exponent) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) {
    Word word;  // copied: the address may be unaligned
    std::memcpy(&word, begin + i * stride * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    found |= (word & exponent) == exponent;
  }
  return found;
}

// The same for a view with elements of `words` words each, from dimension `dim` on.
template <class Word>
bool has_special(const TensorView& view, const char* begin, uint64_t dim, int64_t words,
                 Word exponent) {
  if (dim == view.shape.size()) return has_special(begin, words, 1, exponent);
  const int64_t count = view.shape[dim];
  const int64_t stride = view.strides[dim] * words;
  if (dim + 1 == view.shape.size() && words == 1) {
    return has_special(begin, count, stride, exponent);
  }
  for (int64_t i = 0; i < count; ++i) {
    const char* const place = begin + i * stride * static_cast<int64_t>(sizeof(Word));
    if (has_special(view, place, dim + 1, words, exponent)) return true;
  }
  return false;
}

template <class Word>
bool has_special(const TensorView& view, int64_t words, Word exponent) {
  const Region region = region_of(view);
  const auto in_region = static_cast<int64_t>(region.size / sizeof(Word));
  const char* const begin = static_cast<const char*>(region.begin);
  const bool is_dense = element_count(view.shape) == in_region / words;
  if (is_dense || view.block_width > 0) return has_special(begin, in_region, 1, exponent);
  return in_region > 0 && has_special(view, begin, 0, words, exponent);
}

// True if a tensor has an infinity or a NaN. dtypes of at most 8 bits exist only on a product
// without saturation mode.
bool is_out_of_range(const TensorView& view) {
  constexpr uint16_t kHalf = 0x7c00;
  constexpr uint32_t kSingle = 0x7f800000;
  constexpr uint64_t kDouble = 0x7ff0000000000000;
  switch (view.dtype) {
    case ACL_FLOAT16: return has_special(view, 1, kHalf);
    case ACL_COMPLEX32: return has_special(view, 2, kHalf);
    case ACL_BF16: return has_special(view, 1, uint16_t{0x7f80});
    case ACL_FLOAT: return has_special(view, 1, kSingle);
    case ACL_COMPLEX64: return has_special(view, 2, kSingle);
    case ACL_DOUBLE: return has_special(view, 1, kDouble);
    case ACL_COMPLEX128: return has_special(view, 2, kDouble);
    default: return false;
  }
}

}  // namespace

bool may_overflow(const char* api, const TensorArguments& arguments) noexcept {
  const std::string_view name = name_of(api);
  if (std::ranges::binary_search(kMoves, name)) return false;
  if (!std::ranges::binary_search(kConverts, name)) return true;
  const bool overwrites_all = name == "Copy" || name == "ViewCopy";
  return std::none_of(arguments.begin, arguments.begin + arguments.count, [&](const auto& each) {
    return each.is_input && !(each.is_output && overwrites_all) && is_out_of_range(*each.view);
  });
}

bool has_overflowed(const TensorArguments& arguments) noexcept {
  return std::any_of(arguments.begin, arguments.begin + arguments.count, [](const auto& each) {
    return each.is_output && is_out_of_range(*each.view);
  });
}

}  // namespace aclnn_host
