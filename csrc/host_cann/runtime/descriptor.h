#pragma once

#include <cstdint>

#include "host_cann/runtime/live_objects.h"
#include "host_cann/runtime/recycled.h"

namespace aclnn_host {

// A base of the objects that callers hold pointers of: tensors, scalars, arrays, lists. A mark of
// their type begins them, so that one that was destroyed, or is of another type, is refused and not
// used. Not recognised are a pointer to what never was a descriptor, which must be readable, and
// one whose memory a new object of the type has. kVariant tells types of a kind from one another.
template <Object kKind, uint8_t kVariant = 0>
class Descriptor : public Kept {
 public:
  bool is_alive() const noexcept {
    // Volatile: to the compiler, an object that was destroyed has no members any more.
    return static_cast<const volatile uint64_t&>(mark_) == kMark;
  }

 private:
  static constexpr uint64_t kMark = uint64_t{0xAC1D'E5C0'0000'0000} |  // no address
                                    static_cast<uint64_t>(kKind) << 8 | kVariant;

  uint64_t mark_ = kMark;
  [[no_unique_address]] Counted<kKind> counted_;
};

}  // namespace aclnn_host
