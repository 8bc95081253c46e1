#pragma once

#include <pthread.h>

#include <atomic>

namespace aclnn_host {

// One T for the process, made on first use. It is never destroyed, since static destructors and
// worker threads may still ask for it at the process's end. A forked child has none of its parent's
// threads, and the parent's T may be locked by one of them: the child starts with a new T, and
// T::after_fork() says what else that means.
template <class T>
class PerProcess {
 public:
  static T& get() {
    T* const state = find();
    return state != nullptr ? *state : create();
  }

  // The one that there is; null before its first use.
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
  static inline T* parents_ = nullptr;  // kept reachable: it is not lost, only out of use
};

}  // namespace aclnn_host
