#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "host_cann/runtime/profile_hooks.h"

// The file of a profile, with one JSON object in each line. The program in prefix/tools/profiler
// converts it to tables and timelines; docs/emulation/profiling.md describes the records.
namespace aclnn_host {

// Writes records to a file. At most the last few megabytes are in memory.
class Recorder {
 public:
  // Opens the file of the next profile, of at most `limit` bytes, and writes its first record.
  // Returns 0 or an errno.
  int open(const std::string& path, uint64_t limit, std::string_view first);

  // Adds a record and a line end. The record is dropped if its profile's file is not open, and
  // counted as lost if the file cannot take it.
  void add(uint64_t profile, std::string_view record) noexcept;

  // Closes the file. The outcome has the number of lost records and the errno that caused the loss,
  // if any.
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
  uint64_t size_ = 0;      // written and buffered
  uint64_t limit_ = 0;
  Outcome outcome_;
};

Recorder& recorder();

// The beginning of a record of the calling thread,
// `{"kind":kind,"thread":...,"begin":...,"end":...`, with the given times.
std::string begin_record(std::string_view kind, int64_t begin, int64_t end);

// The profiler hooks that write records.
Profiler& hook_records() noexcept;

}  // namespace aclnn_host
