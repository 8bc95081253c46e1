#pragma once

#include <pthread.h>

#include <atomic>

namespace aclnn_host {

// One T per process, made on first use. Never destroyed, because static destructors and worker
// threads may use it until the process ends. A forked child has none of its parent's threads, and
// one of them may hold a lock of the parent's T: the child starts with a new T and calls
// T::after_fork() for further cleanup.
template <class T>
class PerProcess {
 public:
  static T& get() {
    T* const state = find();
    return state != nullptr ? *state : create();
  }

  // Returns the T, or null before its first use.
  static T* find() noexcept { return state_.load(std::memory_order_acquire); }

 private:
  static T& create() {
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &forget);
    T* const made = new T;
    T* state = nullptr;
    if (state_.compare_exchange_strong(state, made, std::memory_order_acq_rel)) return *made;
    delete made;  // another thread was faster
    return *state;
  }

  static void forget() {
    parents_ = state_.exchange(nullptr, std::memory_order_relaxed);
    T::after_fork();
  }

  static inline std::atomic<T*> state_ = nullptr;
  static inline T* parents_ = nullptr;  // kept reachable for leak checkers, although unused
};

}  // namespace aclnn_host
