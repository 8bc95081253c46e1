#include "host_cann/descriptors/tensor.h"

#include <limits>
#include <memory>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/aclnn_guard.h"
#include "host_cann/descriptors/null_arguments.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/runtime/memory.h"

namespace aclnn_host {

std::optional<int64_t> element_count(const Dims& shape) noexcept {
  int64_t count = 1;
  bool empty = false;
  bool overflows = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    overflows = __builtin_mul_overflow(count, size, &count) || overflows;
  }
  // A zero size makes the tensor empty, however large the other sizes are.
  if (empty) return 0;
  return overflows ? std::nullopt : std::optional(count);
}

int64_t element_bits(aclDataType dtype) noexcept {
  switch (dtype) {
    case ACL_INT4:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2: return 4;
    default: return static_cast<int64_t>(aclDataTypeSize(dtype)) * 8;
  }
}

std::optional<Extent> extent_of(const TensorView& view) noexcept {
  if (view.block_width > 0) {
    const auto count = padded_count(view);
    if (!count || *count == 0) return std::nullopt;
    return Extent{view.offset, view.offset + *count - 1};
  }
  Extent extent{view.offset, view.offset};
  for (uint64_t i = 0; i < view.shape.size(); ++i) {
    int64_t reach;
    if (view.shape[i] == 0) return std::nullopt;
    if (__builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach)) return std::nullopt;
    int64_t& end = reach < 0 ? extent.first : extent.last;
    if (__builtin_add_overflow(end, reach, &end)) return std::nullopt;
  }
  return extent;
}

Region region_of(const TensorView& view) noexcept {
  const auto extent = extent_of(view);
  if (!extent) return {};
  const int64_t bits = element_bits(view.dtype);
  int64_t begin, end;
  if (__builtin_mul_overflow(extent->first, bits, &begin) ||
      __builtin_add_overflow(extent->last, 1, &end) || __builtin_mul_overflow(end, bits, &end)) {
    return {view.storage, std::numeric_limits<size_t>::max()};
  }
  begin /= 8;
  end = end / 8 + (end % 8 != 0);
  return {static_cast<const char*>(view.storage) + begin, static_cast<size_t>(end - begin)};
}

void TensorView::point_at(void* address) noexcept {
  storage = address;
  block = block_number(address);
}

bool TensorView::is_freed() const noexcept {
  return block != 0 && block_number(storage) != block;
}

const char* dtype_name(aclDataType dtype) noexcept {
  switch (dtype) {
    case ACL_FLOAT: return "FLOAT";
    case ACL_FLOAT16: return "FLOAT16";
    case ACL_INT8: return "INT8";
    case ACL_INT32: return "INT32";
    case ACL_UINT8: return "UINT8";
    case ACL_INT16: return "INT16";
    case ACL_UINT16: return "UINT16";
    case ACL_UINT32: return "UINT32";
    case ACL_INT64: return "INT64";
    case ACL_UINT64: return "UINT64";
    case ACL_DOUBLE: return "DOUBLE";
    case ACL_BOOL: return "BOOL";
    case ACL_STRING: return "STRING";
    case ACL_COMPLEX64: return "COMPLEX64";
    case ACL_COMPLEX128: return "COMPLEX128";
    case ACL_BF16: return "BFLOAT16";
    case ACL_INT4: return "INT4";
    case ACL_UINT1: return "UINT1";
    case ACL_COMPLEX32: return "COMPLEX32";
    case ACL_HIFLOAT8: return "HIFLOAT8";
    case ACL_FLOAT8_E5M2: return "FLOAT8_E5M2";
    case ACL_FLOAT8_E4M3FN: return "FLOAT8_E4M3FN";
    case ACL_FLOAT8_E8M0: return "FLOAT8_E8M0";
    case ACL_FLOAT6_E3M2: return "FLOAT6_E3M2";
    case ACL_FLOAT6_E2M3: return "FLOAT6_E2M3";
    case ACL_FLOAT4_E2M1: return "FLOAT4_E2M1";
    case ACL_FLOAT4_E1M2: return "FLOAT4_E1M2";
    case ACL_DT_UNDEFINED: break;
  }
  return "UNDEFINED";
}

std::string shape_text(const Dims& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

namespace {

// Fills `tensor`; false, with a message, if a dims pointer is null.
bool describe(aclTensor& tensor, const char* api, const int64_t* view_dims, uint64_t view_rank,
              aclDataType dtype, const int64_t* strides, int64_t offset, aclFormat format,
              const int64_t* storage_dims, uint64_t storage_rank, void* data) {
  if ((view_dims == nullptr && view_rank > 0) || (storage_dims == nullptr && storage_rank > 0)) {
    fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s is null although its count is not 0", api,
         view_dims == nullptr && view_rank > 0 ? "viewDims" : "storageDims");
    return false;
  }
  TensorView& view = tensor.view;
  view.shape.assign(view_dims, view_rank);
  if (strides != nullptr) {
    view.strides.assign(strides, view_rank);
  } else {
    set_contiguous_strides(view.shape, view.strides);
  }
  tensor.storage_shape.assign(storage_dims, storage_rank);
  view.offset = offset;
  view.dtype = dtype;
  view.format = format;
  view.storage_count = element_count(tensor.storage_shape).value_or(0);
  view.point_at(data);
  return true;
}

// Copies sizes for a caller who frees them with delete[].
aclnnStatus copy_out(const char* api, const Dims* dims, int64_t** values, uint64_t* count) {
  return guarded(api, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&]() -> aclnnStatus {
    int64_t* copy = new int64_t[dims->size()];
    std::copy(dims->begin(), dims->end(), copy);
    *values = copy;
    *count = dims->size();
    return OK;
  });
}

// Checks the arguments of a function that reads or changes a tensor; returns OK, or a status with a
// message.
aclnnStatus check(const char* api, const aclTensor* tensor,
                  std::initializer_list<RequiredArgument> results = {}) {
  if (const aclnnStatus status = refuse_null(api, {{"tensor", tensor}})) return status;
  if (const aclnnStatus status = refuse_null(api, results)) return status;
  return is_gone(api, "tensor", tensor) ? ACLNN_ERR_PARAM_INVALID : OK;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  return guarded("aclCreateTensor", static_cast<aclTensor*>(nullptr), ACL_ERROR_BAD_ALLOC,
                 [&]() -> aclTensor* {
                   auto tensor = std::make_unique<aclTensor>();
                   const bool ok =
                       describe(*tensor, "aclCreateTensor", viewDims, viewDimsNum, dataType, stride,
                                offset, format, storageDims, storageDimsNum, tensorData);
                   return ok ? tensor.release() : nullptr;
                 });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  if (const aclnnStatus status = check("aclInitTensor", tensor)) return status;
  return guarded("aclInitTensor", aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&] {
    // Described separately, so that a failure leaves the tensor unchanged.
    aclTensor described;
    if (!describe(described, "aclInitTensor", viewDims, viewDimsNum, dataType, stride, offset,
                  format, storageDims, storageDimsNum, tensorDataAddr)) {
      return aclnnStatus{ACLNN_ERR_PARAM_NULLPTR};
    }
    *tensor = described;
    return aclnnStatus{OK};
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return destroy("aclDestroyTensor", "tensor", tensor);
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  const aclnnStatus status =
      check("aclGetViewShape", tensor, {{"viewDims", viewDims}, {"viewDimsNum", viewDimsNum}});
  if (status != OK) return status;
  const Dims& shape = tensor->written_shape ? *tensor->written_shape : tensor->view.shape;
  return copy_out("aclGetViewShape", &shape, viewDims, viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  const aclnnStatus status =
      check("aclGetStorageShape", tensor,
            {{"storageDims", storageDims}, {"storageDimsNum", storageDimsNum}});
  if (status != OK) return status;
  return copy_out("aclGetStorageShape", &tensor->storage_shape, storageDims, storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  const aclnnStatus status = check("aclGetViewStrides", tensor,
                                   {{"stridesValue", stridesValue}, {"stridesNum", stridesNum}});
  if (status != OK) return status;
  return copy_out("aclGetViewStrides", &tensor->view.strides, stridesValue, stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  if (const aclnnStatus status = check("aclGetViewOffset", tensor, {{"offset", offset}}))
    return status;
  *offset = tensor->view.offset;
  return OK;
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  if (const aclnnStatus status = check("aclGetFormat", tensor, {{"format", format}})) return status;
  *format = tensor->view.format;
  return OK;
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  if (const aclnnStatus status = check("aclGetDataType", tensor, {{"dataType", dataType}}))
    return status;
  *dataType = tensor->view.dtype;
  return OK;
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  if (const aclnnStatus status = check("aclSetRawTensorAddr", tensor)) return status;
  tensor->view.point_at(addr);
  return OK;
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  if (const aclnnStatus status = check("aclGetRawTensorAddr", tensor, {{"addr", addr}}))
    return status;
  *addr = tensor->view.storage;
  return OK;
}
