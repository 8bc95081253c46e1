#include "cann/rows/engine/without_python.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/SafePyObject.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include "host_cann/arguments/aten_versions.h"

namespace aclnn_host {
namespace {

// torch's own disarmed interpreter refuses with the same word.
constexpr char kRefusal[] = "python_op_registration_trampoline";

[[noreturn]] void refuse() {
  C10_THROW_ERROR(NotImplementedError, kRefusal);
}

// True while the running function has already computed the shapes of its outputs.
thread_local bool knows_shapes = false;

// Leaves the outputs of a function that writes to its last arguments on the stack, as its results.
void return_outputs(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t outputs = op.schema().returns().size();
  const size_t arguments = op.schema().arguments().size();
  torch::jit::Stack results(stack->end() - static_cast<int64_t>(outputs), stack->end());
  torch::jit::drop(*stack, arguments);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

bool writes_to_last_arguments(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  const size_t outputs = op.schema().returns().size();
  return outputs > 0 && outputs <= arguments.size() &&
         std::all_of(arguments.end() - static_cast<int64_t>(outputs), arguments.end(),
                     [](const c10::Argument& argument) { return argument.is_out(); });
}

// An interpreter that replaces functions in Python by those of ATen. torch asks the interpreter of
// the thread's topmost mode to run a function that is overridden in Python.
class NoInterpreter : public InterpreterOfAnyVersion {
  using Impl = c10::TensorImpl;

 public:
  std::string name() const override { return "none"; }
  void incref(PyObject*) const override {}
  void reportErrorCallback(PyObject*, c10::DispatchKey) const override {}

  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey,
                                         c10::DispatchKeySet, torch::jit::Stack* stack, bool,
                                         bool) const override {
    using enum c10::DispatchKey;
    if (op.hasKernelForDispatchKey(CompositeExplicitAutogradNonFunctional)) {
      // Computes the shapes of the results, allocates them, and calls the variant that writes to
      // them.
      const bool before = std::exchange(knows_shapes, true);
      const auto restore = c10::make_scope_exit([before] { knows_shapes = before; });
      op.callBoxedForDispatchKey(CompositeExplicitAutogradNonFunctional, *stack);
    } else if (op.hasKernelForDispatchKey(CompositeExplicitAutograd)) {
      op.callBoxedForDispatchKey(CompositeExplicitAutograd, *stack);
    } else if (knows_shapes && writes_to_last_arguments(op)) {
      return_outputs(op, stack);
    } else {
      refuse();
    }
  }

  // Functions for tensors and keys that belong to Python; none of these exist here.
  c10::intrusive_ptr<Impl> detach(const Impl*) const override { refuse(); }
  void dispatch(const c10::OperatorHandle&, torch::jit::Stack*) const override { refuse(); }
  void python_dispatcher(const c10::OperatorHandle&, c10::DispatchKeySet,
                         torch::jit::Stack*) const override {
    refuse();
  }
  void throw_abstract_impl_not_imported_error(std::string, const char*,
                                              const char*) const override {
    refuse();
  }
  bool is_contiguous(const Impl*, at::MemoryFormat) const override { refuse(); }
  bool is_strides_like(const Impl*, at::MemoryFormat) const override { refuse(); }
  bool is_non_overlapping_and_dense(const Impl*) const override { refuse(); }
  c10::Device device(const Impl*) const override { refuse(); }
  int64_t dim(const Impl*) const override { refuse(); }
  c10::IntArrayRef strides(const Impl*) const override { refuse(); }
  c10::IntArrayRef sizes(const Impl*) const override { refuse(); }
  c10::SymIntArrayRef sym_sizes(const Impl*) const override { refuse(); }
  c10::Layout layout(const Impl*) const override { refuse(); }
  int64_t numel(const Impl*) const override { refuse(); }
  c10::SymInt sym_numel(const Impl*) const override { refuse(); }
  c10::SymIntArrayRef sym_strides(const Impl*) const override { refuse(); }
  c10::SymInt sym_storage_offset(const Impl*) const override { refuse(); }
  void reset_backward_hooks(const Impl*) const override {}

  void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_deletion(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_record(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_event_wait(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_memory_allocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_device_synchronization(c10::DeviceType) const override {}
  void trace_gpu_stream_synchronization(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t) const override {}
};

// If a version of torch has more functions to override, its disarmed interpreter refuses
// everything.
template <class Interpreter>
c10::impl::PyInterpreter* make_interpreter() {
  if constexpr (std::is_abstract_v<Interpreter>) {
    auto* const disarmed = new c10::impl::PyInterpreter(nullptr);
    disarmed->disarm();
    return disarmed;
  } else {
    return new c10::impl::PyInterpreter(new Interpreter);
  }
}

// A mode without an object in Python. It is never destroyed, because threads may refer to it until
// the process ends.
using Mode = c10::impl::PyObject_TorchDispatchMode;
const std::shared_ptr<Mode>& mode() {
  static const auto* const kept =
      new std::shared_ptr<Mode>(std::make_shared<Mode>(nullptr, make_interpreter<NoInterpreter>()));
  return *kept;
}

}  // namespace

WithoutPython::WithoutPython() {
  c10::impl::TorchDispatchModeTLS::set_state({});
  at::impl::PythonTorchFunctionTLS::set_state({});
  c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(mode());
}

WithoutPython::~WithoutPython() {
  c10::impl::TorchDispatchModeTLS::set_state(std::move(dispatch_));
  at::impl::PythonTorchFunctionTLS::set_state(function_);
}

bool needs_python(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr && of_torch->msg().find(kRefusal) != std::string::npos;
}

}  // namespace aclnn_host
