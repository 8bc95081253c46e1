#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Cancels the callbacks of one stream, or of all streams, that wait for aclrtProcessReport: they
// are not called, and threads that wait for them get a failure.
void cancel_reports(aclrtStream stream);
void cancel_all_reports() noexcept;

}  // namespace aclnn_host
