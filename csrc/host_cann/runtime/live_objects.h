#pragma once

#include <cstdint>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Counts of the objects that a caller must release; leak tests compare them before and after.
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
  kDescription,  // arguments of operators called by name: tensors, buffers, attributes
  kPhysicalMemory,
  kModel,      // captured from streams
  kTaskGroup,  // replaceable tasks of a model
  kCommunicator,
  kCount
};

ACLNN_HOST_INTERNAL void count_object(Object kind, int64_t change) noexcept;

// Resets the count of a kind: a forked child has none of its parent's streams.
ACLNN_HOST_INTERNAL void forget_objects(Object kind) noexcept;

// Counts the object that holds a member of this type.
template <Object kKind>
struct Counted {
  Counted() noexcept { count_object(kKind, 1); }
  Counted(const Counted&) noexcept { count_object(kKind, 1); }
  Counted& operator=(const Counted&) noexcept = default;
  ~Counted() { count_object(kKind, -1); }
};

}  // namespace aclnn_host
