#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "aclnn/aclnn_base.h"
#include "client/error.h"
#include "client/handles.h"
#include "client/library.h"

// Declares the operator type Name from the two prototypes of the included header. Nothing is
// linked: the functions are looked up in the Library of each call.
//
//   #include "aclnnop/aclnn_elu_backward.h"
//   ACLNN_DECLARE(EluBackward);
//   aclnn::call<EluBackward>(library, allocate, stream, grad, alpha, ...);
#define ACLNN_DECLARE(Name)                                                                   \
  struct Name {                                                                               \
    [[maybe_unused]] static constexpr const char* kStage1 = "aclnn" #Name "GetWorkspaceSize"; \
    [[maybe_unused]] static constexpr const char* kStage2 = "aclnn" #Name;                    \
    using Stage1 = decltype(&aclnn##Name##GetWorkspaceSize);                                  \
    using Stage2 = decltype(&aclnn##Name);                                                    \
  }

namespace aclnn {
namespace detail {

// The parameters of stage 1, and how many of them the caller supplies: all but the last two, the
// workspace size and the executor.
template <class Stage1>
struct Prototype;
template <class... P>
struct Prototype<aclnnStatus (*)(P...)> {
  using Parameters = std::tuple<P...>;
  static constexpr std::size_t kCount = sizeof...(P) - 2;
  template <std::size_t kPosition>
  using Parameter = std::tuple_element_t<kPosition, Parameters>;
  static_assert(std::same_as<Parameter<kCount>, uint64_t*> &&
                    std::same_as<Parameter<kCount + 1>, aclOpExecutor**>,
                "stage 1 ends with (uint64_t* workspaceSize, aclOpExecutor** executor)");
};

template <class T>
inline constexpr bool kIsHandle = false;
template <class T>
inline constexpr bool kIsHandle<Handle<T>> = true;

// True if Given is a Handle that owns objects of the type that the pointer parameter points to.
template <class Given, class Parameter>
inline constexpr bool kOwns = false;
template <class T>
inline constexpr bool kOwns<Handle<T>, T*> = true;
template <class T>
inline constexpr bool kOwns<Handle<T>, const T*> = true;

}  // namespace detail

// True if an argument may be passed for a parameter: it has exactly the parameter's type, or is a
// handle that owns it. No conversions: an int64_t would be truncated to int, a bool would pass as a
// pointer.
template <class Given, class Parameter>
concept Argument = std::same_as<std::decay_t<Given>, Parameter> ||
                   detail::kOwns<std::remove_cvref_t<Given>, Parameter>;

namespace detail {

template <class Op, class... Args>
consteval bool matches() {
  using Prototype = Prototype<typename Op::Stage1>;
  if constexpr (sizeof...(Args) != Prototype::kCount) {
    return false;
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (Argument<Args, typename Prototype::template Parameter<I>> && ...);
    }(std::index_sequence_for<Args...>{});
  }
}

}  // namespace detail

// True if an operator can be called with these arguments (without workspaceSize and executor).
template <class Op, class... Args>
concept Callable = detail::matches<Op, Args...>();

// Supplies device memory for one call: void*(uint64_t size), called only for a size above 0. The
// allocator also frees it; on a created stream, only after the stream has finished the call.
template <class T>
concept WorkspaceAllocator = requires(T allocate, uint64_t size) {
  { allocate(size) } -> std::same_as<void*>;
};

namespace detail {

// Fails to compile with the argument's position and both types in the compiler's message.
template <class Op, std::size_t kPosition, class Given, class Expected>
constexpr void require_argument() {
  static_assert(Argument<Given, Expected>,
                "the argument at kPosition (from 1) must have exactly the type Expected of the "
                "aclnn header's parameter, or be a handle that owns it");
}

// Reports the first error of a call that does not satisfy Callable.
template <class Op, class... Args>
constexpr void require_callable() {
  using Prototype = Prototype<typename Op::Stage1>;
  static_assert(sizeof...(Args) == Prototype::kCount,
                "the call must have as many arguments as the aclnn header's prototype, without "
                "workspaceSize and executor");
  if constexpr (sizeof...(Args) == Prototype::kCount) {
    []<std::size_t... I>(std::index_sequence<I...>) {
      (require_argument<Op, I + 1, std::decay_t<Args>, typename Prototype::template Parameter<I>>(),
       ...);
    }(std::index_sequence_for<Args...>{});
  }
  static_assert(Callable<Op, Args...>, "the arguments do not fit the aclnn header's prototype");
}

// Converts an argument to the value that the C function receives.
template <class T>
decltype(auto) pass(T& argument) {
  if constexpr (kIsHandle<std::remove_const_t<T>>) {
    return argument.get();
  } else {
    return argument;
  }
}

// Throws if an object belongs to another library, whose layout this library cannot read.
template <class Op, class T>
void require_library(const Library& library, T& argument) {
  if constexpr (kIsHandle<std::remove_const_t<T>>) {
    if (argument && &argument.library() != &library) {
      throw Error(Op::kStage1, ACLNN_ERR_PARAM_INVALID,
                  "an argument was made by " + argument.library().name() + ", the call goes to " +
                      library.name());
    }
  }
}

// Moves a handle that was passed as a temporary into the result; other arguments are referenced.
template <class T>
auto keep(T&& argument) {
  if constexpr (!std::is_lvalue_reference_v<T> && kIsHandle<std::remove_const_t<T>>) {
    return std::tuple<T>(std::forward<T>(argument));
  } else {
    return std::tuple<>();
  }
}

}  // namespace detail

// A call between its stages. Stage 1 has checked the arguments and made an executor; launch() runs
// it, once. Can be moved to another thread. Destroys the executor if it was never launched. Kept
// holds the handles that were passed to prepare() as temporaries; all other handles must live until
// launch() has returned.
template <class Op, class Kept = std::tuple<>>
class Prepared {
 public:
  Prepared(const Library& library, typename Op::Stage2 stage2, uint64_t workspace_size,
           aclOpExecutor* executor, Kept kept) noexcept
      : library_(&library),
        stage2_(stage2),
        workspace_size_(workspace_size),
        executor_(executor),
        kept_(std::move(kept)) {}
  Prepared(Prepared&& other) noexcept
      : library_(other.library_),
        stage2_(other.stage2_),
        workspace_size_(other.workspace_size_),
        executor_(std::exchange(other.executor_, nullptr)),
        kept_(std::move(other.kept_)) {}
  Prepared& operator=(Prepared other) noexcept {
    std::swap(library_, other.library_);
    std::swap(stage2_, other.stage2_);
    std::swap(workspace_size_, other.workspace_size_);
    std::swap(executor_, other.executor_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~Prepared() {
    if (executor_ != nullptr) discard();
  }

  // Bytes of device memory that launch() needs; with 0 there is nothing to allocate.
  uint64_t workspace_size() const noexcept { return workspace_size_; }

  // Stage 2. Consumes the executor even on failure, so a second launch fails with 161001.
  void launch(void* workspace, aclrtStream stream) {
    aclnnStatus status =
        stage2_(workspace, workspace_size_, std::exchange(executor_, nullptr), stream);
    if (status == ACLNN_SUCCESS && stream == nullptr) status = library_->null_stream_status();
    if (status != ACLNN_SUCCESS) library_->fail(Op::kStage2, status);
  }

 private:
  // Only a repeatable executor may be destroyed by the caller. An executor that cannot be made
  // repeatable is deleted by a stage 2 that fails, here because the workspace is null.
  void discard() noexcept {
    const Meta& meta = library_->meta();
    if (meta.set_executor_repeatable(executor_) == ACLNN_SUCCESS) {
      meta.destroy_executor(executor_);
    } else {
      stage2_(nullptr, std::max<uint64_t>(workspace_size_, 1), executor_, nullptr);
      meta.recent_error();  // drop the messages of these failures
    }
  }

  const Library* library_;
  typename Op::Stage2 stage2_;
  uint64_t workspace_size_;
  aclOpExecutor* executor_;
  [[no_unique_address]] Kept kept_;
};

// Stage 1 alone, for callers that run the stages separately.
template <class Op, class... Args>
auto prepare(const Library& library, Args&&... args) {
  detail::require_callable<Op, Args...>();
  if constexpr (Callable<Op, Args...>) {
    (detail::require_library<Op>(library, args), ...);
    const Symbols<Op> symbols = library.symbols<Op>();
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus status = symbols.stage1(detail::pass(args)..., &workspace_size, &executor);
    if (status != ACLNN_SUCCESS) library.fail(Op::kStage1, status);
    using Kept = decltype(std::tuple_cat(detail::keep(std::forward<Args>(args))...));
    return Prepared<Op, Kept>(library, symbols.stage2, workspace_size, executor,
                              std::tuple_cat(detail::keep(std::forward<Args>(args))...));
  }
}

// The default Span: does nothing. A Span observes one stage, from its construction with the stage's
// name to its destruction.
struct NoSpan {
  explicit NoSpan(const char*) {}
};

// Both stages: checks, asks `allocate` for a workspace if one is needed, runs. A failure of either
// stage throws an Error, exceptions of `allocate` pass through, and nothing leaks. Each stage runs
// inside a Span.
template <class Op, class Span = NoSpan, WorkspaceAllocator Allocate, class... Args>
void call(const Library& library, Allocate&& allocate, aclrtStream stream, Args&&... args) {
  detail::require_callable<Op, Args...>();
  if constexpr (Callable<Op, Args...>) {
    // Passed as lvalues: temporaries live until the end of the call anyway, so no handle is moved.
    auto prepared = [&] {
      [[maybe_unused]] const Span span(Op::kStage1);
      return prepare<Op>(library, args...);
    }();
    const uint64_t size = prepared.workspace_size();
    [[maybe_unused]] const Span span(Op::kStage2);
    prepared.launch(size > 0 ? allocate(size) : nullptr, stream);
  }
}

}  // namespace aclnn
