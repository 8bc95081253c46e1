// Executors through the public ABI: created on one thread and run on another, repeated with other
// addresses, ordered by streams and events, and destroyed in all cases. Expected values are sums
// and products that float computes exactly.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "runtime_support.h"

namespace {

// A stage 1's result.
struct Call {
  aclOpExecutor* executor = nullptr;
  uint64_t workspace_size = 0;
};

aclScalar* scalar(float value) {
  return aclCreateScalar(&value, ACL_FLOAT);
}

aclTensor* tensor(std::vector<int64_t> dims, std::vector<int64_t> strides, int64_t offset,
                  aclDataType dtype, int64_t storage, void* data) {
  return aclCreateTensor(dims.data(), dims.size(), dtype, strides.data(), offset, ACL_FORMAT_ND,
                         &storage, 1, data);
}

aclTensor* tensor(const float* data, size_t n) {
  const auto size = static_cast<int64_t>(n);
  return tensor({size}, {1}, 0, ACL_FLOAT, size, const_cast<float*>(data));
}

// With alpha = 0: scale * x for x > 0, else 0.
Call elu_stage1(const aclTensor* self, float scale, aclTensor* out) {
  Call call;
  aclScalar* alpha = scalar(0);
  aclScalar* factor = scalar(scale);
  aclScalar* one = scalar(1);
  CHECK_EQ(
      aclnnEluGetWorkspaceSize(self, alpha, factor, one, out, &call.workspace_size, &call.executor),
      OK);
  CHECK_EQ(call.workspace_size, uint64_t{0});
  // The executor does not need the descriptors any more.
  for (const aclScalar* each : {alpha, factor, one}) aclDestroyScalar(each);
  return call;
}

Call elu_stage1(const float* self, size_t n, float scale, float* out) {
  aclTensor* from = tensor(self, n);
  aclTensor* to = tensor(out, n);
  const Call call = elu_stage1(from, scale, to);
  aclDestroyTensor(from);
  aclDestroyTensor(to);
  return call;
}

// The gradient of the same function from its result y: gradOutput * scale for y > 0, else 0.
Call backward_stage1(const float* gradient, const float* result, size_t n, float scale,
                     float* out) {
  Call call;
  aclTensor* tensors[] = {tensor(gradient, n), tensor(result, n), tensor(out, n)};
  aclScalar* alpha = scalar(0);
  aclScalar* one = scalar(1);
  aclScalar* factor = scalar(scale);
  CHECK_EQ(aclnnEluBackwardGetWorkspaceSize(tensors[0], alpha, factor, one, true, tensors[1],
                                            tensors[2], &call.workspace_size, &call.executor),
           OK);
  for (const aclTensor* each : tensors) aclDestroyTensor(each);
  for (const aclScalar* each : {alpha, factor, one}) aclDestroyScalar(each);
  return call;
}

aclnnStatus run_elu(const Call& call, aclrtStream stream) {
  return aclnnElu(nullptr, call.workspace_size, call.executor, stream);
}

aclnnStatus run_backward(const Call& call, aclrtStream stream) {
  return aclnnEluBackward(nullptr, call.workspace_size, call.executor, stream);
}

// first, first + 1, ...
std::vector<float> ramp(size_t n, float first) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<float> elu_of(std::vector<float> values, float scale) {
  for (float& value : values) value = value > 0 ? scale * value : 0;
  return values;
}

// Runs the body on device 0 and checks that it leaves nothing behind.
void on_device(const std::function<void()>& body) {
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

constexpr size_t kSize = 1000;

void throws(void*) {
  throw std::runtime_error("the user's function failed");
}

}  // namespace

// ---- Threads -----------------------------------------------------------------------------------

TEST(an_executor_outlives_the_thread_that_made_it) {
  on_device([] {
    const auto x = ramp(kSize, -500);
    const aclrtStream stream = new_stream();
    for (const aclrtStream where : {stream, aclrtStream{nullptr}}) {
      std::vector<float> out(kSize, NAN);
      Call call;
      std::thread([&] { call = elu_stage1(x.data(), kSize, 2, out.data()); }).join();
      std::thread([&] { CHECK_EQ(run_elu(call, where), OK); }).join();
      CHECK_EQ(aclrtSynchronizeStream(where), ACL_SUCCESS);
      CHECK(out == elu_of(x, 2));
      CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
    }
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

// Like torch_npu's task queue: one thread runs every stage 1, another every stage 2.
TEST(one_thread_makes_executors_and_another_runs_them) {
  on_device([] {
    constexpr size_t kCalls = 500;
    const aclrtStream stream = new_stream();
    const auto x = ramp(kCalls, 1);
    std::vector<float> out(kCalls, NAN);
    std::vector<Call> calls(kCalls);
    std::atomic<size_t> made = 0;
    std::thread consumer([&] {
      for (size_t i = 0; i < kCalls; ++i) {
        for (size_t seen = made; seen <= i; seen = made) made.wait(seen);
        CHECK_EQ(run_elu(calls[i], stream), OK);
      }
    });
    for (size_t i = 0; i < kCalls; ++i) {
      calls[i] = elu_stage1(&x[i], 1, 3, &out[i]);
      ++made;
      made.notify_one();
    }
    consumer.join();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(out == elu_of(x, 3));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(eight_threads_call_at_once) {
  on_device([] {
    constexpr size_t kThreads = 8, kCalls = 500, kElements = 37;
    const aclrtStream shared = new_stream();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([t, shared] {
        CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        const auto first = static_cast<float>(t) - 20;
        const auto x = ramp(kElements, first);
        const auto scale = static_cast<float>(t + 1);
        const aclrtStream own = new_stream();
        const aclrtStream streams[] = {nullptr, own, shared};
        std::vector<std::vector<float>> outs(kCalls, std::vector<float>(kElements, NAN));
        for (size_t i = 0; i < kCalls; ++i) {
          const Call call = elu_stage1(x.data(), kElements, scale, outs[i].data());
          CHECK_EQ(run_elu(call, streams[i % 3]), OK);
        }
        for (const aclrtStream stream : streams) {
          CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        }
        const auto expected = elu_of(x, scale);
        for (const auto& out : outs) CHECK(out == expected);
        CHECK_EQ(aclrtDestroyStream(own), ACL_SUCCESS);
        CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK_EQ(aclrtDestroyStream(shared), ACL_SUCCESS);
  });
}

// The memory of destroyed objects goes from thread to thread, in batches that say their length.
TEST(objects_in_memory_that_another_thread_left_are_all_different) {
  constexpr size_t kObjects = 300;
  for (int round = 0; round < 4; ++round) {
    std::thread([&] {
      std::vector<aclScalar*> objects(kObjects);
      for (aclScalar*& object : objects) object = scalar(static_cast<float>(round));
      CHECK_EQ(std::set<const void*>(objects.begin(), objects.end()).size(), kObjects);
      for (const aclScalar* object : objects) CHECK_EQ(aclDestroyScalar(object), OK);
    }).join();
  }
}

TEST(threads_refused_at_once_each_have_their_own_reason) {
  leaves_nothing([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([t] {
        float value = 1;
        aclTensor* self = tensor({1}, {1}, 0, ACL_FLOAT, 1, &value);
        aclTensor* out = tensor({t + 2}, {1}, 0, ACL_FLOAT, t + 2, &value);
        aclScalar* one = scalar(1);
        for (int i = 0; i < 100; ++i) {
          uint64_t size = 0;
          aclOpExecutor* executor = nullptr;
          CHECK_EQ(aclnnEluGetWorkspaceSize(self, one, one, one, out, &size, &executor),
                   ACLNN_ERR_PARAM_INVALID);
          const std::string text = messages();
          CHECK(contains(text, "out") && contains(text, std::to_string(t + 2)));
          CHECK_EQ(messages(), std::string());
        }
        aclDestroyTensor(self);
        aclDestroyTensor(out);
        aclDestroyScalar(one);
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

// ---- Repeatable executors ----------------------------------------------------------------------

// Each run uses the addresses at its launch, even if others are set while it waits.
TEST(queued_runs_keep_the_addresses_they_were_launched_with) {
  on_device([] {
    constexpr size_t kRuns = 50;
    std::vector<std::vector<float>> inputs, outputs(kRuns, std::vector<float>(kSize, NAN));
    for (size_t i = 0; i < kRuns; ++i)
      inputs.push_back(ramp(kSize, -10.0f * static_cast<float>(i)));
    aclTensor* any = tensor(inputs[0].data(), kSize);
    const Call call = elu_stage1(inputs[0].data(), kSize, 2, outputs[0].data());
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    for (size_t i = 0; i < kRuns; ++i) {
      CHECK_EQ(aclSetInputTensorAddr(call.executor, 0, any, inputs[i].data()), OK);
      CHECK_EQ(aclSetOutputTensorAddr(call.executor, 0, any, outputs[i].data()), OK);
      CHECK_EQ(run_elu(call, stream), OK);
    }
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);  // the queued runs do not need it
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    for (size_t i = 0; i < kRuns; ++i) CHECK(outputs[i] == elu_of(inputs[i], 2));
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
    aclDestroyTensor(any);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_repeatable_executor_runs_on_many_streams) {
  on_device([] {
    constexpr size_t kStreams = 4, kRuns = 100;
    const auto x = ramp(kSize, -500);
    std::vector<std::vector<float>> outs(kStreams, std::vector<float>(kSize, NAN));
    aclTensor* any = tensor(x.data(), kSize);
    const Call call = elu_stage1(x.data(), kSize, 5, outs[0].data());
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    std::vector<aclrtStream> streams;
    for (size_t s = 0; s < kStreams; ++s) streams.push_back(new_stream());
    for (size_t i = 0; i < kRuns * kStreams; ++i) {
      CHECK_EQ(aclSetTensorAddr(call.executor, 1, any, outs[i % kStreams].data()), OK);
      CHECK_EQ(run_elu(call, streams[i % kStreams]), OK);
    }
    for (const aclrtStream stream : streams) {
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
    for (const auto& out : outs) CHECK(out == elu_of(x, 5));
    aclDestroyTensor(any);
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);
  });
}

TEST(an_executor_that_never_runs_is_given_back) {
  leaves_nothing([] {
    float value = 1;
    const Call call = elu_stage1(&value, 1, 2, &value);
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);
    CHECK_EQ(value, 1.0f);
  });
}

// ---- Streams and events ------------------------------------------------------------------------

TEST(a_created_stream_computes_later_and_in_order) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    auto x = ramp(kSize, 1);
    const auto start = x;
    // Ten in-place multiplications: in another order, or two at a time, the result is not 2^10 x.
    for (int i = 0; i < 10; ++i) {
      CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, x.data()), stream), OK);
    }
    CHECK_EQ(aclHostLiveObjects("tensor"), int64_t{0});
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{10});
    CHECK(x == start);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
    CHECK(x == elu_of(start, 1024));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

// The forward runs on one stream, the backward of its result on another, for many steps. A second
// event prevents the next forward from overwriting a result that is still being read.
TEST(events_order_forward_and_backward_on_two_streams) {
  on_device([] {
    constexpr int kSteps = 100;
    const aclrtStream forward = new_stream(), backward = new_stream();
    aclrtEvent computed = nullptr, read = nullptr;
    CHECK_EQ(aclrtCreateEvent(&computed), ACL_SUCCESS);
    CHECK_EQ(aclrtCreateEvent(&read), ACL_SUCCESS);
    const auto gradient = ramp(kSize, 1);
    std::vector<std::vector<float>> inputs, outs(kSteps, std::vector<float>(kSize, NAN));
    for (int i = 0; i < kSteps; ++i) inputs.push_back(ramp(kSize, static_cast<float>(-5 * i)));
    std::vector<float> result(kSize, NAN);
    for (size_t i = 0; i < kSteps; ++i) {
      if (i > 0) CHECK_EQ(aclrtStreamWaitEvent(forward, read), ACL_SUCCESS);
      CHECK_EQ(run_elu(elu_stage1(inputs[i].data(), kSize, 1, result.data()), forward), OK);
      CHECK_EQ(aclrtRecordEvent(computed, forward), ACL_SUCCESS);
      CHECK_EQ(aclrtStreamWaitEvent(backward, computed), ACL_SUCCESS);
      CHECK_EQ(
          run_backward(backward_stage1(gradient.data(), result.data(), kSize, 2, outs[i].data()),
                       backward),
          OK);
      CHECK_EQ(aclrtRecordEvent(read, backward), ACL_SUCCESS);
    }
    CHECK_EQ(aclrtSynchronizeStream(backward), ACL_SUCCESS);
    for (size_t i = 0; i < kSteps; ++i) {
      for (size_t j = 0; j < kSize; ++j) {
        CHECK_EQ(outs[i][j], inputs[i][j] > 0 ? 2 * gradient[j] : 0);
      }
    }
    CHECK_EQ(aclrtDestroyEvent(computed), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyEvent(read), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(forward), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(backward), ACL_SUCCESS);
  });
}

TEST(a_destroyed_stream_finishes_its_work) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const auto x = ramp(kSize, -100);
    std::vector<std::vector<float>> outs(20, std::vector<float>(kSize, NAN));
    for (auto& out : outs) {
      CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, out.data()), stream), OK);
    }
    std::thread opener([&] { gate.open(); });
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    opener.join();
    for (const auto& out : outs) CHECK(out == elu_of(x, 2));
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
  });
}

TEST(a_stream_destroyed_by_force_gives_its_executors_back) {
  on_device([] {
    Gate gate, begun;
    aclrtStream stream = new_stream();
    CHECK_EQ(run_on(stream, [&] { return begun.open(), gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
    begun.wait();
    const auto x = ramp(kSize, 1);
    std::vector<float> out(kSize, -7);
    for (int i = 0; i < 20; ++i) {
      CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, out.data()), stream), OK);
    }
    std::thread destroyer([&] { CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS); });
    // The worker continues once the handle is destroyed; its queue is dropped by then, or soon.
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    while (aclrtStreamQuery(stream, &status) == ACL_SUCCESS) std::this_thread::yield();
    messages();
    gate.open();
    destroyer.join();
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
  });
}

TEST(a_stream_that_is_gone_refuses_and_the_executor_is_used_up) {
  on_device([] {
    const aclrtStream stream = new_stream();
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    float value = 1, out = -7;
    CHECK_EQ(run_elu(elu_stage1(&value, 1, 2, &out), stream), ACLNN_ERR_RUNTIME_ERROR);
    CHECK(messages().starts_with("aclnnElu: "));
    CHECK_EQ(out, -7.0f);
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
  });
}

// ---- Failures on the stream --------------------------------------------------------------------

TEST(behind_a_failure_operators_are_dropped_and_the_failure_sticks) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const auto x = ramp(kSize, 1);
    std::vector<float> before(kSize, -7), behind(kSize, -7);
    CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, before.data()), stream), OK);
    CHECK_EQ(aclrtLaunchHostFunc(stream, throws, nullptr), ACL_SUCCESS);
    CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, behind.data()), stream), OK);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK(contains(messages(), "threw"));
    CHECK(before == elu_of(x, 2));
    CHECK(behind == std::vector<float>(kSize, -7));
    // Later calls are accepted and dropped, too; synchronising the stream reports it.
    CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, behind.data()), stream), OK);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK(behind == std::vector<float>(kSize, -7));
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{0});
    // Other streams are not affected.
    CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, behind.data()), nullptr), OK);
    CHECK(behind == elu_of(x, 2));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_stream_told_to_continue_computes_behind_a_failure) {
  on_device([] {
    const aclrtStream stream = new_stream();
    CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), ACL_SUCCESS);
    CHECK_EQ(aclrtLaunchHostFunc(stream, throws, nullptr), ACL_SUCCESS);
    const auto x = ramp(kSize, 1);
    std::vector<float> out(kSize, -7);
    CHECK_EQ(run_elu(elu_stage1(x.data(), kSize, 2, out.data()), stream), OK);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK(out == elu_of(x, 2));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

// ---- Views -------------------------------------------------------------------------------------

namespace {

// Computes out = elu(self) with scale 2 over a view of each, on the null stream.
void elu_of_views(std::vector<int64_t> dims, std::vector<int64_t> from_strides, int64_t from_offset,
                  const std::vector<float>& from, std::vector<int64_t> to_strides,
                  int64_t to_offset, aclDataType to_type, int64_t to_size, void* to) {
  aclTensor* self = tensor(dims, std::move(from_strides), from_offset, ACL_FLOAT,
                           static_cast<int64_t>(from.size()), const_cast<float*>(from.data()));
  aclTensor* out = tensor(dims, std::move(to_strides), to_offset, to_type, to_size, to);
  CHECK_EQ(run_elu(elu_stage1(self, 2, out), nullptr), OK);
  aclDestroyTensor(self);
  aclDestroyTensor(out);
}

}  // namespace

// Both storages end where their views do, so that the sanitizer detects accesses outside.
TEST(transposed_and_sparse_views_are_read_and_written_where_they_say) {
  leaves_nothing([] {
    for (const int64_t rows : {1, 3, 700}) {
      for (const int64_t columns : {1, 5, 513, 1300}) {
        // self: rows x columns, transposed, every second element, offset 1. out: rows 3 elements
        // apart, offset 2.
        const auto from = ramp(static_cast<size_t>(2 * rows * columns), -50);
        const int64_t pitch = columns + 3;
        std::vector<float> to(static_cast<size_t>(2 + (rows - 1) * pitch + columns), -7);
        elu_of_views({rows, columns}, {2, 2 * rows}, 1, from, {pitch, 1}, 2, ACL_FLOAT,
                     static_cast<int64_t>(to.size()), to.data());
        std::vector<float> expected(to.size(), -7);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            const float x = from[static_cast<size_t>(1 + 2 * (i + j * rows))];
            expected[static_cast<size_t>(2 + i * pitch + j)] = x > 0 ? 2 * x : 0;
          }
        }
        CHECK(to == expected);
      }
    }
  });
}

TEST(an_output_of_another_type_is_cast_and_stays_within_its_storage) {
  leaves_nothing([] {
    constexpr int64_t kRows = 40, kColumns = 33;
    const auto x = ramp(kRows * kColumns, -700);
    std::vector<double> wide(2 * kRows * kColumns - 1, -7);
    elu_of_views({kRows, kColumns}, {kColumns, 1}, 0, x, {2, 2 * kRows}, 0, ACL_DOUBLE,
                 static_cast<int64_t>(wide.size()), wide.data());
    for (size_t i = 0; i < wide.size(); ++i) {
      const size_t row = i / 2 % kRows, column = i / 2 / kRows;
      const float value = x[row * kColumns + column];
      CHECK_EQ(wide[i], i % 2 == 1 ? -7.0 : value > 0 ? 2.0 * value : 0.0);
    }
    std::vector<aclFloat16> narrow(x.size(), 0xffff);
    elu_of_views({kRows * kColumns}, {1}, 0, x, {1}, 0, ACL_FLOAT16,
                 static_cast<int64_t>(narrow.size()), narrow.data());
    for (size_t i = 0; i < narrow.size(); ++i) {
      CHECK_EQ(aclFloat16ToFloat(narrow[i]), x[i] > 0 ? 2 * x[i] : 0.0f);
    }
  });
}

// ---- Blocks of device memory --------------------------------------------------------------------

namespace {

using Allocate = aclError (*)(void**, size_t, aclrtMemMallocPolicy);

float* device_floats(size_t bytes, Allocate allocate = aclrtMalloc) {
  void* block = nullptr;
  CHECK_EQ(allocate(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  return static_cast<float*>(block);
}

float* page_locked_floats(size_t bytes) {
  void* block = nullptr;
  CHECK_EQ(aclrtMallocHost(&block, bytes), ACL_SUCCESS);
  return static_cast<float*>(block);
}

// Checks that the call is accepted and that the stream then detects freed memory.
void finds_freed_memory(const Call& call, aclrtStream stream) {
  CHECK_EQ(run_elu(call, stream), OK);
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
  const std::string text = messages();
  CHECK(text.starts_with("aclnnElu: ") && contains(text, "freed"));
}

// Runs the body with the null stream, and with created streams, which a failure ends.
void on_streams(const std::function<void(aclrtStream)>& body) {
  on_device([&] {
    body(nullptr);
    const aclrtStream stream = new_stream();
    body(stream);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

}  // namespace

TEST(memory_freed_before_its_turn_is_not_touched) {
  for (const size_t n : {kSize, size_t{1} << 20}) {
    on_device([n] {
      Gate gate;
      const aclrtStream stream = gated_stream(gate);
      const size_t bytes = n * sizeof(float);
      float* const block = device_floats(bytes);
      const std::vector<float> x(n, 1);
      CHECK_EQ(run_elu(elu_stage1(x.data(), n, 2, block), stream), OK);
      CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
      // Usually at the same address, but this is another allocation.
      float* const again = device_floats(bytes);
      again[0] = -7;
      gate.open();
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
      CHECK_EQ(again[0], -7.0f);
      CHECK_EQ(aclrtFree(again), ACL_SUCCESS);
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    });
  }
}

TEST(memory_freed_between_the_stages_is_not_touched) {
  for (const size_t n : {size_t{32}, size_t{1} << 18, size_t{1} << 20}) {
    on_streams([n](aclrtStream stream) {
      const std::vector<float> host(n, 1);
      float* const block = device_floats(n * sizeof(float));
      const Call call = elu_stage1(host.data(), n, 2, block);
      CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
      finds_freed_memory(call, stream);
    });
    on_streams([n](aclrtStream stream) {
      std::vector<float> host(n, 1);
      float* const block = page_locked_floats(n * sizeof(float));
      const Call call = elu_stage1(block, n, 2, host.data());
      CHECK_EQ(aclrtFreeHost(block), ACL_SUCCESS);
      finds_freed_memory(call, stream);
      CHECK(host == std::vector<float>(n, 1));
    });
  }
}

TEST(addresses_without_memory_are_an_error) {
  on_streams([](aclrtStream stream) {
    std::vector<float> host(kSize, 1);
    void* range = nullptr;
    CHECK_EQ(aclrtReserveMemAddress(&range, size_t{2} << 20, 0, nullptr, 0), ACL_SUCCESS);
    CHECK_EQ(run_elu(elu_stage1(host.data(), kSize, 2, static_cast<float*>(range)), stream), OK);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    const std::string text = messages();
    CHECK(text.starts_with("aclnnElu: tensor argument 1 "));
    CHECK(contains(text, "is in a range of aclrtReserveMemAddress but has no memory"));
    CHECK_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  });
}

TEST(memory_freed_before_stage_1_is_not_touched) {
  on_streams([](aclrtStream stream) {
    std::vector<float> host(kSize, 1);
    float* const block = device_floats(kSize * sizeof(float));
    aclTensor* const self = tensor(block, kSize);
    aclTensor* const out = tensor(host.data(), kSize);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    finds_freed_memory(elu_stage1(self, 2, out), stream);
    aclDestroyTensor(self);
    aclDestroyTensor(out);
  });
}

TEST(memory_freed_after_its_address_was_set_is_not_touched) {
  on_streams([](aclrtStream stream) {
    std::vector<float> host(kSize, 1);
    aclTensor* const self = tensor(host.data(), kSize);
    aclTensor* const out = tensor(host.data(), kSize);
    float* const first = device_floats(kSize * sizeof(float));
    const Call call = elu_stage1(self, 2, out);
    CHECK_EQ(aclSetOutputTensorAddr(call.executor, 0, out, first), OK);
    CHECK_EQ(aclrtFree(first), ACL_SUCCESS);
    finds_freed_memory(call, stream);
    aclDestroyTensor(self);
    aclDestroyTensor(out);
  });
  on_streams([](aclrtStream stream) {
    std::vector<float> host(kSize, 1);
    aclTensor* const self = tensor(host.data(), kSize);
    aclTensor* const out = tensor(host.data(), kSize);
    float* const block = device_floats(kSize * sizeof(float));
    CHECK_EQ(aclSetRawTensorAddr(self, block), OK);
    const Call call = elu_stage1(self, 2, out);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    finds_freed_memory(call, stream);
    // When the tensor gets another address, the block is forgotten.
    CHECK_EQ(aclSetRawTensorAddr(self, host.data()), OK);
    CHECK_EQ(run_elu(elu_stage1(self, 2, out), nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK(host == std::vector<float>(kSize, 2));
    aclDestroyTensor(self);
    aclDestroyTensor(out);
  });
}

TEST(memory_allocated_again_is_not_what_an_executor_was_made_for) {
  on_device([] {
    constexpr size_t kBytes = kSize * sizeof(float);
    const std::vector<float> host(kSize, 1);
    aclTensor* const any = tensor(host.data(), kSize);
    float* block = device_floats(kBytes);
    const Call call = elu_stage1(host.data(), kSize, 2, block);
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    CHECK_EQ(run_elu(call, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK_EQ(block[0], 2.0f);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    finds_freed_memory(call, nullptr);
    block = device_floats(kBytes);  // usually at the same address
    block[0] = -7;
    finds_freed_memory(call, nullptr);
    CHECK_EQ(block[0], -7.0f);
    CHECK_EQ(aclSetTensorAddr(call.executor, 1, any, block), OK);
    CHECK_EQ(run_elu(call, nullptr), OK);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK_EQ(block[0], 2.0f);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);
    aclDestroyTensor(any);
  });
}

namespace {

constexpr size_t kMapped = size_t{2} << 20;

// A range of addresses with mapped memory at its beginning or after it.
class Range {
 public:
  Range() { CHECK_EQ(aclrtReserveMemAddress(&begin_, 2 * kMapped, 0, nullptr, 1), ACL_SUCCESS); }
  ~Range() { CHECK_EQ(aclrtReleaseMemAddress(begin_), ACL_SUCCESS); }

  // Maps new memory of zeros, which only the mapping keeps alive.
  float* map(size_t place = 0) {
    aclrtPhysicalMemProp prop = {};
    prop.memAttr = ACL_HBM_MEM_HUGE;
    prop.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtDrvMemHandle memory = nullptr;
    void* const address = static_cast<char*>(begin_) + place * kMapped;
    CHECK_EQ(aclrtMallocPhysical(&memory, kMapped, &prop, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtMapMem(address, kMapped, 0, memory, 0), ACL_SUCCESS);
    CHECK_EQ(aclrtFreePhysical(memory), ACL_SUCCESS);
    return static_cast<float*>(address);
  }

 private:
  void* begin_ = nullptr;
};

}  // namespace

TEST(memory_mapped_at_the_same_address_is_not_what_an_executor_was_made_for) {
  on_device([] {
    Range range;
    const std::vector<float> x(kSize, 1);
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    float* block = range.map();
    const Call queued = elu_stage1(x.data(), kSize, 2, block);
    const Call waiting = elu_stage1(x.data(), kSize, 2, block);
    CHECK_EQ(run_elu(queued, stream), OK);
    CHECK_EQ(aclrtUnmapMem(block), ACL_SUCCESS);
    CHECK_EQ(range.map(), block);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    finds_freed_memory(waiting, nullptr);
    CHECK_EQ(block[0], 0.0f);
    CHECK_EQ(aclrtUnmapMem(block), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(a_view_may_lie_in_another_mapping_than_its_storage_begins_in) {
  on_device([] {
    Range range;
    const std::vector<float> x(kSize, 1);
    float* const first = range.map();
    float* const second = range.map(1);
    constexpr int64_t kInFirst = kMapped / sizeof(float);
    for (const int64_t offset : {kInFirst + 5, kInFirst - 5}) {
      aclTensor* const self = tensor(x.data(), kSize);
      aclTensor* const out = tensor({kSize}, {1}, offset, ACL_FLOAT, 2 * kInFirst, first);
      CHECK_EQ(run_elu(elu_stage1(self, 2, out), nullptr), OK);
      CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
      CHECK_EQ(first[offset], 2.0f);
      CHECK_EQ(first[offset + int64_t{kSize} - 1], 2.0f);
      for (const aclTensor* each : {self, out}) aclDestroyTensor(each);
    }
    CHECK_EQ(aclrtUnmapMem(first), ACL_SUCCESS);
    CHECK_EQ(aclrtUnmapMem(second), ACL_SUCCESS);
  });
}

TEST(a_tensor_larger_than_its_block_is_refused) {
  on_device([] {
    for (const Allocate allocate : {aclrtMalloc, aclrtMallocAlign32}) {
      float* const block = device_floats(60, allocate);
      std::vector<float> x(4096, 1);
      // The 16th element is in the padding that aclrtMalloc adds to the 60 bytes.
      for (const size_t n : {size_t{16}, size_t{4096}}) {
        CHECK_EQ(run_elu(elu_stage1(x.data(), n, 2, block), nullptr), ACLNN_ERR_PARAM_INVALID);
        const std::string text = messages();
        CHECK(text.starts_with("aclnnElu: tensor argument 1 "));
        CHECK(contains(text, "outside its block") && contains(text, " 60 bytes were requested"));
        CHECK(contains(text, std::to_string(n * sizeof(float)) + " bytes at "));
        const bool is_in_padding = n == 16;  // 60 rounded up to 32 is 64
        CHECK_EQ(contains(text, "ACLNN_TORCH_PADDING=1"), is_in_padding);
      }
      CHECK_EQ(run_elu(elu_stage1(x.data(), 15, 2, block), nullptr), OK);
      CHECK_EQ(block[14], 2.0f);
      // The view's last four bytes cross the end; the next view starts beyond it.
      CHECK_EQ(run_elu(elu_stage1(x.data(), 2, 2, block + 14), nullptr), ACLNN_ERR_PARAM_INVALID);
      CHECK_EQ(run_elu(elu_stage1(x.data(), 1, 2, block + 15), nullptr), ACLNN_ERR_PARAM_INVALID);
      CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    }
  });
}

// Clients declare a storage as large as the view, without the view's offset.
TEST(a_view_outside_its_storage_but_inside_its_block) {
  on_device([] {
    constexpr int64_t kOffset = 40, kCount = 24;
    float* const block = device_floats((kOffset + kCount) * sizeof(float));
    std::vector<float> host(kOffset + kCount, 3);
    aclTensor* const self = tensor({kCount}, {1}, 0, ACL_FLOAT, kCount, host.data());
    aclTensor* const out = tensor({kCount}, {1}, kOffset, ACL_FLOAT, kCount, block);
    const Call call = elu_stage1(self, 2, out);
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    CHECK_EQ(run_elu(call, nullptr), OK);
    for (int64_t i = 0; i < kCount; ++i) CHECK_EQ(block[kOffset + i], 6.0f);
    // The declared size is the only check for memory that belongs to no block.
    CHECK_EQ(aclSetTensorAddr(call.executor, 1, out, host.data()), OK);
    CHECK_EQ(run_elu(call, nullptr), ACLNN_ERR_PARAM_INVALID);
    CHECK(contains(messages(), "declared storage"));
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);

    aclTensor* const beyond = tensor({kCount}, {1}, kOffset + 1, ACL_FLOAT, kCount, block);
    aclTensor* const elsewhere = tensor({kCount}, {1}, kOffset, ACL_FLOAT, kCount, host.data());
    aclTensor* const nowhere = tensor({kCount}, {1}, kOffset, ACL_FLOAT, kCount, nullptr);
    aclScalar* const one = scalar(1);
    for (aclTensor* const refused : {beyond, elsewhere, nowhere}) {
      Call none;
      CHECK_EQ(aclnnEluGetWorkspaceSize(self, one, one, one, refused, &none.workspace_size,
                                        &none.executor),
               ACLNN_ERR_PARAM_INVALID);
      CHECK(contains(messages(), "outside its storage"));
      aclDestroyTensor(refused);
    }
    for (const aclTensor* each : {self, out}) aclDestroyTensor(each);
    aclDestroyScalar(one);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

// ---- Executors that are used up or destroyed ----------------------------------------------------

namespace {

// Checks that every function refuses an executor that was destroyed, or never existed.
void is_refused(aclOpExecutor* executor, aclnnStatus in_stage2) {
  float value = 1;
  aclTensor* const any = tensor(&value, 1);
  for (const aclrtStream stream : {aclrtStream{nullptr}, new_stream()}) {
    CHECK_EQ(aclnnElu(nullptr, 0, executor, stream), in_stage2);
    CHECK(messages().starts_with("aclnnElu: executor "));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    if (stream != nullptr) CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }
  CHECK_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER);
  CHECK_EQ(aclSetTensorAddr(executor, 0, any, &value), ACLNN_ERR_INNER);
  CHECK_EQ(aclSetInputTensorAddr(executor, 0, any, &value), ACLNN_ERR_INNER);
  CHECK_EQ(aclSetOutputTensorAddr(executor, 0, any, &value), ACLNN_ERR_INNER);
  CHECK_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER);
  CHECK(messages().starts_with("aclDestroyAclOpExecutor: executor "));
  aclDestroyTensor(any);
}

}  // namespace

TEST(an_executor_runs_once_unless_it_is_repeatable) {
  on_device([] {
    const auto x = ramp(kSize, 1);
    std::vector<float> out(kSize, NAN);
    const Call call = elu_stage1(x.data(), kSize, 2, out.data());
    CHECK_EQ(run_elu(call, nullptr), OK);
    CHECK(out == elu_of(x, 2));
    out.assign(kSize, -7);
    for (int i = 0; i < 10; ++i) is_refused(call.executor, ACLNN_ERR_PARAM_NULLPTR);
    CHECK(out == std::vector<float>(kSize, -7));
  });
}

TEST(an_executor_is_used_up_by_a_stage_2_that_fails) {
  on_device([] {
    float value = 1;
    const Call call = elu_stage1(&value, 1, 2, &value);
    CHECK_EQ(aclnnInplaceElu(nullptr, 0, call.executor, nullptr), ACLNN_ERR_INNER);
    is_refused(call.executor, ACLNN_ERR_PARAM_NULLPTR);
    CHECK_EQ(value, 1.0f);
  });
}

TEST(a_destroyed_executor_is_refused_while_another_has_its_place) {
  on_device([] {
    float value = 1, out = -7;
    const Call call = elu_stage1(&value, 1, 2, &out);
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    CHECK_EQ(aclSetAclOpExecutorRepeatable(call.executor), OK);
    CHECK_EQ(aclDestroyAclOpExecutor(call.executor), OK);
    const Call next = elu_stage1(&value, 1, 3, &out);
    is_refused(call.executor, ACLNN_ERR_PARAM_NULLPTR);
    CHECK_EQ(out, -7.0f);
    CHECK_EQ(run_elu(next, nullptr), OK);
    CHECK_EQ(out, 3.0f);
  });
}

TEST(what_never_was_an_executor_is_refused) {
  on_device([] {
    float value = 1;
    aclTensor* const any = tensor(&value, 1);
    is_refused(reinterpret_cast<aclOpExecutor*>(any), ACLNN_ERR_INNER);
    aclDestroyTensor(any);
    for (const uint64_t number : {uint64_t{1}, uint64_t{0xA} << 60, ~uint64_t{0}, ~uint64_t{15}}) {
      is_refused(reinterpret_cast<aclOpExecutor*>(number), ACLNN_ERR_INNER);
    }
  });
}

TEST(of_two_threads_one_runs_an_executor) {
  on_device([] {
    float value = 1, out = -7;
    for (int i = 0; i < 200; ++i) {
      const Call call = elu_stage1(&value, 1, 2, &out);
      std::atomic<int> ran = 0;
      std::vector<std::thread> threads;
      for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
          const aclnnStatus status = run_elu(call, nullptr);
          if (status == OK) ++ran;
          if (status != OK) CHECK_EQ(status, ACLNN_ERR_PARAM_NULLPTR);
        });
      }
      for (auto& thread : threads) thread.join();
      CHECK_EQ(ran.load(), 1);
    }
  });
}

// More executors than a chunk of the table has, and then all of them again.
TEST(many_executors_are_kept_apart) {
  leaves_nothing([] {
    constexpr size_t kCalls = 3000;
    const auto x = ramp(kCalls, 1);
    for (int round = 0; round < 2; ++round) {
      std::vector<float> out(kCalls, NAN);
      std::vector<Call> calls;
      for (size_t i = 0; i < kCalls; ++i) calls.push_back(elu_stage1(&x[i], 1, 2, &out[i]));
      for (const Call& call : calls) CHECK_EQ(run_elu(call, nullptr), OK);
      CHECK(out == elu_of(x, 2));
    }
  });
}

// The sanitizer ends a program that reads destroyed objects; without it they may be read.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(destroyed_descriptors_are_refused) {
  leaves_nothing([] {
    float value = 1;
    const int64_t numbers[] = {1};
    const float fractions[] = {1};
    const bool truths[] = {true};
    const auto gone = [](aclnnStatus status) {
      CHECK_EQ(status, ACLNN_ERR_PARAM_INVALID);
      const std::string text = messages();
      CHECK(text.starts_with("acl") && contains(text, "destroyed"));
    };

    aclTensor* const any = tensor(&value, 1);
    CHECK_EQ(aclDestroyTensor(any), OK);
    gone(aclDestroyTensor(any));
    int64_t* dims = nullptr;
    int64_t offset = 0;
    uint64_t count = 0;
    aclFormat format = ACL_FORMAT_ND;
    aclDataType dtype = ACL_FLOAT;
    void* address = nullptr;
    gone(aclGetViewShape(any, &dims, &count));
    gone(aclGetStorageShape(any, &dims, &count));
    gone(aclGetViewStrides(any, &dims, &count));
    gone(aclGetViewOffset(any, &offset));
    gone(aclGetFormat(any, &format));
    gone(aclGetDataType(any, &dtype));
    gone(aclGetRawTensorAddr(any, &address));
    gone(aclSetRawTensorAddr(any, &value));
    gone(aclInitTensor(any, numbers, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, numbers, 1, &value));

    aclScalar* const number = scalar(1);
    CHECK_EQ(aclDestroyScalar(number), OK);
    gone(aclDestroyScalar(number));
    aclIntArray* const ints = aclCreateIntArray(numbers, 1);
    CHECK_EQ(aclDestroyIntArray(ints), OK);
    gone(aclDestroyIntArray(ints));
    gone(aclGetIntArraySize(ints, &count));
    aclFloatArray* const floats = aclCreateFloatArray(fractions, 1);
    CHECK_EQ(aclDestroyFloatArray(floats), OK);
    gone(aclDestroyFloatArray(floats));
    gone(aclGetFloatArraySize(floats, &count));
    aclBoolArray* const bools = aclCreateBoolArray(truths, 1);
    CHECK_EQ(aclDestroyBoolArray(bools), OK);
    gone(aclDestroyBoolArray(bools));
    gone(aclGetBoolArraySize(bools, &count));
  });
}

TEST(lists_and_their_elements_may_be_destroyed_in_any_order) {
  leaves_nothing([] {
    float value = 1;
    aclTensor* const element = tensor(&value, 1);
    aclTensor* const twice[] = {element, element};
    aclTensorList* const list = aclCreateTensorList(twice, 2);
    CHECK_EQ(aclDestroyTensor(element), OK);  // it belongs to the list
    CHECK_EQ(aclDestroyTensorList(list), OK);
    uint64_t count = 0;
    CHECK_EQ(aclDestroyTensorList(list), ACLNN_ERR_PARAM_INVALID);
    CHECK_EQ(aclGetTensorListSize(list, &count), ACLNN_ERR_PARAM_INVALID);
    CHECK(aclCreateTensorList(twice, 2) == nullptr);
    CHECK(messages().starts_with("aclCreateTensorList: "));

    aclScalar* const number = scalar(1);
    aclScalarList* const scalars = aclCreateScalarList(&number, 1);
    CHECK_EQ(aclDestroyScalarList(scalars), OK);
    CHECK_EQ(aclDestroyScalar(number), ACLNN_ERR_PARAM_INVALID);
    CHECK_EQ(aclDestroyScalarList(scalars), ACLNN_ERR_PARAM_INVALID);
  });
}

TEST(stage_1_refuses_destroyed_descriptors_and_other_objects) {
  leaves_nothing([] {
    float value = 1;
    aclTensor* const self = tensor(&value, 1);
    aclTensor* const out = tensor(&value, 1);
    aclScalar* const one = scalar(1);
    aclTensor* const gone = tensor(&value, 1);
    aclScalar* const gone_scalar = scalar(1);
    CHECK_EQ(aclDestroyTensor(gone), OK);
    CHECK_EQ(aclDestroyScalar(gone_scalar), OK);
    const auto refused = [&](const aclTensor* from, const aclScalar* alpha, aclTensor* to,
                             const char* name) {
      Call none;
      CHECK_EQ(
          aclnnEluGetWorkspaceSize(from, alpha, one, one, to, &none.workspace_size, &none.executor),
          ACLNN_ERR_PARAM_INVALID);
      CHECK(messages().starts_with(std::string("aclnnElu: ") + name + ", "));
    };
    refused(gone, one, out, "self");
    refused(self, gone_scalar, out, "alpha");
    refused(self, one, gone, "out");
    refused(reinterpret_cast<aclTensor*>(one), one, out, "self");
    refused(self, reinterpret_cast<aclScalar*>(self), out, "alpha");
    for (const aclTensor* each : {self, out}) CHECK_EQ(aclDestroyTensor(each), OK);
    CHECK_EQ(aclDestroyScalar(one), OK);
  });
}

// One thread creates descriptors and another destroys them; their memory is reused.
TEST(descriptors_are_destroyed_by_another_thread) {
  leaves_nothing([] {
    float value = 1;
    for (int round = 0; round < 20; ++round) {
      std::vector<aclTensor*> tensors;
      for (int i = 0; i < 100; ++i) tensors.push_back(tensor(&value, 1));
      std::thread([&] {
        for (const aclTensor* each : tensors) CHECK_EQ(aclDestroyTensor(each), OK);
      }).join();
      for (const aclTensor* each : tensors) {
        CHECK_EQ(aclDestroyTensor(each), ACLNN_ERR_PARAM_INVALID);
      }
    }
  });
}

#endif

// Large enough for several threads and for non-temporal stores.
TEST(large_tensors_are_computed_on_two_streams_at_once) {
  on_device([] {
    constexpr size_t kLarge = (size_t{4} << 20) + 13;
    std::vector<float> x(kLarge);
    for (size_t i = 0; i < kLarge; ++i) x[i] = static_cast<float>(static_cast<int>(i % 201) - 100);
    std::vector<float> doubled(kLarge, NAN), tripled(kLarge, NAN);
    const aclrtStream one = new_stream(), other = new_stream();
    CHECK_EQ(run_elu(elu_stage1(x.data(), kLarge, 2, doubled.data()), one), OK);
    CHECK_EQ(run_elu(elu_stage1(x.data(), kLarge, 3, tripled.data()), other), OK);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    CHECK(doubled == elu_of(x, 2));
    CHECK(tripled == elu_of(x, 3));
    CHECK_EQ(aclrtDestroyStream(one), ACL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  });
}
