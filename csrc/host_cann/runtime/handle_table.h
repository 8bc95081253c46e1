#pragma once

#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "host_cann/runtime/live_objects.h"

namespace aclnn_host {

// The objects of one kind behind callers' handles. A handle is a number that is never reused and
// not a valid address, so a stale or foreign handle is always detected without touching freed
// memory. Calls in progress keep their object alive.
template <class T, Object kKind>
class HandleTable {
 public:
  struct Entry {
    std::shared_ptr<T> object;
    Counted<kKind> counted;
  };
  using Entries = std::map<uint64_t, Entry>;  // by handle

  // Adds the object and returns its handle.
  void* insert(std::shared_ptr<T> object) {
    // The kind is in the top byte, which is zero in every user-space address.
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t handle = (static_cast<uint64_t>(kKind) + 1) << 56 | number << 4;
    const std::unique_lock lock(mutex_);
    objects_.emplace(handle, Entry{std::move(object), {}});
    return reinterpret_cast<void*>(handle);
  }

  // Returns the object, or null if the handle is not in this table.
  std::shared_ptr<T> find(const void* handle) const {
    const std::shared_lock lock(mutex_);
    const auto entry = objects_.find(reinterpret_cast<uint64_t>(handle));
    return entry == objects_.end() ? nullptr : entry->second.object;
  }

  // The handle's number, counted from 1 in order of creation; 0 for a null pointer.
  static uint64_t number_of(const void* handle) noexcept {
    return (reinterpret_cast<uint64_t>(handle) & ~(uint64_t{0xff} << 56)) >> 4;
  }

  // True if the table made this handle, even if it has ended since.
  static bool was_made(const void* handle) {
    const auto bits = reinterpret_cast<uint64_t>(handle);
    const uint64_t number = number_of(handle);
    return bits >> 56 == static_cast<uint64_t>(kKind) + 1 && (bits & 0xf) == 0 && number >= 1 &&
           number < next_.load(std::memory_order_relaxed);
  }

  // Removes the handle; of several concurrent callers, one gets the object.
  std::shared_ptr<T> remove(const void* handle) {
    const std::unique_lock lock(mutex_);
    const auto node = objects_.extract(reinterpret_cast<uint64_t>(handle));
    return node.empty() ? nullptr : node.mapped().object;
  }

  // Returns the objects for which wanted(object) holds.
  template <class Wanted>
  std::vector<std::shared_ptr<T>> select(Wanted&& wanted) const {
    std::vector<std::shared_ptr<T>> found;
    const std::shared_lock lock(mutex_);
    for (const auto& [handle, entry] : objects_) {
      if (wanted(*entry.object)) found.push_back(entry.object);
    }
    return found;
  }

  // Removes the objects for which wanted(object) holds, and returns them. Allocates nothing, so
  // that releasing resources cannot fail.
  template <class Wanted>
  Entries remove_if(Wanted&& wanted) {
    Entries removed;
    const std::unique_lock lock(mutex_);
    for (auto entry = objects_.begin(); entry != objects_.end();) {
      const auto next = std::next(entry);
      if (wanted(*entry->second.object)) removed.insert(objects_.extract(entry));
      entry = next;
    }
    return removed;
  }

  static void after_fork() noexcept { forget_objects(kKind); }

 private:
  // Continues in a forked child, so that a child never reuses a parent's handle.
  static inline std::atomic<uint64_t> next_ = 1;

  mutable std::shared_mutex mutex_;
  Entries objects_;
};

}  // namespace aclnn_host
