#pragma once

#include <span>

#include "acl/acl_op.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A call of aclopCompileAndExecute whose descriptions and buffers all exist.
struct NamedCall {
  const char* api;
  const char* type;  // the operator's name
  std::span<const aclTensorDesc* const> input_descs;
  std::span<const aclDataBuffer* const> inputs;
  std::span<const aclTensorDesc* const> output_descs;
  std::span<aclDataBuffer* const> outputs;
  const aclopAttr* attributes;  // may be null
  aclrtStream stream;
  // The same descriptions, if the call waits for the operator and writes the outputs' shapes there.
  std::span<aclTensorDesc* const> written_descs;
};

// Computes operators by their name. libopapi.so, which has ATen, registers the one that there is as
// it is loaded; this library knows nothing of torch, and loads that one when first it needs it.
using NamedOperators = aclError (*)(const NamedCall& call);
ACLNN_HOST_INTERNAL void register_named_operators(NamedOperators operators) noexcept;

}  // namespace aclnn_host
