// The features of the profiler, which torch_npu queries.
#include <cstring>
#include <iterator>

#include "acl/acl_prof.h"
#include "host_cann/runtime/acl_guard.h"

namespace aclnn_host {
namespace {

// A feature with its version, and the components and their versions that it applies to. The
// destructors are part of the layout.
struct FeatureInfo {
  char compatibility[16];
  char feature_version[16];
  char component[16];
  char component_version[16];
  char text[128];
  virtual ~FeatureInfo() = default;
};
struct Feature {
  char name[64];
  FeatureInfo info;
  Feature(const char* feature, const char* version) : name(), info() {
    strncpy(name, feature, sizeof(name) - 1);
    strncpy(info.compatibility, "1", sizeof(info.compatibility) - 1);
    strncpy(info.feature_version, version, sizeof(info.feature_version) - 1);
    strncpy(info.component, "all", sizeof(info.component) - 1);
    strncpy(info.component_version, "all", sizeof(info.component_version) - 1);
    strncpy(info.text, "supported", sizeof(info.text) - 1);
  }
  virtual ~Feature() = default;
};
static_assert(sizeof(Feature) == 272, "the layout that torch_npu reads");

aclError supported_features(const char* api, size_t* size, void** data) {
  if (size == nullptr) return null_argument(api, "featuresSize");
  if (data == nullptr) return null_argument(api, "featuresData");
  if (*data != nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: *featuresData is not null", api);
  }
  static Feature features[] = {{"ATTR", "2"}, {"AICORE_SHAPE", "1"}};
  *size = std::size(features);
  *data = features;
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclprofGetSupportedFeatures(size_t* featuresSize, void** featuresData) {
  return supported_features("aclprofGetSupportedFeatures", featuresSize, featuresData);
}

aclError aclprofGetSupportedFeaturesV2(size_t* featuresSize, void** featuresData) {
  return supported_features("aclprofGetSupportedFeaturesV2", featuresSize, featuresData);
}
