// Functions that programs link against and that have no meaning on a host. Each fails by its name.
#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "acl/acl_tdt.h"
#include "host_cann/runtime/error_messages.h"
#include "runtime/rt.h"

namespace {

aclError refuse(int status, const char* api, const char* reason) noexcept {
  return aclnn_host::fail(status, "%s: not supported by the host CANN: %s", api, reason);
}

aclError no_models(const char* api) noexcept {
  return refuse(ACL_ERROR_FEATURE_UNSUPPORTED, api, "it runs no offline models and dumps none");
}

aclError no_super_kernels(const char* api) noexcept {
  return refuse(ACL_ERROR_FEATURE_UNSUPPORTED, api,
                "it has no kernels that could be fused; leave super_kernel_optimize off");
}

aclError no_channels(const char* api) noexcept {
  return refuse(ACL_ERROR_FEATURE_UNSUPPORTED, api, "it runs no graphs that send or take tensors");
}

aclError no_sharing(const char* api) noexcept {
  return refuse(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, api,
                "device memory is not shared between processes");
}

aclError no_binaries(const char* api) noexcept {
  return refuse(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, api, "it runs no device binaries");
}

}  // namespace

aclError aclmdlInitDump(void) {
  return no_models("aclmdlInitDump");
}

aclError aclmdlSetDump(const char* dumpCfgPath) {
  return no_models("aclmdlSetDump");
}

aclError aclmdlFinalizeDump(void) {
  return no_models("aclmdlFinalizeDump");
}

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue, uint32_t flag,
                                  void** handle) {
  return refuse(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclmdlRICondHandleCreate",
                "a captured model has no conditional tasks; make one model for each case");
}

// Functions of libascendsk.so that torch_npu looks up. No public header declares them, and a
// refusal does not need their parameters.
extern "C" {

ACL_FUNC_VISIBILITY aclError aclskOptimize() {
  return no_super_kernels("aclskOptimize");
}

ACL_FUNC_VISIBILITY aclError aclskScopeBegin() {
  return no_super_kernels("aclskScopeBegin");
}

ACL_FUNC_VISIBILITY aclError aclskScopeEnd() {
  return no_super_kernels("aclskScopeEnd");
}

}  // extern "C"

acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                     size_t capacity) {
  no_channels("acltdtCreateChannelWithCapacity");
  return nullptr;
}

aclError acltdtDestroyChannel(acltdtChannelHandle* handle) {
  return no_channels("acltdtDestroyChannel");
}

aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                             int32_t timeout) {
  return no_channels("acltdtReceiveTensor");
}

acltdtDataset* acltdtCreateDataset(void) {
  no_channels("acltdtCreateDataset");
  return nullptr;
}

aclError acltdtDestroyDataset(const acltdtDataset* dataset) {
  return no_channels("acltdtDestroyDataset");
}

size_t acltdtGetDatasetSize(const acltdtDataset* dataset) {
  no_channels("acltdtGetDatasetSize");
  return 0;
}

acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) {
  no_channels("acltdtGetDataItem");
  return nullptr;
}

void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) {
  no_channels("acltdtGetDataAddrFromItem");
  return nullptr;
}

size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) {
  no_channels("acltdtGetDataSizeFromItem");
  return 0;
}

aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) {
  no_channels("acltdtGetDataTypeFromItem");
  return ACL_DT_UNDEFINED;
}

size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) {
  no_channels("acltdtGetDimNumFromItem");
  return 0;
}

aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum) {
  return no_channels("acltdtGetDimsFromItem");
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle) {
  return no_sharing("aclrtMemExportToShareableHandle");
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle) {
  return no_sharing("aclrtMemImportFromShareableHandle");
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
  return no_sharing("aclrtMemSetPidToShareableHandle");
}

aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
  return no_sharing("aclrtIpcMemGetExportKey");
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  return no_sharing("aclrtIpcMemSetImportPid");
}

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  return no_sharing("aclrtIpcMemImportByKey");
}

aclError aclrtIpcMemClose(const char* key) {
  return no_sharing("aclrtIpcMemClose");
}

aclError aclrtBinaryLoadFromData(const void* data, size_t length,
                                 const aclrtBinaryLoadOptions* options, aclrtBinHandle* binHandle) {
  return no_binaries("aclrtBinaryLoadFromData");
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char* kernelName,
                                aclrtFuncHandle* funcHandle) {
  return no_binaries("aclrtBinaryGetFunction");
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void** aicAddr, void** aivAddr) {
  return no_binaries("aclrtGetFunctionAddr");
}

rtError_t rtDevBinaryRegister(const rtDevBinary_t* bin, void** hdl) {
  return no_binaries("rtDevBinaryRegister");
}

rtError_t rtFunctionRegister(void* binHandle, const void* stubFunc, const char* stubName,
                             const void* kernelInfoExt, uint32_t funcMode) {
  return no_binaries("rtFunctionRegister");
}

rtError_t rtKernelLaunch(const void* stubFunc, uint32_t blockDim, void* args, uint32_t argsSize,
                         rtSmDesc_t* smDesc, rtStream_t stm) {
  return no_binaries("rtKernelLaunch");
}

rtError_t rtGetC2cCtrlAddr(uint64_t* addr, uint32_t* len) {
  return refuse(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtGetC2cCtrlAddr",
                "a simulated device has no control address for its cores");
}
