#pragma once

#include <array>
#include <cstdarg>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/scalar.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/descriptors/trace.h"
#include "host_cann/runtime/cann_release.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {

// A dtype that an operator accepts, and the first product that accepts it, in the order of Product;
// later products do, too. (kHost accepts what any product accepts.)
struct DtypeRule {
  aclDataType dtype;
  Product since;
};
using DtypeRules = std::span<const DtypeRule>;

// One valid combination of dtypes of all tensors of an operator, in the order of its prototype, and
// the first product that accepts it.
struct DtypeRow {
  std::array<aclDataType, 8> dtypes;
  Product since;
};
using DtypeRows = std::span<const DtypeRow>;

// An argument with its name in the operator's document. An absent optional argument has no tensor.
struct Argument {
  const char* name;
  const aclTensor* tensor;
};

// The argument checks of one stage 1 call, in the order of the operator's document. The first
// failure determines status and message, and later checks are skipped. So a check may dereference a
// pointer that an earlier one found not to be null.
class Checks {
 public:
  // `failed` is the status of require() and of all checks that name no other.
  explicit Checks(const char* api, aclnnStatus failed = ACLNN_ERR_PARAM_INVALID)
      : api_(api),
        failed_(failed),
        product_(current_product()),
        cann_release_(current_cann_release()) {}

  Checks& not_null(const char* name, const void* pointer);
  template <class NamedPointer>
  Checks& not_null(const NamedPointer& argument) {
    const auto& [name, pointer] = argument;
    return not_null(name, pointer);
  }
  // The first check of every handwritten operator of CANN.
  Checks& results_not_null(const uint64_t* workspace_size, aclOpExecutor** executor) {
    return not_null("executor", executor).not_null("workspaceSize", workspace_size);
  }

  // The checks of the operators that CANN generates, in place of the checks below: products before
  // `since` do not have the operator (561003); the dtypes of all tensors match a row; the format is
  // one that is read as ND.
  Checks& available_since(Product since);
  Checks& dtype_row_in(std::initializer_list<Argument> arguments, DtypeRows rows);
  Checks& format_like_nd(Argument argument);

  Checks& same_dtype(Argument argument, Argument other);
  Checks& dtype_in(Argument argument, DtypeRules rules);
  Checks& castable_to_float(const Named<const aclScalar*>& scalar);
  Checks& castable(Argument from, Argument to);
  Checks& same_shape(Argument argument, Argument other);
  // The shape to which the shapes of the two others are broadcast.
  Checks& broadcast_shape(Argument argument, Argument first, Argument second);
  // A format that names the dimensions, not a layout of the matrix units.
  Checks& public_format(Argument argument);
  // ND only.
  Checks& format_nd(Argument argument);
  Checks& rank_at_most(Argument argument, uint64_t limit);
  // Fails unless `condition`; the rest is a printf format.
  Checks& require(bool condition, const char* format, ...) __attribute__((format(printf, 3, 4)));
  // The same with 161001, for arguments that count as missing.
  Checks& require_present(bool condition, const char* format, ...)
      __attribute__((format(printf, 3, 4)));
  // The same with 561002, the generated operators' status for shapes and attribute values.
  Checks& require_tiling(bool condition, const char* format, ...)
      __attribute__((format(printf, 3, 4)));
  // The same with the given status.
  Checks& require_status(bool condition, aclnnStatus status, const char* format, ...)
      __attribute__((format(printf, 4, 5)));
  // The host's own last check, because it must never access memory outside its buffers: the sizes
  // multiply without overflow, and the view lies inside its storage or, because a client may leave
  // out the offset there, inside one block of device memory. Does nothing for an absent tensor.
  Checks& addressable(Argument argument);
  // The same for another view of that tensor.
  Checks& addressable(Argument argument, const TensorView& view);

  bool ok() const { return status_ == OK; }
  aclnnStatus status() const { return status_; }
  Product product() const { return product_; }
  CannRelease cann_release() const { return cann_release_; }

 private:
  void fail_with(aclnnStatus status, const char* format, std::va_list values);

  const char* api_;
  aclnnStatus failed_;
  Product product_;
  CannRelease cann_release_;
  aclnnStatus status_ = OK;
};

}  // namespace aclnn_host
