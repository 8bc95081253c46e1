// The tests of test_hccl_processes.cpp with ranks that share no host.
#define ACLNN_TEST_OVER_NETWORK
#include "test_hccl_processes.cpp"
