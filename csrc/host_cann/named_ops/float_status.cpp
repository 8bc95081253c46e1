// What tells of overflows on a device. The host has no such flag: infinities say so, as they do on
// the products that have them.

#include <ATen/ops/zeros_like.h>

#include "host_cann/named_ops/operator.h"

using namespace aclnn_host;

namespace {

aclnnStatus nothing(NamedArguments& arguments, Preparation& stage) {
  arguments.expect_all_taken();
  return stage.finish([](const Frame&) {});
}

const NamedOperator entry_clear("NPUClearFloatStatusV2", "aclop NPUClearFloatStatusV2", nothing);
const NamedOperator entry_clear_debug("NPUClearFloatDebugStatus", "aclop NPUClearFloatDebugStatus",
                                      nothing);

}  // namespace

NAMED_OPERATOR(NPUAllocFloatStatus, (Out, data)) {
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUGetFloatStatus, (In, addr), (Out, data)) {
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUClearFloatStatus, (In, addr), (Out, data)) {
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUGetFloatStatusV2, (Out, data)) {
  data = at::zeros_like(data);
}
NAMED_OPERATOR(NPUGetFloatDebugStatus, (Out, data)) {
  data = at::zeros_like(data);
}
