#include "ops/checks.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "ops/cast.h"
#include "runtime/error.h"

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

// What a user can do about a dtype that this product lacks.
std::string way_out(const DtypeRule* rule) {
  if (rule == nullptr) return "cast the tensor to one of these";
  const std::string product = product_name(rule->since);
  return "cast the tensor, or select the " + product + " product, which accepts " +
         dtype_name(rule->dtype) + " (ACLNN_TORCH_PRODUCT=" + product +
         ", or aclnn_torch.set_product(\"" + product + "\") in Python)";
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

Checks& Checks::castable_to_float(const char* name, const aclScalar* scalar) {
  if (ok() && scalar->is_complex()) {
    require(false, "%s has dtype %s, expected a type that can be cast to FLOAT; pass a real number",
            name, dtype_name(scalar->dtype));
  }
  return *this;
}

Checks& Checks::castable(Argument from, Argument to) {
  if (!ok()) return *this;
  const aclDataType source = from.tensor->view.dtype;
  const aclDataType target = to.tensor->view.dtype;
  require(can_cast(source, target),
          "%s has dtype %s, expected a type that %s's %s can be cast to; pass a floating %s",
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

Checks& Checks::rank_at_most(Argument argument, uint64_t limit) {
  if (!ok()) return *this;
  const uint64_t rank = argument.tensor->view.shape.size();
  return require(rank <= limit, "%s has %llu dimensions, expected at most %llu; reshape it",
                 argument.name, static_cast<unsigned long long>(rank),
                 static_cast<unsigned long long>(limit));
}

Checks& Checks::addressable(Argument argument) {
  if (!ok()) return *this;
  const TensorView& view = argument.tensor->view;
  const auto count = element_count(view.shape);
  if (!count || *count > INT64_MAX / 16) {
    return require(false, "%s has shape %s, expected sizes >= 0 with a product below 2^59",
                   argument.name, shape_text(view.shape).c_str());
  }
  const auto storage = element_count(argument.tensor->storage_shape);
  const auto extent = extent_of(view);
  const bool fits = extent && storage && extent->first >= 0 && extent->last < *storage;
  if (*count > 0 && !fits) {
    require(false,
            "%s (shape %s, strides %s, offset %lld) reaches outside its storage of shape %s; give "
            "the storage's true size",
            argument.name, shape_text(view.shape).c_str(), shape_text(view.strides).c_str(),
            static_cast<long long>(view.offset),
            shape_text(argument.tensor->storage_shape).c_str());
  }
  return *this;
}

Checks& Checks::require(bool condition, const char* format, ...) {
  if (!ok() || condition) return *this;
  char text[768];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  status_ =
      fail(ACLNN_ERR_PARAM_INVALID, "%s: %s (product %s)", api_, text, product_name(product_));
  return *this;
}

}  // namespace aclnn_host
