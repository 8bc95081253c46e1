#include "cann/rows/engine/stored.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "cann/rows/engine/refusal.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host {
namespace {

// The 8-bit floating-point types, for which ATen has conversions only.
at::ScalarType float8_type(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT8_E5M2: return at::kFloat8_e5m2;
    case ACL_FLOAT8_E4M3FN: return at::kFloat8_e4m3fn;
    case ACL_FLOAT8_E8M0: return at::kFloat8_e8m0fnu;
    default: return at::ScalarType::Undefined;
  }
}

// The magnitudes of FLOAT4_E2M1, indexed by the three lower bits.
at::Tensor float4_magnitudes() {
  return at::tensor({0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f});
}

at::Tensor float4_of(const at::Tensor& nibbles) {
  const at::Tensor bits = nibbles.bitwise_and(7).to(at::kLong);
  const at::Tensor magnitude = float4_magnitudes().index_select(0, bits.flatten());
  return at::where(nibbles.lt(0), -magnitude, magnitude);
}

// Rounds to nearest, ties to the even mantissa; values larger than 6 become 6.
at::Tensor float4_bits(const at::Tensor& values) {
  const at::Tensor magnitude = values.abs();
  // The midpoints between neighbours. A tie rounds up where the upper neighbour's bits are even.
  const at::Tensor middles = at::tensor({0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f});
  const at::Tensor below = at::bucketize(magnitude, middles, false, /*right=*/false);
  const at::Tensor above = at::bucketize(magnitude, middles, false, /*right=*/true);
  const at::Tensor bits = at::where(below.bitwise_and(1).eq(0), below, above);
  return at::where(values.signbit(), bits - 8, bits).to(at::kChar);
}

// `count` bytes of memory, from the view's first element.
at::Tensor memory_of(const TensorView& view, int64_t count) {
  char* const begin = static_cast<char*>(view.storage) + view.offset * element_bits(view.dtype) / 8;
  return at::from_blob(begin, {count}, at::kByte);
}

// Reads `count` elements from memory in the type that rows see; encode writes them.
at::Tensor decode(const TensorView& view, int64_t count) {
  const int64_t bits = element_bits(view.dtype);
  const at::Tensor bytes = memory_of(view, (count * bits + 7) / 8);
  if (bits == 4) {
    const at::Tensor nibbles = unpack_int4(bytes).narrow(0, 0, count);
    return view.dtype == ACL_INT4 ? nibbles : float4_of(nibbles);
  }
  const at::ScalarType float8 = float8_type(view.dtype);
  if (float8 != at::ScalarType::Undefined) return bytes.view(float8).to(at::kFloat);
  return bytes.view(aten_type(view.dtype));
}

// The elements in their type, or as signed integers in a type of 4 bits.
at::Tensor in_stored_type(const at::Tensor& elements, aclDataType dtype) {
  if (dtype == ACL_INT4) return elements;
  if (dtype == ACL_FLOAT4_E2M1) return float4_bits(elements);
  const at::ScalarType float8 = float8_type(dtype);
  if (float8 == at::kFloat8_e4m3fn) {
    // Versions of ATen differ for numbers that round beyond 448.
    const float beyond = std::numeric_limits<float>::quiet_NaN();
    return elements.masked_fill(elements.abs() > 464, beyond).to(float8);
  }
  return elements.to(float8 != at::ScalarType::Undefined ? float8 : aten_type(dtype));
}

void encode(const at::Tensor& elements, const TensorView& view) {
  const int64_t count = elements.numel();
  if (count == 0) return;
  const int64_t bits = element_bits(view.dtype);
  const at::Tensor bytes = memory_of(view, (count * bits + 7) / 8);
  const at::Tensor stored = in_stored_type(elements, view.dtype);
  if (bits == 4) {
    // The upper half of the last byte may belong to another tensor.
    const at::Tensor whole =
        count % 2 == 0
            ? stored
            : at::constant_pad_nd(stored, {0, 1}, unpack_int4(bytes).select(0, -1).item());
    bytes.copy_(pack_int4(whole));
  } else {
    bytes.view(stored.scalar_type()).copy_(stored);
  }
}

Dims dims_of(at::IntArrayRef sizes) {
  return Dims(sizes.data(), sizes.size());
}

Blocks known_blocks(aclFormat format, at::IntArrayRef shape, int64_t block_width) {
  constexpr const char* kExpected =
      ", expected 2 or more dimensions for FRACTAL_NZ, 4 or fewer for NC1HWC0 and FRACTAL_Z, 5 for "
      "NDC1HWC0 and FRACTAL_Z_3D";
  auto blocks = blocks_of(format, dims_of(shape), block_width);
  EXPECT(blocks, "a tensor of shape ", shape, " has no blocks of format ", static_cast<int>(format),
         kExpected);
  return *std::move(blocks);
}

int64_t elements_between(const TensorView& view) {
  const auto extent = extent_of(view);
  return extent ? extent->last - view.offset + 1 : 0;
}

}  // namespace

at::ScalarType type_of_elements(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT4: return at::kChar;
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
    case ACL_FLOAT4_E2M1: return at::kFloat;
    default: return aten_type(dtype);
  }
}

bool is_stored_apart(const TensorView& view) {
  return view.block_width > 0 || type_of_elements(view.dtype) != aten_type(view.dtype);
}

TensorView view_of_elements(const TensorView& view) {
  TensorView elements = view;
  elements.dtype = acl_type(type_of_elements(view.dtype));
  elements.format = ACL_FORMAT_ND;
  elements.block_width = 0;
  elements.storage = nullptr;
  elements.offset = 0;
  set_contiguous_strides(view.shape, elements.strides);
  return elements;
}

bool has_whole_bytes(const TensorView& view) {
  if (element_bits(view.dtype) >= 8) return true;
  const uint64_t rank = view.shape.size();
  if (rank == 0 || view.shape[rank - 1] % 2 != 0 || view.strides[rank - 1] != 1) return false;
  const auto is_even = [](int64_t stride) { return stride % 2 == 0; };
  return view.offset % 2 == 0 &&
         std::all_of(view.strides.begin(), view.strides.begin() + rank - 1, is_even);
}

TensorView view_of_bytes(const TensorView& view) {
  TensorView bytes = view;
  bytes.dtype = ACL_UINT8;
  if (element_bits(view.dtype) == 4) {
    const uint64_t last = view.shape.size() - 1;
    bytes.shape.begin()[last] /= 2;
    for (uint64_t dim = 0; dim < last; ++dim) bytes.strides.begin()[dim] /= 2;
    bytes.offset /= 2;
  }
  return bytes;
}

at::Tensor EncodedOutput::elements() const {
  const TensorView view = view_of_elements(view_);
  return at::empty({view.shape.begin(), view.shape.size()},
                   at::TensorOptions(aten_type(view.dtype)).device(at::kMeta));
}

at::Tensor EncodedOutput::encoded(const at::Tensor& elements) const {
  if (!is_stored_apart(view_)) return elements;
  const bool is_packed = element_bits(view_.dtype) == 4;
  std::vector<int64_t> sizes = elements.sizes().vec();
  if (is_packed) sizes.back() /= 2;
  if (!elements.is_cpu() || elements.numel() == 0) {
    return at::empty(sizes, elements.options().dtype(at::kByte));
  }
  const at::Tensor stored = in_stored_type(elements, view_.dtype);
  return is_packed ? pack_int4(stored).view(sizes) : stored.view(at::kByte);
}

at::Tensor load(const TensorView& view) {
  const at::IntArrayRef shape{view.shape.begin(), view.shape.size()};
  const at::Tensor memory = decode(view, elements_between(view));
  if (view.block_width == 0) {
    return memory.as_strided(shape, {view.strides.begin(), view.strides.size()}).contiguous();
  }
  const Dims in_memory = shape_in_memory(view);
  const at::Tensor tensor =
      from_blocks(memory, {in_memory.begin(), in_memory.size()}, view.format, view.block_width);
  return is_transposed(view) ? tensor.transpose(-1, -2).contiguous() : tensor;
}

void store(const at::Tensor& elements, const TensorView& view) {
  if (view.block_width > 0) {
    const at::Tensor tensor = is_transposed(view) ? elements.transpose(-1, -2) : elements;
    return encode(to_blocks(tensor.contiguous(), view.format, view.block_width), view);
  }
  // Memory between the view's elements keeps its values.
  at::Tensor memory = decode(view, elements_between(view));
  memory
      .as_strided({view.shape.begin(), view.shape.size()},
                  {view.strides.begin(), view.strides.size()})
      .copy_(elements);
  encode(memory, view);
}

at::Tensor to_blocks(const at::Tensor& tensor, aclFormat format, int64_t block_width) {
  const Blocks blocks = known_blocks(format, tensor.sizes(), block_width);
  std::vector<int64_t> padding;  // before and after each dimension, from the last one
  for (size_t dim = blocks.shape.size(); dim-- > 0;) {
    padding.insert(padding.end(), {0, blocks.padded[dim] - blocks.shape[dim]});
  }
  const at::Tensor padded = at::constant_pad_nd(tensor.view(blocks.shape), padding);
  return padded.contiguous().view(blocks.split).permute(blocks.order).contiguous().flatten();
}

at::Tensor from_blocks(const at::Tensor& elements, at::IntArrayRef shape, aclFormat format,
                       int64_t block_width) {
  const Blocks blocks = known_blocks(format, shape, block_width);
  std::vector<int64_t> sizes;
  std::vector<int64_t> back(blocks.order.size());
  for (size_t i = 0; i < blocks.order.size(); ++i) {
    sizes.push_back(blocks.split[static_cast<size_t>(blocks.order[i])]);
    back[static_cast<size_t>(blocks.order[i])] = static_cast<int64_t>(i);
  }
  at::Tensor tensor = elements.view(sizes).permute(back).contiguous().view(blocks.padded);
  for (size_t dim = 0; dim < blocks.shape.size(); ++dim) {
    tensor = tensor.narrow(static_cast<int64_t>(dim), 0, blocks.shape[dim]);
  }
  return tensor.contiguous().view(shape);
}

at::Tensor unpack_int4(const at::Tensor& bytes) {
  // An arithmetic shift left and back extends the sign of the lower half.
  const at::Tensor both = bytes.view(at::kChar);
  const at::Tensor low = both.bitwise_left_shift(4).bitwise_right_shift(4);
  return at::stack({low, both.bitwise_right_shift(4)}, -1).flatten();
}

at::Tensor pack_int4(const at::Tensor& values) {
  const at::Tensor pairs = values.reshape({-1, 2}).to(at::kChar);
  return pairs.select(1, 0)
      .bitwise_and(15)
      .bitwise_or(pairs.select(1, 1).bitwise_left_shift(4))
      .view(at::kByte);
}

}  // namespace aclnn_host
