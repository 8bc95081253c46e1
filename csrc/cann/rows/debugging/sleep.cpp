// Delays a stream.

#include <chrono>
#include <thread>

#include "cann/rows/row.h"

namespace aclnn_host::debugging_sleep_rows {

namespace {

// An array of integers, and a flag that is true in stage 2.
struct StagedInts : Ints {
  using Value = std::pair<at::IntArrayRef, bool>;
  static Value get(const Frame& frame, size_t i) { return {Ints::get(frame, i), frame.writes}; }
};

}  // namespace

// Behaviour of Sleep: A second has 1.65e9 cycles, as on Ascend950. No call takes more than two
// seconds.
ACLNN(Sleep, (StagedInts, cycles)) {
  const auto& [counts, is_computed] = cycles;
  EXPECT(counts.size() == 1 && counts[0] > 0, "cycles is ", counts,
         ", expected one number, 1 or more");
  if (!is_computed) return;
  constexpr double kPerSecond = 1.65e9, kMostSeconds = 2;
  const double seconds = std::min(static_cast<double>(counts[0]) / kPerSecond, kMostSeconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace aclnn_host::debugging_sleep_rows
