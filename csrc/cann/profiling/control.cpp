// Starts and stops profiles. A profile has its own folder:
//   PROF_000001_20260131120000123_0000002A/
//     host/start_info            the start, by the wall clock and CLOCK_MONOTONIC_RAW
//     host/data/profile.jsonl    the records; see recorder.h
//     device_0/                  one for each device
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>

#include "acl/acl_prof.h"
#include "acl/acl_rt.h"
#include "cann/profiling/marks.h"
#include "cann/profiling/recorder.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/descriptor.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/named_file.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/write_all.h"

using namespace aclnn_host;

struct aclprofConfig : Descriptor<Object::kDescription, 3> {
  aclprofConfig(uint64_t devices, uint64_t types) : devices(devices), types(types) {}

  const uint64_t devices;  // one bit for each device
  const uint64_t types;
};

namespace aclnn_host {
namespace {

constexpr size_t kLongestPath = 4095;
constexpr size_t kLongestValue = 256;
constexpr uint32_t kMostDevices = 64;
constexpr uint64_t kMebibyte = uint64_t{1} << 20;

constexpr uint64_t kTasks = ACL_PROF_TASK_TIME | ACL_PROF_TASK_TIME_L0 | ACL_PROF_TASK_TIME_L2 |
                            ACL_PROF_TASK_TIME_L3 | ACL_PROF_OP_ATTR;
constexpr uint64_t kTensors = (kTasks & ~ACL_PROF_TASK_TIME_L0) | ACL_PROF_AICORE_SHAPE;
constexpr uint64_t kTypes = kTensors | kTasks | ACL_PROF_ACL_API | ACL_PROF_AICORE_METRICS |
                            ACL_PROF_AICPU | ACL_PROF_L2CACHE | ACL_PROF_HCCL_TRACE |
                            ACL_PROF_TRAINING_TRACE | ACL_PROF_MSPROFTX | ACL_PROF_RUNTIME_API |
                            ACL_PROF_GE_API_L0 | ACL_PROF_GE_API_L1 | ACL_PROF_TASK_MEMORY |
                            ACL_PROF_API_STATS;

uint32_t parts_of(uint64_t types) {
  uint32_t parts = 0;
  if ((types & (ACL_PROF_ACL_API | ACL_PROF_RUNTIME_API | ACL_PROF_API_STATS)) != 0)
    parts |= kProfileApis;
  if ((types & ACL_PROF_API_STATS) != 0) return parts;  // it disables the other switches
  if ((types & kTasks) != 0) parts |= kProfileTasks;
  if ((types & kTensors) != 0) parts |= kProfileTensors;
  if ((types & ACL_PROF_MSPROFTX) != 0) parts |= kProfileMarks;
  return parts;
}

// A configuration that was started and is not yet stopped.
struct Started {
  uint64_t devices;
  uint64_t types;
};

struct Control {
  std::mutex mutex;
  bool is_initialised = false;
  std::string path;
  uint64_t limit = UINT64_MAX;  // of a profile's file, in bytes
  std::vector<Started> started;
  std::string folder;  // of the profile that is being recorded
  static void after_fork() noexcept {}
};

Control& control() {
  return PerProcess<Control>::get();
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

aclError unwritable(const char* api, const char* what, const std::string& path, int error) {
  return fail(ACL_ERROR_INVALID_FILE,
              "%s: the %s %s cannot be made or written: %s; name a folder that you may write to",
              api, what, path.c_str(), reason(error).c_str());
}

aclError not_initialised(const char* api) {
  return fail(ACL_ERROR_PROF_NOT_RUN,
              "%s: profiling is not initialised, or was finalised; call aclprofInit first", api);
}

aclError bad_config(const char* api, const aclprofConfig* config) {
  if (config == nullptr) return null_argument(api, "profilerConfig");
  return fail(ACL_ERROR_INVALID_PARAM,
              "%s: profilerConfig is %p, which was destroyed, or is no object of "
              "aclprofCreateConfig",
              api, static_cast<const void*>(config));
}

std::string devices_text(uint64_t devices) {
  std::string text;
  for (; devices != 0; devices &= devices - 1) {
    text += (text.empty() ? "" : ", ") + std::to_string(std::countr_zero(devices));
  }
  return text;
}

// Creates a folder with its parents, if it does not exist, and checks that it is writable.
aclError prepare_folder(const char* api, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return unwritable(api, "folder", path, error.value());
  if (access(path.c_str(), W_OK | X_OK) != 0) return unwritable(api, "folder", path, errno);
  return ACL_SUCCESS;
}

aclError set_path(const char* api, Control& state, const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error);
  if (error) return unwritable(api, "folder", path, error.value());
  if (const aclError status = prepare_folder(api, absolute)) return status;
  state.path = absolute;
  return ACL_SUCCESS;
}

// Both clocks at one moment, in nanoseconds. The wall clock is truncated to microseconds, which
// start_info stores.
struct Moment {
  int64_t wall;
  int64_t monotonic;
};

Moment current_moment() {
  const int64_t before = profile_clock();
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t after = profile_clock();
  const int64_t rest = wall.tv_nsec % 1000;
  return {int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec - rest,
          before + (after - before) / 2 - rest};
}

// For example "PROF_000001_20260131120000123_0000002A": the number of the profile in this process,
// the local time, the process.
std::string folder_name(uint64_t number, const Moment& moment) {
  const time_t seconds = moment.wall / 1'000'000'000;
  tm local{};
  localtime_r(&seconds, &local);
  char time[32], name[80];
  strftime(time, sizeof(time), "%Y%m%d%H%M%S", &local);
  snprintf(name, sizeof(name), "PROF_%06llu_%s%03d_%08X", static_cast<unsigned long long>(number),
           time, static_cast<int>(moment.wall / 1'000'000 % 1000), static_cast<unsigned>(getpid()));
  return name;
}

aclError write_start(const char* api, const std::string& folder, const Moment& moment) {
  const std::string path = folder + "/host/start_info";
  std::string text = R"({"collectionTimeBegin":")";
  add_number(text, moment.wall / 1000);
  text += R"(","clockMonotonicRaw":")";
  add_number(text, moment.monotonic);
  text += "\"}\n";
  const NamedFile file = open_named_file(path, Existing::kRefused);
  if (file.error != 0) return unwritable(api, "file", path, file.error);
  const int error = write_all(file.descriptor, text);
  close(file.descriptor);
  return error != 0 ? unwritable(api, "file", path, error) : ACL_SUCCESS;
}

std::string first_record(const Moment& moment) {
  std::string record = R"({"kind":"profile","process":)";
  add_number(record, getpid());
  record += R"(,"product":)";
  add_text(record, aclrtGetSocName());
  record += R"(,"begin":)";
  add_number(record, moment.monotonic);
  record += R"(,"wall":)";
  add_number(record, moment.wall);
  return record += '}';
}

aclError begin_profile(const char* api, Control& state) {
  const Moment moment = current_moment();
  state.folder = state.path + '/' + folder_name(profile_number.load() + 1, moment);
  for (const char* part : {"", "/host", "/host/data"}) {
    const std::string folder = state.folder + part;
    if (mkdir(folder.c_str(), 0700) != 0) return unwritable(api, "folder", folder, errno);
  }
  if (const aclError status = write_start(api, state.folder, moment)) return status;
  const std::string file = state.folder + "/host/data/profile.jsonl";
  const int error = recorder().open(file, state.limit, first_record(moment));
  register_profiler(hook_records());
  return error != 0 ? unwritable(api, "file", file, error) : ACL_SUCCESS;
}

aclError make_device_folders(const char* api, const std::string& profile, uint64_t devices) {
  for (; devices != 0; devices &= devices - 1) {
    const std::string folder = profile + "/device_" + std::to_string(std::countr_zero(devices));
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return unwritable(api, "folder", folder, errno);
    }
  }
  return ACL_SUCCESS;
}

// Enables the hooks for everything that is started.
void publish(const Control& state) {
  uint64_t devices = 0;
  uint32_t parts = 0;
  for (const Started& each : state.started) {
    devices |= each.devices;
    parts |= parts_of(each.types);
  }
  profiled_devices.store(devices);
  profile_parts.store(parts);
}

// Closes the file. Lost records are an error, but the profile ends.
aclError end_profile(const char* api, Control& state) {
  const std::string folder = std::move(state.folder);
  state.folder.clear();
  const Recorder::Outcome outcome = recorder().close();
  if (outcome.lost == 0 && outcome.error == 0) return ACL_SUCCESS;
  return fail(
      ACL_ERROR_PROFILING_FAILURE, "%s: %s lacks %llu records, because %s", api, folder.c_str(),
      static_cast<unsigned long long>(outcome.lost),
      outcome.error != 0
          ? ("it cannot be written: " + reason(outcome.error) + "; name a folder that has space")
                .c_str()
          : "there are more than ACL_PROF_STORAGE_LIMIT allows; raise it, or record fewer steps");
}

// Ends a profile that is still running when the process exits.
void end_with_process() {
  Control& state = control();
  const std::lock_guard lock(state.mutex);
  if (state.folder.empty()) return;
  state.started.clear();
  publish(state);
  recorder().close();
}

// Parses a size in MB, such as "200MB" or "200", to bytes; 0 if the text is invalid.
uint64_t storage_limit(std::string_view text) {
  if (text.ends_with("MB")) text.remove_suffix(2);
  uint64_t megabytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  return megabytes < 200 || megabytes > UINT32_MAX ? 0 : megabytes * kMebibyte;
}

// The devices that are already being recorded.
uint64_t started_devices(const Control& state) {
  uint64_t devices = 0;
  for (const Started& each : state.started) devices |= each.devices;
  return devices;
}

// The reason why these arguments are no valid configuration; empty if they are.
std::string config_problem(const uint32_t* devices, uint32_t count, const void* events,
                           uint64_t types) {
  if (events != nullptr) return "aicoreEvents is not null, which is reserved; pass a null pointer";
  if (count > kMostDevices)
    return "deviceNums is " + std::to_string(count) + ", expected 64 at most";
  if (count != 0 && devices == nullptr) return "deviceIdList is null, but deviceNums is not 0";
  if (count == 0 && (types & ACL_PROF_MSPROFTX) == 0) {
    return "deviceNums is 0, which is possible with ACL_PROF_MSPROFTX alone; name a device";
  }
  uint64_t seen = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string device = "device " + std::to_string(devices[i]);
    if (devices[i] >= kMostDevices || !is_device(static_cast<int32_t>(devices[i]))) {
      return "deviceIdList has " + device + ", which does not exist";
    }
    if ((seen >> devices[i] & 1) != 0) return "deviceIdList has " + device + " twice";
    seen |= uint64_t{1} << devices[i];
  }
  return {};
}

// The two checks of all functions that take a configuration.
aclError check_config(const char* api, const aclprofConfig* config) {
  if (config == nullptr || !config->is_alive()) return bad_config(api, config);
  if ((config->types & ~kTypes) != 0) {
    return fail(ACL_ERROR_PROF_MODULES_UNSUPPORTED,
                "%s: dataTypeConfig has unknown bits 0x%llx; combine values ACL_PROF_... of "
                "acl_prof.h",
                api, static_cast<unsigned long long>(config->types & ~kTypes));
  }
  return ACL_SUCCESS;
}

// Stops the entry with the same devices and types, and the profile when no entry is left.
aclError stop(const char* api, Control& state, const aclprofConfig& config) {
  const auto found =
      std::find_if(state.started.begin(), state.started.end(), [&](const Started& each) {
        return each.devices == config.devices && each.types == config.types;
      });
  if (found == state.started.end()) {
    return fail(ACL_ERROR_PROF_NOT_RUN,
                "%s: no profile of the devices [%s] with dataTypeConfig 0x%llx is running: it was "
                "stopped already, or never started; call aclprofStart and aclprofStop in turn, "
                "with the same configuration",
                api, devices_text(config.devices).c_str(),
                static_cast<unsigned long long>(config.types));
  }
  state.started.erase(found);
  publish(state);
  return state.started.empty() ? end_profile(api, state) : ACL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host

aclError aclprofInit(const char* profilerResultPath, size_t length) {
  constexpr const char* kApi = "aclprofInit";
  return guarded(kApi, [&]() -> aclError {
    if (profilerResultPath == nullptr) return null_argument(kApi, "profilerResultPath");
    if (length == 0 || length > kLongestPath || strnlen(profilerResultPath, length + 1) != length) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: length is %zu, expected the length of profilerResultPath, 1 to %zu bytes",
                  kApi, length, kLongestPath);
    }
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (state.is_initialised) {
      return fail(ACL_ERROR_REPEAT_INITIALIZE,
                  "%s: profiling is initialised already, for %s; one profiler at a time: call "
                  "aclprofFinalize first",
                  kApi, state.path.c_str());
    }
    if (const aclError status = set_path(kApi, state, profilerResultPath)) return status;
    state.limit = UINT64_MAX;
    state.is_initialised = true;
    return ACL_SUCCESS;
  });
}

aclError aclprofSetConfig(aclprofConfigType configType, const char* config, size_t configLength) {
  constexpr const char* kApi = "aclprofSetConfig";
  return guarded(kApi, [&]() -> aclError {
    if (configType <= ACL_PROF_ARGS_MIN || configType >= ACL_PROF_ARGS_MAX || configType == 2) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: configType is %d, expected one of aclprofConfigType", kApi,
                  static_cast<int>(configType));
    }
    if (config == nullptr) return null_argument(kApi, "config");
    const size_t longest = configType == ACL_PROF_PATH ? kLongestPath : kLongestValue;
    if (configLength == 0 || configLength > longest ||
        strnlen(config, configLength + 1) != configLength) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: configLength is %zu, expected the length of config, 1 to %zu bytes", kApi,
                  configLength, longest);
    }
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (!state.is_initialised) return not_initialised(kApi);
    if (configType == ACL_PROF_PATH) return set_path(kApi, state, config);
    if (configType == ACL_PROF_STORAGE_LIMIT) {
      const uint64_t limit = storage_limit(config);
      if (limit == 0) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "%s: ACL_PROF_STORAGE_LIMIT is %s, expected 200MB to 4294967295MB", kApi,
                    config);
      }
      state.limit = limit;
    }
    return ACL_SUCCESS;
  });
}

aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics aicoreMetrics,
                                   const aclprofAicoreEvents* aicoreEvents,
                                   uint64_t dataTypeConfig) {
  constexpr const char* kApi = "aclprofCreateConfig";
  aclprofConfig* made = nullptr;
  guarded(kApi, [&]() -> aclError {
    const std::string problem =
        config_problem(deviceIdList, deviceNums, aicoreEvents, dataTypeConfig);
    if (!problem.empty()) return fail(ACL_ERROR_INVALID_PARAM, "%s: %s", kApi, problem.c_str());
    uint64_t devices = 0;
    for (uint32_t i = 0; i < deviceNums; ++i) devices |= uint64_t{1} << deviceIdList[i];
    made = new aclprofConfig(devices, dataTypeConfig);
    return ACL_SUCCESS;
  });
  return made;
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  if (profilerConfig == nullptr || !profilerConfig->is_alive()) {
    return bad_config("aclprofDestroyConfig", profilerConfig);
  }
  delete profilerConfig;
  return ACL_SUCCESS;
}

aclError aclprofWarmup(const aclprofConfig* profilerConfig) {
  constexpr const char* kApi = "aclprofWarmup";
  return guarded(kApi, [&]() -> aclError {
    if (const aclError status = check_config(kApi, profilerConfig)) return status;
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (!state.is_initialised) return not_initialised(kApi);
    if (!state.started.empty()) {
      return fail(ACL_ERROR_PROF_API_CONFLICT,
                  "%s: a profile is running; call this function before aclprofStart", kApi);
    }
    return ACL_SUCCESS;
  });
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  constexpr const char* kApi = "aclprofStart";
  return guarded(kApi, [&]() -> aclError {
    if (const aclError status = check_config(kApi, profilerConfig)) return status;
    [[maybe_unused]] static const int registered = std::atexit(end_with_process);
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (!state.is_initialised) return not_initialised(kApi);
    const uint64_t taken = started_devices(state) & profilerConfig->devices;
    if (taken != 0 || (profilerConfig->devices == 0 && !state.started.empty())) {
      return fail(ACL_ERROR_PROF_ALREADY_RUN,
                  "%s: a profile of the devices [%s] is running already, in %s; call aclprofStop "
                  "first",
                  kApi, devices_text(started_devices(state)).c_str(), state.folder.c_str());
    }
    const bool is_first = state.started.empty();
    state.started.reserve(state.started.size() + 1);
    aclError status = is_first ? begin_profile(kApi, state) : ACL_SUCCESS;
    if (status == ACL_SUCCESS)
      status = make_device_folders(kApi, state.folder, profilerConfig->devices);
    if (status != ACL_SUCCESS) {
      if (is_first) {
        recorder().close();
        state.folder.clear();
      }
      return status;
    }
    state.started.push_back({profilerConfig->devices, profilerConfig->types});
    publish(state);
    return ACL_SUCCESS;
  });
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  constexpr const char* kApi = "aclprofStop";
  return guarded(kApi, [&]() -> aclError {
    if (const aclError status = check_config(kApi, profilerConfig)) return status;
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (!state.is_initialised) return not_initialised(kApi);
    return stop(kApi, state, *profilerConfig);
  });
}

aclError aclprofFinalize(void) {
  constexpr const char* kApi = "aclprofFinalize";
  return guarded(kApi, [&]() -> aclError {
    Control& state = control();
    const std::lock_guard lock(state.mutex);
    if (!state.is_initialised) return not_initialised(kApi);
    state.is_initialised = false;
    if (state.started.empty()) return ACL_SUCCESS;
    state.started.clear();
    publish(state);
    return end_profile(kApi, state);
  });
}

aclError aclprofRegisterDeviceCallback(void) {
  return ACL_SUCCESS;
}
