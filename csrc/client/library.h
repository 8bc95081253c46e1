#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace aclnn {

// The descriptor functions of one library, typed by the header's prototypes.
struct Meta {
  decltype(&aclCreateTensor) create_tensor;
  decltype(&aclCreateScalar) create_scalar;
  decltype(&aclCreateIntArray) create_int_array;
  decltype(&aclCreateFloatArray) create_float_array;
  decltype(&aclCreateBoolArray) create_bool_array;
  decltype(&aclCreateTensorList) create_tensor_list;
  decltype(&aclCreateScalarList) create_scalar_list;
  decltype(&aclDestroyTensor) destroy_tensor;
  decltype(&aclDestroyScalar) destroy_scalar;
  decltype(&aclDestroyIntArray) destroy_int_array;
  decltype(&aclDestroyFloatArray) destroy_float_array;
  decltype(&aclDestroyBoolArray) destroy_bool_array;
  decltype(&aclDestroyTensorList) destroy_tensor_list;
  decltype(&aclDestroyScalarList) destroy_scalar_list;
  decltype(&aclSetAclOpExecutorRepeatable) set_executor_repeatable;
  decltype(&aclDestroyAclOpExecutor) destroy_executor;
  decltype(&aclGetRecentErrMsg) recent_error;
};

// The two functions of an operator (see ACLNN_DECLARE in call.h) in one library.
template <class Op>
struct Symbols {
  typename Op::Stage1 stage1;
  typename Op::Stage2 stage2;
};

// The path of a library that is shipped with this one: in lib/ beside the shared object that
// contains this code.
std::string bundled_library(const char* name);

// One implementation of the aclnn interface: the host CANN or a vendor's. Each call uses functions
// and objects of one Library only, so objects of two implementations never mix. Must outlive its
// handles and calls. Thread-safe.
class Library {
 public:
  // Returns a symbol's address, or null.
  using Find = std::function<void*(const char* symbol)>;

  // Opens shared objects, which stay private to this Library (RTLD_LOCAL). A symbol is taken from
  // the first object that defines it or depends on one that does. Each path is absolute, or a bare
  // file name that the loader searches for. Objects that cannot be opened are skipped, since CANN
  // releases differ in their files, but at least one must open. Throws for a path relative to the
  // working directory and for a file that everyone may write to.
  explicit Library(const std::vector<std::string>& paths);

  // Uses functions that are found in another way, e.g. linked into the program.
  Library(std::string name, Find find);

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // The host CANN that is shipped with this library. Opened on first use and never closed, because
  // handles may outlive every static object.
  static const Library& embedded();

  // Lists the opened and the missing objects, for error texts.
  const std::string& name() const noexcept { return name_; }
  const Meta& meta() const noexcept { return meta_; }

  // The symbol's address, or null.
  void* find(const char* symbol) const;

  // The symbol's address; throws an Error that names symbol and library. Then drops the library's
  // pending messages of earlier failures, so that they are not reported with a later error.
  void* require(const char* symbol) const;

  // The operator's functions: looked up once, then two atomic loads.
  template <class Op>
  Symbols<Op> symbols() const {
    void* stage1;
    void* stage2;
    if (number_ < kNumbered) {
      Slot& slot = slots<Op>[number_];
      stage2 = slot.stage2.load(std::memory_order_acquire);
      if (stage2 == nullptr) {
        const Pair pair = require_pair(Op::kStage1, Op::kStage2);
        slot.stage1.store(pair.stage1, std::memory_order_relaxed);
        slot.stage2.store(stage2 = pair.stage2, std::memory_order_release);
      }
      stage1 = slot.stage1.load(std::memory_order_relaxed);
    } else {
      const Pair pair = require_pair(Op::kStage1, Op::kStage2);
      stage1 = pair.stage1;
      stage2 = pair.stage2;
    }
    return {reinterpret_cast<typename Op::Stage1>(stage1),
            reinterpret_cast<typename Op::Stage2>(stage2)};
  }

  // The host CANN runs the null stream inline and keeps a failure until the next synchronisation;
  // this function fetches it at once. Other libraries run the null stream asynchronously: returns
  // success without waiting.
  aclnnStatus null_stream_status() const {
    return synchronize_host_ == nullptr ? 0 : synchronize_host_(nullptr);
  }

  // Throws an Error for a status that `api` returned, with the library's message.
  [[noreturn]] void fail(const char* api, aclnnStatus status) const;

 private:
  struct Slot {
    std::atomic<void*> stage1;
    std::atomic<void*> stage2;
  };
  struct Pair {
    void* stage1;
    void* stage2;
  };

  // Both functions of an operator, taken from one shared object: a library of custom operators may
  // define only one of two names that another library defines, too. Throws an Error that names the
  // missing function.
  Pair require_pair(const char* stage1, const char* stage2) const;

  // A process uses one library or two; libraries beyond this number (in tests) look up at every
  // call.
  static constexpr std::size_t kNumbered = 8;

  // An operator's functions by the library's number. Numbers are never reused, so a slot cannot
  // point into a closed library that a new one replaced.
  template <class Op>
  static inline constinit std::array<Slot, kNumbered> slots{};

  [[noreturn]] void fail_missing(const char* symbol, const std::string& reason) const;

  // Fills the tables below; called at the end of each constructor.
  void load();

  std::size_t number_ = 0;
  std::string name_;
  std::vector<Find> objects_;  // in search order
  Meta meta_{};
  decltype(&aclrtSynchronizeStream) synchronize_host_ = nullptr;
};

}  // namespace aclnn
