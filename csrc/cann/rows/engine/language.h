#pragma once

#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "cann/rows/engine/element_types.h"
#include "cann/rows/engine/kinds.h"
#include "cann/rows/engine/preparation.h"
#include "cann/rows/engine/refusal.h"
#include "host_cann/descriptors/aclnn_guard.h"

// The language of the rows: operators that ATen computes. A row declares an operator with CANN's
// published prototype, and defines its computation:
//
//   ACLNN(Add, (In, self), (In, other), (Number, alpha), (Out, out)) {
//     out = at::add(self, other, alpha);
//   }
//
// declares aclnnAddGetWorkspaceSize and aclnnAdd. engine/kinds.h defines the kinds of arguments;
// any other kind is a C type (int64_t, bool, const char*, ...). Stage 1 copies the arguments and
// runs the row on tensors without memory, so that ATen checks the shapes, and once for each
// combination of dtypes on scratch memory, which shows whether ATen has kernels for them (a
// rehearsal). If ATen refuses, stage 1 returns 161002. Stage 2 runs the row on the caller's memory.

namespace aclnn_host {

// Calls a row that has arguments of these kinds with the values of a frame.
template <class... Kinds>
struct Row {
  using Function = void (*)(typename Kinds::Value...);

  static void call(Function row, const Frame& frame) {
    call(row, frame, std::index_sequence_for<Kinds...>());
  }
  // Calls a row that is a struct of its arguments.
  template <class Struct>
  static void run(const Frame& frame) {
    run<Struct>(frame, std::index_sequence_for<Kinds...>());
  }

 private:
  template <size_t... I>
  static void call(Function row, const Frame& frame, std::index_sequence<I...>) {
    row(Kinds::get(frame, I)...);
  }
  template <class Struct, size_t... I>
  static void run(const Frame& frame, std::index_sequence<I...>) {
    Struct{Kinds::get(frame, I)...}.run();
  }
};

}  // namespace aclnn_host

#define ACLNN_PARENTHESES ()
// Expands a recursive macro, for at most 83 arguments.
#define ACLNN_EXPAND(...)                                  \
  ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2( \
      ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(__VA_ARGS__)))))))))
#define ACLNN_EXPAND2(...)                   \
  ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1( \
      ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1(__VA_ARGS__))))))))
#define ACLNN_EXPAND1(...) __VA_ARGS__
#define ACLNN_EACH(macro, separator, first, ...) \
  macro first __VA_OPT__(                        \
      ACLNN_BARE separator ACLNN_EACH_AGAIN ACLNN_PARENTHESES(macro, separator, __VA_ARGS__))
#define ACLNN_EACH_AGAIN() ACLNN_EACH
#define ACLNN_BARE(...) __VA_ARGS__
// Applies `macro` to each parenthesised pair, with commas between; ACLNN_EACH takes the separator.
#define ACLNN_FOR_EACH(macro, ...) ACLNN_EXPAND(ACLNN_EACH(macro, (, ), __VA_ARGS__))

// Each takes a kind and a name, with a third operand for some kinds: the reason of Unused and
// Refused, the name of another argument for SameDtype, SameShape and Like.
#define ACLNN_KIND(kind, name, ...) ::aclnn_host::Kind<kind>
#define ACLNN_PARAMETER(kind, name, ...) typename ::aclnn_host::Kind<kind>::C name
#define ACLNN_VALUE(kind, name, ...) \
  __VA_OPT__([[maybe_unused]]) typename ::aclnn_host::Kind<kind>::Value name
#define ACLNN_GIVEN(kind, name, ...) {#name, name}
#define ACLNN_ADD(kind, name, ...) \
  ::aclnn_host::Kind<kind>::add(stage, #name, name __VA_OPT__(, ) __VA_ARGS__)

// The section aclnn_rows of the library holds the signature of every row, for programs that list
// them: "aclnnAdd (In, self), (In, other), (Number, alpha), (Out, out)".
#define ACLNN(Name, ...) ACL_FUNCTION(aclnn##Name, __VA_ARGS__)
#define ACL_FUNCTION(api, ...)                                     \
  static void row_##api(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__)); \
  ACL_STAGES(api, call(row_##api, frame), __VA_ARGS__)             \
  static void row_##api(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__))
// Defines both functions of a row, and its signature. `call` is the expression by which Row calls
// it.
#define ACL_STAGES(api, call, ...)                                                              \
  [[gnu::section("aclnn_rows"), gnu::used]] static const char signature_##api[] =               \
      #api " " #__VA_ARGS__;                                                                    \
  extern "C" ACL_FUNC_VISIBILITY aclnnStatus api##GetWorkspaceSize(                             \
      ACLNN_FOR_EACH(ACLNN_PARAMETER, __VA_ARGS__), uint64_t* workspaceSize,                    \
      aclOpExecutor** executor) {                                                               \
    const ::aclnn_host::Given given[] = {ACLNN_FOR_EACH(ACLNN_GIVEN, __VA_ARGS__)};             \
    return ::aclnn_host::stage1(#api, given, [&] {                                              \
      ::aclnn_host::Preparation stage(#api, workspaceSize, executor);                           \
      ACLNN_FOR_EACH(ACLNN_ADD, __VA_ARGS__);                                                   \
      return stage.finish([](const ::aclnn_host::Frame& frame) {                                \
        ::aclnn_host::Row<ACLNN_FOR_EACH(ACLNN_KIND, __VA_ARGS__)>::call;                       \
      });                                                                                       \
    });                                                                                         \
  }                                                                                             \
  extern "C" ACL_FUNC_VISIBILITY aclnnStatus api(void* workspace, uint64_t workspaceSize,       \
                                                 aclOpExecutor* executor, aclrtStream stream) { \
    return ::aclnn_host::launch(#api, workspace, workspaceSize, executor, stream);              \
  }

// A row whose body is a member function of a struct of all arguments, `*this`, so that a function
// template serves all versions of an operator:
//
//   template <class Version>
//   void multiply(Version& row) {
//     at::Tensor product = at::mm(row.x, row.weight);
//     if constexpr (requires { row.bias; }) product += row.bias;  // not in version 1
//     row.out = product;
//   }
//
//   ACLNN_STRUCT(Multiply, (In, x), (In, weight), (Out, out)) {
//     multiply(*this);
//   }
//   ACLNN_STRUCT(MultiplyV2, (In, x), (In, weight), (In, bias), (Out, out)) {
//     multiply(*this);
//   }
//
// The compiler does not see that an argument is never read; tests/test_row_files.py does.
#define ACLNN_STRUCT(Name, ...)                               \
  namespace {                                                 \
  struct Name##Row {                                          \
    ACLNN_EXPAND(ACLNN_EACH(ACLNN_VALUE, (;), __VA_ARGS__));  \
    void run();                                               \
  };                                                          \
  }                                                           \
  ACL_STAGES(aclnn##Name, run<Name##Row>(frame), __VA_ARGS__) \
  void Name##Row::run()

// Defines the function that returns the largest workspace of calls with arguments of these sizes,
// for programs that allocate it in advance. The workspace of a row is always empty.
#define ACLNN_MAX_WORKSPACE(Name)                                        \
  extern "C" ACL_FUNC_VISIBILITY decltype(aclnn##Name##GetWorkspaceSize) \
      aclnn##Name##GetMaxWorkspaceSize __attribute__((alias("aclnn" #Name "GetWorkspaceSize")))

// Rows of the most common shapes; `call` is a function of ATen. In a binary row the other tensor or
// number is the right operand.
#define ACLNN_UNARY_OF(Kind, Name, call)  \
  ACLNN(Name, (Kind, self), (Out, out)) { \
    out = call(self);                     \
  }
#define ACLNN_INPLACE_UNARY_OF(Kind, Name, call) \
  ACLNN(Inplace##Name, (Kind, selfRef)) {        \
    selfRef = call(selfRef);                     \
  }
#define ACLNN_BINARY_OF(Kind, Other, Name, call)          \
  ACLNN(Name, (Kind, self), (Other, other), (Out, out)) { \
    out = call(self, other);                              \
  }
#define ACLNN_INPLACE_BINARY_OF(Kind, Other, Name, call)  \
  ACLNN(Inplace##Name, (Kind, selfRef), (Other, other)) { \
    selfRef = call(selfRef, other);                       \
  }

#define ACLNN_UNARY(Name, call) ACLNN_UNARY_OF(In, Name, call)
#define ACLNN_INPLACE_UNARY(Name, call) ACLNN_INPLACE_UNARY_OF(InOut, Name, call)
#define ACLNN_BINARY(Name, call) ACLNN_BINARY_OF(In, In, Name, call)
#define ACLNN_BINARY_NUMBER(Name, call) ACLNN_BINARY_OF(In, Number, Name, call)
#define ACLNN_INPLACE_BINARY(Name, call) ACLNN_INPLACE_BINARY_OF(InOut, In, Name, call)
#define ACLNN_INPLACE_BINARY_NUMBER(Name, call) ACLNN_INPLACE_BINARY_OF(InOut, Number, Name, call)
