#include <iostream>
#include <vector>
#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#define CHECK_RET(cond, return_expr) \
do { \
if (!(cond)) { \
return_expr; \
} \
} while (0)
#define LOG_PRINT(message, ...) \
do { \
printf(message, ##__VA_ARGS__); \
} while (0)
int64_t GetShapeSize(const std::vector<int64_t>& shape) {
int64_t shapeSize = 1;
for (auto i : shape) {
shapeSize *= i;
}
return shapeSize;
}
int Init(int32_t deviceId, aclrtContext* context, aclrtStream* stream) {
// 固定写法,AscendCL初始化
auto ret = aclInit(nullptr);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclInit failed. ERROR: %d\n", ret); return ret);
ret = aclrtSetDevice(deviceId);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSetDevice failed. ERROR: %d\n", ret); return ret);
ret = aclrtCreateContext(context, deviceId);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtCreateContext failed. ERROR: %d\n", ret); return ret);
ret = aclrtSetCurrentContext(*context);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSetCurrentContext failed. ERROR: %d\n", ret); return ret);
ret = aclrtCreateStream(stream);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtCreateStream failed. ERROR: %d\n", ret); return ret);
return 0;
}
template <typename T>
int CreateAclTensor(const std::vector<T>& hostData, const std::vector<int64_t>& shape, void** deviceAddr,
aclDataType dataType, aclTensor** tensor) {
auto size = GetShapeSize(shape) * sizeof(T);
// 调用aclrtMalloc申请device侧内存
auto ret = aclrtMalloc(deviceAddr, size, ACL_MEM_MALLOC_HUGE_FIRST);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMalloc failed. ERROR: %d\n", ret); return ret);
// 调用aclrtMemcpy将Host侧数据拷贝到device侧内存上
ret = aclrtMemcpy(*deviceAddr, size, hostData.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMemcpy failed. ERROR: %d\n", ret); return ret);
// 计算连续tensor的strides
std::vector<int64_t> strides(shape.size(), 1);
for (int64_t i = shape.size() - 2; i >= 0; i--) {
strides[i] = shape[i + 1] * strides[i + 1];
}
// 调用aclCreateTensor接口创建aclTensor
if (shape.size() == 4) {
*tensor = aclCreateTensor(shape.data(), shape.size(), dataType, strides.data(), 0, aclFormat::ACL_FORMAT_NCHW,
shape.data(), shape.size(), *deviceAddr);
} else {
*tensor = aclCreateTensor(shape.data(), shape.size(), dataType, strides.data(), 0, aclFormat::ACL_FORMAT_ND,
shape.data(), shape.size(), *deviceAddr);
}
return 0;
}
int main() {
// 1. (固定写法)device/context/stream初始化,参考AscendCL对外接口列表
// 根据自己的实际device填写deviceId
int32_t deviceId = 0;
aclrtContext context;
aclrtStream stream;
auto ret = Init(deviceId, &context, &stream);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("Init acl failed. ERROR: %d\n", ret); return ret);
// 2. 构造输入与输出,需要根据API的接口自定义构造
std::vector<int64_t> gradOutputShape = {2, 2, 7, 7};
std::vector<int64_t> inputShape = {2, 2, 7, 7};
std::vector<int64_t> weightShape = {2, 2, 1, 1};
std::vector<int64_t> bias = {2};
std::vector<int64_t> stride = {1, 1};
std::vector<int64_t> padding = {0, 0};
std::vector<int64_t> dilation = {1, 1};
bool transposed = false;
std::vector<int64_t> outputPadding = {0, 0};
int groups = 1;
bool outputMask[3] = {true, true, true};
int8_t cubeMathType = 0;
std::vector<int64_t> gradInputShape = {2, 2, 7, 7};
std::vector<int64_t> gradWeightShape = {2, 2, 1, 1};
std::vector<int64_t> gradBiasShape = {2};
// 创建gradOut aclTensor
std::vector<float> gradOutputData(GetShapeSize(gradOutputShape) * 2, 1);
aclTensor* gradOutput = nullptr;
void *gradOutputdeviceAddr = nullptr;
ret = CreateAclTensor(gradOutputData, gradOutputShape, &gradOutputdeviceAddr, aclDataType::ACL_FLOAT16, &gradOutput);
CHECK_RET(ret == ACL_SUCCESS, return ret);
// 创建input aclTensor
std::vector<float> inputData(GetShapeSize(inputShape) * 2, 1);
aclTensor* input = nullptr;
void *inputdeviceAddr = nullptr;
ret = CreateAclTensor(inputData, inputShape, &inputdeviceAddr, aclDataType::ACL_FLOAT16, &input);
CHECK_RET(ret == ACL_SUCCESS, return ret);
// 创建weight aclTensor
std::vector<float> weightData(GetShapeSize(weightShape) * 2, 1);
aclTensor* weight = nullptr;
void *weightDeviceAddr = nullptr;
ret = CreateAclTensor(weightData, weightShape, &weightDeviceAddr, aclDataType::ACL_FLOAT16, &weight);
CHECK_RET(ret == ACL_SUCCESS, return ret);
// 创建gradInput aclTensor
std::vector<float> gradInputData(GetShapeSize(gradInputShape) * 2, 1);
aclTensor* gradInput = nullptr;
void *gradInputDeviceAddr = nullptr;
ret = CreateAclTensor(gradInputData, gradInputShape, &gradInputDeviceAddr, aclDataType::ACL_FLOAT16, &gradInput);
CHECK_RET(ret == ACL_SUCCESS, return ret);
// 创建gradWeight aclTensor
std::vector<float> gradWeightData(GetShapeSize(gradWeightShape) * 2, 1);
aclTensor* gradWeight = nullptr;
void *gradWeightDeviceAddr = nullptr;
ret = CreateAclTensor(gradWeightData, gradWeightShape, &gradWeightDeviceAddr, aclDataType::ACL_FLOAT16, &gradWeight);
CHECK_RET(ret == ACL_SUCCESS, return ret);
// 创建gradBias aclTensor
std::vector<float> gradBiasData(GetShapeSize(gradBiasShape) * 2, 1);
aclTensor* gradBias = nullptr;
void *gradBiasDeviceAddr = nullptr;
ret = CreateAclTensor(gradBiasData, gradBiasShape, &gradBiasDeviceAddr, aclDataType::ACL_FLOAT16, &gradBias);
CHECK_RET(ret == ACL_SUCCESS, return ret);
aclIntArray *biasSizes = aclCreateIntArray(bias.data(), 1);
aclIntArray *strides = aclCreateIntArray(stride.data(), 2);
aclIntArray *pads = aclCreateIntArray(padding.data(), 2);
aclIntArray *dilations = aclCreateIntArray(dilation.data(), 2);
aclIntArray *outputPads = aclCreateIntArray(outputPadding.data(), 2);
aclBoolArray *outMask = aclCreateBoolArray(outputMask, 3);
// 3. 调用CANN算子库API,需要修改为具体的API名称
uint64_t workspaceSize = 0;
aclOpExecutor* executor;
// 调用aclnnConvolutionBackward第一段接口
ret = aclnnConvolutionBackwardGetWorkspaceSize(gradOutput, input, weight, biasSizes, strides, pads, dilations,
transposed, outputPads, groups, outMask, cubeMathType, gradInput, gradWeight, gradBias, &workspaceSize, &executor);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclnnConvolutionBackwardGetWorkspaceSize failed. ERROR: %d\n",
ret); return ret);
// 根据第一段接口计算出的workspaceSize申请device内存
void* workspaceAddr = nullptr;
if (workspaceSize > 0) {
ret = aclrtMalloc(&workspaceAddr, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("allocate workspace failed. ERROR: %d\n", ret); return ret);
}
// 调用aclnnConvolutionBackward第二段接口
ret = aclnnConvolutionBackward(workspaceAddr, workspaceSize, executor, stream);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclnnConvolutionBackward failed. ERROR: %d\n", ret); return ret);
// 4. (固定写法)同步等待任务执行结束
ret = aclrtSynchronizeStream(stream);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSynchronizeStream failed. ERROR: %d\n", ret); return ret);
// 5. 获取输出的值,将device侧内存上的结果拷贝至Host侧,需要根据具体API的接口定义修改
auto size = GetShapeSize(gradInputShape);
std::vector<float> gradInputResult(size, 0);
ret = aclrtMemcpy(gradInputResult.data(), gradInputResult.size() * sizeof(gradInputResult[0]), gradInputDeviceAddr,
size * sizeof(gradInputResult[0]), ACL_MEMCPY_DEVICE_TO_HOST);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("copy result from device to host failed. ERROR: %d\n", ret); return ret);
for (int64_t i = 0; i < size; i++) {
LOG_PRINT("gradInputResult[%ld] is: %f\n", i, gradInputResult[i]);
}
size = GetShapeSize(gradWeightShape);
std::vector<float> gradWeightResult(size, 0);
ret = aclrtMemcpy(gradWeightResult.data(), gradWeightResult.size() * sizeof(gradWeightResult[0]), gradWeightDeviceAddr,
size * sizeof(gradWeightResult[0]), ACL_MEMCPY_DEVICE_TO_HOST);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("copy result from device to host failed. ERROR: %d\n", ret); return ret);
for (int64_t i = 0; i < size; i++) {
LOG_PRINT("gradWeightResult[%ld] is: %f\n", i, gradWeightResult[i]);
}
size = GetShapeSize(gradBiasShape);
std::vector<float> gradBiasResult(size, 0);
ret = aclrtMemcpy(gradBiasResult.data(), gradBiasResult.size() * sizeof(gradBiasResult[0]), gradInputDeviceAddr,
size * sizeof(gradBiasResult[0]), ACL_MEMCPY_DEVICE_TO_HOST);
CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("copy result from device to host failed. ERROR: %d\n", ret); return ret);
for (int64_t i = 0; i < size; i++) {
LOG_PRINT("gradBiasResult[%ld] is: %f\n", i, gradBiasResult[i]);
}
// 6. 释放aclTensor和aclScalar,需要根据具体API的接口定义修改
aclDestroyTensor(gradOutput);
aclDestroyTensor(input);
aclDestroyTensor(weight);
aclDestroyTensor(gradInput);
aclDestroyTensor(gradWeight);
aclDestroyTensor(gradBias);
return 0;
}