// Gives torch_npu's threads time. One of them, release_thread, waits for work by sleeping for one
// microsecond again and again, which takes a third of a processor while nothing is to be done, and
// makes every team of threads wait that this processor belongs to. Linux may end a sleep later than
// asked, by the thread's timer slack, 50 microseconds unless it was changed. A thread that is
// started inherits it from the one that starts it, so it is changed as torch_npu is loaded, before
// torch_npu starts its threads. Programs notice that a timeout may end one millisecond late.
#include <sys/prctl.h>

namespace {

constexpr unsigned long kUsualSlack = 50'000;  // nanoseconds
constexpr unsigned long kSlack = 1'000'000;

__attribute__((constructor)) void make_timers_coarse() {
  if (prctl(PR_GET_TIMERSLACK) == static_cast<int>(kUsualSlack)) prctl(PR_SET_TIMERSLACK, kSlack);
}

}  // namespace
