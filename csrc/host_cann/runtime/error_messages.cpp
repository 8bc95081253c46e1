#include "host_cann/runtime/error_messages.h"

#include <cstdarg>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "acl/acl_rt.h"
#include "hccl/hccl_types.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/unreported_failures.h"

namespace aclnn_host {
namespace {

// Bounds the store of a thread that never fetches its messages; the newest are kept.
constexpr size_t kMaxMessages = 64;

struct Messages {
  std::vector<std::string> lines;  // oldest first
  std::string returned;            // the text that aclGetRecentErrMsg returned last
};

// Plain thread-locals, still usable in a static destructor after the thread's end: the store is
// gone by then, and messages are dropped.
thread_local Messages* thread_messages = nullptr;
thread_local bool thread_ended = false;
thread_local aclError thread_last_error = ACL_SUCCESS;

// Frees the thread's store at the thread's end.
struct ThreadEnd {
  ~ThreadEnd() {
    delete thread_messages;
    thread_messages = nullptr;
    thread_ended = true;
  }
};

// The thread's store, made on first use; null after the thread's end.
Messages* messages() {
  if (thread_messages == nullptr && !thread_ended) {
    static thread_local ThreadEnd end;
    thread_messages = new Messages;
  }
  return thread_messages;
}

void store(std::string line) {
  Messages* own = messages();
  if (own == nullptr) return;
  if (own->lines.size() == kMaxMessages) own->lines.erase(own->lines.begin());
  own->lines.push_back(std::move(line));
}

// The runtime's last error holds acl and runtime codes only, not those of aclnn and HCCL.
void remember(int status) {
  const int family = status / 1000;
  const bool aclnn = family == 161 || family == 561;
  const bool hccl = status > HCCL_SUCCESS && status <= HCCL_E_RESERVED;
  if (!aclnn && !hccl) thread_last_error = status;
}

}  // namespace

#ifndef ACLNN_MUTANTS
int reported(int status, std::string&) {
  return status;
}
#endif

int fail(int status, const char* format, ...) noexcept {
  remember(status);
  va_list arguments;
  va_start(arguments, format);
  try {
    va_list measured;
    va_copy(measured, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, measured);
    va_end(measured);
    if (length >= 0) {
      std::string line(static_cast<size_t>(length), '\0');
      std::vsnprintf(line.data(), line.size() + 1, format, arguments);
      status = reported(status, line);
      note_failure(status, line.c_str());
      store(std::move(line));
    }
  } catch (...) {
    // Out of memory: only the status is reported.
  }
  va_end(arguments);
  return status;
}

int fail_with_exception(const FailureCodes& codes, const char* api) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(codes.memory, "%s: the host's memory is exhausted", api);
  } catch (const std::length_error&) {
    return fail(codes.other, "%s: a size is out of range", api);
  } catch (const std::system_error& error) {
    return fail(codes.resource, "%s: %s", api, error.what());
  } catch (const std::exception& error) {
    return fail(codes.other, "%s: unexpected exception: %s", api, error.what());
  } catch (...) {
    return fail(codes.other, "%s: unexpected exception", api);
  }
}

std::string take_messages() noexcept {
  std::string text;
  if (thread_messages == nullptr) return text;
  try {
    for (const auto& line : thread_messages->lines) {
      if (!text.empty()) text += '\n';
      text += line;
    }
  } catch (...) {
    text.clear();
  }
  thread_messages->lines.clear();
  return text;
}

void put_messages(const std::string& text) noexcept {
  try {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      store(text.substr(begin, end - begin));
      begin = end + 1;
    }
  } catch (...) {
    // Out of memory: only the status is reported.
  }
}

int fail_again(int status, const std::string& text) noexcept {
  return fail_again_on(-1, status, text);
}

int fail_again_on(int32_t device, int status, const std::string& text) noexcept {
  remember(status);
  note_failure(status, text.c_str());
  if (runs_task()) {
    fail_as_another();  // a task reports to its stream only
  } else {
    mark_reported(status, text, device);
  }
  put_messages(text);
  return status;
}

}  // namespace aclnn_host

using namespace aclnn_host;

const char* aclGetRecentErrMsg(void) {
  Messages* own = thread_messages;
  if (own == nullptr || own->lines.empty()) return nullptr;
  try {
    std::string text;
    for (auto line = own->lines.rbegin(); line != own->lines.rend(); ++line) {
      if (!text.empty()) text += '\n';
      text += *line;
    }
    own->returned = std::move(text);
  } catch (...) {
    return nullptr;
  }
  own->lines.clear();
  return own->returned.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return level == ACL_RT_THREAD_LEVEL ? thread_last_error : ACL_ERROR_RT_PARAM_INVALID;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  const aclError status = aclrtPeekAtLastError(level);
  if (level == ACL_RT_THREAD_LEVEL) thread_last_error = ACL_SUCCESS;
  return status;
}
