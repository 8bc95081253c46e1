#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace aclnn_host {

// The timeout, in milliseconds, that means no limit.
constexpr int32_t kForever = -1;

// A point in time that several waits share as their limit.
class Deadline {
 public:
  explicit Deadline(int32_t timeout)
      : forever_(timeout < 0),
        end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout)) {}

  bool is_past() const { return !forever_ && std::chrono::steady_clock::now() >= end_; }

  // The remaining milliseconds, at most `most`, in the form that poll takes.
  int left(int most) const {
    if (forever_) return most;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, most));
  }

  // Waits until ready() holds; returns false on timeout.
  template <class Ready>
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            Ready&& ready) const {
    if (!forever_) return changed.wait_until(lock, end_, ready);
    changed.wait(lock, ready);
    return true;
  }

 private:
  bool forever_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace aclnn_host
