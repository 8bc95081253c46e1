// Values in device memory with which streams wait for one another: aclrtValueWrite and
// aclrtValueWait.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/product.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

// A waiting stream looks again this often: operators and copies may write the value, too.
constexpr auto kInterval = std::chrono::milliseconds(1);

// A value's address, and the number of its block, because addresses are used again.
using ValuePlace = std::pair<uintptr_t, uint64_t>;

struct LostWrite {
  aclError status;
  std::string message;
};

// What wakes the streams that wait for values.
struct WrittenValues {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t writes = 0;                       // how often a value was written, or will not be
  std::map<ValuePlace, LostWrite> failures;  // why the last write of a value did not happen
  static void after_fork() noexcept {}
};

WrittenValues& written_values() {
  return PerProcess<WrittenValues>::get();
}

// A value in device memory, checked when the call is made.
struct Value {
  char* address = nullptr;
  uint64_t block = 0;

  ValuePlace place() const { return {reinterpret_cast<uintptr_t>(address), block_number(address)}; }

  // Gives `use` the address while the memory is there.
  template <class Use>
  aclError with_memory(const char* api, const Use& use) const {
    MemoryInUse in_use;
    in_use.add(address, sizeof(uint64_t));
    const uint64_t now = block_number(address);
    if (now == 0 || (now != block && !is_replayed())) {
      return fail(ACL_ERROR_RT_COPY_DATA,
                  "%s: devAddr was freed before the stream came to the call; free it after the "
                  "stream is synchronised",
                  api);
    }
    use(address);
    return ACL_SUCCESS;
  }
};

aclError find_value(const char* api, void* address, Value* value) {
  if (address == nullptr) return null_argument(api, "devAddr");
  if (!has_bfloat16(current_product())) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: %s does not have this function; wait for an event instead", api,
                product_name(current_product()));
  }
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (begin % sizeof(uint64_t) != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: devAddr is %p, expected a multiple of 8", api,
                address);
  }
  Block block;
  if (!find_block(address, sizeof(uint64_t), &block) || block.side != Side::kDevice ||
      !block.contains(begin, sizeof(uint64_t))) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the 8 bytes at devAddr, %p, are not device memory of one block; pass memory "
                "of aclrtMalloc",
                api, address);
  }
  *value = {static_cast<char*>(address), block.number};
  return ACL_SUCCESS;
}

class ValueWriteTask final : public Task {
 public:
  ValueWriteTask(const Value& to, uint64_t value) : to_(to), value_(value) {}

  aclError run() noexcept override {
    return guarded(kApi, [&]() -> aclError {
      WrittenValues& all = written_values();
      const std::lock_guard lock(all.mutex);
      const aclError status = to_.with_memory(
          kApi, [&](char* address) { std::memcpy(address, &value_, sizeof value_); });
      if (status != ACL_SUCCESS) return status;
      all.failures.erase(to_.place());
      ++all.writes;
      all.changed.notify_all();
      return ACL_SUCCESS;
    });
  }

  // Streams that wait for the value fail with the reason, instead of waiting for ever.
  void abandon(aclError status, const std::string& message) noexcept override {
    guarded(kApi, [&]() -> aclError {
      WrittenValues& all = written_values();
      const std::lock_guard lock(all.mutex);
      all.failures[to_.place()] = {status, message};
      ++all.writes;
      all.changed.notify_all();
      return ACL_SUCCESS;
    });
  }

 private:
  static constexpr const char* kApi = "aclrtValueWrite";
  const Value to_;
  const uint64_t value_;
};

// The conditions of aclrtValueWait's document.
bool is_fulfilled(uint64_t now, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return static_cast<int64_t>(now - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return now == value;
    case ACL_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    default: return ~(now | value) != 0;
  }
}

class ValueWaitTask final : public Task {
 public:
  ValueWaitTask(const Value& from, uint64_t value, uint32_t flag)
      : from_(from), value_(value), flag_(flag) {}

  aclError run() noexcept override {
    return guarded(kApi, [&]() -> aclError {
      WrittenValues& all = written_values();
      std::unique_lock lock(all.mutex);
      for (;;) {
        uint64_t now = 0;
        const aclError status =
            from_.with_memory(kApi, [&](char* address) { std::memcpy(&now, address, sizeof now); });
        if (status != ACL_SUCCESS) return status;
        if (is_fulfilled(now, value_, flag_)) return ACL_SUCCESS;
        if (const auto failure = all.failures.find(from_.place()); failure != all.failures.end()) {
          const LostWrite reason = failure->second;
          lock.unlock();
          return fail_again(reason.status, reason.message);
        }
        if (!is_worker()) {
          return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                      "%s: the value is not there yet, but the call is run by the thread that "
                      "asked for it, as on the default stream, and on every stream under "
                      "ACLNN_TORCH_INLINE_STREAMS; write the value first, or wait on a stream of "
                      "aclrtCreateStream",
                      kApi);
        }
        const uint64_t seen = all.writes;
        all.changed.wait_for(lock, kInterval, [&] { return all.writes != seen; });
      }
    });
  }

 private:
  static constexpr const char* kApi = "aclrtValueWait";
  const Value from_;
  const uint64_t value_;
  const uint32_t flag_;
};

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  constexpr const char* kApi = "aclrtValueWrite";
  return guarded(kApi, [&]() -> aclError {
    Value to;
    if (const aclError status = find_value(kApi, devAddr, &to)) return status;
    if (flag != 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag is %u, expected 0", kApi, flag);
    }
    return submit(kApi, stream, std::make_unique<ValueWriteTask>(to, value));
  });
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  constexpr const char* kApi = "aclrtValueWait";
  return guarded(kApi, [&]() -> aclError {
    Value from;
    if (const aclError status = find_value(kApi, devAddr, &from)) return status;
    if (flag > ACL_STREAM_WAIT_VALUE_NOR) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: flag is %u, expected 0 to 3, one of ACL_STREAM_WAIT_VALUE_*", kApi, flag);
    }
    return submit(kApi, stream, std::make_unique<ValueWaitTask>(from, value, flag));
  });
}
