// The float status of a device, which records overflows (runtime/float_status.h): each element is 1
// after an overflow, else 0. In infinity mode there is no status, and reading it is refused.
#include "host_cann/runtime/float_status.h"

#include "cann/named_ops/operator.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::named_float_status {

namespace {

// Refuses to read the status in infinity mode.
void expect_saturation_mode() {
  EXPECT(overflow_mode() == ACL_RT_OVERFLOW_MODE_SATURATION, product_name(current_product()),
         " is in infinity mode (ACL_RT_OVERFLOW_MODE_INFNAN), in which a device keeps no float "
         "status; look for infinities and NaN in the results, or set saturation mode "
         "(aclrtSetDeviceSatMode, in torch_npu INF_NAN_MODE_FORCE_DISABLE=1) on a product that "
         "has it");
}

// An output for the status.
struct StatusOut : Out {
  static void add(Preparation& stage, const char* name, C tensor) {
    expect_saturation_mode();
    Out::add(stage, name, tensor);
  }
};
// The memory of NPUAllocFloatStatus, an input that is written.
struct StatusMemory {
  using C = const aclTensor*;
  using Value = Output;
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, true, Preparation::Access::kInputAndOutput);
  }
  static Value get(const Frame& frame, size_t i) { return frame.output(i); }
};

at::Tensor status_like(const at::Tensor& data, FloatStatus status) {
  return at::full_like(data, has_overflowed(status) ? 1 : 0);
}

template <FloatStatus kStatus>
aclnnStatus clear(NamedArguments& arguments, Preparation& stage) {
  arguments.expect_all_taken();
  return stage.finish([](const Frame& frame) {
    if (frame.writes) clear_overflow(kStatus);
  });
}

const NamedOperator entry_clear("NPUClearFloatStatusV2", "aclop NPUClearFloatStatusV2",
                                clear<FloatStatus::kOperators>);
const NamedOperator entry_clear_debug("NPUClearFloatDebugStatus", "aclop NPUClearFloatDebugStatus",
                                      clear<FloatStatus::kDebugging>);

}  // namespace

NAMED_OPERATOR(NPUAllocFloatStatus, (Out, data)) {
  data = at::zeros_like(data);
}
// Writes the status to the memory that was allocated for it, and zeros to the output. (MindSpore,
// ops.NPUGetFloatStatus; torch_npu returns the memory.)
NAMED_OPERATOR(NPUGetFloatStatus, (StatusMemory, addr), (StatusOut, data)) {
  addr = status_like(addr, FloatStatus::kOperators);
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUClearFloatStatus, (StatusMemory, addr), (Out, data)) {
  if (data.is_written()) clear_overflow(FloatStatus::kOperators);
  addr = at::zeros_like(addr);
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUGetFloatStatusV2, (StatusOut, data)) {
  data = status_like(data, FloatStatus::kOperators);
}
NAMED_OPERATOR(NPUGetFloatDebugStatus, (StatusOut, data)) {
  data = status_like(data, FloatStatus::kDebugging);
}

}  // namespace aclnn_host::named_float_status
