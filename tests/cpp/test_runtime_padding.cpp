// ACLNN_TORCH_PADDING: the tensors of an operator may extend into the padding of a block, but not
// beyond it.
#include <cstdlib>
#include <cstring>

#include "aclnnop/aclnn_elu.h"
#include "runtime_support.h"

static const int environment = setenv("ACLNN_TORCH_PADDING", "1", 1);

// Runs Elu in place on the block as a vector of this many numbers.
static int elu(void* block, int64_t count) {
  aclTensor* const tensor =
      aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, block);
  float one = 1;
  aclScalar* const scalar = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int status = aclnnEluGetWorkspaceSize(tensor, scalar, scalar, scalar, tensor, &size, &executor);
  if (status == ACL_SUCCESS) status = aclnnElu(nullptr, size, executor, nullptr);
  aclDestroyTensor(tensor);
  aclDestroyScalar(scalar);
  return status;
}

TEST(a_tensor_may_use_the_padding_and_no_byte_more) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* block = nullptr;
  CHECK_EQ(aclrtMalloc(&block, 12, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  CHECK_EQ(aclrtMemset(block, 64, 0, 64), ACL_SUCCESS);
  CHECK_EQ(elu(block, 16), ACL_SUCCESS);  // 12 rounded up to 32, plus 32: 64 bytes
  CHECK_EQ(elu(block, 17), 161002);
  const std::string text = messages();
  CHECK(text.find("12 bytes were requested from aclrtMalloc") != std::string::npos);
  CHECK(text.find("ACLNN_TORCH_PADDING") == std::string::npos);
  CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}
