#pragma once

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace aclnn_host {

// A value that an environment variable selects by its name until a function sets another, for the
// whole process.
template <class Value>
class NamedChoice {
 public:
  // Reads the variable. If `find` does not know its value, `standard` applies, and the problem is
  // "VARIABLE=value `complaint`".
  NamedChoice(const char* variable, std::optional<Value> (*find)(std::string_view), Value standard,
              const char* complaint)
      : from_environment_(standard) {
    const char* name = std::getenv(variable);
    if (name == nullptr || *name == '\0') return;
    if (const auto found = find(name)) {
      from_environment_ = *found;
    } else {
      problem_ = std::string(variable) + "=" + name + " " + complaint;
    }
  }

  Value get() const noexcept {
    const int value = set_.load(std::memory_order_relaxed);
    return value == kUnset ? from_environment_ : static_cast<Value>(value);
  }
  void set(Value value) noexcept { set_.store(static_cast<int>(value), std::memory_order_relaxed); }
  // The problem with the variable, unless another value was set; otherwise null.
  const char* problem() const noexcept {
    const bool is_set = set_.load(std::memory_order_relaxed) != kUnset;
    return problem_.empty() || is_set ? nullptr : problem_.c_str();
  }

 private:
  static constexpr int kUnset = -1;
  Value from_environment_;
  std::string problem_;
  std::atomic<int> set_ = kUnset;
};

}  // namespace aclnn_host
