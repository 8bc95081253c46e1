#pragma once

#include <cstdint>

#include "acl/acl_base.h"

namespace aclnn_host {

// torch_npu gives its work to threads of its own, its queues, one for each device. After a call
// that fails there it drops all that comes later, in silence and also where the program catches the
// error, and reads memory that nobody wrote. So whoever then waits for a stream, an event or a
// device of the process, or copies from a device, fails with the text of the call, until the
// queue's device is reset. All devices do so, since work that copies between them is dropped too.
// A query of an event does not: torch_npu calls one complete only after its queue has recorded it,
// and ends the process where a query fails for its watchdog of HCCL.

// A call has failed on the calling thread: every failure with a text comes here.
void note_failure(int status, const char* text) noexcept;

// The calling thread has launched work: the failure before it was one that torch_npu overcame, as
// it allocates again after an allocation that failed.
void note_launch() noexcept;

// The status of a wait: where it is a success, the first failure after which work was lost.
aclError or_lost_work(aclError status) noexcept;

// The device's queues are gone; those of all devices, if it is negative.
void forget_lost_work(int32_t device) noexcept;

}  // namespace aclnn_host
