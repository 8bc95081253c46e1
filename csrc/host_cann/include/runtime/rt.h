/* The layer below AscendCL, as far as torch_npu links against it: device binaries and kernels,
 * which the host CANN does not have. Every function fails with 207000.
 * Written for aclnn_torch from the published interface; usable from C99 and C++. */
#ifndef ACLNN_TORCH_RT_H_
#define ACLNN_TORCH_RT_H_

#include <stdint.h>

#if defined(__GNUC__)
#define RTS_API __attribute__((visibility("default")))
#else
#define RTS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t rtError_t;
typedef void* rtStream_t;
typedef struct tagRtDevBinary rtDevBinary_t;
typedef struct tagRtSmCtrl rtSmDesc_t;

RTS_API rtError_t rtDevBinaryRegister(const rtDevBinary_t* bin, void** hdl);
RTS_API rtError_t rtFunctionRegister(void* binHandle, const void* stubFunc, const char* stubName,
                                     const void* kernelInfoExt, uint32_t funcMode);
RTS_API rtError_t rtKernelLaunch(const void* stubFunc, uint32_t blockDim, void* args,
                                 uint32_t argsSize, rtSmDesc_t* smDesc, rtStream_t stm);
RTS_API rtError_t rtGetC2cCtrlAddr(uint64_t* addr, uint32_t* len);

#ifdef __cplusplus
}
#endif
#endif
