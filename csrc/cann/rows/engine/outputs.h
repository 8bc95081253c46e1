#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/containers.h"

// The outputs of a row.

namespace aclnn_host {

// An output of a row. An assignment copies into the caller's memory, casts to its type and respects
// its strides. The shapes must agree and the result's type must be castable.
class Output {
 public:
  // With `is_written` false, assignments check and do not copy. `tensors` are all tensors of the
  // call, including this one, if the output may be computed in place.
  Output(const char* name, at::Tensor tensor, bool is_written,
         const std::vector<at::Tensor>* tensors = nullptr, bool may_be_written_early = false)
      : name_(name),
        tensor_(std::move(tensor)),
        tensors_(tensors),
        is_written_(is_written),
        may_be_written_early_(may_be_written_early) {}
  Output(const Output&) = default;
  Output(Output&&) = default;
  Output& operator=(const at::Tensor& result);
  Output& operator=(const Output& result) { return *this = result.tensor_; }
  // Refuses a result type that cannot be cast to the output's.
  void expect(at::ScalarType result) const;
  // Assigns without the check of castable types.
  void copy(const at::Tensor& result);

  // The output itself, if a function of ATen may write a result of this type and shape directly to
  // it; assigning it afterwards does nothing. Null if the result must be computed in a temporary:
  // in stage 1, for another type or shape, which an assignment casts or refuses, for a tensor so
  // small that the copy costs nothing, and where another tensor of the call overlaps the output. An
  // elementwise function may have inputs in the same memory (kSameElement); other rows must not use
  // this for an argument that they also read.
  enum class Reads { kAnyElement, kSameElement };
  at::Tensor* room(at::ScalarType result, at::IntArrayRef shape, Reads reads);
  // Computes into room(), or into a temporary that is then assigned.
  template <class Compute, class ComputeInto>
  void write(at::ScalarType result, at::IntArrayRef shape, Reads reads, Compute compute,
             ComputeInto compute_into) {
    if (at::Tensor* const destination = room(result, shape, reads)) {
      compute_into(*destination);
    } else {
      *this = compute();
    }
  }

  // For a row that changes some elements of `before`, which is the output itself or an input that
  // the output may replace: the tensor in which to change them, and which the row then assigns. It
  // is the output's own memory if `before` is that and no other tensor of the call overlaps it, and
  // otherwise a copy, as in stage 1. With `is_certain` false, which says that the row may still
  // refuse the call, it is a copy, too.
  at::Tensor editable(const at::Tensor& before, bool is_certain = true) const {
    return is_certain && is_at(before) ? tensor_ : before.clone();
  }
  at::Tensor editable(bool is_certain = true) const { return editable(tensor_, is_certain); }
  // True in stage 2 if `before` is the output's own memory and no other tensor of the call overlaps
  // it.
  bool is_at(const at::Tensor& before) const;

  // The memory with the values that it had before the row.
  operator const at::Tensor&() const { return tensor_; }
  const at::Tensor* operator->() const { return &tensor_; }
  const char* name() const { return name_; }
  bool is_written() const { return is_written_; }
  // For an output in a list: true if no other tensor of the call overlaps it, except tensors at the
  // same position of their lists that are the same view.
  bool may_be_written_early() const { return may_be_written_early_; }

 private:
  const char* name_;
  at::Tensor tensor_;
  const std::vector<at::Tensor>* tensors_;
  bool is_written_;
  bool may_be_written_early_;
};

// An output that the caller may omit. Assignments to an absent one do nothing.
class OptionalOutput {
 public:
  OptionalOutput() = default;
  explicit OptionalOutput(Output output) : output_(std::move(output)) {}
  OptionalOutput& operator=(const at::Tensor& result) {
    if (output_) *output_ = result;
    return *this;
  }
  explicit operator bool() const { return output_.has_value(); }
  const Output& operator*() const { return *output_; }

 private:
  std::optional<Output> output_;
};

// An output whose shape depends on the data. The caller allocates contiguous memory for the largest
// result and reads the actual shape with aclGetViewShape after synchronising the stream. In stage
// 1, where there are no data, a row states the type that it will assign and assigns nothing.
class SizedOutput {
 public:
  SizedOutput(Output memory, std::shared_ptr<Dims> shape)
      : memory_(std::move(memory)), shape_(std::move(shape)) {}
  SizedOutput& operator=(const at::Tensor& result);
  // Refuses a result type that cannot be cast to the output's.
  void expect(at::ScalarType result) const { memory_.expect(result); }

 private:
  Output memory_;
  std::shared_ptr<Dims> shape_;
};

// An output in a type or a format that ATen may lack. An assignment rounds to the stored type;
// numbers beyond the range of INT4 wrap, those beyond FLOAT8_E5M2's become inf and those beyond
// FLOAT8_E4M3FN's become NaN.
class StoredOutput : public Output {
 public:
  StoredOutput(Output elements, aclDataType dtype, aclFormat format)
      : Output(std::move(elements)), dtype_(dtype), format_(format) {}
  using Output::operator=;
  aclDataType dtype() const { return dtype_; }
  aclFormat format() const { return format_; }

 private:
  aclDataType dtype_;
  aclFormat format_;
};

}  // namespace aclnn_host
