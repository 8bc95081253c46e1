#include "host_cann/arguments/argument_checks.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "host_cann/arguments/cast.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/memory.h"

namespace aclnn_host {
namespace {

const DtypeRule* find_rule(DtypeRules rules, aclDataType dtype) {
  for (const DtypeRule& rule : rules) {
    if (rule.dtype == dtype) return &rule;
  }
  return nullptr;
}

std::string accepted_text(DtypeRules rules, Product product) {
  std::string text;
  for (const DtypeRule& rule : rules) {
    if (product < rule.since) continue;
    if (!text.empty()) text += ", ";
    text += dtype_name(rule.dtype);
  }
  return text;
}

// An instruction to select a product.
std::string selecting(Product product) {
  const std::string name = product_name(product);
  return "ACLNN_TORCH_PRODUCT=" + name + ", or aclnn_torch.set_product(\"" + name + "\") in Python";
}

// Advice for a dtype that this product lacks.
std::string way_out(const DtypeRule* rule) {
  if (rule == nullptr) return "cast the tensor to one of these";
  return "cast the tensor, or select the " + std::string(product_name(rule->since)) +
         " product, which accepts " + dtype_name(rule->dtype) + " (" + selecting(rule->since) + ")";
}

// The arguments whose dtype differs from a row's: their number, and the first.
struct Misfits {
  size_t count = 0;
  size_t first = 0;
};

Misfits misfits(const DtypeRow& row, std::span<const Argument> arguments) {
  Misfits found;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const aclTensor* tensor = arguments[i].tensor;
    if (tensor == nullptr || tensor->view.dtype == row.dtypes[i]) continue;
    if (found.count++ == 0) found.first = i;
  }
  return found;
}

// "(dy FLOAT16, x FLOAT16)" for the arguments that are present.
template <class DtypeOf>
std::string row_text(std::span<const Argument> arguments, DtypeOf dtype_of) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].tensor == nullptr) continue;
    text +=
        std::string(text.empty() ? "(" : ", ") + arguments[i].name + " " + dtype_name(dtype_of(i));
  }
  return text + ")";
}

// True if the bytes lie within the requested size of one block of device memory.
bool is_in_device_memory(const Region& region) {
  Block block;
  return region.size > 0 && find_block(region.begin, region.size, &block) &&
         block.side == Side::kDevice && block.grants(region.begin, region.size);
}

}  // namespace

Checks& Checks::not_null(const char* name, const void* pointer) {
  if (ok() && pointer == nullptr) {
    status_ = fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s is null, expected an object", api_, name);
  }
  return *this;
}

Checks& Checks::same_dtype(Argument argument, Argument other) {
  if (ok() && argument.tensor->view.dtype != other.tensor->view.dtype) {
    require(false, "%s has dtype %s, expected %s as %s has; cast one of them", argument.name,
            dtype_name(argument.tensor->view.dtype), dtype_name(other.tensor->view.dtype),
            other.name);
  }
  return *this;
}

Checks& Checks::dtype_in(Argument argument, DtypeRules rules) {
  if (!ok()) return *this;
  const aclDataType dtype = argument.tensor->view.dtype;
  const DtypeRule* rule = find_rule(rules, dtype);
  if (rule != nullptr && product_ >= rule->since) return *this;
  return require(false, "%s has dtype %s (%d), expected one of %s; %s", argument.name,
                 dtype_name(dtype), static_cast<int>(dtype), accepted_text(rules, product_).c_str(),
                 way_out(rule).c_str());
}

Checks& Checks::available_since(Product since) {
  if (!ok() || product_ >= since) return *this;
  status_ = fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                 "%s: product %s does not have this operator, %s and later do; select one (%s)",
                 api_, product_name(product_), product_name(since), selecting(since).c_str());
  return *this;
}

Checks& Checks::dtype_row_in(std::initializer_list<Argument> list, DtypeRows rows) {
  if (!ok()) return *this;
  const std::span<const Argument> arguments(list.begin(), list.size());
  const DtypeRow* later = nullptr;
  for (const DtypeRow& row : rows) {
    if (misfits(row, arguments).count > 0) continue;
    if (product_ >= row.since) return *this;
    if (later == nullptr) later = &row;
  }

  std::string accepted;
  std::string culprit;  // the only tensor that keeps the others from matching a row
  for (const DtypeRow& row : rows) {
    if (product_ < row.since) continue;
    const std::string text = row_text(arguments, [&](size_t i) { return row.dtypes[i]; });
    if (!accepted.ends_with(text)) accepted += (accepted.empty() ? "" : " or ") + text;
    const Misfits wrong = misfits(row, arguments);
    if (wrong.count != 1 || !culprit.empty()) continue;
    culprit = std::string(arguments[wrong.first].name) + " has dtype " +
              dtype_name(arguments[wrong.first].tensor->view.dtype) + ", expected " +
              dtype_name(row.dtypes[wrong.first]) + " beside the others; ";
  }
  const std::string given =
      row_text(arguments, [&](size_t i) { return arguments[i].tensor->view.dtype; });
  return require(
      false, "%sthe dtypes are %s, expected %s; cast the tensors%s", culprit.c_str(), given.c_str(),
      accepted.c_str(),
      later ? (", or select a product that accepts these (" + selecting(later->since) + ")").c_str()
            : "");
}

Checks& Checks::format_like_nd(Argument argument) {
  if (!ok() || argument.tensor == nullptr) return *this;
  switch (const aclFormat format = argument.tensor->view.format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NCL: return *this;
    default:
      return require(false, "%s has format %d, expected ND (%d), NCHW, NHWC, NCDHW or NCL",
                     argument.name, static_cast<int>(format), static_cast<int>(ACL_FORMAT_ND));
  }
}

Checks& Checks::castable_to_float(const Named<const aclScalar*>& scalar) {
  if (ok() && scalar.value->is_complex()) {
    require(false, "%s has dtype %s, expected a type that can be cast to FLOAT; pass a real number",
            scalar.name, dtype_name(scalar.value->dtype));
  }
  return *this;
}

Checks& Checks::castable(Argument from, Argument to) {
  if (!ok()) return *this;
  const aclDataType source = from.tensor->view.dtype;
  const aclDataType target = to.tensor->view.dtype;
  require(can_cast(source, target),
          "%s has dtype %s, expected a type that %s's %s can be cast to; pass a floating-point %s",
          to.name, dtype_name(target), from.name, dtype_name(source), to.name);
  return require(source == target || find_cast(source, target) != nullptr,
                 "%s has dtype %s, which the host CANN does not emulate; expected FLOAT, FLOAT16, "
                 "BFLOAT16, DOUBLE or a complex type",
                 to.name, dtype_name(target));
}

Checks& Checks::same_shape(Argument argument, Argument other) {
  if (ok() && !(argument.tensor->view.shape == other.tensor->view.shape)) {
    require(false, "%s has shape %s, expected %s as %s has; shapes are not broadcast, expand first",
            argument.name, shape_text(argument.tensor->view.shape).c_str(),
            shape_text(other.tensor->view.shape).c_str(), other.name);
  }
  return *this;
}

Checks& Checks::broadcast_shape(Argument argument, Argument first, Argument second) {
  if (!ok()) return *this;
  const Dims& a = first.tensor->view.shape;
  const Dims& b = second.tensor->view.shape;
  const uint64_t rank = std::max(a.size(), b.size());
  // The size of a dimension, counted from the last; missing dimensions have size 1.
  const auto size = [](const Dims& shape, uint64_t d) {
    return d < shape.size() ? shape[shape.size() - 1 - d] : 1;
  };
  Dims common;
  int64_t* out = common.resize(rank);
  for (uint64_t d = 0; d < rank; ++d) {
    const int64_t x = size(a, d), y = size(b, d);
    if (x != y && x != 1 && y != 1) {
      return require(false,
                     "%s has shape %s, which cannot be broadcast with %s's %s: sizes must be equal "
                     "or 1, from the last dimension on",
                     second.name, shape_text(b).c_str(), first.name, shape_text(a).c_str());
    }
    out[rank - 1 - d] = x == 1 ? y : x;
  }
  if (!(argument.tensor->view.shape == common)) {
    require(false, "%s has shape %s, expected %s, to which %s and %s are broadcast", argument.name,
            shape_text(argument.tensor->view.shape).c_str(), shape_text(common).c_str(), first.name,
            second.name);
  }
  return *this;
}

Checks& Checks::public_format(Argument argument) {
  if (!ok()) return *this;
  switch (const aclFormat format = argument.tensor->view.format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8:
      return require(false, "%s has format %d, a layout of the matrix units, expected ND (%d)",
                     argument.name, static_cast<int>(format), static_cast<int>(ACL_FORMAT_ND));
    default: return *this;
  }
}

Checks& Checks::format_nd(Argument argument) {
  if (!ok()) return *this;
  const aclFormat format = argument.tensor->view.format;
  return require(format == ACL_FORMAT_ND, "%s has format %d, expected ND (%d)", argument.name,
                 static_cast<int>(format), static_cast<int>(ACL_FORMAT_ND));
}

Checks& Checks::rank_at_most(Argument argument, uint64_t limit) {
  if (!ok()) return *this;
  const uint64_t rank = argument.tensor->view.shape.size();
  return require(rank <= limit, "%s has %llu dimensions, expected at most %llu; reshape it",
                 argument.name, static_cast<unsigned long long>(rank),
                 static_cast<unsigned long long>(limit));
}

Checks& Checks::addressable(Argument argument) {
  if (!ok() || argument.tensor == nullptr) return *this;
  return addressable(argument, argument.tensor->view);
}

Checks& Checks::addressable(Argument argument, const TensorView& view) {
  // This many elements of any dtype have a byte count that fits.
  constexpr int64_t kMost = INT64_MAX / 16;
  const auto count = element_count(view.shape);
  if (!count || *count > kMost) {
    return require(false, "%s has shape %s, expected sizes >= 0 with a product below 2^59",
                   argument.name, shape_text(view.shape).c_str());
  }
  // For an empty tensor too: its address is computed, though never used.
  if (view.offset < 0 || view.offset > kMost) {
    return require(false, "%s has offset %lld, expected a number >= 0 and below 2^59",
                   argument.name, static_cast<long long>(view.offset));
  }
  if (*count == 0) return *this;
  const auto extent = extent_of(view);
  const bool fits = extent && extent->first >= 0 && extent->last <= kMost &&
                    (extent->last < view.storage_count || is_in_device_memory(region_of(view)));
  if (!fits) {
    require(
        false,
        "%s (shape %s, strides %s, offset %lld) reaches outside its storage of shape %s, or "
        "beyond 2^59 elements, and does not lie in one block of aclrtMalloc; give the storage's "
        "true size",
        argument.name, shape_text(view.shape).c_str(), shape_text(view.strides).c_str(),
        static_cast<long long>(view.offset), shape_text(argument.tensor->storage_shape).c_str());
  }
  return *this;
}

Checks& Checks::require(bool condition, const char* format, ...) {
  if (!ok() || condition) return *this;
  std::va_list values;
  va_start(values, format);
  fail_with(failed_, format, values);
  va_end(values);
  return *this;
}

Checks& Checks::require_present(bool condition, const char* format, ...) {
  if (!ok() || condition) return *this;
  std::va_list values;
  va_start(values, format);
  fail_with(ACLNN_ERR_PARAM_NULLPTR, format, values);
  va_end(values);
  return *this;
}

Checks& Checks::require_tiling(bool condition, const char* format, ...) {
  if (!ok() || condition) return *this;
  std::va_list values;
  va_start(values, format);
  fail_with(ACLNN_ERR_INNER_TILING_ERROR, format, values);
  va_end(values);
  return *this;
}

Checks& Checks::require_status(bool condition, aclnnStatus status, const char* format, ...) {
  if (!ok() || condition) return *this;
  std::va_list values;
  va_start(values, format);
  fail_with(status, format, values);
  va_end(values);
  return *this;
}

void Checks::fail_with(aclnnStatus status, const char* format, std::va_list values) {
  char text[1024];
  std::vsnprintf(text, sizeof(text), format, values);
  status_ = fail(status, "%s: %s (product %s)", api_, text, product_name(product_));
}

}  // namespace aclnn_host
