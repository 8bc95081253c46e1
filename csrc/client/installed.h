#pragma once

#include <string>
#include <vector>

#include "client/library.h"

namespace aclnn {

// Where the operators of an installed CANN are looked for, in this order: the custom operators of
// $ASCEND_CUSTOM_OPP_PATH, those of the vendors in $ASCEND_OPP_PATH by their load_priority,
// libopapi.so as the loader finds it, and what newer CANN releases have split from it in
// $ASCEND_HOME_PATH/lib64. Only files that exist are named.
std::vector<std::string> installed_paths();

// The CANN that this process runs on. Opened on first use and never closed: handles may outlive
// every static object.
const Library& installed();

}  // namespace aclnn
