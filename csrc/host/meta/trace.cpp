#include "meta/trace.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "acl/acl_host.h"
#include "meta/containers.h"
#include "meta/scalar.h"
#include "meta/tensor.h"
#include "runtime/error.h"
#include "runtime/product.h"

namespace aclnn_host {

std::atomic<int> trace_state = -1;

namespace {

constexpr const char* kDefaultFile = "aclnn_torch_trace.json";

// The descriptor that events are written to. Once there is one it stays, and others take its place
// by dup3: a thread that is about to write never meets a closed one.
std::atomic<int> descriptor = -1;
// The process that asked for the trace; 0 if the environment did, which means its children too.
std::atomic<pid_t> owner = 0;

// Lets events go to `path`, or nowhere. False if it cannot be opened.
bool redirect(const char* path) noexcept {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC;
  int file = open(path, kFlags | O_CREAT | O_EXCL, 0666);
  if (file >= 0) {
    if (write(file, "[\n", 2) != 2) {
      close(file);
      return false;
    }
  } else {
    file = open(path, kFlags);
    if (file < 0) return false;
  }
  int none = -1;
  if (descriptor.compare_exchange_strong(none, file)) return true;
  const bool done = dup3(file, descriptor.load(), O_CLOEXEC) >= 0;
  close(file);
  return done;
}

void ask_environment() noexcept {
  const char* path = std::getenv("ACLNN_TORCH_TRACE");
  const std::string_view text = path != nullptr ? path : "";
  const bool wanted = !text.empty() && text != "0";
  int unknown = -1;
  const bool on = wanted && redirect(text == "1" ? kDefaultFile : path);
  trace_state.compare_exchange_strong(unknown, on ? 1 : 0);
}

// JSON, of ASCII alone: other bytes need not be UTF-8.
void add_text(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      out += "\\u00";
      out += kDigits[c / 16];
      out += kDigits[c % 16];
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

template <class T>
void add_number(std::string& out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {  // for which JSON has no number
      add_text(out, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
      return;
    }
  }
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// Microseconds, as the format has them.
void add_time(std::string& out, int64_t nanoseconds) {
  add_number(out, nanoseconds / 1000);
  const std::string rest = std::to_string(1000 + nanoseconds % 1000);
  out += '.';
  out.append(rest, 1);
}

template <class Range, class Add>
void add_list(std::string& out, const Range& range, uint64_t size, Add add) {
  out += '[';
  for (uint64_t i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    add(out, range[i]);
  }
  out += ']';
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
  add_number(out, scalar.to_double());
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
               [add](std::string& inner, const auto& element) { add(inner, *element); });
    });
  }
};

// The text of the thread's last failure, which stays where it is.
std::string last_message() {
  const std::string all = take_messages();
  put_messages(all);
  const size_t end = all.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const size_t begin = all.find_last_of('\n', end);
  return all.substr(begin + 1, end - begin);
}

// Writes an event: `name` and `suffix` are its name, `add` says what its arguments have besides.
template <class Add>
void write_event(const char* category, const char* name, const char* suffix, int64_t begin,
                 int status, Add add) noexcept {
  const pid_t process = getpid();
  const pid_t of = owner.load(std::memory_order_relaxed);
  if (of != 0 && of != process) return;
  const int64_t end = trace_clock();
  try {
    std::string line = R"({"ph":"X","cat":")";
    line.append(category).append(R"(","name":")").append(name).append(suffix);
    line += R"(","pid":)";
    add_number(line, process);
    line += R"(,"tid":)";
    add_number(line, gettid());
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
    // What cannot be written is lost, as on a full disk: the call goes on.
    [[maybe_unused]] const ssize_t written = write(descriptor.load(), line.data(), line.size());
  } catch (...) {  // as for want of memory
  }
}

}  // namespace

int64_t trace_clock() noexcept {
  if (trace_state.load(std::memory_order_acquire) < 0) ask_environment();
  if (trace_state.load(std::memory_order_acquire) == 0) return 0;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void trace_stage1(const char* api, int64_t begin, aclnnStatus status,
                  std::initializer_list<TraceArgument> arguments) noexcept {
  write_event("stage 1", api, "GetWorkspaceSize", begin, status, [&](std::string& line) {
    line += R"(,"product":)";
    add_text(line, product_name(current_product()));
    line += R"(,"arguments":{)";
    const char* separator = "";
    for (const auto& [name, value] : arguments) {
      line += separator;
      separator = ",";
      add_text(line, name);
      line += ':';
      std::visit(AddValue{line}, value);
    }
    line += '}';
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
  if (path == nullptr) {
    trace_state.store(0);
    if (descriptor.load() >= 0) redirect("/dev/null");
    return ACL_SUCCESS;
  }
  if (!redirect(path)) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclHostTrace: %s cannot be opened for writing", path);
  }
  owner.store(getpid());
  trace_state.store(1);
  return ACL_SUCCESS;
}
