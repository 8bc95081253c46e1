#pragma once

#include <string>
#include <vector>

#include "client/library.h"

namespace aclnn {

// Paths of the operator libraries of an installed CANN, in search order: the custom operators of
// $ASCEND_CUSTOM_OPP_PATH, the vendors' in $ASCEND_OPP_PATH by their load_priority, libopapi.so as
// the loader finds it, and the libraries that newer CANN releases have split from it, in
// $ASCEND_HOME_PATH/lib64. Contains only files that exist.
std::vector<std::string> installed_paths();

// The CANN that this process runs on. Opened on first use and never closed, because handles may
// outlive every static object.
const Library& installed();

}  // namespace aclnn
