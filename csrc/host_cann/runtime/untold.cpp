#include "host_cann/runtime/untold.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <fcntl.h>

#include "host_cann/runtime/error.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/write_all.h"

namespace aclnn_host {
namespace {

constexpr size_t kMostFailures = 256;  // that are remembered
constexpr size_t kLongestText = 4096;  // of one, in the file
constexpr off_t kLargestFile = 1 << 20;

struct Failure {
  uint64_t number;  // in the file
  int32_t device;
  aclError status;
  std::string text;
};

struct Untold {
  std::mutex mutex;
  std::vector<Failure> all;  // in their order
  uint64_t last = 0;         // number
  std::atomic<bool> has_any = false;
  static void after_fork() noexcept {}
};

Untold& untold() {
  return PerProcess<Untold>::get();
}

// The file of `aclnn-torch run`, for one line; -1 if there is none, or if it is not one that run
// makes: a regular file that is the user's alone and has no other name. The variable may be left
// from a process that has ended, so that nothing is made here.
int open_file() noexcept {
  const char* const path = std::getenv("ACLNN_TORCH_FAILURES");
  if (path == nullptr || *path == '\0') return -1;
  const int file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat found{};
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
      (found.st_mode & 0777) == 0600 && found.st_nlink == 1 && found.st_size < kLargestFile) {
    return file;
  }
  close(file);
  return -1;
}

// Writes a line: the process, the number, and further members with a comma in front.
void write_line(uint64_t number, std::string_view members) {
  const int file = open_file();
  if (file < 0) return;
  try {
    std::string line = R"({"process":)";
    add_number(line, getpid());
    line += R"(,"number":)";
    add_number(line, number);
    line.append(members).append("}\n");
    write_all(file, line);
  } catch (...) {
    // Out of memory.
  }
  close(file);
}

// Takes the failures out that are told now.
template <class Told>
std::vector<Failure> take(Told&& told) {
  auto& state = untold();
  std::vector<Failure> taken;
  const std::lock_guard lock(state.mutex);
  for (auto each = state.all.begin(); each != state.all.end();) {
    if (!told(*each)) {
      ++each;
      continue;
    }
    write_line(each->number, R"(,"told":true)");
    taken.push_back(std::move(*each));
    each = state.all.erase(each);
  }
  state.has_any = !state.all.empty();
  return taken;
}

}  // namespace

void add_untold(int32_t device, uint64_t stream, const char* api, aclError status,
                const std::string& text) noexcept {
  try {
    std::string members = R"(,"device":)";
    add_number(members, device);
    members += R"(,"stream":)";
    add_number(members, stream);
    members += R"(,"call":)";
    add_text(members, api == nullptr ? "" : api);
    members += R"(,"status":)";
    add_number(members, status);
    members += R"(,"text":)";
    add_text(members, std::string_view(text).substr(0, kLongestText));
    auto& state = untold();
    const std::lock_guard lock(state.mutex);
    if (state.all.size() == kMostFailures) return;
    write_line(++state.last, members);
    state.all.push_back({state.last, device, status, text});
    state.has_any = true;
  } catch (...) {
    // Out of memory.
  }
}

void tell(aclError status, const std::string& text) noexcept {
  if (!untold().has_any) return;
  try {
    take([&](const Failure& each) { return each.status == status && each.text == text; });
  } catch (...) {
    // Out of memory: it is told again.
  }
}

aclError tell_all(int32_t device) noexcept {
  if (!untold().has_any) return ACL_SUCCESS;
  aclError first = ACL_SUCCESS;
  try {
    const auto is_wanted = [&](const Failure& each) { return device < 0 || each.device == device; };
    for (const Failure& each : take(is_wanted)) {
      fail_again(each.status, each.text);
      if (first == ACL_SUCCESS) first = each.status;
    }
  } catch (...) {
    // Out of memory.
  }
  return first;
}

}  // namespace aclnn_host
