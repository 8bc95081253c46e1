// Profiles: the recorded events and devices, and refused calls.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_prof.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_elu.h"
#include "mstx/ms_tools_ext.h"
#include "runtime_support.h"

namespace fs = std::filesystem;

static const int environment = setenv("ACLNN_TORCH_DEVICES", "2", 1);

// A sanitizer itself reports the use of a destroyed handle.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// True if LeakSanitizer, which asks at the end, is to ignore the leaks of this process.
static bool leaves_leaks = false;
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return leaves_leaks ? 1 : 0;
}

constexpr uint64_t kLevel1 = ACL_PROF_ACL_API | ACL_PROF_TASK_TIME;

// A temporary folder, which the destructor removes.
class Folder {
 public:
  Folder() : path_(mkdtemp(pattern_)) {}
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

  // The records of the only profile in it.
  std::vector<std::string> records() const {
    std::vector<std::string> lines;
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::ifstream file(entry.path() / "host/data/profile.jsonl");
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    return lines;
  }
  size_t profiles() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  char pattern_[64] = "/tmp/aclnn_torch_profile_XXXXXX";
  const std::string path_;
};

static aclError init(const std::string& path) {
  return aclprofInit(path.c_str(), path.size());
}

static aclprofConfig* config_of(std::vector<uint32_t> devices, uint64_t types = kLevel1) {
  return aclprofCreateConfig(devices.data(), static_cast<uint32_t>(devices.size()), ACL_AICORE_NONE,
                             nullptr, types);
}

// Runs the body between start and stop, and returns the records.
static std::vector<std::string> profile(const std::function<void()>& body, uint64_t types = kLevel1,
                                        std::vector<uint32_t> devices = {0}) {
  const Folder folder;
  aclprofConfig* const config = config_of(std::move(devices), types);
  CHECK_EQ(init(folder.path()), ACL_SUCCESS);
  CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
  body();
  CHECK_EQ(aclprofStop(config), ACL_SUCCESS);
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
  CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  CHECK_EQ(folder.profiles(), 1u);
  return folder.records();
}

static bool has(const std::string& record, const std::string& key, const std::string& value) {
  return contains(record, '"' + key + "\":" + value + ',') ||
         contains(record, '"' + key + "\":" + value + '}');
}

// The records of a kind with this name.
static std::vector<std::string> select(const std::vector<std::string>& records,
                                       const std::string& kind, const std::string& name) {
  std::vector<std::string> selected;
  std::copy_if(
      records.begin(), records.end(), std::back_inserter(selected), [&](const std::string& record) {
        return has(record, "kind", '"' + kind + '"') && has(record, "name", '"' + name + '"');
      });
  return selected;
}

static std::vector<std::string> marks_of(const std::vector<std::string>& records,
                                         const std::string& message) {
  std::vector<std::string> selected;
  std::copy_if(
      records.begin(), records.end(), std::back_inserter(selected),
      [&](const std::string& record) { return has(record, "message", '"' + message + '"'); });
  return selected;
}

static int64_t number(const std::string& record, const std::string& key) {
  const size_t at = record.find('"' + key + "\":");
  return CHECK(at != std::string::npos) ? std::atoll(record.c_str() + at + key.size() + 3) : 0;
}

// A device with a stream and 6 elements, for operators and copies.
class Work {
 public:
  explicit Work(int32_t device = 0) : device_(device) {
    CHECK_EQ(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtMalloc(&memory_, 24, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    CHECK_EQ(aclrtMemset(memory_, 24, 0, 24), ACL_SUCCESS);
  }
  ~Work() {
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(memory_), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(device_), ACL_SUCCESS);
  }

  // aclnnInplaceElu.
  void elu() const {
    const int64_t shape[] = {2, 3}, strides[] = {3, 1};
    aclTensor* const self =
        aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 2, memory_);
    float one = 1;
    aclScalar* const scalar = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK_EQ(aclnnInplaceEluGetWorkspaceSize(self, scalar, scalar, scalar, &size, &executor),
             ACL_SUCCESS);
    CHECK_EQ(aclnnInplaceElu(nullptr, size, executor, stream), ACL_SUCCESS);
    aclDestroyTensor(self);
    aclDestroyScalar(scalar);
  }

  void fill() const { CHECK_EQ(aclrtMemsetAsync(memory_, 24, 1, 24, stream), ACL_SUCCESS); }
  void wait() const { CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS); }

  aclrtStream stream = nullptr;

 private:
  const int32_t device_;
  void* memory_ = nullptr;
};

TEST(a_profile_has_calls_launches_and_tasks) {
  leaves_nothing([] {
    const Work work;
    work.elu();
    work.wait();
    const auto records = profile([&] {
      work.elu();
      work.fill();
      work.wait();
    });
    work.elu();
    work.wait();
    CHECK(has(records.at(0), "kind", R"("profile")"));
    CHECK_EQ(number(records.at(0), "process"), getpid());
    const auto first = select(records, "api", "aclnnInplaceEluGetWorkspaceSize");
    const auto second = select(records, "api", "aclnnInplaceElu");
    const auto launch = select(records, "launch", "aclnnInplaceElu");
    const auto task = select(records, "task", "aclnnInplaceElu");
    const auto fill = select(records, "task", "aclrtMemsetAsync");
    const auto wait = select(records, "api", "aclrtSynchronizeStream");
    for (const auto* each : {&first, &second, &launch, &task, &fill, &wait})
      CHECK_EQ(each->size(), 1u);

    CHECK(number(first[0], "end") <= number(second[0], "begin"));
    CHECK(number(second[0], "begin") <= number(launch[0], "begin"));
    CHECK(number(launch[0], "end") <= number(second[0], "end"));
    CHECK(number(launch[0], "begin") <= number(task[0], "begin"));
    CHECK(number(task[0], "begin") <= number(task[0], "end"));
    CHECK(number(task[0], "end") <= number(fill[0], "begin"));
    CHECK(number(fill[0], "end") <= number(wait[0], "end"));

    CHECK_EQ(number(task[0], "launch"), number(launch[0], "launch"));
    CHECK(number(fill[0], "launch") > number(task[0], "launch"));
    CHECK(has(task[0], "operator", "true"));
    CHECK(has(fill[0], "operator", "false"));
    CHECK_EQ(number(task[0], "device"), 0);
    CHECK_EQ(number(task[0], "stream"), number(fill[0], "stream"));
    CHECK_EQ(number(task[0], "status"), 0);
    CHECK(contains(task[0], R"("inputs":[["FLOAT",2,[2,3]]],"outputs":[["FLOAT",2,[2,3]]])"));
    CHECK(number(task[0], "thread") != number(launch[0], "thread"));
  });
}

TEST(what_is_recorded_is_chosen) {
  const Work work;
  const auto both = [&] {
    work.elu();
    work.wait();
  };
  const auto calls = profile(both, ACL_PROF_ACL_API);
  CHECK_EQ(select(calls, "api", "aclnnInplaceElu").size(), 1u);
  CHECK(select(calls, "task", "aclnnInplaceElu").empty());
  const auto tasks = profile(both, ACL_PROF_TASK_TIME_L0);
  CHECK(select(tasks, "api", "aclnnInplaceElu").empty());
  CHECK_EQ(select(tasks, "task", "aclnnInplaceElu").size(), 1u);
  CHECK(!contains(select(tasks, "task", "aclnnInplaceElu").at(0), "inputs"));
  const auto shapes = profile(both, ACL_PROF_TASK_TIME_L0 | ACL_PROF_AICORE_SHAPE);
  CHECK(contains(select(shapes, "task", "aclnnInplaceElu").at(0), "inputs"));
  CHECK_EQ(profile(both, 0).size(), 1u);  // its own record
}

TEST(a_profile_is_of_its_devices) {
  const Work other(1);
  const Work work(0);
  const auto both = [&] {
    work.elu();
    other.elu();
    work.wait();
    other.wait();
  };
  for (const std::vector<uint32_t>& devices : {std::vector<uint32_t>{1}, {0, 1}}) {
    const auto tasks = select(profile(both, kLevel1, devices), "task", "aclnnInplaceElu");
    CHECK_EQ(tasks.size(), devices.size());
    CHECK(std::any_of(tasks.begin(), tasks.end(),
                      [](const std::string& task) { return has(task, "device", "1"); }));
  }
}

TEST(profiles_of_several_devices_share_a_folder) {
  leaves_nothing([] {
    const Folder folder;
    aclprofConfig* const first = config_of({0});
    aclprofConfig* const second = config_of({1});
    CHECK_EQ(init(folder.path()), ACL_SUCCESS);
    CHECK_EQ(aclprofStart(first), ACL_SUCCESS);
    CHECK_EQ(aclprofStart(second), ACL_SUCCESS);
    CHECK_EQ(aclprofStop(first), ACL_SUCCESS);
    CHECK_EQ(folder.profiles(), 1u);
    CHECK_EQ(aclprofStop(second), ACL_SUCCESS);
    for (const char* device : {"device_0", "device_1"}) {
      CHECK(fs::is_directory(fs::directory_iterator(folder.path())->path() / device));
    }
    CHECK_EQ(aclprofStart(first), ACL_SUCCESS);  // another profile
    CHECK_EQ(aclprofStop(first), ACL_SUCCESS);
    CHECK_EQ(folder.profiles(), 2u);
    const std::regex name(
        "PROF_[0-9]{6}_[0-9]{17}_[0-9A-F]{8}");  // the time to a millisecond, the process
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      CHECK(std::regex_match(entry.path().filename().string(), name));
    }
    CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
    CHECK_EQ(aclprofDestroyConfig(first), ACL_SUCCESS);
    CHECK_EQ(aclprofDestroyConfig(second), ACL_SUCCESS);
  });
}

static void refused(aclError status, aclError expected, const std::string& part) {
  CHECK_EQ(status, expected);
  const std::string text = messages();
  if (!contains(text, part)) CHECK_EQ(text, part);
}

TEST(calls_out_of_turn) {
  const Folder folder;
  aclprofConfig* const config = config_of({0});
  aclprofConfig* const other = config_of({0, 1});
  refused(aclprofStart(config), ACL_ERROR_PROF_NOT_RUN, "aclprofStart: profiling is not init");
  refused(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "call aclprofInit first");
  refused(aclprofWarmup(config), ACL_ERROR_PROF_NOT_RUN, "aclprofWarmup");
  refused(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN, "aclprofFinalize");
  refused(aclprofSetConfig(ACL_PROF_HOST_SYS, "cpu", 3), ACL_ERROR_PROF_NOT_RUN, "aclprofInit");

  CHECK_EQ(init(folder.path()), ACL_SUCCESS);
  refused(init(folder.path() + "/other"), ACL_ERROR_REPEAT_INITIALIZE, folder.path());
  CHECK(!fs::exists(folder.path() + "/other"));
  refused(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "never started");
  CHECK_EQ(aclprofWarmup(config), ACL_SUCCESS);
  CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
  refused(aclprofStart(config), ACL_ERROR_PROF_ALREADY_RUN, "devices [0]");
  refused(aclprofStart(other), ACL_ERROR_PROF_ALREADY_RUN, folder.path());
  refused(aclprofWarmup(other), ACL_ERROR_PROF_API_CONFLICT, "before aclprofStart");
  refused(aclprofStop(other), ACL_ERROR_PROF_NOT_RUN, "devices [0, 1]");
  CHECK_EQ(aclprofStop(config), ACL_SUCCESS);
  refused(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "stopped already");
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
  refused(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN, "finalised");
  CHECK_EQ(folder.profiles(), 1u);
  CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  CHECK_EQ(aclprofDestroyConfig(other), ACL_SUCCESS);
}

TEST(the_end_stops_what_runs) {
  const Work work;
  const Folder folder;
  aclprofConfig* const config = config_of({0});
  CHECK_EQ(init(folder.path()), ACL_SUCCESS);
  CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
  work.elu();
  work.wait();
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
  work.elu();
  work.wait();
  CHECK_EQ(select(folder.records(), "task", "aclnnInplaceElu").size(), 1u);
  CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
}

TEST(configurations_that_are_none) {
  uint32_t devices[2] = {0, 0};
  const auto no_config = [&](uint32_t* list, uint32_t count, const void* events, uint64_t types,
                             const char* part) {
    CHECK(aclprofCreateConfig(list, count, ACL_AICORE_NONE,
                              static_cast<const aclprofAicoreEvents*>(events), types) == nullptr);
    const std::string text = messages();
    if (!contains(text, part)) CHECK_EQ(text, std::string(part));
  };
  no_config(nullptr, 1, nullptr, kLevel1, "deviceIdList is null");
  no_config(devices, 2, nullptr, kLevel1, "device 0 twice");
  no_config(devices, 65, nullptr, kLevel1, "deviceNums is 65");
  no_config(devices, 0, nullptr, kLevel1, "deviceNums is 0");
  no_config(devices, 1, devices, kLevel1, "aicoreEvents");
  devices[1] = 2;
  no_config(devices, 2, nullptr, kLevel1, "device 2, which does not exist");
  devices[1] = 4294967295;
  no_config(devices, 2, nullptr, kLevel1, "does not exist");

  refused(aclprofStart(nullptr), ACL_ERROR_INVALID_PARAM, "profilerConfig is a null pointer");
  refused(aclprofStop(nullptr), ACL_ERROR_INVALID_PARAM, "profilerConfig is a null pointer");
  refused(aclprofDestroyConfig(nullptr), ACL_ERROR_INVALID_PARAM, "null pointer");
  aclprofConfig* const unknown = config_of({0}, kLevel1 | uint64_t{1} << 60);
  refused(aclprofStart(unknown), ACL_ERROR_PROF_MODULES_UNSUPPORTED, "0x1000000000000000");
  CHECK_EQ(aclprofDestroyConfig(unknown), ACL_SUCCESS);
  SKIP_IF(kIsSanitized, "a sanitizer itself reports the use of a destroyed handle");
  refused(aclprofDestroyConfig(unknown), ACL_ERROR_INVALID_PARAM, "was destroyed");
  refused(aclprofStart(unknown), ACL_ERROR_INVALID_PARAM, "was destroyed");
}

TEST(settings_that_are_none) {
  const Folder folder;
  CHECK_EQ(init(folder.path()), ACL_SUCCESS);
  const auto set = [](int type, const std::string& value) {
    return aclprofSetConfig(static_cast<aclprofConfigType>(type), value.c_str(), value.size());
  };
  for (const int type : {0, 2, 17}) refused(set(type, "1"), ACL_ERROR_INVALID_PARAM, "configType");
  refused(aclprofSetConfig(ACL_PROF_HOST_SYS, nullptr, 3), ACL_ERROR_INVALID_PARAM, "config");
  refused(aclprofSetConfig(ACL_PROF_HOST_SYS, "cpu", 2), ACL_ERROR_INVALID_PARAM, "configLength");
  refused(set(ACL_PROF_HOST_SYS, std::string(257, 'x')), ACL_ERROR_INVALID_PARAM, "257");
  for (const char* limit : {"199MB", "200GB", "4294967296", "-1", "MB"}) {
    refused(set(ACL_PROF_STORAGE_LIMIT, limit), ACL_ERROR_INVALID_PARAM, limit);
  }
  CHECK_EQ(set(ACL_PROF_STORAGE_LIMIT, "200MB"), ACL_SUCCESS);
  CHECK_EQ(set(ACL_PROF_SYS_HARDWARE_MEM_FREQ, "50"), ACL_SUCCESS);
  CHECK_EQ(set(ACL_PROF_PATH, folder.path() + "/deep/er"), ACL_SUCCESS);
  CHECK(fs::is_directory(folder.path() + "/deep/er"));
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
}

TEST(paths_that_are_none) {
  const Folder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "a file";
  refused(aclprofInit(nullptr, 3), ACL_ERROR_INVALID_PARAM, "profilerResultPath");
  refused(aclprofInit("abc", 0), ACL_ERROR_INVALID_PARAM, "length is 0");
  refused(aclprofInit("abc", 2), ACL_ERROR_INVALID_PARAM, "length is 2");
  refused(init(std::string(4096, 'x')), ACL_ERROR_INVALID_PARAM, "4096");
  refused(init(file + "/profiles"), ACL_ERROR_INVALID_FILE, file + "/profiles");
  refused(init(file), ACL_ERROR_INVALID_FILE, file);

  // The folder is removed before the profile begins, and is then created again.
  const std::string profiles = folder.path() + "/profiles";
  aclprofConfig* const config = config_of({0});
  CHECK_EQ(init(profiles), ACL_SUCCESS);
  fs::remove(profiles);
  refused(aclprofStart(config), ACL_ERROR_INVALID_FILE, profiles + "/PROF_");
  refused(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "never started");
  fs::create_directory(profiles);
  CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
  CHECK_EQ(aclprofStop(config), ACL_SUCCESS);
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
  CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
}

// Runs the body in its own process.
static void apart(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const int before = check::failures();
    body();
    _exit(check::failures() == before ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

TEST(a_full_disk_is_told_at_the_end) {
  apart([] {
    const Folder folder;
    const Work work;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    aclprofConfig* const config = config_of({0});
    CHECK_EQ(init(folder.path()), ACL_SUCCESS);
    CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 100; ++i) work.elu();
    work.wait();
    refused(aclprofStop(config), ACL_ERROR_PROFILING_FAILURE, "File too large");
    refused(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "stopped already");
    CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
    CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  });
}

TEST(a_forked_process_records_nothing) {
  const Work work;
  const auto records = profile([&] {
    apart([] {
      const Work own;
      own.elu();
      own.wait();
      refused(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN, "not initialised");
      const auto records = profile([&] {
        own.elu();
        own.wait();
      });
      CHECK_EQ(select(records, "task", "aclnnInplaceElu").size(), 1u);
    });
    work.elu();
    work.wait();
  });
  CHECK_EQ(select(records, "task", "aclnnInplaceElu").size(), 1u);
}

TEST(a_process_that_ends_leaves_a_profile) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    leaves_leaks = true;
    const Work* const work = new Work;  // as in a program that does not clean up
    CHECK_EQ(init(folder.path()), ACL_SUCCESS);
    CHECK_EQ(aclprofStart(config_of({0})), ACL_SUCCESS);
    work->elu();
    work->wait();
    std::exit(check::failures());
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(select(folder.records(), "task", "aclnnInplaceElu").size(), 1u);
}

TEST(a_killed_process_leaves_a_profile_that_can_be_read) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    const bool started =
        init(folder.path()) == ACL_SUCCESS && aclprofStart(config_of({0})) == ACL_SUCCESS;
    kill(getpid(), started ? SIGKILL : SIGTERM);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const auto records = folder.records();
  CHECK_EQ(records.size(), 1u);
  CHECK(has(records.at(0), "kind", R"("profile")"));
}

TEST(what_began_in_one_profile_is_not_in_the_next) {
  const Work work;
  Gate gate;
  std::thread waiting;
  const auto first = profile([&] {
    CHECK_EQ(run_on(work.stream, [&gate] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
    work.elu();
    waiting = std::thread([&] {
      CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      work.wait();
      CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits
  });
  const auto second = profile([&] {
    gate.open();
    waiting.join();
    work.fill();
    work.wait();
  });
  CHECK_EQ(select(first, "launch", "aclnnInplaceElu").size(), 1u);
  CHECK(select(first, "task", "aclnnInplaceElu").empty());
  CHECK(select(second, "task", "aclnnInplaceElu").empty());
  CHECK_EQ(select(second, "task", "aclrtMemsetAsync").size(), 1u);
  CHECK_EQ(select(second, "api", "aclrtSynchronizeStream").size(), 1u);
  for (const auto* records : {&first, &second}) {
    CHECK(has(records->at(0), "kind", R"("profile")"));
  }
}

TEST(a_replayed_model_records_its_tasks) {
  const Work work;
  aclmdlRI model = nullptr;
  CHECK_EQ(aclmdlRICaptureBegin(work.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  work.elu();
  work.fill();
  CHECK_EQ(aclmdlRICaptureEnd(work.stream, &model), ACL_SUCCESS);
  const auto records = profile([&] {
    for (int i = 0; i < 2; ++i) CHECK_EQ(aclmdlRIExecuteAsync(model, work.stream), ACL_SUCCESS);
    work.wait();
  });
  const auto launches = select(records, "launch", "aclmdlRIExecuteAsync");
  const auto tasks = select(records, "task", "aclnnInplaceElu");
  CHECK_EQ(launches.size(), 2u);
  CHECK_EQ(tasks.size(), 2u);
  CHECK_EQ(select(records, "task", "aclrtMemsetAsync").size(), 2u);
  CHECK(select(records, "launch", "aclnnInplaceElu").empty());
  for (size_t i = 0; i < 2; ++i) {
    CHECK_EQ(number(tasks[i], "launch"), number(launches[i], "launch"));
    CHECK(has(tasks[i], "operator", "true"));
  }
  CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST(a_failed_task_shows_its_status) {
  const auto records = profile([] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(run_on(stream, [] { return ACL_ERROR_RT_AICORE_EXCEPTION; }), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  CHECK_EQ(number(select(records, "task", "a test").at(0), "status"),
           ACL_ERROR_RT_AICORE_EXCEPTION);
  messages();
}

TEST(marks_need_a_profile_of_them) {
  const auto refuse = [] {
    CHECK(aclprofCreateStamp() == nullptr);
    refused(aclprofPop(), ACL_ERROR_PROF_NOT_RUN, "aclprofPop");
    refused(aclprofRangeStop(1), ACL_ERROR_PROF_NOT_RUN, "ACL_PROF_MSPROFTX");
    refused(aclprofMarkEx("x", 1, nullptr), ACL_ERROR_PROF_NOT_RUN, "aclprofMarkEx");
    CHECK_EQ(mstxRangeStartA("x", nullptr), uint64_t{MSTX_INVALID_ID});
    mstxMarkA("x", nullptr);
    mstxRangeEnd(1);
  };
  refuse();
  CHECK(marks_of(profile(refuse), "x").empty());
}

TEST(stamps) {
  leaves_nothing([] {
    const auto records = profile(
        [] {
          void* const outer = aclprofCreateStamp();
          void* const inner = aclprofCreateStamp();
          CHECK_EQ(aclprofSetStampTraceMessage(outer, "outer", 5), ACL_SUCCESS);
          CHECK_EQ(aclprofSetStampTraceMessage(inner, "inner", 5), ACL_SUCCESS);
          CHECK_EQ(aclprofPush(outer), ACL_SUCCESS);
          CHECK_EQ(aclprofPush(inner), ACL_SUCCESS);
          CHECK_EQ(aclprofPop(), ACL_SUCCESS);
          CHECK_EQ(aclprofPop(), ACL_SUCCESS);
          refused(aclprofPop(), ACL_ERROR_PROFILING_FAILURE, "no range that is open");
          CHECK_EQ(aclprofSetStampTraceMessage(outer, "moment", 6), ACL_SUCCESS);
          CHECK_EQ(aclprofMark(outer), ACL_SUCCESS);
          uint32_t range = 0;
          CHECK_EQ(aclprofSetStampTraceMessage(inner, "over threads", 12), ACL_SUCCESS);
          CHECK_EQ(aclprofRangeStart(inner, &range), ACL_SUCCESS);
          std::thread([&] { CHECK_EQ(aclprofRangeStop(range), ACL_SUCCESS); }).join();
          refused(aclprofRangeStop(range), ACL_ERROR_PROFILING_FAILURE, "no range");
          refused(aclprofSetStampTraceMessage(outer, "x", 128), ACL_ERROR_INVALID_PARAM, "128");
          refused(aclprofPush(nullptr), ACL_ERROR_INVALID_PARAM, "stamp is a null pointer");
          refused(aclprofRangeStart(inner, nullptr), ACL_ERROR_INVALID_PARAM, "rangeId");
          aclprofDestroyStamp(inner);
          if (!kIsSanitized) refused(aclprofMark(inner), ACL_ERROR_INVALID_PARAM, "was destroyed");
          aclprofDestroyStamp(outer);
        },
        ACL_PROF_MSPROFTX, {});
    const auto outer = marks_of(records, "outer"), inner = marks_of(records, "inner");
    CHECK(number(outer.at(0), "begin") <= number(inner.at(0), "begin"));
    CHECK(number(inner.at(0), "end") <= number(outer.at(0), "end"));
    CHECK(has(outer.at(0), "type", R"("push/pop")"));
    const std::string moment = marks_of(records, "moment").at(0);
    CHECK_EQ(number(moment, "begin"), number(moment, "end"));
    CHECK(has(marks_of(records, "over threads").at(0), "type", R"("start/end")"));
  });
}

TEST(marks_on_a_stream_keep_its_order) {
  const Work work;
  const auto records = profile(
      [&] {
        work.elu();
        CHECK_EQ(aclprofMarkEx("moment", 6, work.stream), ACL_SUCCESS);
        mstxDomainHandle_t const domain = mstxDomainCreateA("training");
        CHECK(domain == mstxDomainCreateA("training"));
        const mstxRangeId range = mstxDomainRangeStartA(domain, "range", work.stream);
        CHECK(range != MSTX_INVALID_ID);
        work.fill();
        mstxDomainRangeEnd(domain, range);
        mstxMarkA("tab\t\"quote\"", nullptr);
        work.wait();
        refused(aclprofMarkEx("moment", 5, work.stream), ACL_ERROR_INVALID_PARAM, "msgLen is 5");
        int none = 0;
        refused(aclprofMarkEx("moment", 6, &none), ACL_ERROR_RT_INVALID_HANDLE, "not a stream");
      },
      kLevel1 | ACL_PROF_MSPROFTX);
  const std::string elu = select(records, "task", "aclnnInplaceElu").at(0);
  const std::string fill = select(records, "task", "aclrtMemsetAsync").at(0);
  const auto moments = marks_of(records, "moment"), ranges = marks_of(records, "range");
  CHECK_EQ(select(records, "launch", "aclrtMemsetAsync").size(), 1u);
  CHECK_EQ(select(records, "launch", "aclprofMarkEx").size(), 0u);
  CHECK_EQ(moments.size(), 3u);  // of the thread, of the stream, and of the thread without a stream
  CHECK_EQ(ranges.size(), 2u);
  const auto of_stream = [](const std::vector<std::string>& marks) {
    return *std::find_if(marks.begin(), marks.end(),
                         [](const std::string& mark) { return contains(mark, "stream"); });
  };
  const std::string moment = of_stream(moments), range = of_stream(ranges);
  CHECK(number(elu, "end") <= number(moment, "begin"));
  CHECK(number(moment, "end") <= number(range, "begin"));
  CHECK(number(range, "begin") <= number(fill, "begin"));
  CHECK(number(fill, "end") <= number(range, "end"));
  CHECK_EQ(number(range, "stream"), number(elu, "stream"));
  CHECK(has(range, "domain", R"("training")"));
  CHECK_EQ(number(ranges[0], "mark"), number(ranges[1], "mark"));
  CHECK_EQ(marks_of(records, R"(tab\u0009\"quote\")").size(), 1u);
}

TEST(operators_and_steps_are_marked) {
  leaves_nothing([] {
    aclprofStepInfo* const step = aclprofCreateStepInfo();
    const Work work;
    const auto records = profile(
        [&] {
          CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, work.stream), ACL_SUCCESS);
          refused(aclprofGetStepTimestamp(step, ACL_STEP_START, work.stream),
                  ACL_ERROR_INVALID_PARAM, "has this tag already");
          aclprofTensorInfo info{};
          info.opNameId = aclprofStr2Id("MyOperator");
          aclprofEventAttributes attributes{};
          attributes.version = ACL_PROF_EVENT_ATTR_VERSION;
          attributes.size = sizeof(attributes);
          attributes.message.tensorInfo = &info;
          CHECK_EQ(aclprofRangePushEx(&attributes), ACL_SUCCESS);
          work.elu();
          CHECK_EQ(aclprofRangePop(), ACL_SUCCESS);
          refused(aclprofRangePop(), ACL_ERROR_PROFILING_FAILURE, "aclprofRangePushEx");
          refused(aclprofRangePushEx(nullptr), ACL_ERROR_INVALID_PARAM, "attr");
          CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, work.stream), ACL_SUCCESS);
          work.wait();
        },
        kLevel1 | ACL_PROF_MSPROFTX);
    CHECK_EQ(marks_of(records, "MyOperator").size(), 1u);
    std::vector<std::string> steps;
    for (const std::string& record : records) {
      if (has(record, "type", R"("step")") && contains(record, "stream")) steps.push_back(record);
    }
    const std::string elu = select(records, "task", "aclnnInplaceElu").at(0);
    CHECK_EQ(steps.size(), 1u);
    CHECK(std::regex_search(steps.at(0), std::regex(R"("step \d+")")));
    CHECK(number(steps.at(0), "begin") <= number(elu, "begin"));
    CHECK(number(elu, "end") <= number(steps.at(0), "end"));
    refused(aclprofGetStepTimestamp(nullptr, ACL_STEP_END, nullptr), ACL_ERROR_INVALID_PARAM,
            "stepInfo");
    aclprofDestroyStepInfo(step);
  });
}

TEST(features_that_torch_npu_asks_for) {
  struct Feature {
    void* table;
    char name[64];
    void* table_of_info;
    char compatibility[16], version[16], component[16], component_version[16], text[128];
  };
  size_t size = 0;
  void* data = nullptr;
  CHECK_EQ(aclprofGetSupportedFeaturesV2(&size, &data), ACL_SUCCESS);
  std::string names;
  for (size_t i = 0; i < size; ++i) {
    const Feature& feature = static_cast<const Feature*>(data)[i];
    names += std::string(feature.name) + ' ';
    CHECK_EQ(std::string(feature.component), "all");
    CHECK(feature.version[0] != '\0' && feature.text[0] != '\0');
  }
  CHECK_EQ(names, "ATTR AICORE_SHAPE ");
  refused(aclprofGetSupportedFeatures(&size, &data), ACL_ERROR_INVALID_PARAM, "not null");
  refused(aclprofGetSupportedFeatures(nullptr, &data), ACL_ERROR_INVALID_PARAM, "featuresSize");
  CHECK_EQ(aclprofRegisterDeviceCallback(), ACL_SUCCESS);
}

TEST(subscriptions_are_refused) {
  refused(aclprofModelSubscribe(1, nullptr), ACL_ERROR_FEATURE_UNSUPPORTED, "aclprofModelSub");
  CHECK(aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, nullptr) == nullptr);
  CHECK_EQ(aclprofGetOpStart(nullptr, 0, 0), 0u);
  messages();
}

TEST(profiles_while_threads_work) {
  const Folder folder;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Work work;
      while (!over) {
        work.elu();
        work.wait();
        mstxRangeEnd(mstxRangeStartA("range", work.stream));
      }
    });
  }
  aclprofConfig* const config = config_of({0}, kLevel1 | ACL_PROF_MSPROFTX);
  CHECK_EQ(init(folder.path()), ACL_SUCCESS);
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(aclprofStart(config), ACL_SUCCESS);
    std::this_thread::yield();
    CHECK_EQ(aclprofStop(config), ACL_SUCCESS);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(aclprofFinalize(), ACL_SUCCESS);
  CHECK_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  CHECK_EQ(folder.profiles(), 20u);
  for (const std::string& record : folder.records())
    CHECK(record.front() == '{' && record.back() == '}');
}
