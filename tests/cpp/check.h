// A minimal test framework: TEST(name) { ... } registers a test; CHECK reports file, line and both
// values, and the test continues. `test_x` runs all tests, `test_x NAME...` some, `test_x --list`
// lists them. (Another framework would have to be installed by hand on a fresh machine.)
#pragma once

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

// Why the rest of the test that runs is left out; empty if it is not.
inline std::string& skipped() {
  static std::string reason;
  return reason;
}

inline bool report(bool ok, const char* file, int line, const std::string& text) {
  if (!ok) {
    ++failures();
    std::fprintf(stderr, "%s:%d: %s\n", file, line, text.c_str());
  }
  return ok;
}

template <class A, class B>
bool equal(const A& got, const B& expected, const char* file, int line, const char* expression) {
  const bool ok = got == expected;
  std::ostringstream text;
  if (!ok) text << expression << ": got " << got << ", expected " << expected;
  return report(ok, file, line, text.str());
}

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

}  // namespace check

#define TEST(name)                                                   \
  static void name();                                                \
  static const check::Registration registration_##name{#name, name}; \
  static void name()
#define CHECK(condition) check::report(static_cast<bool>(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ(got, expected) check::equal((got), (expected), __FILE__, __LINE__, #got)
// Returns from a test, whose rest is left out. The program prints the reason; test_cpp.py and
// `make sanitize` repeat it.
#define SKIP_IF(condition, reason) \
  do {                             \
    if (condition) {               \
      check::skipped() = reason;   \
      return;                      \
    }                              \
  } while (false)

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& test : check::tests()) std::printf("%s\n", test.name);
    return 0;
  }
  int ran = 0;
  for (const auto& test : check::tests()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], test.name) == 0;
    if (!wanted) continue;
    const int before = check::failures();
    check::skipped().clear();
    test.body();
    ++ran;
    std::printf("%s %s\n", check::failures() == before ? "ok    " : "FAILED", test.name);
    if (!check::skipped().empty())
      std::printf("skipped %s: %s\n", test.name, check::skipped().c_str());
  }
  std::printf("%d tests, %d failed checks\n", ran, check::failures());
  return ran > 0 && check::failures() == 0 ? 0 : 1;
}
