#include "client/trust.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "acl/acl_base.h"
#include "client/error.h"

namespace aclnn {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& text) {
  throw Error("dlopen", ACL_ERROR_INVALID_FILE, text);
}

// Who owns this code, which is running already; the user where that is not known.
uid_t owner_of_this_code() {
  Dl_info self{};
  struct stat file{};
  const bool known = dladdr(reinterpret_cast<const void*>(&check_trusted), &self) != 0 &&
                     self.dli_fname != nullptr && stat(self.dli_fname, &file) == 0;
  return known ? file.st_uid : geteuid();
}

// Belongs to somebody who could change what this process runs in any case.
bool is_own(const struct stat& file) {
  return file.st_uid == 0 || file.st_uid == geteuid() || file.st_uid == owner_of_this_code();
}

// Who may write to it besides its owner; null if nobody. The group of an owner's own, which has
// the owner's number, and that of root are not somebody else.
const char* other_writers(const struct stat& file) {
  if ((file.st_mode & S_IWOTH) != 0) return "everyone";
  const bool others_group = file.st_gid != 0 && file.st_gid != file.st_uid;
  return (file.st_mode & S_IWGRP) != 0 && others_group ? "its group" : nullptr;
}

// In a folder for many with the sticky bit, such as /tmp, each entry is its owner's alone.
bool is_shared_safely(const struct stat& folder, const struct stat& entry) {
  return (folder.st_mode & S_ISVTX) != 0 && is_own(entry);
}

// The file and the folders above it.
void check_permissions(const fs::path& path) {
  struct stat entry{};
  for (fs::path at = path;; at = at.parent_path()) {
    struct stat found{};
    if (lstat(at.c_str(), &found) != 0) return;
    if (!is_own(found)) {
      refuse(at.string() + " belongs to user " + std::to_string(found.st_uid) + ", so " +
             path.string() +
             " is not loaded; its owner must be root or the user of this process (chown)");
    }
    // Everyone may "write" to a link, which changes nothing; its owner counts.
    const char* const others = S_ISLNK(found.st_mode) ? nullptr : other_writers(found);
    if (others != nullptr && !(S_ISDIR(found.st_mode) && is_shared_safely(found, entry))) {
      refuse(at.string() + " may be written by " + others + ", so " + path.string() +
             " is not loaded; remove that permission (chmod go-w)");
    }
    if (at == at.root_path()) return;
    entry = found;
  }
}

void check_path(const std::string& path) {
  if (path[0] != '/') {
    refuse(path + " is not an absolute path; the working directory must not decide what is loaded");
  }
  std::error_code missing;
  const fs::path real = fs::canonical(path, missing);
  if (missing) return;
  check_permissions(path);
  check_permissions(real);  // where symbolic links lead
}

// Where the loader finds a name in a folder of its search path: in those below it for certain
// processors too, which come first.
void find_in(const fs::path& folder, const std::string& name, std::vector<fs::path>& found,
             int levels = 4) {
  std::error_code ignored;
  if (levels > 0) {
    for (const char* below : {"tls", "haswell", "avx512_1", "x86_64", "aarch64", "atomics"}) {
      if (fs::is_directory(folder / below, ignored)) {
        find_in(folder / below, name, found, levels - 1);
      }
    }
    std::error_code missing;
    for (fs::directory_iterator below(folder / "glibc-hwcaps", missing), end;
         !missing && below != end; below.increment(missing)) {
      find_in(below->path(), name, found, 0);
    }
  }
  if (fs::exists(folder / name, ignored)) found.push_back(folder / name);
}

// What the loader takes for a name. An empty entry is its working directory.
void check_search_path(const std::string& name) {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  if (variable == nullptr || *variable == '\0') return;
  for (std::string_view rest = variable;;) {
    const size_t length = rest.find_first_of(":;");
    const std::string_view folder = rest.substr(0, length);
    std::vector<fs::path> found;
    find_in(folder.empty() ? "." : folder, name, found);
    for (const fs::path& path : found) check_path(path);  // which of them depends on the processor
    if (!found.empty() || length == rest.npos) return;
    rest.remove_prefix(length + 1);
  }
}

}  // namespace

void check_trusted(const std::string& path) {
  if (path.find('/') == std::string::npos) {
    check_search_path(path);
  } else {
    check_path(path);
  }
}

}  // namespace aclnn
