// Calls without end: memory, file descriptors and threads must not grow. By default a fiftieth of
// what stands in docs/reliability.md; ACLNN_TEST_SOAK=1 in the environment runs all of it.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "check.h"
#include "operators.h"

namespace {

using namespace reliability;

constexpr int kSteps = 100;  // each is measured
// What the C library may keep once it has asked for it: more than that is growth.
constexpr double kSpareBytes = 512 << 10;
// The sanitizers keep what was released, to find who still uses it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

struct Usage {
  int64_t bytes;
  int64_t files;
  int64_t threads;
};

int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

// A thread that was joined may be listed a moment longer.
int64_t threads(int64_t expected) {
  for (int i = 0; i < 1000; ++i) {
    if (entries("/proc/self/task") <= expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return entries("/proc/self/task");
}

Usage usage(int64_t expected_threads) {
  int64_t all = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> shared;
  // Pages of files come and go with the machine's memory.
  const int64_t anonymous = (resident - shared) * sysconf(_SC_PAGESIZE);
  return {anonymous, entries("/proc/self/fd"), threads(expected_threads)};
}

// What a step adds: the median over all pairs (Theil-Sen), which a size that only wavers leaves at
// zero.
double growth_of(const std::vector<double>& sizes) {
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

// Runs body(i) so often, and looks at the process after every step. The first quarter fills what is
// kept.
void soak(const char* what, int64_t full_count, const std::function<void(int64_t)>& body) {
  const bool full = std::getenv("ACLNN_TEST_SOAK") != nullptr;
  const int64_t per_step = std::max<int64_t>(1, full_count / kSteps / (full ? 1 : 50));
  const int64_t live = aclHostLiveObjects(nullptr);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // else memory comes and goes by 2 MiB
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
  CHECK_EQ(last.files, first.files);
  CHECK_EQ(last.threads, first.threads);
  CHECK_EQ(aclHostLiveObjects(nullptr), live);
}

// The status of what body() is refused with.
template <class Body>
aclnnStatus status_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.status();
  }
  return ACLNN_SUCCESS;
}

}  // namespace

TEST(operator_calls) {
  const auto calls = Calls().all();
  std::vector<std::vector<float>> expected;
  for (const Call& call : calls) {
    call.launch(nullptr);
    expected.push_back(call.results());
  }
  soak("operator calls", 1'000'000,
       [&](int64_t i) { calls[static_cast<size_t>(i) % calls.size()].launch(nullptr); });
  for (size_t i = 0; i < calls.size(); ++i) CHECK(same_bits(calls[i].results(), expected[i]));
}

TEST(failing_calls) {
  std::vector<float> numbers(8, 1);
  std::vector<int64_t> labels{0, 99};  // of four classes
  const std::array<int64_t, 2> matrix{2, 4};
  const std::array<int64_t, 1> pair{2}, one{1}, other{3}, empty{0};
  const auto tensor = [&](std::span<const int64_t> dims) {
    return make_tensor(library(), dims, ACL_FLOAT, {}, 0, ACL_FORMAT_ND, dims, numbers.data());
  };
  alignas(64) static char workspace[1 << 16];
  const auto allocate = [](uint64_t) -> void* { return workspace; };
  char mean[] = "mean";
  soak("failing calls", 100'000, [&](int64_t i) {
    switch (i % 3) {
      case 0:  // refused by stage 1
        CHECK_EQ(status_of([&] { prepare<Selu>(library(), tensor(pair), tensor(other)); }),
                 ACLNN_ERR_PARAM_INVALID);
        break;
      case 1:  // by stage 2
        CHECK_EQ(status_of([&] {
                   auto prepared = prepare<RmsNorm>(library(), tensor(matrix), tensor(matrix), 1e-6,
                                                    tensor(matrix), tensor(one));
                   prepared.launch(nullptr, nullptr);
                   prepared.launch(nullptr, nullptr);
                 }),
                 ACLNN_ERR_PARAM_NULLPTR);
        break;
      default:  // by what it finds in the data
        CHECK_EQ(status_of([&] {
                   call<CrossEntropyLoss>(library(), allocate, nullptr, tensor(matrix),
                                          make_tensor(library(), pair, ACL_INT64, {}, 0,
                                                      ACL_FORMAT_ND, pair, labels.data()),
                                          TensorHandle(), +mean, int64_t{-100}, 0.0, 0.0, false,
                                          tensor(one), tensor(matrix), tensor(empty),
                                          tensor(empty));
                 }),
                 ACL_ERROR_RT_AICORE_EXCEPTION);
    }
  });
}

TEST(streams_and_events) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const auto calls = Calls().all();
  soak("streams and events", 10'000, [&](int64_t i) {
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    calls[static_cast<size_t>(i) % calls.size()].launch(stream);
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}
