// Conversions to private formats and back, and the sizes of the converted tensors.

#include <cstdlib>
#include <tuple>

#include "cann/prefix/include/aclnnop/aclnn_npu_format_cast.h"
#include "cann/prefix/include/aclnnop/aclnn_trans_convolution_weight.h"
#include "cann/prefix/include/aclnnop/aclnn_trans_matmul_weight.h"
#include "cann/prefix/include/aclnnop/aclnn_trans_quant_param.h"
#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/quant_param.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/null_arguments.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::shape_private_formats_rows {

namespace {

constexpr int64_t kLeastDims = 2;
constexpr int64_t kMostDims = 6;

// Runs a body whose checks refuse by exceptions, as those of rows do.
template <class Body>
aclnnStatus checked(const char* api, const Body& body) {
  try {
    return body();
  } catch (const Refusal& refusal) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s", api, refusal.what());
  }
}

void expect_rank(const char* name, uint64_t rank, int64_t most) {
  const auto dims = static_cast<int64_t>(rank);
  EXPECT(dims >= kLeastDims && dims <= most, name, " has ", dims, " dimensions, expected ",
         kLeastDims, " to ", most);
}

bool is_16_bit(aclDataType dtype) {
  return dtype == ACL_FLOAT16 || dtype == ACL_BF16;
}

// The types that the vendor's function for weights of a matrix product accepts on a product.
bool is_weight_type(aclDataType dtype, Product product) {
  switch (dtype) {
    case ACL_FLOAT16: return true;
    case ACL_INT8: return product != Product::kAscend910;
    case ACL_BF16:
    case ACL_UINT8:
    case ACL_FLOAT8_E4M3FN: return has_bfloat16(product);
    default: return false;
  }
}

// Only Ascend910B and Ascend910_93 accept batches of matrices.
bool has_batches(Product product) {
  return product == Product::kAscend910B || product == Product::kAscend910_93 ||
         product == Product::kHost;
}

std::optional<int64_t> count_of_blocks(aclFormat format, const Dims& shape, int64_t width) {
  const auto blocks = blocks_of(format, shape, width);
  if (!blocks) return std::nullopt;
  return element_count(Dims(blocks->padded.data(), blocks->padded.size()));
}

// The body of a function that computes the size of a weight.
template <class Body>
aclnnStatus sized(const char* api, const Body& body) {
  return guarded(api, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER,
                 [&] { return checked(api, body); });
}

// The number of elements of a weight in FRACTAL_NZ. All types but the 16-bit ones count as one
// byte.
aclnnStatus weight_size(const char* api, const aclIntArray* shape, aclDataType dtype,
                        int64_t most_dims, uint64_t* size) {
  const aclnnStatus null = refuse_null(api, {{"tensorShape", shape}, {"weightTensorSize", size}});
  if (null != OK) return null;
  if (is_gone(api, "tensorShape", shape)) return ACLNN_ERR_PARAM_INVALID;
  expect_rank("tensorShape", shape->size, most_dims);
  const Dims dims(shape->values.get(), shape->size);
  const auto count = count_of_blocks(ACL_FORMAT_FRACTAL_NZ, dims, is_16_bit(dtype) ? 16 : 32);
  EXPECT(count.has_value(), "tensorShape is ", shape_text(dims),
         ", expected sizes >= 0 with a product below 2^63");
  *size = static_cast<uint64_t>(*count);
  return OK;
}

// Marks the storage of a tensor as blocks of a format, in the order of its sizes.
void set_format(aclTensor& tensor, aclFormat format) {
  TensorView& view = tensor.view;
  view.format = format;
  set_contiguous_strides(view.shape, view.strides);
  const auto blocks = blocks_of(format, view.shape, block_width_of(view, Dims()));
  if (!blocks) return;
  const std::vector<int64_t> sizes = storage_sizes(format, *blocks);
  tensor.storage_shape.assign(sizes.data(), sizes.size());
  view.storage_count = element_count(tensor.storage_shape).value_or(0);
}

// Copies the elements to a tensor in another format.
void move_elements(const Frame& frame) {
  Stored<Out>::get(frame, 1) = Stored<In>::get(frame, 0).elements;
}

aclnnStatus trans_matmul_weight(const char* api, aclTensor* weight, uint64_t* workspace_size,
                                aclOpExecutor** executor) {
  Preparation stage(api, workspace_size, executor);
  Stored<In>::add(stage, "mmWeightRef", weight);
  if (weight == nullptr) return stage.finish(move_elements);
  const Product product = current_product();
  const TensorView& view = weight->view;
  EXPECT(is_weight_type(view.dtype, product), "mmWeightRef has dtype ", dtype_name(view.dtype),
         ", expected FLOAT16, BFLOAT16 or INT8 as far as the product has them");
  EXPECT(view.format == ACL_FORMAT_ND, "mmWeightRef has format ", view.format,
         ", expected ND (2); it was converted before if this is 29");
  expect_rank("mmWeightRef", view.shape.size(),
              has_batches(product) || view.dtype == ACL_INT8 ? kMostDims : kLeastDims);
  EXPECT(element_count(view.shape).value_or(0) > 0, "mmWeightRef has shape ",
         shape_text(view.shape), ", expected sizes of 1 or more");
  aclTensor converted;
  converted.view = view;
  set_format(converted, ACL_FORMAT_FRACTAL_NZ);
  // The caller's memory is larger than the tensor's sizes, by the padding.
  converted.view.storage_count = view.storage_count;
  Stored<Out>::add(stage, "mmWeightRef", &converted);
  const aclnnStatus status = stage.finish(move_elements);
  if (status == OK) set_format(*weight, ACL_FORMAT_FRACTAL_NZ);
  return status;
}

void check_convolution(const char* name, uint64_t rank, bool transposed, int64_t groups) {
  const Product product = current_product();
  EXPECT(product == Product::kAscend310P || product == Product::kHost, "the product is ",
         product_name(product), ", expected Ascend310P, the only one that has this conversion");
  EXPECT(rank == 4, name, " has ", rank, " dimensions, expected 4");
  EXPECT(!transposed, "transposed is true, expected false");
  expect_one_of("groups", groups, {1}, "; the host CANN does not lay out grouped weights");
}

aclnnStatus trans_convolution_weight(const char* api, const aclTensor* weight, bool transposed,
                                     int64_t groups, aclTensor* out, uint64_t* workspace_size,
                                     aclOpExecutor** executor) {
  Preparation stage(api, workspace_size, executor);
  In::add(stage, "weightIn", weight);
  if (weight == nullptr || out == nullptr) {
    Stored<Out>::add(stage, "weightOut", out);
    return stage.finish(move_elements);
  }
  const TensorView& from = weight->view;
  check_convolution("weightIn", from.shape.size(), transposed, groups);
  EXPECT(from.dtype == ACL_FLOAT16 || from.dtype == ACL_FLOAT, "weightIn has dtype ",
         dtype_name(from.dtype), ", expected FLOAT16 or FLOAT");
  EXPECT(out->view.dtype == ACL_FLOAT16, "weightOut has dtype ", dtype_name(out->view.dtype),
         ", expected FLOAT16");
  EXPECT(from.format == ACL_FORMAT_NCHW && out->view.format == ACL_FORMAT_NCHW,
         "weightIn has format ", from.format, " and weightOut ", out->view.format,
         ", expected NCHW (0) of both");
  aclTensor converted;
  converted.view = out->view;
  converted.view.shape = from.shape;  // weightOut has the padded sizes
  converted.view.strides = from.shape;
  set_format(converted, ACL_FORMAT_FRACTAL_Z);
  const int64_t needed = converted.view.storage_count;
  converted.view.storage_count = out->view.storage_count;
  Stored<Out>::add(stage, "weightOut", &converted);
  const aclnnStatus status = stage.finish(move_elements);
  if (status == OK) {
    converted.view.storage_count = needed;
    out->view = converted.view;
    out->storage_shape = converted.storage_shape;
  }
  return status;
}

// True if CANN converts from one of these formats to the other.
bool is_pair(aclFormat from, aclFormat to) {
  switch (to) {
    case ACL_FORMAT_FRACTAL_NZ:
      return from == ACL_FORMAT_ND || from == ACL_FORMAT_NCL || from == ACL_FORMAT_NCHW ||
             from == ACL_FORMAT_NCDHW;
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32: return from == ACL_FORMAT_ND || from == ACL_FORMAT_NCL;
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z: return from == ACL_FORMAT_NCHW;
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D: return from == ACL_FORMAT_NCDHW;
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCL:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NCDHW: return is_private(from) && (is_fractal_nz(from) || is_pair(to, from));
    default: return false;
  }
}

// The dimensions of a tensor in a format of images or volumes; 0 for a format of any number.
uint64_t dims_of(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z: return 4;
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D: return 5;
    default: return 0;
  }
}
bool has_dims_of(aclFormat format, uint64_t dims) {
  return dims_of(format) == 0 || dims_of(format) == dims;
}

bool is_cast_type(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_FLOAT:
    case ACL_FLOAT16:
    case ACL_BF16: return true;
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT4_E2M1: {
      const Product product = current_product();
      return product == Product::kAscend950 || product == Product::kHost;
    }
    default: return false;
  }
}

// Refuses data types that no format is cast in.
void expect_cast_type(const char* what, aclDataType dtype) {
  EXPECT(is_cast_type(dtype), what, dtype_name(dtype),
         ", expected INT8, UINT8, INT32, UINT32, FLOAT, FLOAT16, BFLOAT16 or, on Ascend950, "
         "FLOAT8_E4M3FN or FLOAT4_E2M1");
}

// C0, and on Ascend950 the format that encodes it, if a weight is multiplied with another type.
struct Target {
  aclFormat format;
  int64_t width;
};
Target target_of(aclFormat format, aclDataType dtype, aclDataType additional) {
  const int64_t width = 256 / element_bits(additional);
  if (current_product() != Product::kAscend950 || additional == dtype ||
      format != ACL_FORMAT_FRACTAL_NZ) {
    return {format, width};
  }
  return width == 16 ? Target{ACL_FORMAT_FRACTAL_NZ_C0_16, 16}
                     : Target{ACL_FORMAT_FRACTAL_NZ_C0_32, 32};
}

aclnnStatus calculate_format(const char* api, const aclTensor* src, aclFormat to, int additional,
                             int64_t** shape, uint64_t* rank, int* actual) {
  const aclnnStatus null = refuse_null(
      api,
      {{"srcTensor", src}, {"dstShape", shape}, {"dstShapeSize", rank}, {"actualFormat", actual}});
  if (null != OK) return null;
  if (is_gone(api, "srcTensor", src)) return ACLNN_ERR_PARAM_INVALID;
  const TensorView& view = src->view;
  const auto dtype = additional == -1 ? view.dtype : static_cast<aclDataType>(additional);
  expect_cast_type("srcTensor has dtype ", view.dtype);
  expect_cast_type("additionalDtype is ", dtype);
  const uint64_t dims = view.shape.size();
  EXPECT(dims >= kLeastDims && dims <= kMostDims && element_count(view.shape).value_or(0) > 0,
         "srcTensor has shape ", shape_text(view.shape),
         ", expected 2 to 6 dimensions of 1 or more");
  const bool has_dims = has_dims_of(view.format, dims) && has_dims_of(to, dims);
  if (current_product() < Product::kAscend910B || !is_pair(view.format, to) || !has_dims) {
    return fail(ACLNN_ERR_RUNTIME_ERROR,
                "%s: no conversion from format %d to %d of %llu dimensions on %s; expected ND or "
                "NCL to FRACTAL_NZ (29), NCHW of 4 dimensions to NC1HWC0 (3) or FRACTAL_Z (4), "
                "NCDHW of 5 to NDC1HWC0 (32) or FRACTAL_Z_3D (33), or back, on Ascend910B or later",
                api, static_cast<int>(view.format), static_cast<int>(to),
                static_cast<unsigned long long>(dims), product_name(current_product()));
  }
  std::vector<int64_t> sizes(view.shape.begin(), view.shape.end());
  Target target{to, 0};
  if (is_private(to)) {
    target = target_of(to, view.dtype, dtype);
    const auto blocks = blocks_of(target.format, view.shape, target.width);
    EXPECT(blocks.has_value(), "srcTensor has shape ", shape_text(view.shape),
           ", expected sizes whose blocks can be counted");
    sizes = storage_sizes(target.format, *blocks);
  }
  *shape = new int64_t[sizes.size()];  // the caller frees it with delete[]
  std::copy(sizes.begin(), sizes.end(), *shape);
  *rank = sizes.size();
  *actual = static_cast<int>(target.format);
  return OK;
}

}  // namespace

extern "C" ACL_FUNC_VISIBILITY aclnnStatus
aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape, uint64_t* weightTensorSize) {
  constexpr const char* kApi = "aclnnCalculateMatmulWeightSize";
  return sized(kApi, [&] {
    const int64_t most = has_batches(current_product()) ? kMostDims : kLeastDims;
    return weight_size(kApi, tensorShape, ACL_FLOAT16, most, weightTensorSize);
  });
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnCalculateMatmulWeightSizeV2(
    const aclIntArray* tensorShape, aclDataType dataType, uint64_t* weightTensorSize) {
  constexpr const char* kApi = "aclnnCalculateMatmulWeightSizeV2";
  return sized(kApi, [&]() -> aclnnStatus {
    if (current_product() == Product::kAscend910) {
      return fail(ACLNN_ERR_RUNTIME_ERROR, "%s: Ascend910 does not have this function", kApi);
    }
    const aclnnStatus status =
        weight_size(kApi, tensorShape, dataType, kMostDims, weightTensorSize);
    EXPECT(status != OK || *weightTensorSize != 0,
           "tensorShape has a size of 0, expected sizes of 1 or more");
    return status;
  });
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnTransMatmulWeightGetWorkspaceSize(
    aclTensor* mmWeightRef, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnTransMatmulWeight";
  const Given given[] = {Named{"mmWeightRef", static_cast<const aclTensor*>(mmWeightRef)}};
  return stage1(kApi, given, [&] {
    return checked(kApi,
                   [&] { return trans_matmul_weight(kApi, mmWeightRef, workspaceSize, executor); });
  });
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnTransMatmulWeight(void* workspace,
                                                                  uint64_t workspaceSize,
                                                                  aclOpExecutor* executor,
                                                                  aclrtStream stream) {
  return launch("aclnnTransMatmulWeight", workspace, workspaceSize, executor, stream);
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus
aclnnCalculateConvolutionWeightSize(const aclIntArray* tensorShape, bool transposed, int64_t groups,
                                    aclDataType dataType, uint64_t* weightTensorSize) {
  constexpr const char* kApi = "aclnnCalculateConvolutionWeightSize";
  return sized(kApi, [&]() -> aclnnStatus {
    const aclnnStatus null =
        refuse_null(kApi, {{"tensorShape", tensorShape}, {"weightTensorSize", weightTensorSize}});
    if (null != OK) return null;
    if (is_gone(kApi, "tensorShape", tensorShape)) return ACLNN_ERR_PARAM_INVALID;
    check_convolution("tensorShape", tensorShape->size, transposed, groups);
    EXPECT(dataType == ACL_FLOAT16, "dataType is ", dtype_name(dataType), ", expected FLOAT16");
    const Dims shape(tensorShape->values.get(), tensorShape->size);
    const auto elements = element_count(shape);
    const auto count = count_of_blocks(ACL_FORMAT_FRACTAL_Z, shape, 16);
    EXPECT(elements && count, "tensorShape is ", shape_text(shape),
           ", expected sizes >= 0 with a product below 2^63");
    *weightTensorSize = *elements == 0 ? 0 : static_cast<uint64_t>(*count);
    return OK;
  });
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnTransConvolutionWeightGetWorkspaceSize(
    const aclTensor* weightIn, bool transposed, const int64_t groups, aclTensor* weightOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnTransConvolutionWeight";
  const Given given[] = {Named{"weightIn", weightIn}, Named{"transposed", transposed},
                         Named{"groups", groups},
                         Named{"weightOut", static_cast<const aclTensor*>(weightOut)}};
  return stage1(kApi, given, [&] {
    return checked(kApi, [&] {
      return trans_convolution_weight(kApi, weightIn, transposed, groups, weightOut, workspaceSize,
                                      executor);
    });
  });
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnTransConvolutionWeight(void* workspace,
                                                                       uint64_t workspaceSize,
                                                                       aclOpExecutor* executor,
                                                                       aclrtStream stream) {
  return launch("aclnnTransConvolutionWeight", workspace, workspaceSize, executor, stream);
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(
    const aclTensor* srcTensor, const int dstFormat, int additionalDtype, int64_t** dstShape,
    uint64_t* dstShapeSize, int* actualFormat) {
  constexpr const char* kApi = "aclnnNpuFormatCastCalculateSizeAndFormat";
  return guarded(kApi, aclnnStatus{ACLNN_ERR_RUNTIME_ERROR}, ACLNN_ERR_RUNTIME_ERROR, [&] {
    return checked(kApi, [&] {
      return calculate_format(kApi, srcTensor, static_cast<aclFormat>(dstFormat), additionalDtype,
                              dstShape, dstShapeSize, actualFormat);
    });
  });
}

ACLNN(NpuFormatCast, (Stored<In>, srcTensor), (Stored<Out>, dstTensor)) {
  EXPECT(srcTensor.dtype == dstTensor.dtype(), "dstTensor has dtype ",
         dtype_name(dstTensor.dtype()), ", expected ", dtype_name(srcTensor.dtype),
         " as srcTensor has");
  expect_cast_type("srcTensor has dtype ", srcTensor.dtype);
  EXPECT(is_pair(srcTensor.format, dstTensor.format()), "no conversion from format ",
         static_cast<int>(srcTensor.format), " of srcTensor to ",
         static_cast<int>(dstTensor.format()),
         " of dstTensor; expected ND or NCL to FRACTAL_NZ (29), NCHW to NC1HWC0 (3) or "
         "FRACTAL_Z (4), NCDHW to NDC1HWC0 (32) or FRACTAL_Z_3D (33), or back");
  for (const aclFormat format : {srcTensor.format, dstTensor.format()}) {
    EXPECT(has_dims_of(format, static_cast<uint64_t>(dstTensor->dim())), "dstTensor has ",
           dstTensor->dim(), " dimensions beside format ", static_cast<int>(format), ", expected ",
           dims_of(format));
  }
  dstTensor = srcTensor.elements;
}

extern "C" ACL_FUNC_VISIBILITY aclnnStatus
aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize, const float* offsetArray,
                     uint64_t offsetSize, uint64_t** quantParam, uint64_t* quantParamSize) {
  constexpr const char* kApi = "aclnnTransQuantParam";
  const aclnnStatus null = refuse_null(
      kApi,
      {{"scaleArray", scaleArray}, {"quantParam", quantParam}, {"quantParamSize", quantParamSize}});
  if (null != OK) return null;
  if (scaleSize == 0 || (offsetArray == nullptr) != (offsetSize == 0)) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: scaleSize is %llu and offsetSize %llu, expected the numbers of elements, 1 or "
                "more of the arrays that are given",
                kApi, static_cast<unsigned long long>(scaleSize),
                static_cast<unsigned long long>(offsetSize));
  }
  constexpr uint64_t kMost = uint64_t{1} << 40;
  uint64_t size = std::max(scaleSize, offsetSize);
  if (size != 1 && size < kMost) size = (size + 15) / 16 * 16;
  // The caller frees it with free().
  auto* const params =
      size < kMost ? static_cast<uint64_t*>(std::calloc(size, sizeof(uint64_t))) : nullptr;
  if (params == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "%s: no memory for %llu numbers", kApi,
                static_cast<unsigned long long>(size));
  }
  for (uint64_t i = 0; i < scaleSize; ++i) params[i] = quant_param(scaleArray[i]);
  for (uint64_t i = 0; i < offsetSize; ++i) params[i] = with_offset(params[i], offsetArray[i]);
  *quantParam = params;
  *quantParamSize = size;
  return OK;
}

}  // namespace aclnn_host::shape_private_formats_rows
