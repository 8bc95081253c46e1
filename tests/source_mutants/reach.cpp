// Preloaded while tests run code compiled with -finstrument-functions: appends to the file
// ACLNN_TEST_REACH a line for each test and function that it enters: the test, the library, and the
// function's offset in it. Parameters of tests are left out, but for tests/test_cpp.py's programs.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace {

std::string test_of(const char* name) {
  const std::string test = name;
  return test.substr(
      0, test.starts_with("tests/test_cpp.py") ? test.find(" (") : test.find_first_of("[ "));
}

std::mutex mutex;

// A child process must not find the mutex locked by a thread that it does not have.
[[gnu::constructor]] void hold_at_fork() {
  const auto unlock = [] { mutex.unlock(); };
  pthread_atfork([] { mutex.lock(); }, unlock, unlock);
}

void note(const char* test_name, void* function) {
  static auto* const noted = new std::set<std::pair<std::string, void*>>;  // used until exit
  const std::lock_guard lock(mutex);
  const std::string test = test_of(test_name);
  if (!noted->emplace(test, function).second) return;
  Dl_info info;
  const char* log = std::getenv("ACLNN_TEST_REACH");
  if (log == nullptr || dladdr(function, &info) == 0) return;
  const auto offset = static_cast<char*>(function) - static_cast<char*>(info.dli_fbase);
  const std::string line = test + "\t" + info.dli_fname + "\t" + std::to_string(offset) + "\n";
  const int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

}  // namespace

extern "C" void __cyg_profile_func_enter(void* function, void*) {
  const char* test = std::getenv("PYTEST_CURRENT_TEST");
  if (test == nullptr) return;
  // What this thread noted last: the environment's string is a new one for each test.
  thread_local std::array<std::pair<void*, const char*>, 4096> last;
  auto& [last_function, last_test] =
      last[(reinterpret_cast<std::uintptr_t>(function) >> 4) % last.size()];
  if (last_function == function && last_test == test) return;
  last_function = function;
  last_test = test;
  note(test, function);
}

extern "C" void __cyg_profile_func_exit(void*, void*) {}
