#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Ends every device: waits for all streams, ends them and all contexts. Returns the first failure
// that nobody was told of.
aclError end_devices();

}  // namespace aclnn_host
