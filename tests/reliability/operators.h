// Every operator as a call that can be made again and again, alone or beside others.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "client/call.h"

namespace reliability {

using namespace aclnn;

const Library& library();

// A call of one operator with memory of its own. Only one run at a time may be under way.
struct Call {
  std::string name;
  // Puts the memory into its first state, hands the call to the stream, and returns; whoever waits
  // for the stream may ask for the results.
  std::function<void(aclrtStream)> launch;
  // Both stages apart: the first here, the second where and when the result is called.
  std::function<std::function<void(aclrtStream)>()> prepare;
  std::function<std::vector<float>()> results;
};

// All operators, forward, in place and backward, on small tensors; convolution in its direct loops
// and, on larger ones, through the products.
std::vector<Call> all_calls();

// Whether two runs gave the same bits.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace reliability
