#include "cann/hccl/reduction.h"

#include <cstdint>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>

#include "cann/hccl/transport.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::hccl {
namespace {

// The ATen type in which the elements are reduced. Sums and products of unsigned and signed numbers
// have the same bits.
at::ScalarType stored_type(HcclDataType type) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8: return at::kChar;
    case HCCL_DATA_TYPE_UINT8: return at::kByte;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16: return at::kShort;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32: return at::kInt;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64: return at::kLong;
    case HCCL_DATA_TYPE_FP16: return at::kHalf;
    case HCCL_DATA_TYPE_BFP16: return at::kBFloat16;
    case HCCL_DATA_TYPE_FP32: return at::kFloat;
    case HCCL_DATA_TYPE_FP64: return at::kDouble;
    default: throw Failure(HCCL_E_INTERNAL, "a type that cannot be reduced");
  }
}

bool is_wide_unsigned(HcclDataType type) {
  return type == HCCL_DATA_TYPE_UINT16 || type == HCCL_DATA_TYPE_UINT32 ||
         type == HCCL_DATA_TYPE_UINT64;
}

// The numbers with the sign bit flipped, so that signed comparison orders unsigned numbers.
at::Tensor reordered(const at::Tensor& numbers) {
  const int64_t sign = numbers.scalar_type() == at::kLong
                           ? std::numeric_limits<int64_t>::min()
                           : int64_t{-1} << (8 * numbers.element_size() - 1);
  return numbers.__xor__(sign);
}

// True if the first sum may be written to the result, because the result overlaps no source, or is
// one of the first two, which have been read by then.
bool may_be_written_at_once(std::span<const void* const> sources, const void* result,
                            size_t bytes) {
  const auto address = [](const void* data) { return reinterpret_cast<uintptr_t>(data); };
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] == result && i < 2) continue;
    const bool is_apart = address(sources[i]) + bytes <= address(result) ||
                          address(result) + bytes <= address(sources[i]);
    if (!is_apart) return false;
  }
  return true;
}

}  // namespace

bool is_reduced(HcclDataType type, HcclReduceOp reduction) noexcept {
  if (reduction < HCCL_REDUCE_SUM || reduction > HCCL_REDUCE_MIN) return false;
  const Product product = current_product();
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_FP32: return true;
    case HCCL_DATA_TYPE_INT16:
      return product != Product::kAscend910 &&
             (reduction != HCCL_REDUCE_PROD || product == Product::kHost);
    case HCCL_DATA_TYPE_BFP16:
      return has_bfloat16(product) && (reduction != HCCL_REDUCE_PROD || product == Product::kHost);
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return product == Product::kAscend950 || product == Product::kHost;
    case HCCL_DATA_TYPE_UINT8:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_UINT32: return product == Product::kHost;
    default: return false;
  }
}

void reduce(HcclDataType type, HcclReduceOp reduction, std::span<const void* const> sources,
            void* result, size_t count) {
  const at::ScalarType stored = stored_type(type);
  const at::ScalarType computed = at::isReducedFloatingType(stored) ? at::kFloat : stored;
  const bool compares = reduction == HCCL_REDUCE_MAX || reduction == HCCL_REDUCE_MIN;
  const bool reorders = compares && is_wide_unsigned(type);
  const auto elements = [&](const void* data) {
    return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, stored);
  };
  const auto load = [&](const void* data, bool copy) {
    const at::Tensor numbers = elements(data).to(computed, /*non_blocking=*/false, copy);
    return reorders ? reordered(numbers) : numbers;
  };
  const auto combine = [&](at::Tensor& into, const at::Tensor& first, const at::Tensor& second) {
    switch (reduction) {
      case HCCL_REDUCE_SUM: at::add_out(into, first, second); break;
      case HCCL_REDUCE_PROD: at::mul_out(into, first, second); break;
      case HCCL_REDUCE_MAX: at::maximum_out(into, first, second); break;
      case HCCL_REDUCE_MIN: at::minimum_out(into, first, second); break;
      default: throw Failure(HCCL_E_INTERNAL, "a reduction that there is not");
    }
  };
  at::Tensor target = elements(result);
  const size_t bytes = count * target.element_size();
  if (computed == stored && !reorders && sources.size() > 1 &&
      may_be_written_at_once(sources, result, bytes)) {
    combine(target, elements(sources[0]), elements(sources[1]));
    for (const void* const source : sources.subspan(2)) combine(target, target, elements(source));
    return;
  }
  at::Tensor reduced = load(sources.front(), /*copy=*/true);
  for (const void* const source : sources.subspan(1)) {
    combine(reduced, reduced, load(source, /*copy=*/false));
  }
  target.copy_(reorders ? reordered(reduced) : reduced);
}

bool are_finite(HcclDataType type, const void* numbers, size_t count) {
  const auto tensor =
      at::from_blob(const_cast<void*>(numbers), {static_cast<int64_t>(count)}, stored_type(type));
  return at::isfinite(tensor).all().item<bool>();
}

}  // namespace aclnn_host::hccl
