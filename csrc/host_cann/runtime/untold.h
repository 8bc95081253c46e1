#pragma once

#include <cstdint>
#include <string>

#include "acl/acl_base.h"

namespace aclnn_host {

// The failures that nobody was told of yet: of streams, and of torch_npu's queues. A failure is
// told as a function returns it. Those that are not are returned by the reset of their device.
// Where that does not happen either, `aclnn-torch run` tells them: it has memory (memfd_create),
// whose path below /proc ACLNN_TORCH_FAILURES says, and each failure is written there as it happens
// and again as it is told, as a line of JSON, so that a process that is killed loses none.

// Reads the variable, before failures happen on threads of streams: another thread may change the
// environment meanwhile.
void read_where_to_write();

// A stream has failed, given by its id, in a task that `api` brought; or a queue, which has no id
// and a null pointer there.
void add_untold(int32_t device, uint64_t stream, const char* api, aclError status,
                const std::string& text) noexcept;

// Failures of this status and text are told: those of the device, or of all if it is negative. A
// stream that waits for another's event has its failure, too.
void tell(aclError status, const std::string& text, int32_t device = -1) noexcept;

// fail_again() of a failure that is known to be of the device.
int fail_again_on(int32_t device, int status, const std::string& text) noexcept;

// Tells those of the device, or of all devices if it is negative: the texts of all, and the first
// one's status.
aclError tell_all(int32_t device) noexcept;

}  // namespace aclnn_host
