#include "profiling/aprof_pub.h"

#include <chrono>

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
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
