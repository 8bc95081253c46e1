// Mutants: the variant `mutants` (docs/reliability.md) changes what functions compute or how they
// refuse, so that tests show whether they notice.
//
// ACLNN_TEST_MUTANT         the kind of change; without it nothing changes, and the log is written
// ACLNN_TEST_MUTANT_OUTPUT  the index of the output
// ACLNN_TEST_MUTANT_NAME    the function, such as aclnnElu, or the refusal; all of them if it is
// empty ACLNN_TEST_MUTANT_LOG     a file that gets a line for each test, function and change of an
// output
//                           that makes a difference: the test, the function, the output's index,
//                           and the kind; for each test and function with the index -1; for each
//                           test and refusal with -2; for each test and check of rows that
//                           refused with -3
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Says where the check of rows is that refuses with this text.
ACLNN_HOST_INTERNAL void name_refusal(const std::string& text, const std::string& place);

}  // namespace aclnn_host

namespace mutants {

inline std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The kind of change of a function's output or of a refusal; empty for none.
inline std::string change_of(const std::string& name) {
  const std::string meant = setting("ACLNN_TEST_MUTANT_NAME");
  return meant.empty() || meant == name ? setting("ACLNN_TEST_MUTANT") : "";
}

// What a function or a refusal can have instead of the index of an output.
constexpr int kCall = -1, kRefusal = -2, kCheck = -3;

// Writes a line of the log, each line once, unless something is changed.
inline void note(const std::string& name, int output, const std::string& kind = "") {
  if (!setting("ACLNN_TEST_MUTANT").empty()) return;
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::string line = setting("PYTEST_CURRENT_TEST") + "\t" + name + "\t" +
                           std::to_string(output) + "\t" + kind + "\n";
  const std::lock_guard lock(mutex);
  if (!noted.insert(line).second) return;
  const int file = open(setting("ACLNN_TEST_MUTANT_LOG").c_str(),
                        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  close(file);
}

}  // namespace mutants
