#pragma once

#include <cstddef>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A base of the objects that every call makes and destroys: their memory is what the calling
// thread's last objects of the size had, so that a program in its loop calls without malloc. Under
// the sanitizers, which look for uses after free, it is fresh every time.
class ACLNN_HOST_INTERNAL Recycled {
 public:
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;
};

// The same of objects that callers hold pointers of: their memory is never given back to the
// system, but left to other threads, so that it can be read whatever became of the object.
class ACLNN_HOST_INTERNAL Kept {
 public:
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;
};

}  // namespace aclnn_host
