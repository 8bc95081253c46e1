#pragma once

#include <span>

#include "acl/acl_op.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A call of aclopCompileAndExecute; its descriptions and buffers have been checked to exist.
struct NamedCall {
  const char* api;
  const char* type;  // the operator's name
  std::span<const aclTensorDesc* const> input_descs;
  std::span<const aclDataBuffer* const> inputs;
  std::span<const aclTensorDesc* const> output_descs;
  std::span<aclDataBuffer* const> outputs;
  const aclopAttr* attributes;  // may be null
  aclrtStream stream;
  // The same descriptions, if the call waits for the operator and writes the output shapes to them.
  std::span<aclTensorDesc* const> written_descs;
};

// Computes operators by name. libopapi.so, which depends on ATen, registers the implementation when
// it is loaded; this library is independent of torch and loads libopapi.so on first use.
using NamedOperators = aclError (*)(const NamedCall& call);
ACLNN_HOST_INTERNAL void register_named_operators(NamedOperators operators) noexcept;

}  // namespace aclnn_host
