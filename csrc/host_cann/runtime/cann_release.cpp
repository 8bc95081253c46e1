#include "host_cann/runtime/cann_release.h"

#include <iterator>
#include <optional>
#include <string_view>

#include "acl/acl_host.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/named_choice.h"

namespace aclnn_host {
namespace {

// In the order of CannRelease; the names are those of the column `since` of functions.tsv.
constexpr const char* kReleaseNames[] = {"8.5", "9.0", "9.1", "later"};

std::optional<CannRelease> find_release(std::string_view name) {
  for (size_t i = 0; i < std::size(kReleaseNames); ++i) {
    if (name == kReleaseNames[i]) return static_cast<CannRelease>(i);
  }
  return std::nullopt;
}

NamedChoice<CannRelease>& release_choice() {
  // Outlives static destructors.
  static auto* const choice = new NamedChoice<CannRelease>(
      "ACLNN_TORCH_CANN", find_release, CannRelease::kLater,
      "does not name a release of CANN, so later applies; the releases are 8.5, 9.0, 9.1 and "
      "later");
  return *choice;
}

}  // namespace

CannRelease current_cann_release() noexcept {
  return release_choice().get();
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclHostSetCannRelease(const char* name) {
  if (name == nullptr) return null_argument("aclHostSetCannRelease", "name");
  const auto found = find_release(name);
  if (!found) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "aclHostSetCannRelease: %s does not name a release of CANN; the releases are 8.5, "
                "9.0, 9.1 and later",
                name);
  }
  release_choice().set(*found);
  return ACL_SUCCESS;
}

const char* aclHostGetCannRelease(void) {
  return kReleaseNames[static_cast<size_t>(current_cann_release())];
}

const char* aclHostCannReleaseProblem(void) {
  return release_choice().problem();
}
