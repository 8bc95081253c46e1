// fuzz_libfuzzer FUNCTION [libFuzzer's arguments]: lets libFuzzer generate cases of one function.
//
// libFuzzer expects a program with clang's instrumentation. GCC calls __sanitizer_cov_trace_pc at
// every edge instead, from which this program fills the counters; the calls for comparisons are the
// same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"
#include "fuzz/run.h"

// The instrumented libraries call these.
#pragma GCC visibility push(default)
extern "C" {
int LLVMFuzzerRunDriver(int* count, char*** arguments, int (*test)(const uint8_t*, size_t));
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
void __sanitizer_cov_trace_pc();
void __sanitizer_cov_trace_cmpf(float, float);
void __sanitizer_cov_trace_cmpd(double, double);
}
#pragma GCC visibility pop

namespace {

uint8_t counters[1 << 16];
const fuzz::Function* function;

int test(const uint8_t* data, size_t size) {
  fuzz::Case call = fuzz::decode(data, size, function->kinds, function->fit);
  fuzz::run(*function, call);
  return 0;
}

}  // namespace

void __sanitizer_cov_trace_pc() {
  const auto at = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++counters[(at ^ (at >> 16)) % sizeof(counters)];
}

// libFuzzer does not use these.
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}

// The processes that libFuzzer starts for a merge get its own arguments alone.
constexpr const char* kFunction = "ACLNN_FUZZ_FUNCTION";

int main(int count, char** arguments) {
  if (count > 1 && arguments[1][0] != '-') {
    setenv(kFunction, arguments[1], 1);
    // Removes the function's name from libFuzzer's arguments.
    std::copy(arguments + 2, arguments + count + 1, arguments + 1);
    --count;
  }
  const char* name = std::getenv(kFunction);
  for (const fuzz::Function& each : fuzz::functions()) {
    if (name != nullptr && std::strcmp(name, each.name) == 0) function = &each;
  }
  if (function == nullptr) {
    std::fprintf(stderr, "usage: %s FUNCTION [arguments]\n", arguments[0]);
    return 2;
  }
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  __sanitizer_cov_8bit_counters_init(counters, counters + sizeof(counters));
  return LLVMFuzzerRunDriver(&count, &arguments, test);
}
