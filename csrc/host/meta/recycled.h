#pragma once

#include <cstddef>

#include "runtime/visibility.h"

namespace aclnn_host {

// A base of the objects that every call makes and destroys, descriptors and executors: their memory
// is what the calling thread's last objects of the size had, so that a program in its loop calls
// without malloc. Under the sanitizers, which look for uses after free, it is fresh every time.
class ACLNN_HOST_INTERNAL Recycled {
 public:
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;
};

}  // namespace aclnn_host
