// Every operator as a repeatable call, alone or concurrent with others.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "client/call.h"

namespace reliability {

using namespace aclnn;

const Library& library();

// A call of one operator with its own memory. Only one run at a time.
struct Call {
  std::string name;
  // Resets the memory, submits the call to the stream, and returns; the results are available after
  // waiting for the stream.
  std::function<void(aclrtStream)> launch;
  // The stages separately: the first here, the second where and when the result is called.
  std::function<std::function<void(aclrtStream)>()> prepare;
  std::function<std::vector<float>()> results;
};

// All operators, forward, in place and backward, on small tensors; convolution in its direct loops
// and, on larger tensors, by matrix products.
std::vector<Call> all_calls();

// True if two runs gave the same bits.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace reliability
