// The list of convolution algorithms, and the choice for a problem.
#pragma once

#include <variant>

#include "host_cann/ops/convolution/aten_convolution.h"
#include "host_cann/ops/convolution/depthwise_channels_last.h"
#include "host_cann/ops/convolution/direct.h"
#include "host_cann/ops/convolution/im2col.h"
#include "host_cann/ops/convolution/implicit_gemm.h"
#include "host_cann/ops/convolution/patches.h"
#include "host_cann/ops/convolution/pointwise.h"

namespace aclnn_host {

using Algorithm = std::variant<Direct, DepthwiseChannelsLast, Pointwise, Patches, Im2col,
                               ImplicitGemm, AtenConvolution>;

// An entry of the list, chosen for a problem.
struct Choice {
  using Make = Algorithm (*)(const Problem& problem, const Form& form, const Passes& passes,
                             Workspace& workspace);

  const char* name;  // of the entry; a literal
  Make make;         // constructs the algorithm
  Form form;

  // True if both passes use the same algorithm, which then computes them together.
  bool is_computed_with(const Choice& other) const {
    return make == other.make && form == other.form;
  }
};

// The first entry of the list that supports the problem and is expected to be fast.
Choice choose(const Problem& problem);

// True if CANN's or PyTorch's setting requests results that do not depend on the number of threads.
bool wants_same_bits();

}  // namespace aclnn_host
