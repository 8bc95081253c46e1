#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Checks aclInit's configuration as CANN does: a regular file of at most 10 MiB that can be read
// (100003), empty or JSON with at most 10 objects and 10 arrays in one another (100006).
aclError check_configuration(const char* api, const char* path);

}  // namespace aclnn_host
