// The client against a fake library that counts its objects: the types that a call accepts, the
// arguments that reach the C functions, and leaks on any failure.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aclnnop/aclnn_elu_backward.h"
#include "check.h"
#include "client/call.h"

extern "C" {
aclnnStatus aclnnMixedGetWorkspaceSize(const aclTensor* self, int64_t count, int groups, double p,
                                       float epsilon, bool flag, int8_t mode, char* reduction,
                                       const aclIntArray* dims, aclTensor* out,
                                       uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMixed(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                       aclrtStream stream);
aclnnStatus aclnnAbsentGetWorkspaceSize(uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnAbsent(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                        aclrtStream stream);
}

namespace {

ACLNN_DECLARE(EluBackward);
ACLNN_DECLARE(Mixed);
ACLNN_DECLARE(Absent);

using namespace aclnn;

// ---- Types: a call compiles only with the header's own types -----------------------------------

template <class Alpha, class Flag, class... Rest>
constexpr bool kElu =
    Callable<EluBackward, TensorHandle&, Alpha, ScalarHandle&, ScalarHandle&, Flag, Rest...>;

static_assert(kElu<ScalarHandle&, bool, const TensorHandle&, TensorHandle>);
static_assert(kElu<const aclScalar*, const bool&, const aclTensor*, aclTensor*>);
static_assert(!kElu<ScalarHandle&, int, TensorHandle&, TensorHandle&>, "int for bool");
static_assert(!kElu<ScalarHandle&, const char*, TensorHandle&, TensorHandle&>, "pointer for bool");
static_assert(!kElu<bool, ScalarHandle&, TensorHandle&, TensorHandle&>, "swapped kinds");
static_assert(!kElu<TensorHandle&, bool, TensorHandle&, TensorHandle&>, "tensor for scalar");
static_assert(!kElu<double, bool, TensorHandle&, TensorHandle&>, "number for scalar");
static_assert(!kElu<std::nullptr_t, bool, TensorHandle&, TensorHandle&>, "nullptr for scalar");
static_assert(!kElu<void*, bool, TensorHandle&, TensorHandle&>, "void* for scalar");
static_assert(!kElu<ScalarHandle*, bool, TensorHandle&, TensorHandle&>, "pointer to a handle");
static_assert(!kElu<ScalarHandle&, bool, TensorHandle&, const aclTensor*>, "const for an output");
static_assert(!kElu<ScalarHandle&, bool, TensorHandle&>, "missing argument");
static_assert(!kElu<ScalarHandle&, bool, TensorHandle&, TensorHandle&, bool>, "extra argument");
static_assert(!kElu<ScalarHandle&, bool, TensorHandle&, TensorHandle&, uint64_t*, aclOpExecutor**>,
              "the client supplies workspaceSize and executor");

template <class Count, class Groups, class P, class Epsilon, class Mode, class Reduction>
constexpr bool kMixed = Callable<Mixed, TensorHandle&, Count, Groups, P, Epsilon, bool, Mode,
                                 Reduction, IntArrayHandle&, TensorHandle&>;

static_assert(kMixed<int64_t, int, double, float, int8_t, char*>);
static_assert(kMixed<const int64_t&, int&, double, float, int8_t, char (&)[5]>);
static_assert(!kMixed<int, int, double, float, int8_t, char*>, "int for int64_t");
static_assert(!kMixed<uint64_t, int, double, float, int8_t, char*>, "uint64_t for int64_t");
static_assert(!kMixed<int64_t, int64_t, double, float, int8_t, char*>, "int64_t for int");
static_assert(!kMixed<int64_t, int, float, float, int8_t, char*>, "float for double");
static_assert(!kMixed<int64_t, int, double, double, int8_t, char*>, "double for float");
static_assert(!kMixed<int64_t, int, double, float, int, char*>, "int for int8_t");
static_assert(!kMixed<int64_t, int, double, float, char, char*>, "char for int8_t");
static_assert(!kMixed<int64_t, int, double, float, int8_t, const char*>, "const char* for char*");
static_assert(!kMixed<int64_t, int, double, float, int8_t, const char (&)[5]>, "a literal");
static_assert(!kMixed<int64_t, int, double, float, int8_t, std::string>, "string for char*");

static_assert(!std::is_copy_constructible_v<TensorHandle> &&
              std::is_nothrow_move_constructible_v<TensorHandle> &&
              std::is_nothrow_move_assignable_v<TensorHandle>);
static_assert(!std::is_copy_constructible_v<Prepared<Mixed>> &&
              std::is_nothrow_move_constructible_v<Prepared<Mixed>>);

// ---- The fake library ---------------------------------------------------------------------------

// The counters and the behaviour of the fake.
struct Fake {
  std::atomic<int64_t> objects{0};  // live descriptors
  std::atomic<int64_t> executors{0};
  std::atomic<int64_t> stage2_calls{0};
  std::atomic<int64_t> refusals{0};  // calls of stage 2 with a size but no workspace
  aclnnStatus status1 = 0;
  aclnnStatus status2 = 0;
  aclnnStatus null_stream_status = 0;
  uint64_t workspace_size = 0;
  bool creates = true;
  bool repeatable = true;

  // The arguments of the last stage 1 and stage 2.
  struct Seen {
    const aclTensor* self;
    int64_t count;
    int groups;
    double p;
    float epsilon;
    bool flag;
    int8_t mode;
    char* reduction;
    const aclIntArray* dims;
    aclTensor* out;
    void* workspace;
    uint64_t size;
    aclrtStream stream;
  } seen{};
  bool record = true;  // off if many threads call
};
std::unique_ptr<Fake> fake;
thread_local std::string error_text;
thread_local std::string returned_error_text;

// A descriptor or executor of the fake. A list owns elements; an executor can be made repeatable.
struct Object {
  std::vector<Object*> elements;
  bool repeatable = false;
};

template <class T>
T* create(std::vector<Object*> elements = {}) {
  if (!fake->creates) {
    error_text = "the fake creates nothing";
    return nullptr;
  }
  ++fake->objects;
  return reinterpret_cast<T*>(new Object{std::move(elements)});
}

template <class T>
aclnnStatus destroy(const T* opaque) {
  if (opaque == nullptr) return 0;
  auto* object = reinterpret_cast<Object*>(const_cast<T*>(opaque));
  for (Object* element : object->elements) destroy(element);
  delete object;
  --fake->objects;
  return 0;
}

void end_executor(aclOpExecutor* executor) {
  delete reinterpret_cast<Object*>(executor);
  --fake->executors;
}

template <class List, class T>
List* create_list(const T* const* values, uint64_t size) {
  std::vector<Object*> elements;
  for (uint64_t i = 0; i < size; ++i) {
    elements.push_back(reinterpret_cast<Object*>(const_cast<T*>(values[i])));
  }
  return create<List>(std::move(elements));
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The fake's symbols. Each entry is typed by the header's prototype.
using Symbols = std::map<std::string, void*>;

Symbols descriptor_symbols() {
  const decltype(&aclCreateTensor) create_tensor =
      [](const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t, aclFormat, const int64_t*,
         uint64_t, void*) { return create<aclTensor>(); };
  const decltype(&aclCreateScalar) create_scalar = [](void*, aclDataType) {
    return create<aclScalar>();
  };
  const decltype(&aclCreateIntArray) create_int_array = [](const int64_t*, uint64_t) {
    return create<aclIntArray>();
  };
  const decltype(&aclCreateFloatArray) create_float_array = [](const float*, uint64_t) {
    return create<aclFloatArray>();
  };
  const decltype(&aclCreateBoolArray) create_bool_array = [](const bool*, uint64_t) {
    return create<aclBoolArray>();
  };
  return {
      {"aclCreateTensor", address(create_tensor)},
      {"aclCreateScalar", address(create_scalar)},
      {"aclCreateIntArray", address(create_int_array)},
      {"aclCreateFloatArray", address(create_float_array)},
      {"aclCreateBoolArray", address(create_bool_array)},
      {"aclCreateTensorList", address(&create_list<aclTensorList, aclTensor>)},
      {"aclCreateScalarList", address(&create_list<aclScalarList, aclScalar>)},
      {"aclDestroyTensor", address(&destroy<aclTensor>)},
      {"aclDestroyScalar", address(&destroy<aclScalar>)},
      {"aclDestroyIntArray", address(&destroy<aclIntArray>)},
      {"aclDestroyFloatArray", address(&destroy<aclFloatArray>)},
      {"aclDestroyBoolArray", address(&destroy<aclBoolArray>)},
      {"aclDestroyTensorList", address(&destroy<aclTensorList>)},
      {"aclDestroyScalarList", address(&destroy<aclScalarList>)},
  };
}

Symbols call_symbols() {
  const decltype(&aclSetAclOpExecutorRepeatable) set_repeatable = [](aclOpExecutor* executor) {
    if (!fake->repeatable) {
      error_text = "cannot be made repeatable";
      return 561000;
    }
    reinterpret_cast<Object*>(executor)->repeatable = true;
    return 0;
  };
  const decltype(&aclDestroyAclOpExecutor) destroy_executor = [](aclOpExecutor* executor) {
    CHECK(reinterpret_cast<Object*>(executor)->repeatable);
    end_executor(executor);
    return 0;
  };
  const decltype(&aclGetRecentErrMsg) recent_error = []() -> const char* {
    returned_error_text = std::exchange(error_text, "");
    return returned_error_text.empty() ? nullptr : returned_error_text.c_str();
  };
  const decltype(&aclrtSynchronizeStream) synchronize = [](aclrtStream stream) {
    CHECK(stream == nullptr);
    if (fake->null_stream_status != 0) error_text = "label 7 is outside [0, 5)";
    return fake->null_stream_status;
  };
  return {
      {"aclSetAclOpExecutorRepeatable", address(set_repeatable)},
      {"aclDestroyAclOpExecutor", address(destroy_executor)},
      {"aclGetRecentErrMsg", address(recent_error)},
      {"aclrtSynchronizeStream", address(synchronize)},
      {"aclnnMixedGetWorkspaceSize", address(&aclnnMixedGetWorkspaceSize)},
      {"aclnnMixed", address(&aclnnMixed)},
  };
}

Symbols symbols(bool host) {
  Symbols table = descriptor_symbols();
  table.merge(call_symbols());
  // Only its presence matters.
  if (host) table["aclHostGetProduct"] = table["aclGetRecentErrMsg"];
  return table;
}

// A library over the fake; `lookups` counts the look-ups of each symbol.
struct FakeLibrary {
  explicit FakeLibrary(bool host = false, std::string name = "fake")
      : library(name, [this, table = symbols(host)](const char* symbol) -> void* {
          ++lookups;
          const auto entry = table.find(symbol);
          return entry == table.end() ? nullptr : entry->second;
        }) {}

  std::atomic<int> lookups{0};
  Library library;
};

// A fake with its counters at zero. The destructor checks that every object has been destroyed.
struct Scope {
  Scope() { fake = std::make_unique<Fake>(); }
  ~Scope() {
    CHECK_EQ(fake->objects.load(), 0);
    CHECK_EQ(fake->executors.load(), 0);
  }
};

TensorHandle tensor(const Library& library) {
  static const int64_t dims[] = {2, 3};
  return make_tensor(library, dims, ACL_FLOAT, {}, 0, ACL_FORMAT_ND, dims, nullptr);
}

// The arguments of one operator, so that a test changes only those that it is about.
struct Arguments {
  explicit Arguments(const Library& library) : self(tensor(library)), out(tensor(library)) {}

  template <class Allocate>
  void call(const Library& library, Allocate allocate, aclrtStream stream) {
    aclnn::call<Mixed>(library, allocate, stream, self, int64_t{1} << 40, 3, 0.1, 0.5f, true,
                       int8_t{-1}, reduction, dims, out);
  }
  auto prepare(const Library& library) {
    return aclnn::prepare<Mixed>(library, self, int64_t{1} << 40, 3, 0.1, 0.5f, true, int8_t{-1},
                                 reduction, dims, out);
  }

  TensorHandle self;
  TensorHandle out;
  IntArrayHandle dims;  // absent
  char reduction[5] = "mean";
};

void* no_workspace(uint64_t) {
  CHECK(!"a workspace of 0 bytes was asked for");
  return nullptr;
}

// Runs the body and returns the Error it must throw.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  CHECK(!"an Error was expected");
  return Error("none", 0, "");
}

}  // namespace

extern "C" aclnnStatus aclnnMixedGetWorkspaceSize(const aclTensor* self, int64_t count, int groups,
                                                  double p, float epsilon, bool flag, int8_t mode,
                                                  char* reduction, const aclIntArray* dims,
                                                  aclTensor* out, uint64_t* workspaceSize,
                                                  aclOpExecutor** executor) {
  if (fake->record) {
    fake->seen = {self,      count, groups, p,       epsilon, flag,   mode,
                  reduction, dims,  out,    nullptr, 0,       nullptr};
  }
  if (fake->status1 != 0) {
    // A failed stage 1 may have written the executor; it must not be used.
    *executor = reinterpret_cast<aclOpExecutor*>(uintptr_t{16});
    error_text = "out: expected dtype FLOAT";
    return fake->status1;
  }
  *workspaceSize = fake->workspace_size;
  *executor = reinterpret_cast<aclOpExecutor*>(new Object);
  ++fake->executors;
  return 0;
}

extern "C" aclnnStatus aclnnMixed(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream) {
  if (executor == nullptr) return 161001;
  end_executor(executor);
  if (workspaceSize > 0 && workspace == nullptr) {
    ++fake->refusals;
    error_text = "workspace is null";
    return 161001;
  }
  ++fake->stage2_calls;
  if (fake->record) {
    fake->seen.workspace = workspace;
    fake->seen.size = workspaceSize;
    fake->seen.stream = stream;
  }
  if (fake->status2 != 0) error_text = "launch failed";
  return fake->status2;
}

// ---- Look-ups: run first, while the program has few libraries, which are remembered -----------

TEST(symbols_are_looked_up_once) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  arguments.call(fakes.library, no_workspace, nullptr);
  const int lookups = fakes.lookups;
  for (int i = 0; i < 10; ++i) arguments.call(fakes.library, no_workspace, nullptr);
  CHECK_EQ(fakes.lookups.load(), lookups);
}

TEST(first_calls_may_come_from_many_threads) {
  Scope scope;
  FakeLibrary fakes;
  fake->record = false;
  std::vector<std::thread> threads;
  std::atomic<bool> start{false};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Arguments arguments(fakes.library);
      while (!start) std::this_thread::yield();
      arguments.call(fakes.library, no_workspace, nullptr);
    });
  }
  start = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(fake->stage2_calls.load(), 8);
}

// ---- The call -----------------------------------------------------------------------------------

TEST(every_argument_arrives_unchanged) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  int stream = 0;
  arguments.call(fakes.library, no_workspace, &stream);
  const Fake::Seen& seen = fake->seen;
  CHECK(seen.self == arguments.self.get());
  CHECK_EQ(seen.count, int64_t{1} << 40);
  CHECK_EQ(seen.groups, 3);
  CHECK_EQ(seen.p, 0.1);
  CHECK_EQ(seen.epsilon, 0.5f);
  CHECK_EQ(seen.flag, true);
  CHECK_EQ(static_cast<int>(seen.mode), -1);
  CHECK(seen.reduction == arguments.reduction);
  CHECK(seen.dims == nullptr);
  CHECK(seen.out == arguments.out.get());
  CHECK(seen.workspace == nullptr);
  CHECK_EQ(seen.size, uint64_t{0});
  CHECK(seen.stream == &stream);
  CHECK_EQ(fake->stage2_calls.load(), 1);
}

TEST(workspace_is_asked_for_once_with_its_size) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->workspace_size = 4096;
  int asked = 0;
  char memory = 0;
  arguments.call(
      fakes.library,
      [&](uint64_t size) -> void* {
        ++asked;
        CHECK_EQ(size, uint64_t{4096});
        return &memory;
      },
      nullptr);
  CHECK_EQ(asked, 1);
  CHECK(fake->seen.workspace == &memory);
  CHECK_EQ(fake->seen.size, uint64_t{4096});
}

TEST(temporary_handles_live_through_the_call) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  fake->workspace_size = 1;
  char reduction[] = "sum";
  char memory = 0;
  call<Mixed>(
      library,
      [&](uint64_t) -> void* {
        CHECK_EQ(fake->objects.load(), 3);
        return &memory;
      },
      nullptr, tensor(library), int64_t{1}, 1, 1.0, 1.0f, false, int8_t{0}, reduction,
      make_int_array(library, std::vector<int64_t>{1, 2}), tensor(library));
  CHECK_EQ(fake->objects.load(), 0);
}

TEST(failing_stage_1_throws_with_all_there_is_to_know) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->status1 = 161002;
  const Error error = error_of([&] { arguments.call(fakes.library, no_workspace, nullptr); });
  CHECK_EQ(error.api(), "aclnnMixedGetWorkspaceSize");
  CHECK_EQ(error.status(), 161002);
  CHECK_EQ(std::string(error.status_name()), "ACLNN_ERR_PARAM_INVALID");
  CHECK_EQ(std::string(error.what()),
           "aclnnMixedGetWorkspaceSize failed with status 161002 (ACLNN_ERR_PARAM_INVALID): "
           "out: expected dtype FLOAT");
  CHECK_EQ(fake->stage2_calls.load(), 0);
}

TEST(throwing_allocator_destroys_the_executor) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->workspace_size = 64;
  bool caught = false;
  try {
    arguments.call(fakes.library, [](uint64_t) -> void* { throw std::bad_alloc(); }, nullptr);
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  CHECK(caught);
  CHECK_EQ(fake->executors.load(), 0);
  CHECK_EQ(fake->stage2_calls.load(), 0);
}

TEST(executor_that_cannot_be_repeatable_ends_in_a_refused_stage_2) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->repeatable = false;
  for (const uint64_t size : {0, 64}) {
    fake->workspace_size = size;
    {
      auto prepared = arguments.prepare(fakes.library);
    }
    CHECK_EQ(fake->executors.load(), 0);
  }
  CHECK_EQ(fake->refusals.load(), 2);
  CHECK_EQ(fake->stage2_calls.load(), 0);
  CHECK_EQ(error_text, "");
}

TEST(failing_stage_2_throws_and_leaves_the_executor_alone) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->status2 = 361001;
  int stream = 0;
  const Error error = error_of([&] { arguments.call(fakes.library, no_workspace, &stream); });
  CHECK_EQ(std::string(error.what()),
           "aclnnMixed failed with status 361001 (ACLNN_ERR_RUNTIME_ERROR): launch failed");
  CHECK_EQ(fake->executors.load(), 0);  // negative if it had been destroyed twice
  CHECK_EQ(fake->stage2_calls.load(), 1);
}

TEST(missing_workspace_is_the_librarys_error) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->workspace_size = 64;
  const auto nothing = [](uint64_t) -> void* { return nullptr; };
  const Error error = error_of([&] { arguments.call(fakes.library, nothing, nullptr); });
  CHECK_EQ(error.status(), 161001);
}

TEST(null_stream_of_the_host_reports_at_once) {
  Scope scope;
  FakeLibrary host(true);
  FakeLibrary device(false);
  fake->null_stream_status = 507015;
  Arguments on_host(host.library);
  const Error error = error_of([&] { on_host.call(host.library, no_workspace, nullptr); });
  CHECK_EQ(error.api(), "aclnnMixed");
  CHECK_EQ(error.status(), 507015);
  CHECK(std::strstr(error.what(), "label 7 is outside [0, 5)") != nullptr);
  int stream = 0;
  on_host.call(host.library, no_workspace, &stream);  // a created stream reports when it is
                                                      // synchronised
  Arguments on_device(device.library);
  on_device.call(device.library, no_workspace, nullptr);
}

TEST(objects_of_another_library_are_refused) {
  Scope scope;
  FakeLibrary first(false, "first");
  FakeLibrary second(false, "second");
  Arguments arguments(first.library);
  const Error error = error_of([&] { arguments.call(second.library, no_workspace, nullptr); });
  CHECK_EQ(error.status(), 161002);
  CHECK(std::strstr(error.what(), "made by first, the call goes to second") != nullptr);
  CHECK_EQ(fake->executors.load(), 0);
}

// ---- Separate stages ---------------------------------------------------------------------------

TEST(prepared_runs_once) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  fake->workspace_size = 32;
  Prepared<Mixed> prepared = arguments.prepare(fakes.library);
  CHECK_EQ(prepared.workspace_size(), uint64_t{32});
  CHECK_EQ(fake->stage2_calls.load(), 0);
  char memory = 0;
  prepared.launch(&memory, nullptr);
  CHECK_EQ(fake->stage2_calls.load(), 1);
  CHECK_EQ(error_of([&] { prepared.launch(&memory, nullptr); }).status(), 161001);
  CHECK_EQ(fake->stage2_calls.load(), 1);
}

TEST(prepared_moves_and_ends_once) {
  Scope scope;
  FakeLibrary fakes;
  Arguments arguments(fakes.library);
  auto first = arguments.prepare(fakes.library);
  auto second = std::move(first);
  CHECK_EQ(fake->executors.load(), 1);
  second = arguments.prepare(fakes.library);
  CHECK_EQ(fake->executors.load(), 1);
  second.launch(nullptr, nullptr);
  CHECK_EQ(fake->executors.load(), 0);
}

TEST(prepared_keeps_temporaries_and_leaves_the_rest) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  char reduction[] = "sum";
  const TensorHandle self = tensor(library);
  {
    auto prepared =
        prepare<Mixed>(library, self, int64_t{1}, 1, 1.0, 1.0f, false, int8_t{0}, reduction,
                       make_int_array(library, std::vector<int64_t>{4}), tensor(library));
    CHECK_EQ(fake->objects.load(), 3);
    auto moved = std::move(prepared);
    moved.launch(nullptr, nullptr);
    CHECK_EQ(fake->objects.load(), 3);
  }
  CHECK_EQ(fake->objects.load(), 1);
  CHECK(static_cast<bool>(self));
}

TEST(prepared_calls_cross_threads_by_the_thousand) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  fake->record = false;
  fake->workspace_size = 8;
  char reduction[] = "sum";
  constexpr int kCalls = 4000;
  constexpr int kThreads = 4;
  const auto make = [&] {
    return std::make_optional(prepare<Mixed>(library, tensor(library), int64_t{1}, 1, 1.0, 1.0f,
                                             false, int8_t{0}, reduction, IntArrayHandle(),
                                             tensor(library)));
  };
  std::vector<decltype(make())> calls(kCalls);
  const auto on_all_threads = [&](auto body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t; i < kCalls; i += kThreads) body(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  on_all_threads([&](int i) { calls[i] = make(); });
  CHECK_EQ(fake->executors.load(), kCalls);
  // Each call ends on another thread than it began on: launched or dropped.
  on_all_threads([&](int i) {
    auto& call = calls[(i + 1) % kCalls];
    char memory = 0;
    if (i % 2 == 0) call->launch(&memory, nullptr);
    call.reset();
  });
  CHECK_EQ(fake->stage2_calls.load(), kCalls / 2);
  CHECK_EQ(fake->executors.load(), 0);
  CHECK_EQ(fake->objects.load(), 0);
}

// ---- Handles ------------------------------------------------------------------------------------

TEST(handles_own_one_object) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  TensorHandle first = tensor(library);
  CHECK_EQ(fake->objects.load(), 1);
  TensorHandle second = std::move(first);
  CHECK(!first);
  CHECK(second);
  CHECK_EQ(fake->objects.load(), 1);
  second = tensor(library);
  CHECK_EQ(fake->objects.load(), 1);
  second = TensorHandle();
  CHECK_EQ(fake->objects.load(), 0);
  TensorHandle third = tensor(library);
  const aclTensor* object = third.release();
  CHECK(!third);
  CHECK_EQ(fake->objects.load(), 1);
  library.meta().destroy_tensor(object);
}

TEST(lists_take_their_elements_over) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  std::vector<TensorHandle> tensors;
  tensors.push_back(tensor(library));
  tensors.push_back(tensor(library));
  std::vector<ScalarHandle> scalars;
  scalars.push_back(make_scalar(library, 1.0f));
  {
    const TensorListHandle list = make_tensor_list(library, std::move(tensors));
    const ScalarListHandle other = make_scalar_list(library, std::move(scalars));
    CHECK_EQ(fake->objects.load(), 5);
  }
  CHECK_EQ(fake->objects.load(), 0);
  tensors.clear();
  tensors.push_back(tensor(library));
  fake->creates = false;
  CHECK_EQ(error_of([&] { make_tensor_list(library, std::move(tensors)); }).api(),
           "aclCreateTensorList");
  CHECK_EQ(fake->objects.load(), 0);
}

TEST(objects_that_are_not_made_are_errors) {
  Scope scope;
  FakeLibrary fakes;
  const Library& library = fakes.library;
  fake->creates = false;
  const Error error = error_of([&] { tensor(library); });
  CHECK_EQ(std::string(error.what()),
           "aclCreateTensor failed with status 561103 (ACLNN_ERR_INNER_NULLPTR): the fake creates "
           "nothing");
  CHECK_EQ(error_of([&] { make_scalar(library, true); }).api(), "aclCreateScalar");
  CHECK_EQ(error_of([&] { make_int_array(library, {}); }).api(), "aclCreateIntArray");
  CHECK_EQ(error_of([&] { make_float_array(library, {}); }).api(), "aclCreateFloatArray");
  CHECK_EQ(error_of([&] { make_bool_array(library, {}); }).api(), "aclCreateBoolArray");
  const int64_t dims[] = {2, 3};
  const int64_t strides[] = {1};
  CHECK_EQ(error_of([&] {
             make_tensor(library, dims, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, nullptr);
           }).status(),
           161002);
}

TEST(messages_of_earlier_calls_are_not_this_errors) {
  Scope scope;
  FakeLibrary fakes;
  const auto text_of = [&](const char* api, const char* messages) {
    error_text = messages;
    const std::string text = error_of([&] { fakes.library.fail(api, 161002); }).what();
    return text.substr(text.find("): ") + 3);
  };
  const char* const api = "aclnnMixedGetWorkspaceSize";
  CHECK_EQ(text_of(api, "aclnnMixed: b\naclnnMixed: a\naclnnCast: no"),
           "aclnnMixed: b\naclnnMixed: a");
  CHECK_EQ(text_of(api, "aclnnMixed: two\nlines\naclnnCast: no"), "aclnnMixed: two\nlines");
  CHECK_EQ(text_of(api, "aclnnMixed: b"), "aclnnMixed: b");
  // Lines that do not name the operator may be its own.
  CHECK_EQ(text_of(api, "EZ1001: b\nEZ1001: a"), "EZ1001: b\nEZ1001: a");
  // Lines of other functions may be the reason why a function that is no operator failed.
  CHECK_EQ(text_of("aclHostTraceEnd", "aclHostTraceEnd: b\naclnnCast: a"),
           "aclHostTraceEnd: b\naclnnCast: a");
}

// ---- Libraries ----------------------------------------------------------------------------------

TEST(any_number_of_libraries_works) {
  Scope scope;
  for (int i = 0; i < 20; ++i) {
    FakeLibrary fakes;
    Arguments arguments(fakes.library);
    arguments.call(fakes.library, no_workspace, nullptr);
    arguments.call(fakes.library, no_workspace, nullptr);
  }
  CHECK_EQ(fake->stage2_calls.load(), 40);
}

TEST(missing_symbols_are_named) {
  Scope scope;
  FakeLibrary fakes(false, "libfake.so");
  const auto call_absent = [&] { call<Absent>(fakes.library, no_workspace, nullptr); };
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of(call_absent);
    CHECK_EQ(error.api(), "aclnnAbsentGetWorkspaceSize");
    CHECK_EQ(std::string(error.what()),
             "aclnnAbsentGetWorkspaceSize failed with status 200001 (ACL_ERROR_API_NOT_SUPPORT): "
             "no such symbol in libfake.so");
  }
  // The text of an earlier failure must not be taken for this one's.
  error_text = "an earlier failure";
  error_of(call_absent);
  CHECK(fakes.library.meta().recent_error() == nullptr);
  const Error error =
      error_of([] { Library("empty", [](const char*) -> void* { return nullptr; }); });
  CHECK(std::strstr(error.what(), "no such symbol in empty") != nullptr);
}

TEST(every_descriptor_function_is_required) {
  Scope scope;
  auto all = symbols(false);
  for (const auto& [name, function] : all) {
    if (name.starts_with("aclnn") || name == "aclrtSynchronizeStream") continue;
    const Error error = error_of([&] {
      Library("partial", [&](const char* symbol) -> void* {
        const auto entry = all.find(symbol);
        return entry == all.end() || symbol == name ? nullptr : entry->second;
      });
    });
    CHECK_EQ(error.api(), name);
  }
}

TEST(files_that_cannot_be_trusted_or_opened_are_refused) {
  const Error relative = error_of([] { Library({"./lib/libopapi.so"}); });
  CHECK(std::strstr(relative.what(), "./lib/libopapi.so is not an absolute path") != nullptr);
  CHECK_EQ(relative.status(), 100003);

  char path[] = "/tmp/aclnn_client_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  fchmod(file, 0666);
  const Error writable = error_of([&] { Library({path}); });
  CHECK(std::strstr(writable.what(), "may be written by everyone") != nullptr);
  fchmod(file, 0600);
  const Error no_object = error_of([&] { Library({path}); });
  CHECK(std::strstr(no_object.what(), "not opened") != nullptr);
  close(file);
  unlink(path);

  const Error absent = error_of([] { Library({"/nowhere/libopapi.so", "libno_such_piece.so"}); });
  CHECK(std::strstr(absent.what(), "/nowhere/libopapi.so (not opened: ") != nullptr);
  CHECK(std::strstr(absent.what(), "libno_such_piece.so (not opened: ") != nullptr);
  CHECK(std::strstr(error_of([] { Library(std::vector<std::string>{}); }).what(), "no library"));
}

TEST(library_without_the_interface_names_what_it_lacks) {
  const Error error = error_of([] { Library({"libno_such_piece.so", "libm.so.6"}); });
  CHECK_EQ(error.api(), "aclGetRecentErrMsg");
  CHECK(std::strstr(error.what(), "no such symbol in libno_such_piece.so (not opened: "));
  CHECK(std::strstr(error.what(), "), libm.so.6"));
}

TEST(status_names_are_the_headers) {
  CHECK_EQ(std::string(status_name(ACLNN_ERR_INNER_TILING_ERROR)), "ACLNN_ERR_INNER_TILING_ERROR");
  CHECK_EQ(std::string(status_name(ACL_ERROR_RT_PARAM_INVALID)), "ACL_ERROR_RT_PARAM_INVALID");
  CHECK_EQ(std::string(status_name(42)), "unknown status");
  CHECK_EQ(std::string(Error("aclnnX", 42, "").what()),
           "aclnnX failed with status 42 (unknown status)");
}
