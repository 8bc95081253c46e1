#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "host_cann/runtime/visibility.h"

// The file of a profile: a record a line, each an object of JSON. prefix/tools/profiler has the
// program that makes tables and timelines of it; docs/emulation.md describes the records.
namespace aclnn_host {

// What is recorded, as bits.
enum ProfilePart : uint32_t {
  kProfileApis = 1,     // calls of functions of the host
  kProfileTasks = 2,    // tasks of streams, and their launches
  kProfileTensors = 4,  // the tensors of tasks
  kProfileMarks = 8,    // what programs mark themselves
};

// The parts that are recorded now; 0 without a profile. Every hook asks it first.
ACLNN_HOST_INTERNAL extern std::atomic<uint32_t> profile_parts;

inline bool is_profiled(uint32_t parts) noexcept {
  return (profile_parts.load(std::memory_order_relaxed) & parts) != 0;
}

// How many profiles began so far, which is the number of the latest. What began in one is no part
// of the next, where it ends.
ACLNN_HOST_INTERNAL extern std::atomic<uint64_t> profile_number;

// The number of the profile that records any of these parts now; 0 without one.
inline uint64_t current_profile(uint32_t parts) noexcept {
  return is_profiled(parts) ? profile_number.load(std::memory_order_relaxed) : 0;
}

// Nanoseconds of CLOCK_MONOTONIC_RAW, the clock of torch_npu's own records.
ACLNN_HOST_INTERNAL int64_t profile_clock() noexcept;

// The file that records go to. In memory there are no more than the last few megabytes of it.
class Recorder {
 public:
  // Begins a new file, the next profile's, of at most `limit` bytes, with its first record. 0, or
  // the errno of what failed.
  int open(const std::string& path, uint64_t limit, std::string_view first);

  // Adds a record, whose line end is added too. Dropped when its profile's file is not open, and
  // counted as lost when the file cannot take it.
  void add(uint64_t profile, std::string_view record) noexcept;

  // Ends the file. How many records it lacks, and the errno that is to blame, if any is.
  struct Outcome {
    uint64_t lost = 0;
    int error = 0;
  };
  Outcome close() noexcept;

  static void after_fork() noexcept;  // a child records nothing for its parent

 private:
  void flush() noexcept;

  std::mutex mutex_;
  int file_ = -1;
  std::string buffer_;
  uint64_t buffered_ = 0;  // records in `buffer_`
  uint64_t size_ = 0;      // of what was written and is buffered
  uint64_t limit_ = 0;
  Outcome outcome_;
};

Recorder& recorder();

// Which devices are profiled, as bits, and whether one is.
extern std::atomic<uint64_t> profiled_devices;
inline bool is_profiled_device(int32_t device) noexcept {
  return device >= 0 && (profiled_devices.load(std::memory_order_relaxed) >> device & 1) != 0;
}

// The beginning of a record of the calling thread:
// `{"kind":kind,"thread":...,"begin":...,"end":...` with the times that are given.
std::string begin_record(std::string_view kind, int64_t begin, int64_t end);

}  // namespace aclnn_host
