#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/containers.h"

// What a row writes to.

namespace aclnn_host {

// What a row writes to: an assignment copies into the caller's memory, cast to its type, whatever
// its strides. The shapes must agree and the result's type must be castable.
class Output {
 public:
  // One of which only the checks are wanted has `is_written` false. `tensors` are those of the
  // call, this one among them, if it may be computed in place.
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
  // Refuses an output that results of this type cannot be cast to.
  void expect(at::ScalarType result) const;
  // An assignment where any type may be cast to any other.
  void copy(const at::Tensor& result);

  // The output itself, where a function of ATen may put a result of this type and shape at once;
  // assigning it afterwards does nothing. Null where the result has to be computed apart: in stage
  // 1, for another type or shape, which an assignment casts or refuses, for a tensor so small that
  // it does not matter, and where another tensor of the call lies in its memory. What computes
  // element by element may find its inputs there; another row must not ask for an argument that it
  // reads.
  enum class Reads { kAnyElement, kSameElement };
  at::Tensor* room(at::ScalarType result, at::IntArrayRef shape, Reads reads);
  // Computes into that place, or assigns what is computed apart.
  template <class Compute, class ComputeInto>
  void write(at::ScalarType result, at::IntArrayRef shape, Reads reads, Compute compute,
             ComputeInto compute_into) {
    if (at::Tensor* const place = room(result, shape, reads)) {
      compute_into(*place);
    } else {
      *this = compute();
    }
  }

  // The memory before the row writes to it.
  operator const at::Tensor&() const { return tensor_; }
  const at::Tensor* operator->() const { return &tensor_; }
  const char* name() const { return name_; }
  bool is_written() const { return is_written_; }
  // Of an output in a list: whether no other tensor of the call lies in its memory, but those of
  // the same place in their lists that are the same view.
  bool may_be_written_early() const { return may_be_written_early_; }

 private:
  const char* name_;
  at::Tensor tensor_;
  const std::vector<at::Tensor>* tensors_;
  bool is_written_;
  bool may_be_written_early_;
};

// An output that the caller may leave out: nothing is written to one that is absent.
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

// An output whose shape depends on the data. The caller gives contiguous memory for the largest
// result and reads the real shape with aclGetViewShape once the stream is synchronised. In stage 1,
// where there are no data, a row says what type it expects and assigns nothing.
class SizedOutput {
 public:
  SizedOutput(Output memory, std::shared_ptr<Dims> shape)
      : memory_(std::move(memory)), shape_(std::move(shape)) {}
  SizedOutput& operator=(const at::Tensor& result);
  // Refuses an output that results of this type cannot be cast to.
  void expect(at::ScalarType result) const { memory_.expect(result); }

 private:
  Output memory_;
  std::shared_ptr<Dims> shape_;
};

// An output of a type or a format that ATen may lack. What is assigned is rounded to the type in
// which it is stored; numbers beyond the range of INT4 wrap, those beyond FLOAT8_E5M2's become inf
// and those beyond FLOAT8_E4M3FN's nan.
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
