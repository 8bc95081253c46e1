#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include "cann/rows/engine/outputs.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/tensor.h"

namespace aclnn_host {

// The copy of an argument: the range of its tensors in the executor, or a value.
struct TensorRange {
  size_t first;
  size_t count;
  bool is_list = false;

  size_t end() const { return first + count; }
};
// A number of which stage 1 reads only the type, the sign and the order of magnitude.
struct AnyValue {
  c10::Scalar number;
};
using Slot = std::variant<std::monostate, TensorRange, c10::Scalar, std::vector<c10::Scalar>,
                          AnyValue, std::vector<AnyValue>, std::vector<int64_t>,
                          std::vector<double>, std::vector<bool>, std::string, c10::ScalarType>;

// A tensor in a type or a format that ATen may lack, as a row sees it: INT4 elements as INT8,
// FLOAT8 and FLOAT4 elements as FLOAT, elements of a private format in logical order.
struct StoredTensor {
  at::Tensor elements;
  aclDataType dtype;  // as it is stored
  aclFormat format;
  bool has_columns_first = false;  // the elements of a column are neighbours in memory, as in x.t()
};

// The arguments of one call as a row sees them. The tensors have the caller's memory, scratch
// memory, or none.
struct Frame {
  const std::vector<Slot>& slots;
  const std::vector<const char*>& names;
  const std::vector<at::Tensor>& tensors;
  const std::vector<TensorView>& views;              // of the tensors, as the caller has them
  const std::vector<std::shared_ptr<Dims>>& shapes;  // of the SizedOutputs, by tensor
  bool writes;                                       // false in stage 1

  // True if an optional argument was given.
  bool is_given(size_t i) const { return !std::holds_alternative<std::monostate>(slots[i]); }
  const TensorRange* range(size_t i) const { return std::get_if<TensorRange>(&slots[i]); }
  const at::Tensor& tensor(size_t i) const { return tensors[range(i)->first]; }
  Output output(size_t i) const { return Output(names[i], tensor(i), writes, &tensors); }
};

// True if no two tensors overlap in memory, except tensors at the same position of their lists that
// are the same view.
bool tensors_are_apart(const Frame& frame);

// The type-erased form in which the engine calls a row.
using RowFunction = void (*)(const Frame&);

// True while this thread runs a row in a rehearsal, whose inputs are all zeros or all ones. For
// rows that check values, not only shapes and dtypes.
bool is_rehearsed() noexcept;

// True if a tensor holds the caller's values, which is in stage 2 only. In stage 1 it has no
// memory, or the zeros or ones of a rehearsal.
inline bool has_values(const at::Tensor& tensor) {
  return tensor.is_cpu() && !is_rehearsed();
}

}  // namespace aclnn_host
