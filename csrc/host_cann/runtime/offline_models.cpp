// Offline models, which programs such as OpenCV query. The host CANN supports none.
#include "acl/acl_mdl.h"
#include "host_cann/runtime/error_messages.h"

namespace {

// Records the message of a function and returns its answer.
template <class T>
T no_model(const char* api, T answer) noexcept {
  aclnn_host::fail(ACL_ERROR_FEATURE_UNSUPPORTED,
                   "%s: not supported by the host CANN: it runs no offline models", api);
  return answer;
}

aclError no_model(const char* api) noexcept {
  return no_model(api, aclError{ACL_ERROR_FEATURE_UNSUPPORTED});
}

}  // namespace

aclError aclmdlLoadFromFile(const char* modelPath, uint32_t* modelId) {
  return no_model("aclmdlLoadFromFile");
}
aclError aclmdlLoadFromMem(const void* model, size_t modelSize, uint32_t* modelId) {
  return no_model("aclmdlLoadFromMem");
}
aclError aclmdlUnload(uint32_t modelId) {
  return no_model("aclmdlUnload");
}
aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output) {
  return no_model("aclmdlExecute");
}
aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output,
                            aclrtStream stream) {
  return no_model("aclmdlExecuteAsync");
}
aclmdlDesc* aclmdlCreateDesc(void) {
  return no_model("aclmdlCreateDesc", static_cast<aclmdlDesc*>(nullptr));
}
aclError aclmdlDestroyDesc(aclmdlDesc* modelDesc) {
  return modelDesc == nullptr ? aclError{ACL_SUCCESS} : no_model("aclmdlDestroyDesc");
}
aclError aclmdlGetDesc(aclmdlDesc* modelDesc, uint32_t modelId) {
  return no_model("aclmdlGetDesc");
}
size_t aclmdlGetNumInputs(aclmdlDesc* modelDesc) {
  return no_model("aclmdlGetNumInputs", size_t{0});
}
size_t aclmdlGetNumOutputs(aclmdlDesc* modelDesc) {
  return no_model("aclmdlGetNumOutputs", size_t{0});
}
size_t aclmdlGetInputSizeByIndex(aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetInputSizeByIndex", size_t{0});
}
size_t aclmdlGetOutputSizeByIndex(aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetOutputSizeByIndex", size_t{0});
}
aclError aclmdlGetInputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) {
  return no_model("aclmdlGetInputDims");
}
aclError aclmdlGetOutputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) {
  return no_model("aclmdlGetOutputDims");
}
const char* aclmdlGetInputNameByIndex(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetInputNameByIndex", static_cast<const char*>(nullptr));
}
const char* aclmdlGetOutputNameByIndex(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetOutputNameByIndex", static_cast<const char*>(nullptr));
}
aclFormat aclmdlGetInputFormat(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetInputFormat", ACL_FORMAT_UNDEFINED);
}
aclFormat aclmdlGetOutputFormat(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetOutputFormat", ACL_FORMAT_UNDEFINED);
}
aclDataType aclmdlGetInputDataType(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetInputDataType", ACL_DT_UNDEFINED);
}
aclDataType aclmdlGetOutputDataType(const aclmdlDesc* modelDesc, size_t index) {
  return no_model("aclmdlGetOutputDataType", ACL_DT_UNDEFINED);
}
aclmdlDataset* aclmdlCreateDataset(void) {
  return no_model("aclmdlCreateDataset", static_cast<aclmdlDataset*>(nullptr));
}
aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) {
  return dataset == nullptr ? aclError{ACL_SUCCESS} : no_model("aclmdlDestroyDataset");
}
aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* dataBuffer) {
  return no_model("aclmdlAddDatasetBuffer");
}
size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
  return no_model("aclmdlGetDatasetNumBuffers", size_t{0});
}
aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
  return no_model("aclmdlGetDatasetBuffer", static_cast<aclDataBuffer*>(nullptr));
}
