// fuzz_replay FUNCTION: runs the cases on its standard input, one in each line in hexadecimal
// digits, and prints each with its outcome as a line of JSON. fuzz_replay --list lists the
// functions.

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "acl/acl.h"
#include "fuzz/run.h"

using namespace fuzz;

namespace {

std::vector<uint8_t> bytes_of(const std::string& digits) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string text_of(const std::optional<int>& status) {
  return status ? std::to_string(*status) : "null";
}

int replay(const Function& function) {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<uint8_t> bytes = bytes_of(line);
    Case call = decode(bytes.data(), bytes.size(), function.kinds, function.fit);
    const Outcome outcome = run(function, call);
    std::printf("{%s, \"stage1\": %d, \"stage2\": %s, \"stream\": %s}\n", describe(call).c_str(),
                outcome.stage1, text_of(outcome.stage2).c_str(), text_of(outcome.stream).c_str());
    std::fflush(stdout);  // so that the output shows which call ended the program
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  for (const Function& function : functions()) {
    if (count == 2 && std::strcmp(arguments[1], "--list") == 0) std::puts(function.name);
    if (count == 2 && std::strcmp(arguments[1], function.name) == 0) return replay(function);
  }
  return count == 2 && std::strcmp(arguments[1], "--list") == 0 ? 0 : 2;
}
