#include "host_cann/runtime/named_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace aclnn_host {
namespace {

constexpr const char* kNoFile = "is neither a regular file nor a device; name another";

// Returns the reason why an existing file must not be written to; empty if it may be.
std::string refusal(const struct stat& file) {
  if (S_ISCHR(file.st_mode)) return "";
  if (!S_ISREG(file.st_mode)) return kNoFile;
  if (file.st_uid != geteuid()) {
    return "belongs to another user (" + std::to_string(file.st_uid) +
           "), who could read or change what is written; name another";
  }
  if (file.st_nlink > 1) {
    return "has another name too (a hard link), whose contents would be changed; remove it, or "
           "name another";
  }
  return "";
}

NamedFile refused(int error, std::string reason) {
  return {.descriptor = -1, .is_new = false, .error = error, .reason = std::move(reason)};
}

}  // namespace

NamedFile open_named_file(const std::string& path, Existing existing) {
  // O_NONBLOCK: opening a pipe must not wait for its reader.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int file = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  if (file >= 0) return {.descriptor = file, .is_new = true, .error = 0, .reason = ""};
  if (errno == EEXIST && existing != Existing::kRefused) file = open(path.c_str(), kFlags);
  if (file < 0) {
    const int error = errno;
    if (error == ELOOP) {
      return refused(error, "is a symbolic link, which is not followed; name the file itself");
    }
    if (error == ENXIO) return refused(error, kNoFile);  // a pipe without a reader
    return refused(error, std::generic_category().message(error));
  }
  struct stat found{};
  std::string reason;
  int error = 0;
  if (fstat(file, &found) != 0) {
    error = errno;
    reason = std::generic_category().message(error);
  } else if (reason = refusal(found); !reason.empty()) {
    error = EPERM;
  } else if (S_ISREG(found.st_mode) && existing == Existing::kEmptied && ftruncate(file, 0) != 0) {
    error = errno;
    reason = std::generic_category().message(error);
  }
  if (error == 0) {
    fcntl(file, F_SETFL, O_APPEND);  // writes may block, e.g. on a terminal
    return {.descriptor = file, .is_new = false, .error = 0, .reason = ""};
  }
  close(file);
  return refused(error, std::move(reason));
}

std::string file_name_part(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string name;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter != '/' && letter != '%' && code >= ' ' && code != 0x7f) {
      name += letter;
    } else {
      name += {'%', kDigits[code >> 4], kDigits[code & 15]};
    }
  }
  return name;
}

}  // namespace aclnn_host
