#include "host_cann/descriptors/given.h"

#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/tensor.h"

namespace aclnn_host {

const char* find_gone(GivenArguments given) noexcept {
  for (const Given& argument : given) {
    if (!std::visit([](const auto& value) { return is_usable(value); }, argument.value.any())) {
      return argument.name;
    }
  }
  return nullptr;
}

}  // namespace aclnn_host
