#pragma once

#include <string>
#include <string_view>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// The treatment of an existing file.
enum class Existing { kEmptied, kContinued, kRefused };

// A file opened at a path from untrusted text: a descriptor, or the reason why there is none.
struct NamedFile {
  int descriptor = -1;
  bool is_new = false;
  int error = 0;       // errno of the failed call; EPERM if none failed
  std::string reason;  // a clause without its subject: "is a symbolic link, which ..."
};

// Opens a file for writing. A new file is accessible to its user only. An existing file must belong
// to the same user and be neither a symbolic link, nor a hard link to another file, nor a folder or
// a pipe, which could block a write. Devices such as /dev/null are accepted.
ACLNN_HOST_INTERNAL NamedFile open_named_file(const std::string& path, Existing existing);

// Turns any text into a part of a file name: characters that could lead to another folder, and "%",
// are escaped as in "%2F", so that different texts give different names.
ACLNN_HOST_INTERNAL std::string file_name_part(std::string_view text);

}  // namespace aclnn_host
