#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// A tensor of images or volumes, whose channels are dimension 1, or dimension 0 without a batch. A
// channels-last format is refused, because the row would read it wrongly. (Other rows do not depend
// on the format. NDHWC, HWCN and DHWCN are refused everywhere.)
template <class Base>
struct Image : Base {
  static typename Base::Value get(const Frame& frame, size_t i) {
    const TensorRange* const range = frame.range(i);
    EXPECT(range == nullptr || frame.views[range->first].format != ACL_FORMAT_NHWC, frame.names[i],
           " has format NHWC, expected ND, NCHW, NCDHW or NCL: the host CANN ",
           "reads the channels of images from dimension 1; transpose the tensor");
    return Base::get(frame, i);
  }
};

}  // namespace aclnn_host
