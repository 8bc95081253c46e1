#include "host_cann/runtime/product.h"

#include <optional>
#include <string_view>

#include "acl/acl_host.h"
#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/named_choice.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host {
namespace {

// One product: its name, the SoC name that aclrtGetSocName reports (known to torch_npu), and the
// values of aclGetDeviceCapability, which are plausible and not checked on hardware.
struct Profile {
  const char* name;
  const char* soc;
  int64_t ai_cores;
  int64_t vector_cores;
  int64_t l2_bytes;
};

constexpr int64_t kMiB = int64_t{1} << 20;

// In the order of Product.
constexpr Profile kProfiles[] = {
    {"Ascend310P", "Ascend310P3", 8, 7, 16 * kMiB},
    {"Ascend910", "Ascend910A", 32, 0, 32 * kMiB},
    {"Ascend910B", "Ascend910B2", 24, 48, 192 * kMiB},
    {"Ascend910_93", "Ascend910_9391", 24, 48, 192 * kMiB},
    {"Ascend950", "Ascend950PR_9589", 32, 64, 128 * kMiB},
    {"host", "Ascend910B2", 24, 48, 192 * kMiB},
};

// Prefixes of SoC names; a digit follows (Ascend910B2, Ascend910B4-1, Ascend950PR_9589).
constexpr struct {
  std::string_view prefix;
  Product product;
} kSocPrefixes[] = {
    {"Ascend310P", Product::kAscend310P},     {"Ascend910B", Product::kAscend910B},
    {"Ascend910_93", Product::kAscend910_93}, {"Ascend910_95", Product::kAscend950},
    {"Ascend950PR_", Product::kAscend950},    {"Ascend950DT_", Product::kAscend950},
};

constexpr std::string_view kAscend910Names[] = {"Ascend910A", "Ascend910ProA", "Ascend910ProB",
                                                "Ascend910PremiumA"};

const Profile& profile(Product product) {
  return kProfiles[static_cast<size_t>(product)];
}

std::optional<Product> find_product(std::string_view name) {
  for (size_t i = 0; i < std::size(kProfiles); ++i) {
    if (name == kProfiles[i].name) return static_cast<Product>(i);
  }
  for (const auto& known : kAscend910Names) {
    if (name == known) return Product::kAscend910;
  }
  for (const auto& [prefix, product] : kSocPrefixes) {
    if (name.size() > prefix.size() && name.starts_with(prefix)) {
      const char next = name[prefix.size()];
      if (next >= '0' && next <= '9') return product;
    }
  }
  return std::nullopt;
}

NamedChoice<Product>& product_choice() {
  // Outlives static destructors.
  static auto* const choice = new NamedChoice<Product>(
      "ACLNN_TORCH_PRODUCT", find_product, Product::kAscend910B,
      "does not name a product, so Ascend910B applies; the products are Ascend310P, Ascend910, "
      "Ascend910B, Ascend910_93, Ascend950 and host");
  return *choice;
}

}  // namespace

Product current_product() noexcept {
  return product_choice().get();
}

const char* product_name(Product product) noexcept {
  return profile(product).name;
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclHostSetProduct(const char* name) {
  if (name == nullptr) return null_argument("aclHostSetProduct", "name");
  const auto found = find_product(name);
  if (!found) {
    return fail(
        ACL_ERROR_INVALID_PARAM,
        "aclHostSetProduct: %s does not name a product; the products are Ascend310P, Ascend910, "
        "Ascend910B, Ascend910_93, Ascend950 and host, and their SoC names are accepted, too",
        name);
  }
  product_choice().set(*found);
  return ACL_SUCCESS;
}

const char* aclHostGetProduct(void) {
  return product_name(current_product());
}

const char* aclHostProductProblem(void) {
  return product_choice().problem();
}

const char* aclrtGetSocName(void) {
  return profile(current_product()).soc;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  constexpr const char* kApi = "aclrtGetDeviceInfo";
  if (value == nullptr) return null_argument(kApi, "value");
  if (!is_device(static_cast<int32_t>(deviceId))) {
    return no_such_device(kApi, static_cast<int32_t>(deviceId));
  }
  const Profile& soc = profile(current_product());
  switch (attr) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = soc.ai_cores; return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = soc.vector_cores; return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(settings().device_memory);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = soc.l2_bytes; return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "%s: attr is %d, expected one of 101, 102, 201, 301 and 302; a simulated device "
                  "has no others",
                  kApi, attr);
  }
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  constexpr const char* kApi = "aclGetDeviceCapability";
  if (value == nullptr) return null_argument(kApi, "value");
  if (!is_device(static_cast<int32_t>(deviceId))) {
    return no_such_device(kApi, static_cast<int32_t>(deviceId));
  }
  const Profile& soc = profile(current_product());
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM: *value = soc.ai_cores; return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = soc.vector_cores; return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE: *value = soc.l2_bytes; return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: deviceInfo is %d, expected 0 (ACL_DEVICE_INFO_AI_CORE_NUM) to 2 "
                  "(ACL_DEVICE_INFO_L2_SIZE)",
                  kApi, deviceInfo);
  }
}
