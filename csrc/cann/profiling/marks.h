#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "acl/acl_base.h"

// What programs mark in a profile: moments and ranges, of a thread and, if they name one, of a
// stream.
namespace aclnn_host {

struct Mark {
  const char* type;  // "mark", "push/pop", "start/end" or "step"; a string literal
  std::string message;
  std::string domain = "default";

  // What the functions below give it.
  uint64_t profile = 0;  // that was being recorded
  uint64_t number = 0;   // the same in each record of the mark
};

// A range that has begun.
struct Range {
  Mark mark;
  int64_t begin = 0;
  aclrtStream stream = nullptr;
  std::shared_ptr<std::atomic<int64_t>> begin_on_stream;  // 0 until the stream is there
};

// Of the functions that are called: the text of a stream that is none is in `api`'s name. A null
// stream means the thread alone.
aclError mark_moment(const char* api, Mark mark, aclrtStream stream);
aclError begin_range(const char* api, Mark mark, aclrtStream stream, Range* range);
aclError end_range(const char* api, const Range& range);

// Ranges that any thread may end, by number. 0 when there are as many as can be, and false when
// there is none of the number.
uint64_t keep_range(Range range);
bool take_range(uint64_t number, Range* range);

// The text behind a number that MsprofGetHashId gave; empty if it is not remembered.
std::string text_of_hash(uint64_t hash);

}  // namespace aclnn_host
