#pragma once

// Exported only for the host CANN's own libraries (libnnopbase and libopapi call libascendcl); the
// embedded single-file build hides these symbols again.
#define ACLNN_HOST_INTERNAL __attribute__((visibility("default")))
