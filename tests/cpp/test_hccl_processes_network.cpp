// The tests of test_hccl_processes.cpp with ranks that do not share a host.
#define ACLNN_TEST_OVER_NETWORK
#include "test_hccl_processes.cpp"
