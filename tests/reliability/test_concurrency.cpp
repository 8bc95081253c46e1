// Many threads, streams and events at once, and ends with queued work. Under TSan with `make
// sanitize`.
#include <atomic>
#include <functional>
#include <thread>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "check.h"
#include "operators.h"

namespace {

using namespace reliability;

constexpr int kThreads = 16;
constexpr int kRounds = 20;

// The right results of all operators, in order.
const std::vector<std::vector<float>>& expected() {
  static const auto results = [] {
    std::vector<std::vector<float>> all;
    for (const Call& call : all_calls()) {
      call.launch(nullptr);
      all.push_back(call.results());
    }
    return all;
  }();
  return results;
}

// A barrier, so that all threads begin at once.
class Start {
 public:
  explicit Start(int count) : missing_(count) {}
  void wait() {
    missing_.fetch_sub(1);
    while (missing_.load() > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

// Failures of threads, which cannot report directly.
std::atomic<int> wrong = 0;

void expect(bool ok) {
  if (!ok) wrong.fetch_add(1);
}

template <class Body>
void in_threads(Body body) {
  expected();
  wrong = 0;
  Start start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

bool all_right(const std::vector<Call>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!same_bits(calls[i].results(), expected()[i])) return false;
  }
  return true;
}

aclrtStream new_stream() {
  aclrtStream stream = nullptr;
  expect(aclrtCreateStream(&stream) == ACL_SUCCESS);
  return stream;
}

// Checks that the body leaves no object. It may set the device any number of times.
template <class Body>
void leaves_nothing(Body body) {
  const int64_t live = aclHostLiveObjects(nullptr);
  body();
  aclrtResetDeviceForce(0);
  while (aclGetRecentErrMsg() != nullptr) {
  }
  CHECK_EQ(aclHostLiveObjects(nullptr), live);
}

}  // namespace

TEST(all_operators_in_16_threads_on_the_null_stream) {
  leaves_nothing([] {
    in_threads([](int) {
      const auto calls = all_calls();
      for (int round = 0; round < kRounds; ++round) {
        for (const Call& call : calls) call.launch(nullptr);
        expect(all_right(calls));
      }
    });
  });
}

TEST(all_operators_in_16_threads_on_streams_of_their_own) {
  leaves_nothing([] {
    in_threads([](int) {
      expect(aclrtSetDevice(0) == ACL_SUCCESS);
      const aclrtStream stream = new_stream();
      const auto calls = all_calls();
      for (int round = 0; round < kRounds; ++round) {
        for (const Call& call : calls) call.launch(stream);
        expect(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        expect(all_right(calls));
      }
      expect(aclrtDestroyStream(stream) == ACL_SUCCESS);
    });
  });
}

TEST(all_operators_captured_in_16_threads_and_executed_again_and_again) {
  leaves_nothing([] {
    in_threads([](int) {
      expect(aclrtSetDevice(0) == ACL_SUCCESS);
      const aclrtStream stream = new_stream();
      const auto calls = all_calls();
      aclmdlRI model = nullptr;
      expect(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) == ACL_SUCCESS);
      for (const Call& call : calls) call.launch(stream);
      expect(aclmdlRICaptureEnd(stream, &model) == ACL_SUCCESS);
      for (int round = 0; round < kRounds; ++round) {
        expect(aclmdlRIExecuteAsync(model, stream) == ACL_SUCCESS);
        expect(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        if (round == 0) expect(all_right(calls));  // later rounds start from this one's results
      }
      expect(aclmdlRIDestroy(model) == ACL_SUCCESS);
      expect(aclrtDestroyStream(stream) == ACL_SUCCESS);
    });
  });
}

TEST(executors_run_on_another_thread_than_the_one_that_made_them) {
  leaves_nothing([] {
    in_threads([](int) {
      expect(aclrtSetDevice(0) == ACL_SUCCESS);
      const aclrtStream stream = new_stream();
      const auto calls = all_calls();
      std::vector<std::function<void(aclrtStream)>> made;
      std::thread([&] {
        for (const Call& call : calls) made.push_back(call.prepare());
      }).join();  // and its thread-local memory is freed
      for (const auto& launch : made) launch(stream);
      expect(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
      expect(all_right(calls));
      expect(aclrtDestroyStream(stream) == ACL_SUCCESS);
    });
  });
}

TEST(events_order_streams_of_different_threads) {
  leaves_nothing([] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    // Thread i adds 1 after thread i - 1's event, on its own stream.
    std::vector<aclrtEvent> events(kThreads + 1);
    for (aclrtEvent& event : events) CHECK_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    std::vector<aclrtStream> streams(kThreads);
    for (aclrtStream& stream : streams) stream = new_stream();
    static int64_t turn;  // no lock: the events order the accesses
    turn = 0;
    // Recorded in order, so that each wait finds its event recorded; the work runs immediately.
    CHECK_EQ(aclrtRecordEvent(events[0], streams[0]), ACL_SUCCESS);
    for (int i = 0; i < kThreads; ++i) {
      const auto n = static_cast<size_t>(i);
      std::thread([&, n] {
        expect(aclrtSetDevice(0) == ACL_SUCCESS);
        expect(aclrtStreamWaitEvent(streams[n], events[n]) == ACL_SUCCESS);
        const auto add = [](void* expected_turn) {
          expect(turn == static_cast<int64_t>(reinterpret_cast<intptr_t>(expected_turn)));
          ++turn;
        };
        expect(aclrtLaunchHostFunc(streams[n], add, reinterpret_cast<void*>(n)) == ACL_SUCCESS);
        expect(aclrtRecordEvent(events[n + 1], streams[n]) == ACL_SUCCESS);
      }).join();
    }
    CHECK_EQ(aclrtSynchronizeEvent(events[kThreads]), ACL_SUCCESS);
    CHECK_EQ(turn, kThreads);
    CHECK_EQ(wrong.load(), 0);
    for (aclrtEvent event : events) CHECK_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    for (aclrtStream stream : streams) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_stream_destroyed_with_work_queued_does_it_first) {
  leaves_nothing([] {
    in_threads([](int) {
      expect(aclrtSetDevice(0) == ACL_SUCCESS);
      const aclrtStream stream = new_stream();
      const auto calls = all_calls();
      for (const Call& call : calls) call.launch(stream);
      expect(aclrtDestroyStream(stream) == ACL_SUCCESS);
      expect(all_right(calls));
    });
  });
}

TEST(a_stream_destroyed_by_force_drops_what_has_not_begun) {
  leaves_nothing([] {
    in_threads([](int) {
      expect(aclrtSetDevice(0) == ACL_SUCCESS);
      const auto calls = all_calls();
      for (int round = 0; round < kRounds; ++round) {
        const aclrtStream stream = new_stream();
        for (const Call& call : calls) call.launch(stream);
        expect(aclrtDestroyStreamForce(stream) == ACL_SUCCESS);
      }
    });
  });
}

TEST(a_device_reset_with_work_queued_ends_it) {
  leaves_nothing([] {
    for (int round = 0; round < kRounds; ++round) {
      CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      std::vector<std::vector<Call>> all;
      std::vector<aclrtStream> streams;
      for (int i = 0; i < 4; ++i) {
        streams.push_back(new_stream());
        all.push_back(all_calls());
        for (const Call& call : all.back()) call.launch(streams.back());
      }
      CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      for (const auto& calls : all) CHECK(all_right(calls));
      // The handles are detected as ended.
      CHECK_EQ(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_INVALID_HANDLE);
    }
  });
}

TEST(a_device_is_reset_by_some_threads_while_others_bring_work) {
  leaves_nothing([] {
    // Memory that a stream may still use after another thread ended it.
    std::vector<std::vector<Call>> kept[kThreads];
    in_threads([&](int i) {
      for (int round = 0; round < kRounds; ++round) {
        kept[i].push_back(all_calls());
        expect(aclrtSetDevice(0) == ACL_SUCCESS);
        aclrtStream stream = nullptr;
        // May be refused, like the calls, if the device was reset meanwhile.
        if (aclrtCreateStream(&stream) != ACL_SUCCESS) continue;
        try {
          for (const Call& call : kept[i].back()) call.launch(stream);
        } catch (const Error& error) {
          expect(error.status() == ACLNN_ERR_RUNTIME_ERROR);
        }
        if (i % 4 == 0) {
          aclrtResetDeviceForce(0);
        } else {
          aclrtDestroyStream(stream);
        }
      }
    });
    aclrtResetDeviceForce(0);
  });
}
