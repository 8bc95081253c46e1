#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Ends every device: waits for all streams, ends them and all contexts.
void end_devices();

}  // namespace aclnn_host
