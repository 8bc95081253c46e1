// Mutants: the variant `mutants` (docs/reliability.md) changes what functions compute or how they
// refuse, so that tests show whether they notice.
//
// ACLNN_TEST_MUTANT            the kind of change; without it nothing changes
// ACLNN_TEST_MUTANT_OUTPUT     the index of the output
// ACLNN_TEST_MUTANT_NAMES      a file with a line for each function, such as aclnnElu, or refusal
//                              that is changed; all are if it is empty
// ACLNN_TEST_MUTANT_LOG        a file that gets a line for each test and function: the test, the
//                              function, its number of outputs, and 1 if the output was changed;
//                              one for each test and refusal, with -1 outputs; and one for each
//                              test and check of rows that refused, with -2 outputs
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
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

// Whether a function or a refusal is to be changed.
inline bool is_named(const std::string& name) {
  static const std::set<std::string> names = [] {
    std::ifstream file(setting("ACLNN_TEST_MUTANT_NAMES"));
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    return lines;
  }();
  return names.empty() || names.contains(name);
}

inline void note(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::lock_guard lock(mutex);
  if (!noted.insert(line).second) return;
  const int file = open(setting("ACLNN_TEST_MUTANT_LOG").c_str(),
                        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  close(file);
}

}  // namespace mutants
