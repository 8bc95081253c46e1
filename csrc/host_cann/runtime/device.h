#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Ends every device: waits for all streams, then ends them and all contexts. Returns the first
// failure that was not reported before.
aclError end_devices();

}  // namespace aclnn_host
