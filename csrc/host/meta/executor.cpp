#include "meta/executor.h"

#include <cstring>

#include "acl/acl_rt.h"
#include "meta/guard.h"
#include "runtime/memory.h"

namespace aclnn_host {
namespace {

bool is_executor(const aclOpExecutor* executor) {
  return executor->magic == aclOpExecutor::kMagic;
}

// Where a tensor's memory lies: in no block of aclrtMalloc or aclrtMallocHost, which the host CANN
// allows; inside one; or across an end of one.
enum class Place { kElsewhere, kInside, kAcross };

Place place_of(const TensorView& view) {
  const auto extent = extent_of(view);
  if (!extent) return Place::kElsewhere;  // empty
  const auto size = static_cast<int64_t>(aclDataTypeSize(view.dtype));
  const char* first = static_cast<const char*>(view.storage) + extent->first * size;
  const auto bytes = static_cast<size_t>((extent->last - extent->first + 1) * size);
  Block block;
  if (!find_block(first, bytes, &block)) return Place::kElsewhere;
  return block.contains(reinterpret_cast<uintptr_t>(first), bytes) ? Place::kInside
                                                                   : Place::kAcross;
}

// What only stage 2 can check, because addresses may be set after stage 1: that each tensor has
// one, and that the blocks they point into are large enough.
aclnnStatus check_addresses(const char* api, aclOpExecutor& executor) {
  const TensorArguments tensors = executor.tensors();
  executor.in_blocks = 0;
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorView& view = *tensors.begin[i].view;
    if (view.storage == nullptr && element_count(view.shape).value_or(0) > 0) {
      return fail(ACLNN_ERR_PARAM_NULLPTR,
                  "%s: tensor argument %zu has elements but a null address", api, i);
    }
    const Place place = place_of(view);
    if (place == Place::kAcross) {
      return fail(ACLNN_ERR_PARAM_INVALID,
                  "%s: tensor argument %zu (shape %s) reaches outside its block of device memory; "
                  "allocate as much as its sizes, strides and offset need",
                  api, i, shape_text(view.shape).c_str());
    }
    executor.in_blocks |= static_cast<uint64_t>(place == Place::kInside) << i;
  }
  return OK;
}

// Whether the blocks that the tensors lay in when they were launched are still there.
bool blocks_still_there(aclOpExecutor& executor) {
  const TensorArguments tensors = executor.tensors();
  for (size_t i = 0; i < tensors.count; ++i) {
    const bool was_inside = (executor.in_blocks >> i) & 1;
    if (was_inside && place_of(*tensors.begin[i].view) != Place::kInside) return false;
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
  if (!is_executor(executor)) return fail(ACLNN_ERR_INNER, "%s: executor is not one", api);
  // Whatever happens from here on, an executor that is not repeatable is used up.
  std::unique_ptr<aclOpExecutor> owned(executor->repeatable ? nullptr : executor);
  if (std::strcmp(executor->api, api) != 0) {
    return fail(ACLNN_ERR_INNER, "%s: the executor was made by %sGetWorkspaceSize", api,
                executor->api);
  }
  if (workspace_size > 0 && workspace == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: workspace is null, expected %llu bytes", api,
                static_cast<unsigned long long>(workspace_size));
  }
  if (workspace_size < executor->workspace_size) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: workspaceSize is %llu, expected at least %llu", api,
                static_cast<unsigned long long>(workspace_size),
                static_cast<unsigned long long>(executor->workspace_size));
  }
  return guarded(api, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&]() -> aclnnStatus {
    if (const aclnnStatus status = check_addresses(api, *executor)) return status;
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

enum class ArgumentSide { kAny, kInput, kOutput };

// The index-th tensor argument on one side, or null with a message.
TensorView* find_tensor(const char* api, aclOpExecutor& executor, ArgumentSide side, size_t index) {
  const TensorArguments tensors = executor.tensors();
  size_t seen = 0;
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorArgument& argument = tensors.begin[i];
    if (side == ArgumentSide::kInput && !argument.is_input) continue;
    if (side == ArgumentSide::kOutput && !argument.is_output) continue;
    if (seen++ == index) return argument.view;
  }
  fail(ACLNN_ERR_PARAM_INVALID, "%s: index is %zu, but %s has %zu such tensor arguments", api,
       index, executor.api, seen);
  return nullptr;
}

aclnnStatus set_address(const char* api, aclOpExecutor* executor, ArgumentSide side, size_t index,
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

aclError aclOpExecutor::run() noexcept {
  if (in_blocks != 0 && !blocks_still_there(*this)) {
    return fail(ACL_ERROR_RT_COPY_DATA,
                "%s: memory of a tensor was freed before its turn in the stream came", api);
  }
  return compute(workspace);
}

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
  return set_address("aclSetTensorAddr", executor, ArgumentSide::kAny, index, tensor, addr);
}
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return set_address("aclSetInputTensorAddr", executor, ArgumentSide::kInput, index, tensor, addr);
}
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return set_address("aclSetOutputTensorAddr", executor, ArgumentSide::kOutput, index, tensor,
                     addr);
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
