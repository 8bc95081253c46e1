// Records that programs pass to CANN's profiler themselves: those of torch_npu's compiled kernels,
// which the host CANN does not run.
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "acl/acl_prof.h"
#include "cann/profiling/marks.h"
#include "cann/profiling/recorder.h"
#include "host_cann/runtime/per_process.h"
#include "profiling/aprof_pub.h"

namespace aclnn_host {
namespace {

// The largest number of remembered texts; programs hash the names of operators and types.
constexpr size_t kMostTexts = 4096;

struct Texts {
  std::mutex mutex;
  std::map<uint64_t, std::string> by_hash;
  static void after_fork() noexcept {}
};

Texts& texts() {
  return PerProcess<Texts>::get();
}

}  // namespace

std::string text_of_hash(uint64_t hash) {
  const std::lock_guard lock(texts().mutex);
  const auto found = texts().by_hash.find(hash);
  return found != texts().by_hash.end() ? found->second : std::string();
}

}  // namespace aclnn_host

using namespace aclnn_host;

int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle handle) {
  return 0;
}

int32_t MsprofReportApi(uint32_t nonPersistantFlag, const MsprofApi* api) {
  return 0;
}

int32_t MsprofReportCompactInfo(uint32_t nonPersistantFlag, void* data, uint32_t length) {
  return 0;
}

int32_t MsprofReportAdditionalInfo(uint32_t nonPersistantFlag, void* data, uint32_t length) {
  return 0;
}

uint64_t MsprofGetHashId(const char* hashInfo, size_t length) {
  // FNV-1a, 64 bits.
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; hashInfo != nullptr && i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(hashInfo[i])) * 1099511628211U;
  }
  return hash;
}

uint64_t MsprofSysCycleTime(void) {
  return static_cast<uint64_t>(profile_clock());
}

uint64_t aclprofStr2Id(const char* message) {
  const std::string_view text = message != nullptr ? message : "";
  const uint64_t hash = MsprofGetHashId(text.data(), text.size());
  try {
    const std::lock_guard lock(texts().mutex);
    if (texts().by_hash.size() < kMostTexts) texts().by_hash.try_emplace(hash, text);
  } catch (...) {  // out of memory: the text is not remembered
  }
  return hash;
}
