// gradBias.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/operand.h"

namespace aclnn_host {

// The sums of a tensor over everything but its channels.
class ChannelSums {
 public:
  ChannelSums() = default;
  ChannelSums(const TensorView& view, Workspace& workspace);

  void compute(const TensorView& view, void* workspace) const;
  // Writes them to a vector of any type, rounded to the tensor's in between.
  void store(const TensorView& to, void* workspace) const;

 private:
  Operand operand_;
  bool channels_last_ = false;
  int64_t channels_ = 0;
  int64_t parts_ = 0;  // sums of each channel, before they are added
  aclDataType dtype_ = ACL_DT_UNDEFINED;
  uint64_t offset_ = 0;
};

}  // namespace aclnn_host
