#include "host_cann/runtime/recycled.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <utility>

namespace aclnn_host {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

template <bool kKept>
void* allocate(size_t size) {
  return ::operator new(size);
}

template <bool kKept>
void release(void* memory, size_t) noexcept {
  ::operator delete(memory);
}

#else

// Sizes are rounded up to a multiple of this; each has two lists, the second for Kept memory.
constexpr size_t kStep = 128;
constexpr size_t kSizes = 64;
constexpr size_t kLists = 2 * kSizes;
// Longer lists than a thread's calls ever need are shortened: memory is freed, or left to other
// threads in batches if it is Kept.
constexpr size_t kMost = 32;
constexpr size_t kBatch = kMost / 2;

// The memory of a destroyed object. `next` overwrites a descriptor's mark, which marks it as
// destroyed.
struct Free {
  Free* next = nullptr;
  Free* next_batch = nullptr;  // of the batch's first element, which also holds its length
  size_t length = 1;
};

struct List {
  Free* first;
  size_t length;
};

// Plain thread-locals, because static destructors destroy descriptors after the thread's end.
thread_local List lists[kLists];
thread_local bool lists_ended = false;

// Batches that threads left for others.
constinit std::mutex shared_mutex;
constinit Free* shared[kLists] = {};

template <bool kKept>
size_t list_of(size_t size) {
  return (size - 1) / kStep + (kKept ? kSizes : 0);
}

Free* take_first(List& list) {
  --list.length;
  return std::exchange(list.first, list.first->next);
}

// Leaves the first `length` elements of a thread's list to other threads.
void leave(size_t number, size_t length) noexcept {
  [[maybe_unused]] static const int registered = pthread_atfork(
      [] { shared_mutex.lock(); }, [] { shared_mutex.unlock(); }, [] { shared_mutex.unlock(); });
  List& list = lists[number];
  Free* const batch = list.first;
  Free* last = batch;
  for (size_t i = 1; i < length; ++i) last = last->next;
  list.first = std::exchange(last->next, nullptr);
  list.length -= length;
  batch->length = length;
  const std::lock_guard lock(shared_mutex);
  batch->next_batch = std::exchange(shared[number], batch);
}

// Empties the lists at the thread's end.
struct ListsEnd {
  ~ListsEnd() {
    lists_ended = true;
    for (size_t number = 0; number < kSizes; ++number) {
      while (lists[number].length > 0) ::operator delete(take_first(lists[number]));
    }
    for (size_t number = kSizes; number < kLists; ++number) {
      if (lists[number].length > 0) leave(number, lists[number].length);
    }
  }
};

// Registers the cleanup at the thread's end.
void empty_at_end() {
  static thread_local ListsEnd end;
}

// Takes a batch that another thread left, if there is one.
void take_batch(size_t number) {
  if (lists_ended) return;
  empty_at_end();
  const std::lock_guard lock(shared_mutex);
  Free* const batch = shared[number];
  if (batch == nullptr) return;
  shared[number] = batch->next_batch;
  lists[number] = {batch, batch->length};
}

template <bool kKept>
void* allocate(size_t size) {
  if (size > kSizes * kStep) return ::operator new(size);
  const size_t number = list_of<kKept>(size);
  List& list = lists[number];
  if (kKept && list.length == 0) take_batch(number);
  if (list.length == 0) return ::operator new((size + kStep - 1) / kStep * kStep);
  return take_first(list);
}

template <bool kKept>
void release(void* memory, size_t size) noexcept {
  if (memory == nullptr) return;
  const size_t number = list_of<kKept>(size);
  if (size > kSizes * kStep || (!kKept && (lists_ended || lists[number].length == kMost))) {
    ::operator delete(memory);
    return;
  }
  List& list = lists[number];
  list.first = new (memory) Free{list.first};
  ++list.length;
  if (lists_ended) {
    leave(number, list.length);
  } else {
    empty_at_end();
    if (list.length > kMost) leave(number, kBatch);
  }
}

#endif

}  // namespace

void* Recycled::operator new(size_t size) {
  return allocate<false>(size);
}

void Recycled::operator delete(void* memory, size_t size) noexcept {
  release<false>(memory, size);
}

void* Kept::operator new(size_t size) {
  return allocate<true>(size);
}

void Kept::operator delete(void* memory, size_t size) noexcept {
  release<true>(memory, size);
}

}  // namespace aclnn_host
