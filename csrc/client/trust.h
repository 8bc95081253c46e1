#pragma once

#include <string>

namespace aclnn {

// Throws an Error with the reason if another user could have replaced a library, because its code
// runs with the caller's rights. Refused are a relative path, and a file or a folder above it that
// belongs to a user other than root, the process's user or the owner of this code, or that everyone
// or a group may write to. A name without a folder is searched along LD_LIBRARY_PATH, as the loader
// does. Files that do not exist are not refused.
void check_trusted(const std::string& path);

}  // namespace aclnn
