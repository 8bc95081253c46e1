#include "host_cann/descriptors/executor.h"

#include <cstring>
#include <optional>
#include <string>

#include "acl/acl_rt.h"
#include "host_cann/descriptors/overflow.h"
#include "host_cann/descriptors/trace.h"
#include "host_cann/runtime/float_status.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/registration.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host {

#ifndef ACLNN_MUTANTS
aclnnStatus compute_call(aclOpExecutor& executor) {
  return executor.compute(executor.workspace);
}
#endif

namespace {

Region workspace_of(const aclOpExecutor& executor) {
  return {executor.workspace, executor.workspace_size};
}

// The location of a region: outside every block of aclrtMalloc or aclrtMallocHost, inside the
// requested size of one, or across a block's end.
enum class Place { kElsewhere, kInside, kAcross };

Place place_of(const Region& region, Block* block) {
  if (region.size == 0 || !find_block(region.begin, region.size, block)) return Place::kElsewhere;
  return block->grants(region.begin, region.size) ? Place::kInside : Place::kAcross;
}

// The name of an argument in a message: "tensor argument 2 (shape [3, 4])", "the workspace".
std::string tensor_text(size_t index, const TensorView& view) {
  return "tensor argument " + std::to_string(index) + " (shape " + shape_text(view.shape) + ")";
}

std::string workspace_text() {
  return "the workspace";
}

aclnnStatus reaches_outside(const char* api, const std::string& text, const Region& region,
                            const Block& block) {
  const bool is_in_padding = block.contains(reinterpret_cast<uintptr_t>(region.begin), region.size);
  return fail(
      ACLNN_ERR_PARAM_INVALID,
      "%s: %s needs %zu bytes at %p, which reaches outside its block: %zu bytes were "
      "requested from %s, at %p; allocate as many bytes as sizes, strides and offset need%s",
      api, text.c_str(), region.size, region.begin, block.asked, block.allocator(),
      reinterpret_cast<void*>(block.begin),
      is_in_padding ? ", or let tensors use the padding of a block as a device does "
                      "(environment variable ACLNN_TORCH_PADDING=1)"
                    : "");
}

// True if a region lies in the storage that its tensor declared.
bool is_in_storage(const TensorView& view, const Region& region) {
  const auto before = static_cast<const char*>(region.begin) - static_cast<char*>(view.storage);
  const uint64_t declared =
      (static_cast<uint64_t>(view.storage_count) * static_cast<uint64_t>(element_bits(view.dtype)) +
       7) /
      8;
  return before >= 0 && static_cast<uint64_t>(before) + region.size <= declared;
}

// Checks a tensor's address, in stage 2 because it may be set after stage 1: the address is not
// null, and the block that it points into is large enough. A block freed since then is detected by
// the stream, as by a device.
aclnnStatus check_address(const char* api, size_t index, TensorArgument& argument) {
  const TensorView& view = *argument.view;
  argument.block = 0;
  if (view.storage == nullptr && element_count(view.shape).value_or(0) > 0) {
    return fail(ACLNN_ERR_PARAM_NULLPTR,
                "%s: tensor argument %zu has elements but a null address; pass the address of its "
                "memory to aclCreateTensor, or set it with aclSetTensorAddr",
                api, index);
  }
  const Region region = region_of(view);
  if (region.size == 0) return OK;
  Block block;
  const Place place = place_of(region, &block);
  if (place == Place::kInside) argument.block = block.number;
  if (argument.block != view.block && view.is_freed()) {
    argument.block = view.block;
    return OK;
  }
  if (place == Place::kInside) return OK;
  if (place == Place::kAcross || (view.block != 0 && find_block(view.storage, 1, &block))) {
    return reaches_outside(api, tensor_text(index, view), region, block);
  }
  if (is_in_storage(view, region)) return OK;
  return fail(ACLNN_ERR_PARAM_INVALID,
              "%s: %s reaches outside its declared storage of %lld elements, and its new address "
              "%p is not in a block of aclrtMalloc; declare the storage's true size",
              api, tensor_text(index, view).c_str(), static_cast<long long>(view.storage_count),
              view.storage);
}

aclnnStatus check_workspace(const char* api, aclOpExecutor& executor) {
  const Region region = workspace_of(executor);
  Block block;
  const Place place = place_of(region, &block);
  if (place == Place::kAcross) return reaches_outside(api, workspace_text(), region, block);
  executor.workspace_block = place == Place::kInside ? block.number : 0;
  return OK;
}

aclnnStatus check_addresses(const char* api, aclOpExecutor& executor) {
  const TensorArguments tensors = executor.tensors();
  for (size_t i = 0; i < tensors.count; ++i) {
    if (const aclnnStatus status = check_address(api, i, tensors.begin[i])) return status;
  }
  return check_workspace(api, executor);
}

// The checks of a device when it runs the task: memory that was freed since the launch, or already
// before it; memory of another device; and, in strict mode, host memory. A thread without a device
// computes on CPU tensors, which may lie anywhere. `number` is that of the region's block, 0 if it
// was in none.
template <class Text>
aclError check_access(const char* api, const Region& region, uint64_t number, Text text) {
  if (region.size == 0) return ACL_SUCCESS;
  if (number == 0 && !settings().strict && !is_reserved(region.begin)) return ACL_SUCCESS;
  Block block;
  const Place place = place_of(region, &block);
  const bool is_known = place == Place::kInside && (block.number == number || is_replayed());
  if (number != 0 && !is_known) {
    return fail(
        ACL_ERROR_RT_COPY_DATA,
        "%s: the memory of %s was freed before the stream ran the operator; free it after the "
        "stream is synchronised, and set the address anew after memory is allocated again",
        api, text().c_str());
  }
  const bool in_device_block = place == Place::kInside && block.side == Side::kDevice;
  if (!in_device_block && is_reserved(region.begin)) {
    return fail(ACL_ERROR_RT_AICORE_EXCEPTION,
                "%s: %s is at %p, which is in a range of aclrtReserveMemAddress but has no memory; "
                "map memory there with aclrtMapMem first",
                api, text().c_str(), region.begin);
  }
  if (!in_device_block && !settings().strict) return ACL_SUCCESS;
  const int32_t device = current_device();
  if (device < 0) return ACL_SUCCESS;
  if (!in_device_block) {
    if (is_registered(region.begin, region.size)) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_AICORE_EXCEPTION,
                "%s: %s is at %p, which is not device memory, and a device cannot access host "
                "memory; copy it to memory of aclrtMalloc, or register it with aclrtHostRegisterV2 "
                "(strict mode, ACLNN_TORCH_STRICT)",
                api, text().c_str(), region.begin);
  }
  if (block.device == device) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_AICORE_EXCEPTION,
              "%s: %s is in the memory of device %d, but the stream belongs to device %d; copy it "
              "to the stream's device first",
              api, text().c_str(), block.device, device);
}

aclError run_on_device(aclOpExecutor& executor, bool reports) {
  const TensorArguments tensors = executor.tensors();
  MemoryInUse in_use;  // memory in use cannot be freed, so check now
  for (size_t i = 0; i < tensors.count; ++i) {
    const Region region = region_of(*tensors.begin[i].view);
    in_use.add(region.begin, region.size);
  }
  in_use.add(executor.workspace, executor.workspace_size);
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorArgument& tensor = tensors.begin[i];
    const auto text = [&] { return tensor_text(i, *tensor.view); };
    if (const aclError status =
            check_access(executor.api, region_of(*tensor.view), tensor.block, text)) {
      return status;
    }
  }
  if (const aclError status = check_access(executor.api, workspace_of(executor),
                                           executor.workspace_block, workspace_text)) {
    return status;
  }
  // A thread without a device has no float status.
  const bool looks = reports && current_device() >= 0 && may_overflow(executor.api, tensors);
  const aclError status = compute_call(executor);
  if (looks && status == ACL_SUCCESS && has_overflowed(tensors)) note_overflow();
  return status;
}

// Runs a call when its turn comes; `reports` makes it set the float status of the device.
aclError run_call(aclOpExecutor& executor, bool reports) noexcept {
  const int64_t begin = trace_begin();
  const aclError status =
      guarded(executor.api, aclError{ACL_ERROR_INTERNAL_ERROR}, ACL_ERROR_INTERNAL_ERROR,
              [&] { return run_on_device(executor, reports); });
  if (begin != 0) [[unlikely]]
    trace_run(executor.api, begin, status);
  return status;
}

// A call on a stream that reports overflows.
struct ReportingCall final : Task {
  explicit ReportingCall(std::unique_ptr<aclOpExecutor> executor) : executor(std::move(executor)) {}
  aclError run() noexcept override { return run_call(*executor, /*reports=*/true); }
  void describe(std::string& record) override { executor->describe(record); }

  std::unique_ptr<aclOpExecutor> executor;
};

// The failure for a handle without an executor; `spent` is the status for one that had an executor.
aclnnStatus no_executor(const char* api, const aclOpExecutor* handle, aclnnStatus spent) {
  if (!was_executor(handle))
    return fail(ACLNN_ERR_INNER,
                "%s: executor is not a handle that stage 1 returned; pass the one that "
                "GetWorkspaceSize wrote",
                api);
  return fail(spent,
              "%s: executor was consumed by its second stage, or destroyed; run the first stage "
              "again, or make the executor repeatable with aclSetAclOpExecutorRepeatable",
              api);
}

aclnnStatus hand_over(const char* api, void* workspace, uint64_t workspace_size,
                      const aclOpExecutor* handle, aclrtStream stream) noexcept {
  if (handle == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: executor is null; run %sGetWorkspaceSize first", api,
                api);
  }
  // From here on, an executor that is not repeatable is consumed, even on failure.
  std::unique_ptr<aclOpExecutor> owned = use_up(handle);
  const aclOpExecutor* const executor = owned != nullptr ? owned.get() : find_executor(handle);
  if (executor == nullptr) return no_executor(api, handle, ACLNN_ERR_PARAM_NULLPTR);
  if (std::strcmp(executor->api, api) != 0) {
    return fail(ACLNN_ERR_INNER,
                "%s: the executor was made by %sGetWorkspaceSize, for another operator; pass each "
                "executor to the second stage of its own operator",
                api, executor->api);
  }
  if (workspace_size > 0 && workspace == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR,
                "%s: workspace is null, expected %llu bytes; allocate as many as stage 1 returned",
                api, static_cast<unsigned long long>(workspace_size));
  }
  if (workspace_size < executor->workspace_size) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: workspaceSize is %llu, expected at least %llu; allocate as many bytes as "
                "stage 1 returned",
                api, static_cast<unsigned long long>(workspace_size),
                static_cast<unsigned long long>(executor->workspace_size));
  }
  return guarded(api, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&]() -> aclnnStatus {
    // A repeatable executor may receive other addresses while the stream has not run this call yet,
    // so the stream gets a copy.
    if (owned == nullptr) owned = executor->clone();
    owned->workspace = workspace;
    if (const aclnnStatus status = check_addresses(api, *owned)) return status;
    std::unique_ptr<Task> task;
    if (reports_overflow(stream)) [[unlikely]] {
      task = std::make_unique<ReportingCall>(std::move(owned));
    } else {
      task = std::move(owned);
    }
    const aclError status = submit(api, stream, std::move(task), TaskKind::kOperator);
    return status == ACL_SUCCESS ? OK : ACLNN_ERR_RUNTIME_ERROR;
  });
}

}  // namespace

aclnnStatus stage1(const char* api, GivenArguments given, aclnnStatus (*body)(const void* of),
                   const void* of) noexcept {
  const ApiSpan span(api, "GetWorkspaceSize");
  const int64_t begin = trace_begin();
  const char* const gone = find_gone(given);
  aclnnStatus status;
  if (gone != nullptr) [[unlikely]] {
    status =
        fail(ACLNN_ERR_PARAM_INVALID,
             "%s: %s, or an element of it, was destroyed, or is another kind of object; destroy "
             "descriptors after the call",
             api, gone);
  } else {
    try {
      status = body(of);
    } catch (...) {  // no exception crosses the ABI
      constexpr int kFailed = ACLNN_ERR_INNER_CREATE_EXECUTOR;
      status = fail_with_exception({kFailed, kFailed, kFailed}, api);
    }
  }
  if (begin != 0) [[unlikely]] {
    trace_stage1(api, begin, status, gone == nullptr ? given : GivenArguments());
  }
  return status;
}

aclnnStatus launch(const char* api, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream) noexcept {
  const ApiSpan span(api);
  const int64_t begin = trace_begin();
  const aclnnStatus status = hand_over(api, workspace, workspace_size, executor, stream);
  if (begin != 0) [[unlikely]]
    trace_stage2(api, begin, status, workspace_size);
  return status;
}

namespace {

enum class ArgumentSide { kAny, kInput, kOutput };

// The names of one side in messages, and of its functions for tensors and for lists.
struct SideNames {
  const char* argument;
  const char* arguments;
  const char* of_tensors;
  const char* of_lists;
};

SideNames names_of(ArgumentSide side) {
  switch (side) {
    case ArgumentSide::kInput:
      return {"input", "inputs", "aclSetInputTensorAddr", "aclSetDynamicInputTensorAddr"};
    case ArgumentSide::kOutput:
      return {"output", "outputs", "aclSetOutputTensorAddr", "aclSetDynamicOutputTensorAddr"};
    default: return {"argument", "arguments", "aclSetTensorAddr", "aclSetDynamicTensorAddr"};
  }
}

bool is_on(ArgumentSide side, const TensorArgument& argument) {
  return side == ArgumentSide::kAny ||
         (side == ArgumentSide::kInput ? argument.is_input : argument.is_output);
}

// Finds a tensor of the index-th argument on one side: the argument itself, if it is not a list, or
// an element of a list. Returns OK, or a status with a message if there is none.
aclnnStatus find_tensor(const char* api, aclOpExecutor& executor, ArgumentSide side, size_t index,
                        std::optional<size_t> relative, TensorView** found) {
  const TensorArguments tensors = executor.tensors();
  const SideNames names = names_of(side);
  size_t seen = 0;
  for (size_t i = 0; i < tensors.count;) {
    const TensorArgument& argument = tensors.begin[i];
    size_t count = 1;
    while (argument.list != 0 && i + count < tensors.count &&
           tensors.begin[i + count].list == argument.list) {
      ++count;
    }
    if (is_on(side, argument) && seen++ == index) {
      const bool is_list = argument.list != 0;
      if (relative.has_value() != is_list) {
        return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s %zu of %s is a %s, expected a %s; call %s",
                    api, names.argument, index, executor.api, is_list ? "list" : "tensor",
                    is_list ? "tensor" : "list", is_list ? names.of_lists : names.of_tensors);
      }
      if (relative.value_or(0) >= count) {
        return fail(ACLNN_ERR_PARAM_INVALID,
                    "%s: relativeIndex is %zu, expected less than the size of the list that is %s "
                    "%zu of %s, %zu",
                    api, *relative, names.argument, index, executor.api, count);
      }
      *found = tensors.begin[i + relative.value_or(0)].view;
      return OK;
    }
    i += count;
  }
  return fail(ACLNN_ERR_PARAM_INVALID,
              "%s: %s is %zu, expected less than the number of tensor %s of %s, %zu", api,
              relative ? "irIndex" : "index", index, names.arguments, executor.api, seen);
}

aclnnStatus set_address(const char* api, const aclOpExecutor* handle, ArgumentSide side,
                        size_t index, std::optional<size_t> relative, const void* object,
                        void* addr) {
  if (object == nullptr || handle == nullptr) {
    return fail(ACLNN_ERR_INNER_NULLPTR, "%s: %s is null", api,
                handle == nullptr && object ? "executor"
                : relative                  ? "tensors"
                                            : "tensor");
  }
  aclOpExecutor* const executor = find_executor(handle);
  if (executor == nullptr) return no_executor(api, handle, ACLNN_ERR_INNER);
  TensorView* view = nullptr;
  const aclnnStatus status = find_tensor(api, *executor, side, index, relative, &view);
  if (status != OK) return status;
  view->point_at(addr);
  return OK;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclOpExecutor::run() noexcept {
  return run_call(*this, /*reports=*/false);
}

// Its tensors, in the prototype's order: dtype, format as CANN numbers it, and shape of each.
void aclOpExecutor::describe(std::string& record) {
  const TensorArguments all = tensors();
  const auto add = [&](const char* name, bool TensorArgument::* is_wanted) {
    record += name;
    const char* separator = "";
    for (size_t i = 0; i < all.count; ++i) {
      if (!(all.begin[i].*is_wanted)) continue;
      const TensorView& view = *all.begin[i].view;
      record += separator;
      separator = ",";
      record += '[';
      add_text(record, dtype_name(view.dtype));
      record += ',';
      add_number(record, static_cast<int>(view.format));
      record += ',';
      add_list(record, view.shape, view.shape.size(), add_number<int64_t>);
      record += ']';
    }
    record += ']';
  };
  add(R"(,"inputs":[)", &TensorArgument::is_input);
  add(R"(,"outputs":[)", &TensorArgument::is_output);
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  constexpr const char* kApi = "aclSetAclOpExecutorRepeatable";
  if (executor == nullptr) return fail(ACLNN_ERR_INNER_NULLPTR, "%s: executor is null", kApi);
  return make_repeatable(executor) ? OK : no_executor(kApi, executor, ACLNN_ERR_INNER);
}

static aclnnStatus destroy_executor(const char* api, aclOpExecutor* executor) {
  if (executor == nullptr) return fail(ACLNN_ERR_INNER_NULLPTR, "%s: executor is null", api);
  return take_back(executor) != nullptr ? OK : no_executor(api, executor, ACLNN_ERR_INNER);
}
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return destroy_executor("aclDestroyAclOpExecutor", executor);
}
aclnnStatus aclDestroyOpExecutor(aclOpExecutor* executor) {
  return destroy_executor("aclDestroyOpExecutor", executor);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return set_address("aclSetTensorAddr", executor, ArgumentSide::kAny, index, std::nullopt, tensor,
                     addr);
}
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return set_address("aclSetInputTensorAddr", executor, ArgumentSide::kInput, index, std::nullopt,
                     tensor, addr);
}
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return set_address("aclSetOutputTensorAddr", executor, ArgumentSide::kOutput, index, std::nullopt,
                     tensor, addr);
}
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  return set_address("aclSetDynamicTensorAddr", executor, ArgumentSide::kAny, irIndex,
                     relativeIndex, tensors, addr);
}
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return set_address("aclSetDynamicInputTensorAddr", executor, ArgumentSide::kInput, irIndex,
                     relativeIndex, tensors, addr);
}
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return set_address("aclSetDynamicOutputTensorAddr", executor, ArgumentSide::kOutput, irIndex,
                     relativeIndex, tensors, addr);
}

// Older names of the same functions.
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
