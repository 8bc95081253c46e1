// Counts the memory that a process allocates: preloaded by tests/aten_ops/in_place.py.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
// The functions of the C library behind those below.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace {

std::atomic<int64_t> allocated{0}, most{0};
int64_t at_start = 0;

void* added(void* memory) {
  if (memory == nullptr) return nullptr;
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t sum = allocated += size;
  for (int64_t known = most; known < sum && !most.compare_exchange_weak(known, sum);) {
  }
  return memory;
}
void remove(void* memory) {
  if (memory != nullptr) allocated -= static_cast<int64_t>(malloc_usable_size(memory));
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  return added(__libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return added(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  remove(memory);
  return added(__libc_realloc(memory, size));
}
void* memalign(size_t alignment, size_t size) {
  return added(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return added(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = added(__libc_memalign(alignment, size));
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  remove(memory);
  __libc_free(memory);
}

// The most bytes that were allocated at a time since the start, in addition to those at the start.
void allocations_start() {
  at_start = allocated;
  most = at_start;
}
int64_t allocations_peak() {
  return most - at_start;
}
}
