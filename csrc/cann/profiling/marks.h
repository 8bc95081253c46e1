#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "acl/acl_base.h"

// Marks that programs set in a profile: moments and ranges of a thread and, optionally, of a
// stream.
namespace aclnn_host {

struct Mark {
  const char* type;  // "mark", "push/pop", "start/end" or "step"; a string literal
  std::string message;
  std::string domain = "default";

  // The functions below set these.
  uint64_t profile = 0;  // the profile that was being recorded
  uint64_t number = 0;   // identifies the mark in its records
};

// A range that has begun.
struct Range {
  Mark mark;
  int64_t begin = 0;
  aclrtStream stream = nullptr;
  std::shared_ptr<std::atomic<int64_t>> begin_on_stream;  // 0 until the stream reaches it
};

// Functions for the interface's functions. Errors about an invalid stream are in `api`'s name. A
// null stream marks the thread only.
aclError mark_moment(const char* api, Mark mark, aclrtStream stream);
aclError begin_range(const char* api, Mark mark, aclrtStream stream, Range* range);
aclError end_range(const char* api, const Range& range);

// Ranges that any thread may end, by number. keep_range() returns 0 when the limit is reached,
// take_range() false for an unknown number.
uint64_t keep_range(Range range);
bool take_range(uint64_t number, Range* range);

// The text whose number MsprofGetHashId returned; empty if it is not remembered.
std::string text_of_hash(uint64_t hash);

}  // namespace aclnn_host
