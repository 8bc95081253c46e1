// Long runs of collective operations: memory, memory shared by ranks, file descriptors and threads
// must not grow. By default a fiftieth of the counts in docs/reliability.md; ACLNN_TEST_SOAK=1 in
// the environment runs all of it.
#include "hccl_support.h"
#include "soak.h"

using reliability::soak;

TEST(collectives) {
  const World world(4);
  const size_t count = 3000;  // per part: more than every rank reduces alone
  const Buffers sent = filled(world, floats(), 4 * count);
  const Buffers received = room(world, floats(), 4 * count);
  constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;
  {  // uses all memory between the ranks
    const size_t large = size_t{1} << 18;
    const Buffers from = filled(world, floats(), 4 * large), to = room(world, floats(), 4 * large);
    world.run([&](uint32_t rank) {
      return HcclAlltoAll(from[rank]->data(), large, kFloat, to[rank]->data(), large, kFloat,
                          world.comms[rank], world.streams[rank]);
    });
  }
  soak("collectives", 10'000, [&](int64_t i) {
    world.run([&](uint32_t rank) {
      void* const send = sent[rank]->data();
      void* const receive = received[rank]->data();
      HcclComm comm = world.comms[rank];
      aclrtStream stream = world.streams[rank];
      switch (i % 7) {
        case 0:
          return HcclAllReduce(send, receive, 4 * count, kFloat, HCCL_REDUCE_SUM, comm, stream);
        case 1: return HcclAllGather(send, receive, count, kFloat, comm, stream);
        case 2:
          return HcclReduceScatter(send, receive, count, kFloat, HCCL_REDUCE_MAX, comm, stream);
        case 3: return HcclAlltoAll(send, count, kFloat, receive, count, kFloat, comm, stream);
        case 4: return HcclBroadcast(receive, count, kFloat, 2, comm, stream);
        case 5: return HcclAllReduce(send, receive, 3, kFloat, HCCL_REDUCE_PROD, comm, stream);
        default: return HcclBarrier(comm, stream);
      }
    });
  });
  CHECK(sent[3]->values() == values(3, 4 * count));
}

// The following tests open ports, and therefore resolve names: only in full runs.
static bool is_full() {
  return std::getenv("ACLNN_TEST_SOAK") != nullptr;
}

TEST(communicators) {
  SKIP_IF(!is_full(), "opens ports; `make soak` runs it");
  soak("communicators", 200, [&](int64_t i) {
    const World world(2 + static_cast<uint32_t>(i % 3));
    world.run([&](uint32_t rank) { return HcclBarrier(world.comms[rank], world.streams[rank]); });
  });
}

// Failing ranks, each time in a new communicator.
TEST(failing_collectives) {
  SKIP_IF(!is_full(), "opens ports; `make soak` runs it");
  soak("failing collectives", 200, [&](int64_t) {
    const World world(2);
    const Buffers buffers = filled(world, floats(), 4);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      CHECK_EQ(
          HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), 3 + rank, HCCL_DATA_TYPE_FP32,
                        HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]),
          HCCL_SUCCESS);
    }
    for (aclrtStream stream : world.streams) CHECK(aclrtSynchronizeStream(stream) != ACL_SUCCESS);
    messages();
  });
}
