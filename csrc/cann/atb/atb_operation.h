#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "atb/atb_infer.h"
#include "cann/rows/engine/refusal.h"
#include "cann/rows/row.h"

// The operations of ATB. One is a class with its inputs and outputs by name, a function that checks
// the descriptions of the inputs and returns those of the outputs, and one that computes with ATen.
// This header checks and runs all of them in the same way, as ATB does.
namespace aclnn_host {

// Thrown by the checks of an operation: a status of ATB, and its text.
struct AtbRefusal : Refusal {
  AtbRefusal(atb::Status status, const std::string& text) : Refusal(text), status(status) {}
  atb::Status status;
};
[[noreturn, gnu::cold]] void refuse_as(
    atb::Status status, std::initializer_list<Part> parts,
    std::source_location location = std::source_location::current());

// Thrown by CreateOperation where ATB accepts parameters that the host CANN does not compute. It
// reaches the caller, because clients drop the status of CreateOperation, and with it the text.
[[noreturn, gnu::cold]] void refuse_parameters(
    const char* operation, std::initializer_list<Part> parts,
    std::source_location location = std::source_location::current());

using AtbDesc = atb::TensorDesc;

// An input or output. One in host memory is a list of integers, which a call copies.
struct AtbTensor {
  const char* name;
  enum Place { kDevice, kHost, kMayBeAbsent } place = kDevice;
};
constexpr AtbTensor on_host(const char* name) {
  return {name, AtbTensor::kHost};
}
constexpr AtbTensor optional(const char* name) {
  return {name, AtbTensor::kMayBeAbsent};
}

inline c10::IntArrayRef shape_of(const AtbDesc& desc) {
  return {desc.shape.dims, static_cast<size_t>(desc.shape.dimNum)};
}
AtbDesc described(aclDataType dtype, c10::IntArrayRef shape);

// The inputs of a call as the checks see them: descriptions and, in a call, values in host memory.
struct AtbInputs {
  std::vector<AtbTensor> tensors;
  std::vector<AtbDesc> descs;
  std::vector<std::optional<std::vector<int64_t>>> values;

  size_t index(std::string_view name) const;
  bool has(std::string_view name) const { return !is_absent(descs[index(name)]); }
  bool is_on_device(size_t i) const {
    return tensors[i].place != AtbTensor::kHost && !is_absent(descs[i]);
  }
  const AtbDesc& operator[](std::string_view name) const { return descs[index(name)]; }
  c10::IntArrayRef shape(std::string_view name) const { return shape_of((*this)[name]); }
  // The integers of an input in host memory; null where only descriptions are known.
  const std::vector<int64_t>* list(std::string_view name) const;

  static bool is_absent(const AtbDesc& desc) { return desc.shape.dimNum == 0; }
};

// Checks of descriptions, with ATB's statuses.
void expect_rank(const AtbInputs& in, const char* name, std::initializer_list<uint64_t> ranks);
void expect_size(const AtbInputs& in, const char* name, size_t dim, int64_t expected,
                 const char* reason);
// Requires that the dtypes of the inputs in device memory are one of the rows, in their order.
using AtbDtypes = std::vector<aclDataType>;
void expect_dtypes(const AtbInputs& in, std::initializer_list<AtbDtypes> rows);

// The tensors of a call as the computation sees them.
struct AtbTensors {
  const AtbInputs& in;
  std::span<const at::Tensor> inputs;
  std::span<const at::Tensor> outputs;

  bool has(std::string_view name) const { return in.has(name); }
  const at::Tensor& operator[](std::string_view name) const { return inputs[in.index(name)]; }
  const std::vector<int64_t>& list(std::string_view name) const { return *in.list(name); }
  // An output that has the values of an input: it is the input's memory already, or gets a copy.
  const at::Tensor& replacing(std::string_view name, size_t output = 0) const;
};

// What a kind of operation with its parameters is. It does not change, and calls that a stream has
// not run yet share it.
class AtbKernel {
 public:
  AtbKernel(const char* name, std::vector<AtbTensor> inputs, std::vector<const char*> outputs)
      : name(name), inputs(std::move(inputs)), outputs(std::move(outputs)) {}
  virtual ~AtbKernel() = default;

  // Checks the inputs, and returns the descriptions of the outputs.
  virtual std::vector<AtbDesc> infer(const AtbInputs& in) const = 0;
  virtual void compute(const AtbTensors& tensors) const = 0;

  const char* const name;  // a string literal
  const std::vector<AtbTensor> inputs;
  const std::vector<const char*> outputs;
};

// Makes the operation of a kernel; `make` checks the parameters. Returns a status of ATB.
using MakeKernel = std::shared_ptr<const AtbKernel> (*)(const void* parameters);
atb::Status create_operation(const char* name, MakeKernel make, const void* parameters,
                             std::span<const uint8_t> reserved, atb::Operation** operation);

// The stages of a function in CANN's style (atb/atb_acl.h). The first makes `*operation` if it is
// null, and prepares it for contiguous tensors; the second executes it. Null is an absent tensor.
struct AtbArgument {
  const char* name;
  const aclTensor* tensor;
};
using MakeOperation = std::function<atb::Status(atb::Operation**)>;
atb::Status prepare(const char* function, const MakeOperation& make,
                    std::span<const AtbArgument> inputs, std::span<const AtbArgument> outputs,
                    uint64_t* workspace_size, atb::Operation** operation, atb::Context* context);
atb::Status execute(const char* function, void* workspace, uint64_t workspace_size,
                    atb::Operation* operation, atb::Context* context);

}  // namespace aclnn_host

// Defines CreateOperation for the parameters of a kernel, a class with a constructor that takes
// them.
#define ATB_OPERATION(Parameters, Kernel, name)                                                \
  template <>                                                                                  \
  atb::Status atb::CreateOperation(const Parameters& parameters, atb::Operation** operation) { \
    return ::aclnn_host::create_operation(                                                     \
        name,                                                                                  \
        [](const void* given) -> std::shared_ptr<const ::aclnn_host::AtbKernel> {              \
          return std::make_shared<const Kernel>(*static_cast<const Parameters*>(given));       \
        },                                                                                     \
        &parameters, parameters.rsv, operation);                                               \
  }

// Refuses a call with a status of ATB if the condition does not hold; see EXPECT.
#define EXPECT_OR(status, condition, ...)                  \
  do {                                                     \
    if (!(condition)) [[unlikely]] {                       \
      ::aclnn_host::refuse_as(atb::status, {__VA_ARGS__}); \
    }                                                      \
  } while (false)
