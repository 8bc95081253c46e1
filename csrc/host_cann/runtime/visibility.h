#pragma once

// Exported for the host CANN's own libraries only (libnnopbase and libopapi call libascendcl);
// the embedded single-file build hides it again.
#define ACLNN_HOST_INTERNAL __attribute__((visibility("default")))
