// The tests of test_soak_collectives.cpp with ranks on separate hosts.
#define ACLNN_TEST_OVER_NETWORK
#include "test_soak_collectives.cpp"
