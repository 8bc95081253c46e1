#include <algorithm>
#include <cstdarg>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "acl/acl_base_rt.h"
#include "host_cann/runtime/error_messages.h"

namespace {

// Returns the number of values of a format if all are strings, else 0.
int string_count(std::string_view format) {
  int count = 0;
  for (size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at + 1)) {
    if (at + 1 == format.size() || format[at + 1] != 's') return 0;
    ++count;
  }
  return count;
}

// Operators of libopapi.so by name, which torch_npu then calls.
constexpr std::string_view kComputedByName[] = {"acl_op::ge", "acl_op::npu_roi_align",
                                                "acl_op::npu_roi_alignbk"};

}  // namespace

// torch_npu logs here that an aclnn function is missing and that it falls back to the operator of
// the same meaning called by name (aclop). If the host CANN does not have that operator either, the
// fallback would fail without the function's name, perhaps on another thread, after which torch_npu
// drops all work. This function has no status to return, so it throws, and Python gets a
// RuntimeError. Older messages are dropped, so that they do not end up in its text.
void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  constexpr std::string_view kGoesOn = "not found. Will call %s";
  if (fmt == nullptr || !std::string_view(fmt).ends_with(kGoesOn)) return;
  const int count = string_count(fmt);
  std::string_view first, last;
  va_list values;
  va_start(values, fmt);
  for (int i = 0; i < count; ++i) {
    const char* const value = va_arg(values, const char*);
    last = value == nullptr ? "" : value;
    if (i == 0) first = last;
  }
  va_end(values);
  if (!last.starts_with("acl_op::")) return;
  if (std::ranges::find(kComputedByName, last.substr(0, last.find('('))) !=
      std::end(kComputedByName)) {
    return;
  }
  aclnn_host::take_messages();
  throw std::runtime_error(std::string(first) +
                           " is not implemented by the host CANN (libopapi.so of aclnn_torch), nor "
                           "is there an operator by name (aclop) in its place; compute this on the "
                           "CPU, or on an Ascend machine");
}
