// Writes updates to caches of keys and values, with or without quantisation.

#include <ATen/WrapDimUtils.h>

#include "cann/rows/integers.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::inference_cache_scatter_rows {

namespace {

// The values of integers in order; none in stage 1.
std::vector<int64_t> known_values(const at::Tensor& integers) {
  return has_values(integers) ? integers_in(integers) : std::vector<int64_t>();
}

// The destination of an update.
struct Destination {
  int64_t dim;
  int64_t start;
  int64_t length;
};

// Refuses a destination outside the cache, or longer than an update.
void check_piece(const char* name, const at::Tensor& cache, const at::Tensor& update,
                 const Destination& to) {
  EXPECT(to.length >= 0 && to.length <= update.size(to.dim), name, " has the length ", to.length,
         ", expected 0 to ", update.size(to.dim), ", that of an update");
  EXPECT(to.start >= 0 && to.start <= cache.size(to.dim) - to.length, name, " has the start ",
         to.start, ", expected 0 to ", cache.size(to.dim) - to.length);
}

// Copies the first part of `update` along a dimension into the cache.
void write_piece(const at::Tensor& cache, const at::Tensor& update, const Destination& to) {
  cache.narrow(to.dim, to.start, to.length).copy_(update.narrow(to.dim, 0, to.length));
}

// Checks the shapes of a cache and of its updates along `dim`, except for the first dimension.
void expect_updates(const at::Tensor& updates, at::IntArrayRef cache, int64_t dim, int64_t count) {
  EXPECT(updates.dim() == static_cast<int64_t>(cache.size()), "updates has ", updates.dim(),
         " dimensions, expected ", cache.size());
  std::vector<int64_t> expected = cache.vec();
  const auto along = static_cast<size_t>(dim);
  expected[0] = count;
  expected[along] = std::min(updates.size(dim), expected[along]);
  expect_shape("updates", updates, expected);
}

// A scale or an offset for each element of the last dimension of updates.
at::Tensor per_column(const char* name, const at::Tensor& values, const at::Tensor& updates) {
  EXPECT(values.numel() == updates.size(-1), name, " has shape ", values.sizes(), ", expected ",
         updates.size(-1), " elements, one for each of the last dimension of updates");
  return values.to(at::kFloat).flatten();
}

// Checks the combination of dtypes.
void expect_quantised_dtypes(const at::Tensor& updates, const at::Tensor& scales,
                             const std::optional<at::Tensor>& offsets) {
  expect_dtype("updates", updates, {at::kHalf, at::kBFloat16});
  const bool is_half = updates.scalar_type() == at::kHalf;
  expect_dtype("quantScales", scales, is_half ? at::kFloat : at::kBFloat16);
  if (offsets) expect_dtype("quantZeroPoints", *offsets, is_half ? at::kInt : at::kBFloat16);
}

at::Tensor quantised(const at::Tensor& updates, const at::Tensor& scales,
                     const std::optional<at::Tensor>& offsets, aclDataType dtype) {
  at::Tensor result = updates.to(at::kFloat) / per_column("quantScales", scales, updates);
  if (offsets) result = result + per_column("quantZeroPoints", *offsets, updates);
  switch (dtype) {
    case ACL_INT8: return saturated(at::round(result), -128, 127).to(at::kChar);
    case ACL_FLOAT8_E4M3FN: return at::clamp(result, -448, 448);
    case ACL_FLOAT8_E5M2: return at::clamp(result, -57344, 57344);
    default:
      EXPECT(false, "selfRef has dtype ", dtype_name(dtype),
             ", expected INT8, FLOAT8_E4M3FN or FLOAT8_E5M2");
  }
}

// Writes the update of each sequence to the position in its index.
void scatter_quantised(EncodedOutput& cache, const at::Tensor& indices, const at::Tensor& updates,
                       const at::Tensor& values, int64_t dim) {
  const at::Tensor& before = cache;
  const at::Tensor encoded = cache.encoded(values);
  expect_updates(updates, before.sizes(), dim, indices.size(0));
  EXPECT(updates.size(0) <= before.size(0), "updates has shape ", updates.sizes(),
         ", expected at most ", before.size(0), " as its first dimension");
  const std::vector<int64_t> starts = known_values(indices);
  const bool is_pairs = indices.dim() == 2;
  const size_t each = is_pairs ? 2 : 1;
  const auto destination = [&](size_t i) {
    return Destination{dim, starts[i * each + each - 1], updates.size(dim)};
  };
  const auto sequence_of = [&](size_t i) {
    return is_pairs ? starts[2 * i] : static_cast<int64_t>(i);
  };
  for (size_t i = 0; i * each < starts.size(); ++i) {
    const int64_t sequence = sequence_of(i);
    EXPECT(sequence >= 0 && sequence < before.size(0), "indices has the sequence ", sequence,
           ", expected 0 to ", before.size(0) - 1);
    check_piece("indices", before, encoded, destination(i));
  }
  const at::Tensor result = cache.editable();
  for (size_t i = 0; i * each < starts.size(); ++i) {
    write_piece(result.narrow(0, sequence_of(i), 1), encoded.narrow(0, static_cast<int64_t>(i), 1),
                destination(i));
  }
  cache = result;
}

void expect_axes(const at::Tensor& updates, int64_t quant_axis, int64_t reduction) {
  EXPECT(quant_axis == -1 || quant_axis == updates.dim() - 1, "quantAxis is ", quant_axis,
         ", expected -1 or ", updates.dim() - 1, ", the last dimension of updates");
  expect_one_of("reduction", reduction, {1}, ", which is update");
}

}  // namespace

// updates[k] replaces a part of varRef[k]. A pair of indices is its start and the length of the
// update that is written. Only sequences whose mask is 1 change.
ACLNN(ScatterList, (SameDtype<InOuts>, varRef, "updates"), (IndexIn, indice), (In, updates),
      (Optional<In>, maskOptional), (char*, reduceOptional), (int64_t, axis)) {
  EXPECT(reduceOptional.empty() || reduceOptional == "update", "reduceOptional is \"",
         reduceOptional, "\", expected \"update\"");
  const auto count = static_cast<int64_t>(varRef.size());
  expect_dims("updates", updates, 2, 8);
  const int64_t dim = at::maybe_wrap_dim(axis, updates.dim());
  EXPECT(dim > 0, "axis is ", axis.value(), ", expected a dimension after the first");
  expect_dims("indice", indice, 1, 2);
  EXPECT(indice.size(0) == count && (indice.dim() == 1 || indice.size(1) == 2), "indice has shape ",
         indice.sizes(), ", expected [", count, "] or [", count, ", 2]");
  if (maskOptional) {
    expect_dtype("maskOptional", *maskOptional, at::kByte);
    expect_shape("maskOptional", *maskOptional, {count});
  }
  for (const Output& var : varRef) {
    expect_shape("varRef", var, varRef.front()->sizes());
    std::vector<int64_t> sizes = var->sizes().vec();
    sizes.insert(sizes.begin(), count);
    expect_updates(updates, sizes, dim, count);
  }
  const std::vector<int64_t> starts = known_values(indice);
  const std::vector<int64_t> mask =
      maskOptional ? known_values(*maskOptional) : std::vector<int64_t>(varRef.size(), 1);
  const at::Tensor pieces = as_movable(updates);
  const auto is_written = [&](size_t k) { return !starts.empty() && mask[k] != 0; };
  const auto destination = [&](size_t k) {
    return indice.dim() == 2 ? Destination{dim - 1, starts[2 * k], starts[2 * k + 1]}
                             : Destination{dim - 1, starts[k], updates.size(dim)};
  };
  const auto piece = [&](size_t k) { return pieces.select(0, static_cast<int64_t>(k)); };
  for (size_t k = 0; k < varRef.size(); ++k) {
    if (is_written(k)) check_piece("indice", varRef[k], piece(k), destination(k));
  }
  for (size_t k = 0; k < varRef.size(); ++k) {
    const at::Tensor result = varRef[k].editable();
    if (is_written(k)) write_piece(as_movable(result), piece(k), destination(k));
    varRef[k] = result;
  }
}

ACLNN(InplaceQuantScatter, (EncodedInOut, selfRef), (IndexIn, indices), (In, updates),
      (In, quantScales), (Optional<In>, quantZeroPoints), (int64_t, axis), (int64_t, quantAxis),
      (int64_t, reduction)) {
  EXPECT(selfRef.dtype() == ACL_INT8, "selfRef has dtype ", dtype_name(selfRef.dtype()),
         ", expected INT8");
  expect_quantised_dtypes(updates, quantScales, quantZeroPoints);
  expect_dims("selfRef", selfRef, 3);
  expect_dims("indices", indices, 1);
  expect_dims("updates", updates, 3);
  expect_axes(updates, quantAxis, reduction);
  expect_one_of("axis", axis, {-2});
  scatter_quantised(selfRef, indices, updates,
                    quantised(updates, quantScales, quantZeroPoints, ACL_INT8), 1);
}

// A pair of indices is the sequence and the start of its update.
ACLNN(InplaceQuantScatterV2, (EncodedInOut, selfRef), (IndexIn, indices), (In, updates),
      (In, quantScales), (Optional<In>, quantZeroPoints), (int64_t, axis), (int64_t, quantAxis),
      (int64_t, reduction), (const char*, roundMode)) {
  expect_quantised_dtypes(updates, quantScales, quantZeroPoints);
  expect_dims("selfRef", selfRef, 3, 8);
  expect_dims("updates", updates, selfRef->dim());
  expect_dims("indices", indices, 1, 2);
  EXPECT(indices.dim() == 1 || indices.size(1) == 2, "indices has shape ", indices.sizes(),
         ", expected one dimension, or two of which the second has the size 2");
  expect_axes(updates, quantAxis, reduction);
  EXPECT(roundMode == "rint", "roundMode is \"", roundMode, "\", expected \"rint\"");
  const int64_t dim = axis < 0 ? axis.value() + updates.dim() : axis.value();
  EXPECT(dim >= 1 && dim < updates.dim() - 1, "axis is ", axis.value(),
         ", expected a dimension of updates between the first and the last");
  scatter_quantised(selfRef, indices, updates,
                    quantised(updates, quantScales, quantZeroPoints, selfRef.dtype()), dim);
}

}  // namespace aclnn_host::inference_cache_scatter_rows
