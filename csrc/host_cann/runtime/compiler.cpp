// The operator compiler: its options are remembered, and it compiles nothing.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_op_compiler.h"
#include "host_cann/runtime/guard.h"
#include "host_cann/runtime/per_process.h"

namespace aclnn_host {
namespace {

// The options of the process, with the one default that programs ask for.
struct Options {
  std::mutex mutex;
  std::map<aclCompileOpt, std::string> values{{ACL_OP_JIT_COMPILE, "disable"}};
  static void after_fork() noexcept {}
};

Options& options() {
  return PerProcess<Options>::get();
}

aclError refuse(const char* api, const char* type) noexcept {
  return fail(ACL_ERROR_FEATURE_UNSUPPORTED,
              "%s: operator %s: the host CANN compiles no operators; it has the aclnn functions "
              "of libopapi.so only",
              api, type == nullptr ? "(null)" : type);
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const inputDesc[],
                                const aclDataBuffer* const inputs[], int numOutputs,
                                const aclTensorDesc* const outputDesc[],
                                aclDataBuffer* const outputs[], const aclopAttr* attr,
                                aclopEngineType engineType, aclopCompileType compileFlag,
                                const char* opPath, aclrtStream stream) {
  return refuse("aclopCompileAndExecute", opType);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                                  aclDataBuffer* inputs[], int numOutputs,
                                  aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                  aclopAttr* attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char* opPath,
                                  aclrtStream stream) {
  return refuse("aclopCompileAndExecuteV2", opType);
}

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  constexpr const char* kApi = "aclSetCompileopt";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (opt < ACL_PRECISION_MODE || opt > ACL_OP_DEBUG_OPTION) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: unknown option %d", kApi, opt);
    }
    auto& state = options();
    const std::lock_guard lock(state.mutex);
    state.values[opt] = value;
    return ACL_SUCCESS;
  });
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  auto& state = options();
  const std::lock_guard lock(state.mutex);
  const auto found = state.values.find(opt);
  return found == state.values.end() ? 0 : found->second.size() + 1;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  constexpr const char* kApi = "aclGetCompileopt";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    auto& state = options();
    const std::lock_guard lock(state.mutex);
    const auto found = state.values.find(opt);
    if (found == state.values.end()) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: option %d was never set", kApi, opt);
    }
    if (length <= found->second.size()) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: length is %zu; the value of option %d needs %zu",
                  kApi, length, opt, found->second.size() + 1);
    }
    std::memcpy(value, found->second.c_str(), found->second.size() + 1);
    return ACL_SUCCESS;
  });
}
