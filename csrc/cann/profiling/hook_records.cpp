// Writes records of the runtime's hooks.
#include <string>

#include "cann/profiling/recorder.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/stream.h"

namespace aclnn_host {
namespace {

void add_name(std::string& record, const char* name, const char* suffix) {
  record += R"(,"name":")";
  record.append(name).append(suffix);
  record += '"';
}

void add_launch_members(std::string& record, const Launch& launch) {
  add_name(record, launch.api, "");
  record += R"(,"launch":)";
  add_number(record, launch.number);
  record += launch.kind == TaskKind::kOperator ? R"(,"operator":true)" : R"(,"operator":false)";
}

// If memory is exhausted, the record is dropped.
template <class Make>
void record(uint64_t profile, Make make) noexcept {
  try {
    recorder().add(profile, make());
  } catch (...) {
  }
}

class HookRecords final : public Profiler {
 public:
  void add_api(uint64_t profile, const char* api, const char* suffix, int64_t begin,
               int64_t end) noexcept override {
    record(profile, [&] {
      std::string text = begin_record("api", begin, end);
      add_name(text, api, suffix);
      return text += '}';
    });
  }

  void add_launch(const Launch& launch, int64_t begin, int64_t end) noexcept override {
    record(launch.profile, [&] {
      std::string text = begin_record("launch", begin, end);
      add_launch_members(text, launch);
      return text += '}';
    });
  }

  void add_task(Task& task, const Launch& launch, int64_t begin, int64_t end,
                aclError status) noexcept override {
    record(launch.profile, [&] {
      std::string text = begin_record("task", begin, end);
      add_launch_members(text, launch);
      text += R"(,"device":)";
      add_number(text, current_device());
      text += R"(,"stream":)";
      add_number(text, stream_id(launch.stream));
      text += R"(,"status":)";
      add_number(text, status);
      if (is_profiled(kProfileTensors)) task.describe(text);
      return text += '}';
    });
  }
};

}  // namespace

Profiler& hook_records() noexcept {
  static constinit HookRecords records;
  return records;
}

}  // namespace aclnn_host
