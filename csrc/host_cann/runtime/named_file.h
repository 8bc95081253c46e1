#pragma once

#include <string>
#include <string_view>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// What a file that was there already becomes.
enum class Existing { kEmptied, kContinued, kRefused };

// A file that is written where somebody's text leads: a descriptor, or why there is none.
struct NamedFile {
  int descriptor = -1;
  bool is_new = false;
  int error = 0;       // errno of the call that failed; EPERM if none did
  std::string reason;  // a clause without its subject: "is a symbolic link, which ..."
};

// Opens it for writing. A new file is its user's alone. One that is there must be what the text
// says: no symbolic link and no further name of another file, of the same user, and neither a
// folder nor a pipe, on which a write could wait. A device, such as /dev/null, is accepted.
ACLNN_HOST_INTERNAL NamedFile open_named_file(const std::string& path, Existing existing);

// A part of a file's name, from any text: what could lead to another folder, and "%", are written
// as "%2F", so that different texts give different names.
ACLNN_HOST_INTERNAL std::string file_name_part(std::string_view text);

}  // namespace aclnn_host
