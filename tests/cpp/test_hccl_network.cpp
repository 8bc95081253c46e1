// The tests of test_hccl.cpp with ranks that share no host.
#define ACLNN_TEST_OVER_NETWORK
#include "test_hccl.cpp"
