// The tests of test_soak_collectives.cpp with ranks that share no host.
#define ACLNN_TEST_OVER_NETWORK
#include "test_soak_collectives.cpp"
