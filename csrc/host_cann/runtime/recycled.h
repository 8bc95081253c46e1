#pragma once

#include <cstddef>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Base of objects that every call makes and destroys. Reuses the memory of the thread's last
// objects of that size, so that repeated calls need no malloc. Under the sanitizers, which detect
// uses after free, every allocation is fresh.
class ACLNN_HOST_INTERNAL Recycled {
 public:
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;
};

// The same for objects behind callers' pointers: their memory is never returned to the system but
// left to other threads, so that it stays readable after the object's destruction.
class ACLNN_HOST_INTERNAL Kept {
 public:
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;
};

}  // namespace aclnn_host
