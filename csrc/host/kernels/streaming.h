#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aclnn_host {

// Whoever lets kernels stream results has one of these on the same thread, around its calls: it
// orders the results before whatever tells another thread that they are there. Kernels do not,
// because a fence waits for the memory: one for every row costs a third of the speed.
class StreamingScope {
 public:
  explicit StreamingScope(bool streaming) : streaming_(streaming) {}
  ~StreamingScope() {
#if defined(__x86_64__)
    if (streaming_) _mm_sfence();
#endif
  }
  StreamingScope(const StreamingScope&) = delete;
  StreamingScope& operator=(const StreamingScope&) = delete;

 private:
  [[maybe_unused]] bool streaming_;
};

}  // namespace aclnn_host
