#pragma once

#include <string>

namespace aclnn {

// Refuses, with an Error that says why, a library that somebody else could have put there, since
// its code runs with the caller's rights: a relative path, and a file or a folder above it that
// belongs to another user than root, the process's own or the owner of this code, or to which
// everyone or a group may write. A name without a folder is looked for where LD_LIBRARY_PATH leads
// the loader first. What does not exist is not refused.
void check_trusted(const std::string& path);

}  // namespace aclnn
