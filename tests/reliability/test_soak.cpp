// Long runs of calls: memory, file descriptors and threads must not grow. By default a fiftieth of
// the counts in docs/reliability.md; ACLNN_TEST_SOAK=1 in the environment runs all of it.
#include "soak.h"

#include <array>

#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_selu.h"
#include "operators.h"

namespace {

using namespace reliability;

ACLNN_DECLARE(CrossEntropyLoss);
ACLNN_DECLARE(RmsNorm);
ACLNN_DECLARE(Selu);

// The status with which body() is refused.
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
  const auto calls = all_calls();
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
  std::vector<int64_t> labels{0, 99};  // out of four classes
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
      case 1:  // refused by stage 2
        CHECK_EQ(status_of([&] {
                   auto prepared = prepare<RmsNorm>(library(), tensor(matrix), tensor(matrix), 1e-6,
                                                    tensor(matrix), tensor(one));
                   prepared.launch(nullptr, nullptr);
                   prepared.launch(nullptr, nullptr);
                 }),
                 ACLNN_ERR_PARAM_NULLPTR);
        break;
      default:  // refused because of its data
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
  const auto calls = all_calls();
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
