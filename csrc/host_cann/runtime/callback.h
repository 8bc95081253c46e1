#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// Lets go of the callbacks of one stream that wait for aclrtProcessReport, or of all streams': they
// are not called, and who waits for them fails.
void cancel_reports(aclrtStream stream);
void cancel_all_reports() noexcept;

}  // namespace aclnn_host
