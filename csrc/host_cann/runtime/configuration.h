#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Checks aclInit's configuration as CANN does: a readable regular file of at most 10 MiB (otherwise
// 100003), empty or JSON with at most 10 nested objects and 10 nested arrays (otherwise 100006).
aclError check_configuration(const char* api, const char* path);

}  // namespace aclnn_host
