// Long runs of calls, and the process's resources meanwhile.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "check.h"

namespace reliability {

constexpr int kSteps = 100;  // each is measured
// Memory that the C library may keep once allocated: more counts as growth.
constexpr double kSpareBytes = 512 << 10;
// The sanitizers keep freed memory to detect its use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

struct Usage {
  int64_t bytes;
  int64_t shared_bytes;  // of in-memory files
  int64_t files;
  int64_t threads;
};

inline int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

// A joined thread may be listed a moment longer.
inline int64_t threads(int64_t expected) {
  for (int i = 0; i < 1000; ++i) {
    if (entries("/proc/self/task") <= expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return entries("/proc/self/task");
}

inline int64_t shared_memory() {
  std::ifstream status("/proc/self/status");
  int64_t kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == "RssShmem:") status >> kibibytes;
  }
  return kibibytes << 10;
}

inline Usage usage(int64_t expected_threads) {
  int64_t all = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> shared;
  // Pages of files come and go with the machine's free memory.
  const int64_t anonymous = (resident - shared) * sysconf(_SC_PAGESIZE);
  return {anonymous, shared_memory(), entries("/proc/self/fd"), threads(expected_threads)};
}

// The growth per step: the median over all pairs (Theil-Sen), which is zero for a size that only
// fluctuates.
inline double growth_of(const std::vector<double>& sizes) {
  std::vector<double> slopes;
  for (size_t j = 0; j < sizes.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      slopes.push_back((sizes[j] - sizes[i]) / static_cast<double>(j - i));
    }
  }
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle;
}

// Runs body(i) this often, and measures the process after every step. The first quarter fills
// caches.
inline void soak(const char* what, int64_t full_count, const std::function<void(int64_t)>& body) {
  const bool full = std::getenv("ACLNN_TEST_SOAK") != nullptr;
  const int64_t per_step = std::max<int64_t>(1, full_count / kSteps / (full ? 1 : 50));
  const int64_t live = aclHostLiveObjects(nullptr);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // otherwise memory changes in units of 2 MiB
  std::vector<double> bytes;
  bytes.reserve(kSteps);
  Usage first{}, last{};
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < per_step; ++i) body(step * per_step + i);
    last = usage(first.threads);
    if (step <= kSteps / 4) first = last;
    if (step >= kSteps / 4) bytes.push_back(static_cast<double>(last.bytes));
  }
  const double growth = growth_of(bytes);
  std::printf("%s: %lld, of which the last three quarters take %.3f bytes each\n", what,
              static_cast<long long>(per_step * kSteps), growth / static_cast<double>(per_step));
  std::printf("  memory %lld -> %lld KiB, files %lld -> %lld, threads %lld -> %lld\n",
              static_cast<long long>(first.bytes >> 10), static_cast<long long>(last.bytes >> 10),
              static_cast<long long>(first.files), static_cast<long long>(last.files),
              static_cast<long long>(first.threads), static_cast<long long>(last.threads));
  if (!kIsSanitized) CHECK(growth * static_cast<double>(bytes.size()) < kSpareBytes);
  CHECK_EQ(last.shared_bytes, first.shared_bytes);
  CHECK_EQ(last.files, first.files);
  CHECK_EQ(last.threads, first.threads);
  CHECK_EQ(aclHostLiveObjects(nullptr), live);
}

}  // namespace reliability
