// The operator compiler: stores its options and compiles nothing. Operators called by name are
// computed by the registered implementation.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "acl/acl_op_compiler.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/description.h"
#include "host_cann/runtime/named_call.h"
#include "host_cann/runtime/per_process.h"

namespace aclnn_host {
namespace {

// The options of the process, with the one default that programs query.
struct Options {
  std::mutex mutex;
  std::map<aclCompileOpt, std::string> values{{ACL_OP_JIT_COMPILE, "disable"}};
  static void after_fork() noexcept {}
};

Options& options() {
  return PerProcess<Options>::get();
}

std::atomic<NamedOperators> registered = nullptr;

// Loads the library that depends on ATen from beside this one; it registers its operators. The
// embedded host CANN has no such library. Returns the error text, empty on success.
const std::string& load_operators() {
  static const std::string problem = [] {
    Dl_info self;
    if (registered != nullptr) return std::string();
    if (dladdr(&registered, &self) == 0) return std::string("its folder is not known");
    const std::string path = self.dli_fname;
    const size_t folder = path.rfind('/') + 1;  // 0 without a folder
    const std::string library = path.substr(0, folder) + "libopapi.so";
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) {
      return registered != nullptr ? std::string() : library + " has none";
    }
    const char* const reason = dlerror();
    return reason != nullptr ? std::string(reason) : library;
  }();
  return problem;
}

// Returns the index of the first object of a list that is null or was destroyed; -1 if there is
// none.
template <class T>
int find_missing(std::span<T* const> objects) noexcept {
  for (size_t i = 0; i < objects.size(); ++i) {
    if (objects[i] == nullptr || !objects[i]->is_alive()) return static_cast<int>(i);
  }
  return -1;
}

// Fails if a list of objects, or one of them, is missing.
template <class T>
aclError check_objects(const char* api, const char* count_argument, int count, const char* argument,
                       T* const* objects) noexcept {
  const aclError status = check_list(api, count_argument, count, argument, objects);
  if (status != ACL_SUCCESS) return status;
  const int missing = find_missing(std::span(objects, static_cast<size_t>(count)));
  if (missing < 0) return ACL_SUCCESS;
  if (objects[missing] == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: %s[%d] is a null pointer", api, argument, missing);
  }
  return fail(ACL_ERROR_INVALID_PARAM,
              "%s: %s[%d] is %p, which was destroyed, or is another kind of object", api, argument,
              missing, static_cast<const void*>(objects[missing]));
}

aclError execute(const char* api, const char* type, int input_count,
                 const aclTensorDesc* const* input_descs, const aclDataBuffer* const* inputs,
                 int output_count, const aclTensorDesc* const* output_descs,
                 aclDataBuffer* const* outputs, const aclopAttr* attributes, aclrtStream stream,
                 aclTensorDesc* const* written_descs) noexcept {
  return guarded(api, [&]() -> aclError {
    if (type == nullptr) return null_argument(api, "opType");
    aclError status = check_objects(api, "numInputs", input_count, "inputDesc", input_descs);
    if (status == ACL_SUCCESS) {
      status = check_objects(api, "numInputs", input_count, "inputs", inputs);
    }
    if (status == ACL_SUCCESS) {
      status = check_objects(api, "numOutputs", output_count, "outputDesc", output_descs);
    }
    if (status == ACL_SUCCESS) {
      status = check_objects(api, "numOutputs", output_count, "outputs", outputs);
    }
    if (status != ACL_SUCCESS) return status;
    if (attributes != nullptr && !attributes->is_alive()) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: attr is %p, which was destroyed, or is another kind of object", api,
                  static_cast<const void*>(attributes));
    }
    const std::string& problem = load_operators();
    const NamedOperators operators = registered;
    if (operators == nullptr) {
      return fail(
          ACL_ERROR_FEATURE_UNSUPPORTED,
          "%s: operator %s: libopapi.so, which computes operators by name, cannot be loaded: "
          "%s; use the prefix of the host CANN as it was installed",
          api, type, problem.c_str());
    }
    const auto in = static_cast<size_t>(input_count);
    const auto out = static_cast<size_t>(output_count);
    return operators({api,
                      type,
                      {input_descs, in},
                      {inputs, in},
                      {output_descs, out},
                      {outputs, out},
                      attributes,
                      stream,
                      {written_descs, written_descs == nullptr ? 0 : out}});
  });
}

// There are no kernels, so that nothing is written for a compiler of kernels.
aclError dump_arguments(const char* api, uint32_t type) noexcept {
  if (type == ACL_OP_DUMP_OP_AICORE_ARGS) return ACL_SUCCESS;
  return fail(ACL_ERROR_INVALID_PARAM,
              "%s: dumpType is %u, expected ACL_OP_DUMP_OP_AICORE_ARGS (%u)", api, type,
              static_cast<unsigned>(ACL_OP_DUMP_OP_AICORE_ARGS));
}

}  // namespace

void register_named_operators(NamedOperators operators) noexcept {
  registered = operators;
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const inputDesc[],
                                const aclDataBuffer* const inputs[], int numOutputs,
                                const aclTensorDesc* const outputDesc[],
                                aclDataBuffer* const outputs[], const aclopAttr* attr,
                                aclopEngineType engineType, aclopCompileType compileFlag,
                                const char* opPath, aclrtStream stream) {
  return execute("aclopCompileAndExecute", opType, numInputs, inputDesc, inputs, numOutputs,
                 outputDesc, outputs, attr, stream, nullptr);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                                  aclDataBuffer* inputs[], int numOutputs,
                                  aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                  aclopAttr* attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char* opPath,
                                  aclrtStream stream) {
  return execute("aclopCompileAndExecuteV2", opType, numInputs, inputDesc, inputs, numOutputs,
                 outputDesc, outputs, attr, stream, outputDesc);
}

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  constexpr const char* kApi = "aclSetCompileopt";
  return guarded(kApi, [&]() -> aclError {
    if (value == nullptr) return null_argument(kApi, "value");
    if (opt < ACL_PRECISION_MODE || opt > ACL_OP_DEBUG_OPTION) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: opt is %d, expected 0 (ACL_PRECISION_MODE) to 16 (ACL_OP_DEBUG_OPTION)",
                  kApi, opt);
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

aclError aclopStartDumpArgs(uint32_t dumpType, const char* path) {
  if (path == nullptr) return null_argument("aclopStartDumpArgs", "path");
  return dump_arguments("aclopStartDumpArgs", dumpType);
}

aclError aclopStopDumpArgs(uint32_t dumpType) {
  return dump_arguments("aclopStopDumpArgs", dumpType);
}
