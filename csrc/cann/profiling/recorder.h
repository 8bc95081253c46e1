#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "host_cann/runtime/profile_hooks.h"

// The file of a profile: a record a line, each an object of JSON. prefix/tools/profiler has the
// program that makes tables and timelines of it; docs/emulation/profiling.md describes the records.
namespace aclnn_host {

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

// The beginning of a record of the calling thread:
// `{"kind":kind,"thread":...,"begin":...,"end":...` with the times that are given.
std::string begin_record(std::string_view kind, int64_t begin, int64_t end);

// What makes records of what the hooks tell.
Profiler& hook_records() noexcept;

}  // namespace aclnn_host
