// Subscriptions to the operators of offline models.
#include "acl/acl_prof.h"
#include "host_cann/runtime/error_messages.h"

namespace {

aclError refuse(const char* api) noexcept {
  return aclnn_host::fail(ACL_ERROR_FEATURE_UNSUPPORTED,
                          "%s: not supported by the host CANN: it runs no offline models; record a "
                          "profile with aclprofStart and aclprofStop",
                          api);
}

}  // namespace

aclError aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig* config) {
  return refuse("aclprofModelSubscribe");
}
aclError aclprofModelUnSubscribe(uint32_t modelId) {
  return refuse("aclprofModelUnSubscribe");
}
aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch,
                                                     aclprofAicoreMetrics aicoreMetrics, void* fd) {
  refuse("aclprofCreateSubscribeConfig");
  return nullptr;
}
aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* config) {
  return refuse("aclprofDestroySubscribeConfig");
}
aclError aclprofGetOpDescSize(size_t* opDescSize) {
  return refuse("aclprofGetOpDescSize");
}
aclError aclprofGetOpNum(const void* opInfo, size_t opInfoLen, uint32_t* opNumber) {
  return refuse("aclprofGetOpNum");
}
aclError aclprofGetOpTypeLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opTypeLen) {
  return refuse("aclprofGetOpTypeLen");
}
aclError aclprofGetOpType(const void* opInfo, size_t opInfoLen, uint32_t index, char* opType,
                          size_t opTypeLen) {
  return refuse("aclprofGetOpType");
}
aclError aclprofGetOpNameLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opNameLen) {
  return refuse("aclprofGetOpNameLen");
}
aclError aclprofGetOpName(const void* opInfo, size_t opInfoLen, uint32_t index, char* opName,
                          size_t opNameLen) {
  return refuse("aclprofGetOpName");
}
uint64_t aclprofGetOpStart(const void* opInfo, size_t opInfoLen, uint32_t index) {
  refuse("aclprofGetOpStart");
  return 0;
}
uint64_t aclprofGetOpEnd(const void* opInfo, size_t opInfoLen, uint32_t index) {
  refuse("aclprofGetOpEnd");
  return 0;
}
uint64_t aclprofGetOpDuration(const void* opInfo, size_t opInfoLen, uint32_t index) {
  refuse("aclprofGetOpDuration");
  return 0;
}
size_t aclprofGetModelId(const void* opInfo, size_t opInfoLen, uint32_t index) {
  refuse("aclprofGetModelId");
  return 0;
}
aclprofSubscribeOpFlag aclprofGetOpFlag(const void* opInfo, size_t opInfoLen, uint32_t index) {
  refuse("aclprofGetOpFlag");
  return ACL_SUBSCRIBE_NONE;
}
const char* aclprofGetOpAttriValue(const void* opInfo, size_t opInfoLen, uint32_t index,
                                   aclprofSubscribeOpAttri attri) {
  refuse("aclprofGetOpAttriValue");
  return nullptr;
}
