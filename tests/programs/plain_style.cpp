// A program in the typical style of C++ for CANN: statuses in ints, results through pointers, C's
// enumerators with the name of their type, handwritten strides, arbitrary formats, a string where
// the prototype has char*, and memory that is freed by hand, or never. `plain_style keep` releases
// nothing before the process ends.
#include <cstring>
#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "aclnnop/aclnn_selu_backward.h"

#define STEP(call)                                                 \
  if (auto status = (call)) {                                      \
    printf("%s is %d: %s\n", #call, status, aclGetRecentErrMsg()); \
    return status;                                                 \
  }

using Dims = std::vector<int64_t>;

static aclrtStream queue;
static bool keep;

// A device tensor with a copy of the values.
template <class T>
static int Upload(std::vector<T> values, const Dims& dims, aclDataType type, aclFormat format,
                  void** memory, aclTensor** out) {
  const size_t bytes = values.size() * sizeof(T);
  STEP(aclrtMalloc(memory, bytes, aclrtMemMallocPolicy::ACL_MEM_MALLOC_NORMAL_ONLY));
  STEP(aclrtMemcpy(*memory, bytes, values.data(), bytes,
                   aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE));
  int64_t step = 1;
  Dims steps = dims;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const auto size = *at;
    *at = step;
    step *= size;
  }
  *out = aclCreateTensor(dims.data(), dims.size(), type, steps.data(), 0, format, dims.data(),
                         dims.size(), *memory);
  return *out == nullptr;
}

static int Upload(const std::vector<float>& values, const Dims& dims, void** memory,
                  aclTensor** out) {
  return Upload(values, dims, aclDataType::ACL_FLOAT, aclFormat::ACL_FORMAT_ND, memory, out);
}

// The second stage; returns its output.
typedef aclnnStatus (*Stage2)(void*, uint64_t, aclOpExecutor*, aclrtStream);
static int Launch(Stage2 stage, uint64_t need, aclOpExecutor* work) {
  void* scratch = NULL;
  if (need != 0) STEP(aclrtMalloc(&scratch, need, ACL_MEM_MALLOC_HUGE_FIRST));
  STEP(stage(scratch, need, work, queue));
  STEP(aclrtSynchronizeStream(queue));
  if (scratch != NULL && !keep) STEP(aclrtFree(scratch));
  return 0;
}

template <class T>
static int Show(const char* name, const void* memory, int64_t count) {
  std::vector<T> values(count);
  STEP(aclrtMemcpy(values.data(), count * sizeof(T), memory, count * sizeof(T),
                   ACL_MEMCPY_DEVICE_TO_HOST));
  std::cout << name << ":";
  for (const T& value : values) std::cout << " " << value;
  std::cout << std::endl;
  return 0;
}

static int Release(const std::vector<aclTensor*>& tensors, const std::vector<void*>& memory) {
  if (keep) return 0;
  for (auto tensor : tensors) STEP(aclDestroyTensor(tensor));
  for (auto address : memory) STEP(aclrtFree(address));
  return 0;
}

static int Elu() {
  void* m[3];
  aclTensor *g, *y, *out;
  STEP(Upload({5, 4, 3, 2, 1, 6}, {3, 2}, &m[0], &g));
  STEP(Upload({-0.5, 1, -0.25, 2, 0, -1}, {3, 2}, &m[1], &y));
  STEP(Upload({9, 9, 9, 9, 9, 9}, {3, 2}, &m[2], &out));
  float a = 2, s = 1, i = 0.5;
  aclScalar* alpha = aclCreateScalar(&a, aclDataType::ACL_FLOAT);
  aclScalar* scale = aclCreateScalar(&s, aclDataType::ACL_FLOAT);
  aclScalar* inputScale = aclCreateScalar(&i, aclDataType::ACL_FLOAT);
  uint64_t need;
  aclOpExecutor* work;
  STEP(aclnnEluBackwardGetWorkspaceSize(g, alpha, scale, inputScale, true, y, out, &need, &work));
  STEP(Launch(aclnnEluBackward, need, work));
  STEP(Show<float>("elu", m[2], 6));
  if (!keep) {
    STEP(aclDestroyScalar(alpha));
    STEP(aclDestroyScalar(scale));
    STEP(aclDestroyScalar(inputScale));
  }
  return Release({g, y, out}, {m[0], m[1], m[2]});
}

static int Selu() {
  void* m[3];
  aclTensor *g, *y, *out;
  STEP(Upload({1, 2, 3}, {3}, &m[0], &g));
  STEP(Upload({-1, 0, 1}, {3}, &m[1], &y));
  STEP(Upload({9, 9, 9}, {3}, &m[2], &out));
  uint64_t need = 0;
  aclOpExecutor* work = nullptr;
  STEP(aclnnSeluBackwardGetWorkspaceSize(g, y, out, &need, &work));
  STEP(Launch(aclnnSeluBackward, need, work));
  STEP(Show<float>("selu", m[2], 3));
  return Release({g, y, out}, {m[0], m[1], m[2]});
}

// FLOAT16 by bits: 0x3c00 is 1, 0x4000 is 2.
static int Convolution() {
  const auto half = aclDataType::ACL_FLOAT16;
  const auto format = aclFormat::ACL_FORMAT_NCHW;
  void* m[6];
  aclTensor *g, *x, *w, *dx, *dw, *db;
  STEP(Upload(std::vector<uint16_t>{0x3c00, 0x4000, 0x3c00, 0x3c00}, {1, 1, 2, 2}, half, format,
              &m[0], &g));
  STEP(Upload(std::vector<uint16_t>{0x4000, 0x3c00, 0x3c00, 0x4000}, {1, 1, 2, 2}, half, format,
              &m[1], &x));
  STEP(Upload(std::vector<uint16_t>{0x4000}, {1, 1, 1, 1}, half, format, &m[2], &w));
  STEP(Upload(std::vector<uint16_t>(4), {1, 1, 2, 2}, half, format, &m[3], &dx));
  STEP(Upload(std::vector<uint16_t>(1), {1, 1, 1, 1}, half, format, &m[4], &dw));
  STEP(Upload(std::vector<uint16_t>(1), {1}, half, aclFormat::ACL_FORMAT_ND, &m[5], &db));
  const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
  const bool wanted[] = {true, true, true};
  aclIntArray *one = aclCreateIntArray(ones, 1), *unit = aclCreateIntArray(ones, 2),
              *none = aclCreateIntArray(zeros, 2);
  aclBoolArray* mask = aclCreateBoolArray(wanted, 3);
  const int group = 1;
  const int8_t cube = 0;
  uint64_t need;
  aclOpExecutor* work;
  STEP(aclnnConvolutionBackwardGetWorkspaceSize(g, x, w, one, unit, none, unit, false, none, group,
                                                mask, cube, dx, dw, db, &need, &work));
  STEP(Launch(aclnnConvolutionBackward, need, work));
  STEP(Show<uint16_t>("convolution, input", m[3], 4));
  STEP(Show<uint16_t>("convolution, weight", m[4], 1));
  STEP(Show<uint16_t>("convolution, bias", m[5], 1));
  if (!keep) {
    for (auto array : {one, unit, none}) STEP(aclDestroyIntArray(array));
    STEP(aclDestroyBoolArray(mask));
  }
  return Release({g, x, w, dx, dw, db}, {m[0], m[1], m[2], m[3], m[4], m[5]});
}

static int CrossEntropy() {
  void* m[4];
  aclTensor *g, *logs, *labels, *out, *absent = nullptr;
  STEP(Upload({3}, {}, &m[0], &g));
  STEP(Upload({-1, -2, -0.5, -3}, {2, 2}, &m[1], &logs));
  STEP(Upload(std::vector<int64_t>{1, 0}, {2}, aclDataType::ACL_INT64, aclFormat::ACL_FORMAT_ND,
              &m[2], &labels));
  STEP(Upload({9, 9, 9, 9}, {2, 2}, &m[3], &out));
  float smoothing = 0;  // the prototype's type is double
  uint64_t need;
  aclOpExecutor* work;
  STEP(aclnnCrossEntropyLossGradGetWorkspaceSize(g, logs, labels, absent, absent, absent, "sum",
                                                 -100, smoothing, smoothing, out, &need, &work));
  STEP(Launch(aclnnCrossEntropyLossGrad, need, work));
  STEP(Show<float>("cross entropy", m[3], 4));
  return Release({g, logs, labels, out}, {m[0], m[1], m[2], m[3]});
}

// Three dimensions in a five-dimensional format.
static int RmsNorm() {
  const auto type = aclDataType::ACL_FLOAT;
  const auto format = aclFormat::ACL_FORMAT_NCDHW;
  void* m[6];
  aclTensor *dy, *x, *rstd, *gamma, *dx, *dgamma;
  STEP(Upload(std::vector<float>{1, 2, 0, 1}, {2, 1, 2}, type, format, &m[0], &dy));
  STEP(Upload(std::vector<float>{3, 4, 1, 2}, {2, 1, 2}, type, format, &m[1], &x));
  STEP(Upload(std::vector<float>{0.25, 0.5}, {2}, type, format, &m[2], &rstd));
  STEP(Upload(std::vector<float>{2, 4}, {2}, type, format, &m[3], &gamma));
  STEP(Upload(std::vector<float>{9, 9, 9, 9}, {2, 1, 2}, type, format, &m[4], &dx));
  STEP(Upload(std::vector<float>{9, 9}, {2}, type, format, &m[5], &dgamma));
  uint64_t need;
  aclOpExecutor* work;
  STEP(aclnnRmsNormGradGetWorkspaceSize(dy, x, rstd, gamma, dx, dgamma, &need, &work));
  STEP(Launch(aclnnRmsNormGrad, need, work));
  STEP(Show<float>("rms norm, x", m[4], 4));
  STEP(Show<float>("rms norm, gamma", m[5], 2));
  return Release({dy, x, rstd, gamma, dx, dgamma}, {m[0], m[1], m[2], m[3], m[4], m[5]});
}

int main(int count, char** words) {
  keep = count > 1 && std::strcmp(words[1], "keep") == 0;
  const int32_t device = 0;
  aclrtContext context;
  auto result = aclInit(NULL);
  if (result != ACL_SUCCESS) return result;
  STEP(aclrtSetDevice(device));
  STEP(aclrtCreateContext(&context, device));
  STEP(aclrtSetCurrentContext(context));
  STEP(aclrtCreateStream(&queue));
  for (auto call : {Elu, Selu, Convolution, CrossEntropy, RmsNorm}) {
    result = call();
    if (result != 0) return 1;
  }
  if (keep) return 0;
  STEP(aclrtDestroyStream(queue));
  STEP(aclrtDestroyContext(context));
  STEP(aclrtResetDevice(device));
  return aclFinalize();
}
