#pragma once

#include <cstdint>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Counts of the objects a caller must give back; a leak test compares them before and after.
enum class Object {
  kTensor,
  kScalar,
  kArray,
  kList,
  kExecutor,
  kDeviceBlock,
  kHostBlock,
  kStream,
  kEvent,
  kContext,
  kDescription,  // what operators called by name take: tensors, buffers, attributes
  kPhysicalMemory,
  kModel,      // what was captured from streams
  kTaskGroup,  // tasks of a model that can be replaced
  kCommunicator,
  kCount
};

ACLNN_HOST_INTERNAL void count_object(Object kind, int64_t change) noexcept;

// Forgets the objects of a kind: a forked child has none of its parent's streams.
ACLNN_HOST_INTERNAL void forget_objects(Object kind) noexcept;

// A member of this type counts the object that holds it.
template <Object kKind>
struct Counted {
  Counted() noexcept { count_object(kKind, 1); }
  Counted(const Counted&) noexcept { count_object(kKind, 1); }
  Counted& operator=(const Counted&) noexcept = default;
  ~Counted() { count_object(kKind, -1); }
};

}  // namespace aclnn_host
