// gradBias.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/operand.h"

namespace aclnn_host {

// Sums a tensor over all dimensions but the channels.
class ChannelSums {
 public:
  ChannelSums() = default;
  ChannelSums(const TensorView& view, Workspace& workspace);

  void compute(const TensorView& view, void* workspace) const;
  // Rounds the sums to the tensor's dtype and writes them to a vector of any dtype.
  void store(const TensorView& to, void* workspace) const;

 private:
  Operand operand_;
  bool channels_last_ = false;
  int64_t channels_ = 0;
  int64_t parts_ = 0;  // partial sums per channel
  aclDataType dtype_ = ACL_DT_UNDEFINED;
  uint64_t offset_ = 0;
};

}  // namespace aclnn_host
