#pragma once

#include <cstdint>

#include "host_cann/runtime/live_objects.h"
#include "host_cann/runtime/recycled.h"

namespace aclnn_host {

// Base of the objects behind callers' pointers: tensors, scalars, arrays, lists. Each begins with a
// mark of its type, so that a destroyed object or one of another type is refused before use. Not
// detected: a pointer to memory (which must be readable) that never was a descriptor, and one whose
// memory holds a new object of the same type. kVariant distinguishes types of one kind.
template <Object kKind, uint8_t kVariant = 0>
class Descriptor : public Kept {
 public:
  bool is_alive() const noexcept {
    // Volatile, because the compiler may assume that a destroyed object is never read.
    return static_cast<const volatile uint64_t&>(mark_) == kMark;
  }

 private:
  static constexpr uint64_t kMark = uint64_t{0xAC1D'E5C0'0000'0000} |  // not a valid address
                                    static_cast<uint64_t>(kKind) << 8 | kVariant;

  uint64_t mark_ = kMark;
  [[no_unique_address]] Counted<kKind> counted_;
};

}  // namespace aclnn_host
