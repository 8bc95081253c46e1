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

// The owner of the running library's file; the user if the file is not known.
uid_t owner_of_this_code() {
  Dl_info self{};
  struct stat file{};
  const bool known = dladdr(reinterpret_cast<const void*>(&check_trusted), &self) != 0 &&
                     self.dli_fname != nullptr && stat(self.dli_fname, &file) == 0;
  return known ? file.st_uid : geteuid();
}

// True if the file belongs to a user who can change what this process runs anyway.
bool is_own(const struct stat& file) {
  return file.st_uid == 0 || file.st_uid == geteuid() || file.st_uid == owner_of_this_code();
}

// Describes the users other than the owner who may write to the file; null if there are none. The
// owner's private group (same number as the owner) and root's group count as the owner.
const char* other_writers(const struct stat& file) {
  if ((file.st_mode & S_IWOTH) != 0) return "everyone";
  const bool others_group = file.st_gid != 0 && file.st_gid != file.st_uid;
  return (file.st_mode & S_IWGRP) != 0 && others_group ? "its group" : nullptr;
}

// In a shared folder with the sticky bit, such as /tmp, only an entry's owner can replace it.
bool is_shared_safely(const struct stat& folder, const struct stat& entry) {
  return (folder.st_mode & S_ISVTX) != 0 && is_own(entry);
}

// Checks the file and every folder above it.
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
    // A symbolic link's mode always allows writing, which has no effect; only its owner matters.
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
  check_permissions(real);  // the target of symbolic links
}

// Collects the files that the loader may open for a name in a folder of its search path. The loader
// tries subfolders for particular processors first.
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

// Checks the files that the loader may open for a bare name. An empty entry of the search path is
// the working directory.
void check_search_path(const std::string& name) {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  if (variable == nullptr || *variable == '\0') return;
  for (std::string_view rest = variable;;) {
    const size_t length = rest.find_first_of(":;");
    const std::string_view folder = rest.substr(0, length);
    std::vector<fs::path> found;
    find_in(folder.empty() ? "." : folder, name, found);
    for (const fs::path& path : found) check_path(path);  // one of them, by the processor
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
