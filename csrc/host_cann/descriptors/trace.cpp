#include "host_cann/descriptors/trace.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "acl/acl_host.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/scalar.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/descriptors/trace_algorithm.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/named_file.h"
#include "host_cann/runtime/product.h"
#include "host_cann/runtime/write_all.h"

namespace aclnn_host {

std::atomic<int> trace_state = -1;

namespace {

constexpr const char* kDefaultFile = "aclnn_torch_trace.json";

// One output file for events.
struct Trace {
  // Once open, it is only ever replaced by dup3, so that a thread about to write never uses a
  // closed descriptor.
  std::atomic<int> descriptor = -1;
  std::atomic<bool> on = false;
  // The process that started the trace; 0 for the environment's trace, which includes child
  // processes.
  std::atomic<pid_t> owner = 0;
  std::atomic<int> error = 0;  // errno of the first event that was lost
  char path[PATH_MAX] = "";    // guarded by `changes`
};

// Simultaneous traces; the first is the environment's.
constexpr size_t kMaxTraces = 16;
Trace traces[kMaxTraces];
std::mutex changes;

// The thread's most recently chosen algorithms; more than one call has results. Those of a stage 1
// were chosen since it began.
struct ChosenAlgorithm {
  const char* result;
  const char* algorithm;
  int64_t time;
};
thread_local constinit ChosenAlgorithm chosen_algorithms[4]{};
thread_local constinit size_t chosen_count = 0;

// The problem with the environment's trace; outlives static destructors.
std::atomic<const std::string*> environment_problem = nullptr;

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Records a message about a lost event, once per trace. A full disk does not fail a call.
void report_lost_event(Trace& trace, int error) {
  int none = 0;
  if (!trace.error.compare_exchange_strong(none, error)) return;
  std::string text = &trace == traces ? "ACLNN_TORCH_TRACE" : "aclHostTrace";
  text += std::string(": ") + trace.path +
          " lacks the calls from here on, because it cannot be written: " + reason(error) +
          "; name a file on a device that has space";
  if (&trace == traces) environment_problem.store(new std::string(text));
  const std::string before = take_messages();  // the call's own messages, which matter more
  put_messages(text);
  put_messages(before);
}

// Redirects a trace's events to `path`, and stores the path. Returns the reason on failure.
std::string redirect(Trace& trace, const char* path) {
  const NamedFile opened = open_named_file(path, Existing::kContinued);
  if (opened.error != 0) return opened.reason;
  const int file = opened.descriptor;
  if (opened.is_new) {
    if (const int error = write_all(file, "[\n")) {
      close(file);
      return reason(error);
    }
  }
  trace.path[std::string_view(path).copy(trace.path, sizeof(trace.path) - 1)] = '\0';
  int none = -1;
  if (trace.descriptor.compare_exchange_strong(none, file)) return "";
  const int error = dup3(file, trace.descriptor.load(), O_CLOEXEC) >= 0 ? 0 : errno;
  close(file);
  return error == 0 ? "" : reason(error);
}

// Begins the environment's trace, once. If its file cannot be opened, the caller returns the text
// as an error (`is_error`), or this function leaves it for aclGetRecentErrMsg.
void ask_environment(bool is_error) {
  const std::lock_guard lock(changes);
  if (trace_state.load() >= 0) return;
  const char* path = std::getenv("ACLNN_TORCH_TRACE");
  const std::string_view text = path != nullptr ? path : "";
  if (text.empty() || text == "0") {
    trace_state.store(0);
    return;
  }
  const char* const file = text == "1" ? kDefaultFile : path;
  const std::string refusal = redirect(traces[0], file);
  if (refusal.empty()) {
    traces[0].on.store(true);
  } else {
    environment_problem.store(new std::string(
        "ACLNN_TORCH_TRACE=" + std::string(text) + ": " + file + " cannot be opened for writing: " +
        refusal + "; nothing is traced; name a file in a folder that you may write to"));
    if (!is_error) put_messages(*environment_problem.load());
  }
  trace_state.store(refusal.empty() ? 1 : 0);
}

// Discards the events of a trace from now on.
void end(Trace& trace) {
  trace.on.store(false);
  trace_state.fetch_sub(1);
  redirect(trace, "/dev/null");
}

// Microseconds, as the format requires.
void add_time(std::string& out, int64_t nanoseconds) {
  add_number(out, nanoseconds / 1000);
  const std::string rest = std::to_string(1000 + nanoseconds % 1000);
  out += '.';
  out.append(rest, 1);
}

void add_tensor(std::string& out, const aclTensor& tensor) {
  const TensorView& view = tensor.view;
  out += R"({"dtype":)";
  add_text(out, dtype_name(view.dtype));
  out += R"(,"shape":)";
  add_list(out, view.shape, view.shape.size(), add_number<int64_t>);
  out += R"(,"strides":)";
  add_list(out, view.strides, view.strides.size(), add_number<int64_t>);
  out += R"(,"offset":)";
  add_number(out, view.offset);
  out += '}';
}

void add_scalar(std::string& out, const aclScalar& scalar) {
  out += R"({"dtype":)";
  add_text(out, dtype_name(scalar.dtype));
  out += R"(,"value":)";
  if (scalar.is_complex()) {
    add_list(out, scalar.complex, 2, add_number<double>);
  } else {
    std::visit([&out](auto value) { add_number(out, value); }, scalar.value());
  }
  out += '}';
}

struct AddValue {
  std::string& out;

  void operator()(const aclTensor* tensor) const { or_null(tensor, add_tensor); }
  void operator()(const aclScalar* scalar) const { or_null(scalar, add_scalar); }
  void operator()(const aclIntArray* array) const { values(array, add_number<int64_t>); }
  void operator()(const aclFloatArray* array) const { values(array, add_number<float>); }
  void operator()(const aclBoolArray* array) const {
    values(array, [](std::string& text, bool value) { AddValue{text}(value); });
  }
  void operator()(const aclTensorList* list) const { elements(list, add_tensor); }
  void operator()(const aclScalarList* list) const { elements(list, add_scalar); }
  void operator()(const char* text) const {
    or_null(text, [text](std::string& result, char) { add_text(result, text); });
  }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(int64_t value) const { add_number(out, value); }
  void operator()(uint64_t value) const { add_number(out, value); }
  void operator()(double value) const { add_number(out, value); }

 private:
  template <class T, class Add>
  void or_null(const T* value, Add add) const {
    value != nullptr ? add(out, *value) : void(out += "null");
  }
  template <class T, class Add>
  void values(const T* array, Add add) const {
    or_null(array, [add](std::string& text, const T& present) {
      add_list(text, present.values, present.size, add);
    });
  }
  template <class T, class Add>
  void elements(const T* list, Add add) const {
    or_null(list, [add](std::string& text, const T& present) {
      add_list(text, present.elements, present.elements.size(),
               [add](std::string& inner, const auto& element) {
                 element != nullptr ? add(inner, *element) : void(inner += "null");
               });
    });
  }
};

// The algorithms chosen in the stage 1 that began then, if any.
void add_algorithms(std::string& out, int64_t begin) {
  constexpr size_t kCount = std::size(chosen_algorithms);
  const size_t length = out.size();
  for (size_t i = chosen_count; i < chosen_count + kCount; ++i) {  // oldest first
    const ChosenAlgorithm& chosen = chosen_algorithms[i % kCount];
    if (chosen.time < begin) continue;
    out += out.size() == length ? R"(,"algorithm":{)" : ",";
    add_text(out, chosen.result);
    out += ':';
    add_text(out, chosen.algorithm);
  }
  if (out.size() > length) out += '}';
}

// The text of the thread's last failure, which stays in its store.
std::string last_message() {
  const std::string all = take_messages();
  put_messages(all);
  const size_t end = all.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const size_t begin = all.find_last_of('\n', end);
  return all.substr(begin + 1, end - begin);
}

// Writes an event named `name` followed by `suffix`; `add` appends its further arguments.
template <class Add>
void write_event(const char* category, const char* name, const char* suffix, int64_t begin,
                 int status, Add add) noexcept {
  const pid_t process = getpid();
  const int64_t end = trace_clock();
  try {
    std::string line = R"({"ph":"X","cat":")";
    line.append(category).append(R"(","name":")").append(name).append(suffix);
    line += R"(","pid":)";
    add_number(line, process);
    line += R"(,"tid":)";
    add_number(line, syscall(SYS_gettid));  // a function since glibc 2.30
    line += R"(,"ts":)";
    add_time(line, begin);
    line += R"(,"dur":)";
    add_time(line, end - begin);
    line += R"(,"args":{"status":)";
    add_number(line, status);
    if (status != 0) {
      line += R"(,"error":)";
      add_text(line, last_message());
    }
    add(line);
    line += "}},\n";
    for (Trace& trace : traces) {
      const pid_t owner = trace.owner.load(std::memory_order_relaxed);
      if (!trace.on.load(std::memory_order_acquire) || (owner != 0 && owner != process)) continue;
      const int error = write_all(trace.descriptor.load(), line);
      if (error != 0) report_lost_event(trace, error);
    }
  } catch (...) {  // e.g. out of memory
  }
}

}  // namespace

int64_t trace_clock() noexcept {
  if (trace_state.load(std::memory_order_acquire) < 0) {
    try {
      ask_environment(/*is_error=*/false);
    } catch (...) {  // out of memory
    }
  }
  if (trace_state.load(std::memory_order_acquire) <= 0) return 0;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void trace_algorithm(const char* result, const char* algorithm) noexcept {
  const int64_t now = trace_begin();
  if (now == 0) return;
  chosen_algorithms[chosen_count++ % std::size(chosen_algorithms)] = {result, algorithm, now};
}

void trace_stage1(const char* api, int64_t begin, aclnnStatus status,
                  GivenArguments given) noexcept {
  write_event("stage 1", api, "GetWorkspaceSize", begin, status, [&](std::string& line) {
    line += R"(,"product":)";
    add_text(line, product_name(current_product()));
    line += R"(,"arguments":{)";
    const char* separator = "";
    for (const Given& argument : given) {
      line += separator;
      separator = ",";
      add_text(line, argument.name);
      line += ':';
      std::visit(AddValue{line}, argument.value.any());
    }
    line += '}';
    add_algorithms(line, begin);
  });
}

void trace_stage2(const char* api, int64_t begin, aclnnStatus status,
                  uint64_t workspace_size) noexcept {
  write_event("stage 2", api, "", begin, status, [&](std::string& line) {
    line += R"(,"workspaceSize":)";
    add_number(line, workspace_size);
  });
}

void trace_run(const char* api, int64_t begin, int status) noexcept {
  write_event("run", api, "", begin, status, [](std::string&) {});
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclHostTrace(const char* path) {
  constexpr const char* kApi = "aclHostTrace";
  return guarded(kApi, [&]() -> aclError {
    ask_environment(/*is_error=*/false);
    const std::lock_guard lock(changes);
    if (path == nullptr) {
      for (Trace& trace : traces) {
        if (trace.on.load()) end(trace);
      }
      return ACL_SUCCESS;
    }
    const auto is_of_path = [&](const Trace& trace) {
      return trace.on && std::string_view(trace.path) == path;
    };
    if (std::any_of(traces, std::end(traces), is_of_path)) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: another trace is already writing %s; name another file", kApi, path);
    }
    Trace* const free =
        std::find_if(traces + 1, std::end(traces), [](const Trace& trace) { return !trace.on; });
    if (free == std::end(traces)) {
      return fail(
          ACL_ERROR_STORAGE_OVER_LIMIT,
          "%s: %zu traces are already active, which is the most; end one with aclHostTraceEnd",
          kApi, kMaxTraces - 1);
    }
    if (const std::string refusal = redirect(*free, path); !refusal.empty()) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: %s cannot be opened for writing: %s", kApi, path,
                  refusal.c_str());
    }
    free->error.store(0);
    free->owner.store(getpid());
    free->on.store(true);
    trace_state.fetch_add(1);
    return ACL_SUCCESS;
  });
}

aclError aclHostTraceEnd(const char* path) {
  constexpr const char* kApi = "aclHostTraceEnd";
  if (path == nullptr) return null_argument(kApi, "path");
  return guarded(kApi, [&]() -> aclError {
    const std::lock_guard lock(changes);
    for (Trace& trace : traces) {
      if (!trace.on.load() || std::string_view(trace.path) != path) continue;
      end(trace);
      const int error = trace.error.load();
      if (error == 0) return ACL_SUCCESS;
      return fail(ACL_ERROR_PROFILING_FAILURE,
                  "%s: %s lacks calls, because it could not be written: %s", kApi, path,
                  reason(error).c_str());
    }
    return fail(ACL_ERROR_INVALID_PARAM, "%s: no trace is writing %s; begin one with aclHostTrace",
                kApi, path);
  });
}

const char* aclHostTraceProblem(void) {
  try {
    ask_environment(/*is_error=*/true);
  } catch (...) {  // out of memory
  }
  const std::string* const problem = environment_problem.load();
  return problem != nullptr ? problem->c_str() : nullptr;
}
