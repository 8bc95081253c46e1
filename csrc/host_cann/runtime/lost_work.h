#pragma once

#include <cstdint>

#include "acl/acl_base.h"

namespace aclnn_host {

// torch_npu runs its work on its own threads, called queues, one per device. After a call fails on
// a queue, torch_npu silently drops all later work, even if the program catches the error, and
// reads memory that was never written. Therefore every wait for a stream, an event or a device of
// the process, and every copy from a device, then fails with the call's text until the queue's
// device is reset; on all devices, because work that copies between them is dropped, too. Queries
// of an event succeed: torch_npu regards an event as complete only after its queue has recorded it,
// and terminates the process if a query of its HCCL watchdog fails.

// Notes a failure on the calling thread; called for every failure that has a text.
void note_failure(int status, const char* text) noexcept;

// Notes a launch on the calling thread: torch_npu has recovered from the failure before it, for
// example by allocating again after a failed allocation.
void note_launch() noexcept;

// Returns the status of a wait; if it is success, the first failure after which work was lost.
aclError or_lost_work(aclError status) noexcept;

// Forgets the failures of the device's queues; of all devices if it is negative.
void forget_lost_work(int32_t device) noexcept;

}  // namespace aclnn_host
