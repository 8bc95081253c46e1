#pragma once

#include <initializer_list>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {

// An argument that must not be null.
struct RequiredArgument {
  const char* name;
  const void* value;
};

// Fails for the first argument that is null; returns OK if there is none.
inline aclnnStatus refuse_null(const char* api,
                               std::initializer_list<RequiredArgument> arguments) noexcept {
  for (const auto& [name, value] : arguments) {
    if (value == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s is null", api, name);
  }
  return OK;
}

}  // namespace aclnn_host
