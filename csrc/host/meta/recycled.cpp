#include "meta/recycled.h"

#include <new>

namespace aclnn_host {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void* Recycled::operator new(size_t size) {
  return ::operator new(size);
}

void Recycled::operator delete(void* memory, size_t) noexcept {
  ::operator delete(memory);
}

#else

namespace {

// Sizes are rounded up to a multiple of this; each has a list of its own.
constexpr size_t kStep = 128;
constexpr size_t kLists = 64;
// More memory of a size than a thread's calls ever need at once is given back.
constexpr size_t kMost = 32;

struct Free {
  Free* next;
};

struct List {
  Free* first;
  size_t length;
};

// Plain thread-locals, for static destructors destroy descriptors too, after the thread's end.
thread_local List lists[kLists];
thread_local bool thread_ended = false;

// Frees the lists at the thread's end.
struct ThreadEnd {
  ~ThreadEnd() {
    thread_ended = true;
    for (List& list : lists) {
      while (Free* memory = list.first) {
        list.first = memory->next;
        ::operator delete(memory);
      }
    }
  }
};

size_t list_of(size_t size) {
  return (size - 1) / kStep;
}

}  // namespace

void* Recycled::operator new(size_t size) {
  const size_t number = list_of(size);
  if (number >= kLists) return ::operator new(size);
  List& list = lists[number];
  if (list.first == nullptr) return ::operator new((number + 1) * kStep);
  --list.length;
  Free* const memory = list.first;
  list.first = memory->next;
  return memory;
}

void Recycled::operator delete(void* memory, size_t size) noexcept {
  const size_t number = list_of(size);
  if (memory == nullptr) return;
  if (number >= kLists || thread_ended || lists[number].length == kMost) {
    ::operator delete(memory);
    return;
  }
  static thread_local ThreadEnd end;
  List& list = lists[number];
  list.first = new (memory) Free{list.first};
  ++list.length;
}

#endif

}  // namespace aclnn_host
