#include "meta/executor.h"

#include <cstring>

#include "meta/guard.h"

namespace aclnn_host {
namespace {

bool is_executor(const aclOpExecutor* executor) {
  return executor->magic == aclOpExecutor::kMagic;
}

// A tensor without an address can be described, and given one later; it cannot be computed with.
bool addresses_set(const char* api, aclOpExecutor& executor) {
  const TensorArguments tensors = executor.tensors();
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorView& view = *tensors.begin[i].view;
    if (view.storage == nullptr && element_count(view.shape).value_or(0) > 0) {
      fail(ACLNN_ERR_PARAM_NULLPTR, "%s: tensor argument %zu has elements but a null address", api,
           i);
      return false;
    }
  }
  return true;
}

}  // namespace

aclnnStatus launch(const char* api, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream) noexcept {
  if (executor == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: executor is null; run %sGetWorkspaceSize first", api,
                api);
  }
  if (!is_executor(executor) || std::strcmp(executor->api, api) != 0) {
    return fail(ACLNN_ERR_INNER, "%s: the executor is not one that %sGetWorkspaceSize made", api,
                api);
  }
  // Whatever happens from here on, an executor that is not repeatable is used up.
  std::unique_ptr<aclOpExecutor> owned(executor->repeatable ? nullptr : executor);
  if (workspace_size > 0 && workspace == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: workspace is null, expected %llu bytes", api,
                static_cast<unsigned long long>(workspace_size));
  }
  if (workspace_size < executor->workspace_size) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: workspaceSize is %llu, expected at least %llu", api,
                static_cast<unsigned long long>(workspace_size),
                static_cast<unsigned long long>(executor->workspace_size));
  }
  if (!addresses_set(api, *executor)) return ACLNN_ERR_PARAM_NULLPTR;
  return guarded(api, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&]() -> aclnnStatus {
    // A repeatable executor may be given other addresses while the stream still has this run before
    // it, so the stream gets a copy.
    if (owned == nullptr) owned = executor->clone();
    owned->workspace = workspace;
    const aclError status = submit(stream, std::move(owned));
    if (status == ACL_SUCCESS) return OK;
    return fail(ACLNN_ERR_RUNTIME_ERROR, "%s: the stream refused the task (status %d)", api,
                status);
  });
}

namespace {

enum class Side { kAny, kInput, kOutput };

// The index-th tensor argument on one side, or null with a message.
TensorView* find_tensor(const char* api, aclOpExecutor& executor, Side side, size_t index) {
  const TensorArguments tensors = executor.tensors();
  size_t seen = 0;
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorArgument& argument = tensors.begin[i];
    if (side == Side::kInput && !argument.is_input) continue;
    if (side == Side::kOutput && !argument.is_output) continue;
    if (seen++ == index) return argument.view;
  }
  fail(ACLNN_ERR_PARAM_INVALID, "%s: index is %zu, but %s has %zu such tensor arguments", api,
       index, executor.api, seen);
  return nullptr;
}

aclnnStatus set_address(const char* api, aclOpExecutor* executor, Side side, size_t index,
                        const void* tensor, void* addr) {
  if (tensor == nullptr || executor == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "%s: %s is null", api, tensor ? "executor" : "tensor");
  }
  if (!is_executor(executor)) return fail(ACLNN_ERR_INNER, "%s: executor is not one", api);
  TensorView* view = find_tensor(api, *executor, side, index);
  if (view == nullptr) return ACLNN_ERR_PARAM_INVALID;
  view->storage = addr;
  return OK;
}

// No operator here takes a tensor list, so any list index is out of range.
aclnnStatus set_list_address(const char* api, aclOpExecutor* executor, size_t index,
                             const void* tensors) {
  if (tensors == nullptr || executor == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "%s: %s is null", api, tensors ? "executor" : "tensors");
  }
  if (!is_executor(executor)) return fail(ACLNN_ERR_INNER, "%s: executor is not one", api);
  return fail(ACLNN_ERR_PARAM_INVALID, "%s: argument %zu of %s is not a tensor list", api, index,
              executor->api);
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (executor == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "aclSetAclOpExecutorRepeatable: executor is null");
  }
  if (!is_executor(executor)) {
    return fail(ACLNN_ERR_INNER, "aclSetAclOpExecutorRepeatable: executor is not one");
  }
  executor->repeatable = true;
  return OK;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (executor == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "aclDestroyAclOpExecutor: executor is null");
  }
  if (!is_executor(executor)) {
    return fail(ACLNN_ERR_INNER, "aclDestroyAclOpExecutor: executor is not one");
  }
  delete executor;
  return OK;
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return set_address("aclSetTensorAddr", executor, Side::kAny, index, tensor, addr);
}
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return set_address("aclSetInputTensorAddr", executor, Side::kInput, index, tensor, addr);
}
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return set_address("aclSetOutputTensorAddr", executor, Side::kOutput, index, tensor, addr);
}
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                    aclTensorList* tensors, void*) {
  return set_list_address("aclSetDynamicTensorAddr", executor, irIndex, tensors);
}
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                         aclTensorList* tensors, void*) {
  return set_list_address("aclSetDynamicInputTensorAddr", executor, irIndex, tensors);
}
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                          aclTensorList* tensors, void*) {
  return set_list_address("aclSetDynamicOutputTensorAddr", executor, irIndex, tensors);
}

// The older spellings are the same functions.
aclnnStatus AclSetTensorAddr(aclOpExecutor*, const size_t, aclTensor*, void*)
    __attribute__((alias("aclSetTensorAddr")));
aclnnStatus AclSetInputTensorAddr(aclOpExecutor*, const size_t, aclTensor*, void*)
    __attribute__((alias("aclSetInputTensorAddr")));
aclnnStatus AclSetOutputTensorAddr(aclOpExecutor*, const size_t, aclTensor*, void*)
    __attribute__((alias("aclSetOutputTensorAddr")));
aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor*, size_t, const size_t, aclTensorList*, void*)
    __attribute__((alias("aclSetDynamicTensorAddr")));
aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor*, size_t, const size_t, aclTensorList*,
                                         void*)
    __attribute__((alias("aclSetDynamicInputTensorAddr")));
aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor*, size_t, const size_t, aclTensorList*,
                                          void*)
    __attribute__((alias("aclSetDynamicOutputTensorAddr")));

aclnnStatus aclnnInit(const char*) {
  return OK;
}
aclnnStatus aclnnFinalize(void) {
  return OK;
}
