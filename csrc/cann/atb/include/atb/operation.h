// An operation of ATB: made from its parameters, prepared for tensors (Setup), executed on the
// stream of a context.
#pragma once

#include <cstdint>
#include <string>

#include "atb/context.h"
#include "atb/svector.h"
#include "atb/types.h"

#pragma GCC visibility push(default)
namespace atb {

class Operation {
 public:
  Operation() = default;
  virtual ~Operation() = default;
  virtual std::string GetName() const = 0;
  // The descriptions of the outputs for inputs of these descriptions.
  virtual Status InferShape(const SVector<TensorDesc>& inTensorDescs,
                            SVector<TensorDesc>& outTensorDescs) const = 0;
  virtual uint32_t GetInputNum() const = 0;
  virtual uint32_t GetOutputNum() const = 0;
  // Checks the call, and says how many bytes of workspace it needs.
  virtual Status Setup(const VariantPack& variantPack, uint64_t& workspaceSize,
                       Context* context) = 0;
  // Submits the call to the stream of the context.
  virtual Status Execute(const VariantPack& variantPack, uint8_t* workspace, uint64_t workspaceSize,
                         Context* context) = 0;
};

template <typename OpParam>
Status CreateOperation(const OpParam& opParam, Operation** operation);
Status DestroyOperation(Operation* operation);

}  // namespace atb
#pragma GCC visibility pop
