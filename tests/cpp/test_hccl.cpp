// Collective communication between devices of one process. The host computes the expected values
// from the published descriptions of the operations.
#include "hccl/hccl.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "hccl/hccl_rank_graph.h"
#include "hccl/hcomm_res.h"
#include "hccl_support.h"
#include "host_cann/runtime/float_status.h"

// Checks the status of a call and the words of its text.
#define CHECK_REFUSED(call, status, words) \
  do {                                     \
    CHECK_EQ(call, status);                \
    CHECK(contains(messages(), words));    \
  } while (false)

TEST(all_reduce_of_every_type_and_reduction) {
  for (const uint32_t ranks : {1, 2, 3, 4, 8}) {
    const World world(ranks);
    for (const Numbers& of : all_types()) {
      for (const HcclReduceOp op : kReductions) {
        for (const size_t count : {size_t{1}, size_t{5000}}) {  // reduced by all, and in parts
          const Buffers sent = filled(world, of, count), received = room(world, of, count);
          world.run([&](uint32_t rank) {
            return HcclAllReduce(sent[rank]->data(), received[rank]->data(), count, of.type, op,
                                 world.comms[rank], world.streams[rank]);
          });
          for (uint32_t rank = 0; rank < ranks; ++rank) {
            CHECK(received[rank]->values() == all_reduced(of, op, ranks, 0, count));
            CHECK(sent[rank]->values() == values(rank, count));
          }
        }
      }
    }
  }
}

TEST(large_unsigned_numbers_are_ordered_as_such) {
  const World world(2);
  for (const size_t type : {size_t{6}, size_t{8}, size_t{9}}) {
    const Numbers& of = all_types()[type];
    const double large = std::ldexp(1.5, static_cast<int>(of.size) * 8 - 1);
    for (const HcclReduceOp op : {HCCL_REDUCE_MAX, HCCL_REDUCE_MIN}) {
      Buffers buffers;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        world.enter(rank);
        buffers.push_back(std::make_unique<Buffer>(of, std::vector<double>{rank == 0 ? large : 3}));
      }
      world.run([&](uint32_t rank) {
        return HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), 1, of.type, op,
                             world.comms[rank], world.streams[rank]);
      });
      CHECK_EQ(buffers[1]->values()[0], op == HCCL_REDUCE_MAX ? large : 3);
    }
  }
}

// 2048 + 1 is 2048 in FLOAT16, and 256 + 1 is 256 in BFLOAT16; summed in FLOAT, the ones of eight
// ranks count.
TEST(sixteen_bits_are_reduced_in_float_and_rounded_once) {
  const World world(8);
  for (const auto& [type, first, expected] :
       {std::tuple{size_t{3}, 2048.0, 2056.0}, {size_t{11}, 256.0, 264.0}}) {
    const Numbers& of = all_types()[type];
    Buffers buffers;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      world.enter(rank);
      buffers.push_back(std::make_unique<Buffer>(of, std::vector<double>{rank == 0 ? first : 1}));
    }
    world.run([&](uint32_t rank) {
      return HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), 1, of.type,
                           HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]);
    });
    for (const auto& buffer : buffers) CHECK_EQ(buffer->values()[0], expected);
  }
}

// More data than is exchanged at a time, in place. All ranks get the same bits although sums round.
TEST(all_reduce_of_much_in_place) {
  const World world(3);
  const size_t count = (size_t{13} << 20) / 4 * 3 + 5;
  Buffers buffers;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    world.enter(rank);
    buffers.push_back(std::make_unique<Buffer>(floats(), count));
    float* const data = static_cast<float*>(buffers[rank]->data());
    for (size_t i = 0; i < count; ++i)
      data[i] = 1.0F / static_cast<float>(1 + (i * 7 + rank * 1000) % 997);
  }
  std::vector<float> expected(count);
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t rank = 0; rank < 3; ++rank)
      expected[i] += static_cast<const float*>(buffers[rank]->data())[i];
  }
  world.run([&](uint32_t rank) {
    return HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), count, HCCL_DATA_TYPE_FP32,
                         HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]);
  });
  for (const auto& buffer : buffers)
    CHECK_EQ(std::memcmp(buffer->data(), expected.data(), count * 4), 0);
}

TEST(reduce_reaches_the_root_alone) {
  const World world(4);
  for (const size_t count : {size_t{3}, size_t{3} << 20}) {
    for (const uint32_t root : {0U, 2U}) {
      const Buffers sent = filled(world, floats(), count), received = room(world, floats(), count);
      world.run([&](uint32_t rank) {
        return HcclReduce(sent[rank]->data(), rank == root ? received[rank]->data() : nullptr,
                          count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, root, world.comms[rank],
                          world.streams[rank]);
      });
      CHECK(received[root]->values() == all_reduced(floats(), HCCL_REDUCE_SUM, 4, 0, count));
      CHECK(received[1]->values() == std::vector<double>(count, 9));
    }
  }
}

// In saturation mode a sum out of range sets the float status of the device that reduces. Minimum
// and maximum do not set it, and in infinity mode nothing does.
TEST(a_sum_out_of_range_sets_the_float_status_of_its_device) {
  using aclnn_host::FloatStatus;
  const World world(3);
  const auto statuses_after = [&](HcclReduceOp op, double value) {
    std::vector<int> found(world.ranks());
    Buffers buffers = room(world, floats(), 0);
    for (uint32_t rank = 0; rank < world.ranks(); ++rank) {
      world.enter(rank);
      buffers[rank] = std::make_unique<Buffer>(floats(), std::vector<double>{1, value});
      CHECK_EQ(run_on(world.streams[rank],
                      [] {
                        aclnn_host::clear_overflow(FloatStatus::kOperators);
                        return ACL_SUCCESS;
                      }),
               ACL_SUCCESS);
    }
    world.run([&](uint32_t rank) {
      void* const data = buffers[rank]->data();
      return HcclReduce(data, data, 2, HCCL_DATA_TYPE_FP32, op, 1, world.comms[rank],
                        world.streams[rank]);
    });
    world.run([&](uint32_t rank) {
      run_on(world.streams[rank], [&found, rank] {
        found[rank] = aclnn_host::has_overflowed(FloatStatus::kOperators);
        return ACL_SUCCESS;
      });
      return aclrtSynchronizeStream(world.streams[rank]) == ACL_SUCCESS ? HCCL_SUCCESS
                                                                        : HCCL_E_RUNTIME;
    });
    return found;
  };
  const std::vector<int> none{0, 0, 0}, root{0, 1, 0};
  CHECK(statuses_after(HCCL_REDUCE_SUM, 3e38) == none);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
  CHECK(statuses_after(HCCL_REDUCE_SUM, 3e38) == none);  // the switches are off
  for (aclrtStream stream : world.streams) {
    CHECK_EQ(aclrtSetStreamOverflowSwitch(stream, 1), ACL_SUCCESS);
  }
  CHECK(statuses_after(HCCL_REDUCE_SUM, 3e38) == root);
  CHECK(statuses_after(HCCL_REDUCE_SUM, 1e38) == none);
  CHECK(statuses_after(HCCL_REDUCE_MAX, HUGE_VAL) == none);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
}

TEST(reduce_scatter_gives_each_rank_its_part) {
  const World world(4);
  for (const size_t count : {size_t{0}, size_t{3}, size_t{5} << 18}) {
    for (const HcclReduceOp op : kReductions) {
      const Buffers sent = filled(world, floats(), 4 * count),
                    received = room(world, floats(), count);
      world.run([&](uint32_t rank) {
        return HcclReduceScatter(sent[rank]->data(), received[rank]->data(), count,
                                 HCCL_DATA_TYPE_FP32, op, world.comms[rank], world.streams[rank]);
      });
      for (uint32_t rank = 0; rank < 4; ++rank) {
        CHECK(received[rank]->values() == all_reduced(floats(), op, 4, rank * count, count));
      }
    }
  }
}

TEST(reduce_scatter_of_parts_of_any_size) {
  const World world(3);
  const std::vector<uint64_t> counts = {2, 0, 3}, displacements = {4, 0, 1};
  const Buffers sent = filled(world, floats(), 6), received = room(world, floats(), 3);
  world.run([&](uint32_t rank) {
    return HcclReduceScatterV(sent[rank]->data(), counts.data(), displacements.data(),
                              received[rank]->data(), counts[rank], HCCL_DATA_TYPE_FP32,
                              HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]);
  });
  for (uint32_t rank = 0; rank < 3; ++rank) {
    std::vector<double> expected =
        all_reduced(floats(), HCCL_REDUCE_SUM, 3, displacements[rank], counts[rank]);
    expected.resize(3, 9);
    CHECK(received[rank]->values() == expected);
  }
}

TEST(broadcast_of_every_type) {
  const World world(3);
  for (const Numbers& of : all_types()) {
    const Buffers buffers = filled(world, of, 100);
    world.run([&](uint32_t rank) {
      return HcclBroadcast(buffers[rank]->data(), 100, of.type, 1, world.comms[rank],
                           world.streams[rank]);
    });
    for (const auto& buffer : buffers) CHECK(buffer->values() == values(1, 100));
  }
}

TEST(all_gather_and_scatter) {
  const World world(3);
  for (const size_t count : {size_t{0}, size_t{2}, size_t{1} << 20}) {
    const Buffers sent = filled(world, floats(), count), all = room(world, floats(), 3 * count);
    const Buffers back = room(world, floats(), count);
    world.run([&](uint32_t rank) {
      return HcclAllGather(sent[rank]->data(), all[rank]->data(), count, HCCL_DATA_TYPE_FP32,
                           world.comms[rank], world.streams[rank]);
    });
    std::vector<double> expected;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const auto part = values(rank, count);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    for (const auto& buffer : all) CHECK(buffer->values() == expected);
    world.run([&](uint32_t rank) {
      return HcclScatter(rank == 2 ? all[rank]->data() : nullptr, back[rank]->data(), count,
                         HCCL_DATA_TYPE_FP32, 2, world.comms[rank], world.streams[rank]);
    });
    for (uint32_t rank = 0; rank < 3; ++rank) CHECK(back[rank]->values() == values(rank, count));
  }
}

TEST(all_gather_of_parts_of_any_size) {
  const World world(2);
  const std::vector<uint64_t> counts = {1, 3}, displacements = {4, 0};
  const Buffers sent = filled(world, floats(), 3), received = room(world, floats(), 5);
  world.run([&](uint32_t rank) {
    return HcclAllGatherV(sent[rank]->data(), counts[rank], received[rank]->data(), counts.data(),
                          displacements.data(), HCCL_DATA_TYPE_FP32, world.comms[rank],
                          world.streams[rank]);
  });
  const std::vector<double> expected = {number(1, 0), number(1, 1), number(1, 2), 9, number(0, 0)};
  for (const auto& buffer : received) CHECK(buffer->values() == expected);
}

TEST(all_to_all_in_its_three_forms) {
  const World world(3);
  const size_t ranks = 3;
  // Rank i sends i + 2 * j + 1 elements to rank j, from an offset in the buffer.
  std::vector<uint64_t> matrix(ranks * ranks);
  for (size_t i = 0; i < ranks; ++i) {
    for (size_t j = 0; j < ranks; ++j) matrix[i * ranks + j] = i + 2 * j + 1;
  }
  const auto row = [&](size_t i) {
    return std::vector<uint64_t>(&matrix[i * ranks], &matrix[i * ranks] + ranks);
  };
  const auto column = [&](size_t j) {
    return std::vector<uint64_t>{matrix[j], matrix[ranks + j], matrix[2 * ranks + j]};
  };
  const auto starts = [](const std::vector<uint64_t>& counts) {
    return std::vector<uint64_t>{0, counts[0], counts[0] + counts[1]};
  };
  const Buffers sent = filled(world, floats(), 30);
  for (const bool by_matrix : {false, true}) {
    const Buffers received = room(world, floats(), 30);
    world.run([&](uint32_t rank) {
      if (by_matrix) {
        return HcclAlltoAllVC(sent[rank]->data(), matrix.data(), HCCL_DATA_TYPE_FP32,
                              received[rank]->data(), HCCL_DATA_TYPE_FP32, world.comms[rank],
                              world.streams[rank]);
      }
      const auto sends = row(rank), receipts = column(rank);
      return HcclAlltoAllV(sent[rank]->data(), sends.data(), starts(sends).data(),
                           HCCL_DATA_TYPE_FP32, received[rank]->data(), receipts.data(),
                           starts(receipts).data(), HCCL_DATA_TYPE_FP32, world.comms[rank],
                           world.streams[rank]);
    });
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> expected;
      for (uint32_t from = 0; from < ranks; ++from) {
        const auto first = starts(row(from))[rank];
        for (size_t i = 0; i < matrix[from * ranks + rank]; ++i)
          expected.push_back(number(from, first + i));
      }
      expected.resize(30, 9);
      CHECK(received[rank]->values() == expected);
    }
  }

  const Buffers received = room(world, floats(), 30);
  world.run([&](uint32_t rank) {
    return HcclAlltoAll(sent[rank]->data(), 10, HCCL_DATA_TYPE_FP32, received[rank]->data(), 10,
                        HCCL_DATA_TYPE_FP32, world.comms[rank], world.streams[rank]);
  });
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> expected;
    for (uint32_t from = 0; from < ranks; ++from) {
      for (size_t i = 0; i < 10; ++i) expected.push_back(number(from, rank * 10 + i));
    }
    CHECK(received[rank]->values() == expected);
  }
}

TEST(messages_between_two_ranks_arrive_in_order) {
  const World world(2);
  const size_t count = size_t{3} << 20;  // more than the transport buffers
  const Buffers small = filled(world, floats(), 4), large = filled(world, floats(), count);
  world.run([&](uint32_t rank) {
    const auto send_or_receive = rank == 0 ? &HcclSend : &HcclRecv;
    const uint32_t other = 1 - rank;
    CHECK_EQ(send_or_receive(small[rank]->data(), 4, HCCL_DATA_TYPE_FP32, other, world.comms[rank],
                             world.streams[rank]),
             HCCL_SUCCESS);
    return send_or_receive(large[rank]->data(), count, HCCL_DATA_TYPE_FP32, other,
                           world.comms[rank], world.streams[rank]);
  });
  CHECK(small[1]->values() == values(0, 4));
  CHECK(large[1]->values() == values(0, count));
}

// A rank does not receive more than it reads: the sender's operation does not end earlier.
TEST(a_long_message_waits_for_its_receiver) {
  const World world(2);
  const size_t count = size_t{1} << 20;  // twice what the transport buffers
  const Buffers buffers = filled(world, floats(), count);
  Gate gate;
  CHECK_EQ(run_on(world.streams[1], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  CHECK_EQ(
      HcclSend(buffers[0]->data(), count, HCCL_DATA_TYPE_FP32, 1, world.comms[0], world.streams[0]),
      HCCL_SUCCESS);
  CHECK_EQ(
      HcclRecv(buffers[1]->data(), count, HCCL_DATA_TYPE_FP32, 0, world.comms[1], world.streams[1]),
      HCCL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStreamWithTimeout(world.streams[0], 200),
           ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  messages();
  gate.open();
  for (aclrtStream stream : world.streams) CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  CHECK(buffers[1]->values() == values(0, count));
}

TEST(sends_and_receives_of_a_batch_do_not_wait_for_one_another) {
  const World world(3);
  const size_t count = size_t{1} << 20;
  for (const bool as_group : {false, true}) {
    const Buffers sent = filled(world, floats(), count), received = room(world, floats(), count);
    world.run([&](uint32_t rank) {  // a ring, in which every rank sends first
      const uint32_t next = (rank + 1) % 3, previous = (rank + 2) % 3;
      HcclComm comm = world.comms[rank];
      aclrtStream stream = world.streams[rank];
      if (!as_group) {
        HcclSendRecvItem items[] = {
            {HCCL_SEND, sent[rank]->data(), count, HCCL_DATA_TYPE_FP32, next},
            {HCCL_RECV, received[rank]->data(), count, HCCL_DATA_TYPE_FP32, previous}};
        return HcclBatchSendRecv(items, 2, comm, stream);
      }
      CHECK_EQ(HcclGroupStart(), HCCL_SUCCESS);
      CHECK_EQ(HcclSend(sent[rank]->data(), count, HCCL_DATA_TYPE_FP32, next, comm, stream),
               HCCL_SUCCESS);
      CHECK_EQ(HcclRecv(received[rank]->data(), count, HCCL_DATA_TYPE_FP32, previous, comm, stream),
               HCCL_SUCCESS);
      return HcclGroupEnd();
    });
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(received[rank]->values() == values((rank + 2) % 3, count));
  }
  CHECK_REFUSED(HcclGroupEnd(), HCCL_E_PARA, "HcclGroupStart");
}

TEST(a_barrier_is_passed_by_all_together) {
  const World world(2);
  Gate gate;
  CHECK_EQ(run_on(world.streams[1], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(HcclBarrier(world.comms[rank], world.streams[rank]), HCCL_SUCCESS);
  }
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  CHECK_EQ(aclrtStreamQuery(world.streams[0], &status), ACL_SUCCESS);
  CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  for (aclrtStream stream : world.streams) CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

// The second operation is on a free stream, the first on a blocked one.
TEST(operations_are_done_in_the_order_of_their_calls) {
  const World world(2);
  Gate gate;
  const Buffers first = filled(world, floats(), 1), second = filled(world, floats(), 1);
  std::vector<aclrtStream> others(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    world.enter(rank);
    CHECK_EQ(aclrtCreateStream(&others[rank]), ACL_SUCCESS);
    if (rank == 0)
      CHECK_EQ(run_on(others[rank], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
    CHECK_EQ(HcclAllReduce(first[rank]->data(), first[rank]->data(), 1, HCCL_DATA_TYPE_FP32,
                           HCCL_REDUCE_SUM, world.comms[rank], others[rank]),
             HCCL_SUCCESS);
    CHECK_EQ(HcclAllReduce(second[rank]->data(), second[rank]->data(), 1, HCCL_DATA_TYPE_FP32,
                           HCCL_REDUCE_PROD, world.comms[rank], world.streams[rank]),
             HCCL_SUCCESS);
  }
  gate.open();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(aclrtSynchronizeStream(others[rank]), ACL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(world.streams[rank]), ACL_SUCCESS);
    CHECK_EQ(first[rank]->values()[0], number(0, 0) + number(1, 0));
    CHECK_EQ(second[rank]->values()[0], number(0, 0) * number(1, 0));
    CHECK_EQ(aclrtDestroyStream(others[rank]), ACL_SUCCESS);
  }
}

TEST(a_captured_operation_is_done_in_every_execution) {
  const World world(2);
  const Buffers buffers = filled(world, floats(), 1);
  std::vector<aclmdlRI> models(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    world.enter(rank);
    CHECK_EQ(aclmdlRICaptureBegin(world.streams[rank], ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
             ACL_SUCCESS);
    CHECK_EQ(HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), 1, HCCL_DATA_TYPE_FP32,
                           HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]),
             HCCL_SUCCESS);
    CHECK_EQ(aclmdlRICaptureEnd(world.streams[rank], &models[rank]), ACL_SUCCESS);
  }
  double expected = number(0, 0) + number(1, 0);
  for (int i = 0; i < 3; ++i, expected *= 2) {
    world.run([&](uint32_t rank) {
      return aclmdlRIExecuteAsync(models[rank], world.streams[rank]) == ACL_SUCCESS
                 ? HCCL_SUCCESS
                 : HCCL_E_RUNTIME;
    });
    for (const auto& buffer : buffers) CHECK_EQ(buffer->values()[0], expected);
  }
  for (aclmdlRI model : models) CHECK_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST(parts_of_a_communicator) {
  const World world(4);
  std::vector<HcclComm> parts(4);
  uint32_t even[] = {0, 2}, odd[] = {3, 1};  // in a different order
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        HcclComm whole = world.comms[rank];
        uint32_t* const ranks = rank % 2 == 0 ? even : odd;
        HcclCommConfig config;
        HcclCommConfigInit(&config);
        std::strcpy(config.hcclCommName, rank % 2 == 0 ? "even" : "odd");
        const uint32_t own = ranks[0] == rank ? 0 : 1;
        CHECK_EQ(HcclCreateSubCommConfig(&whole, 2, ranks, 7, own, &config, &parts[rank]),
                 HCCL_SUCCESS);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Buffers received = room(world, floats(), 2), sent = filled(world, floats(), 1);
    world.run([&](uint32_t rank) {
      return HcclAllGather(sent[rank]->data(), received[rank]->data(), 1, HCCL_DATA_TYPE_FP32,
                           parts[rank], world.streams[rank]);
    });
    CHECK(received[2]->values() == (std::vector<double>{number(0, 0), number(2, 0)}));
    CHECK(received[1]->values() == (std::vector<double>{number(3, 0), number(1, 0)}));
    uint32_t rank = 0, size = 0;
    char name[COMM_NAME_MAX_LENGTH];
    CHECK_EQ(HcclGetRankId(parts[1], &rank), HCCL_SUCCESS);
    CHECK_EQ(HcclGetRankSize(parts[1], &size), HCCL_SUCCESS);
    CHECK_EQ(HcclGetCommName(parts[1], name), HCCL_SUCCESS);
    CHECK_EQ(rank, 1U);
    CHECK_EQ(size, 2U);
    CHECK_EQ(std::string(name), "odd");
    for (HcclComm part : parts) CHECK_EQ(HcclCommDestroy(part), HCCL_SUCCESS);
  }
  HcclComm whole = world.comms[0], none = &none;
  CHECK_EQ(HcclCreateSubCommConfig(&whole, 2, nullptr, 8, 0, nullptr, &none), HCCL_SUCCESS);
  CHECK(none == nullptr);
  uint32_t wrong[] = {1, 4};
  CHECK_REFUSED(HcclCreateSubCommConfig(&whole, 2, wrong, 8, 0, nullptr, &none), HCCL_E_PARA,
                "rankIds is 4");
}

// Several roots; the ranks join at the first.
TEST(a_communicator_of_several_roots) {
  HcclRootInfo roots[2], others[2];
  for (HcclRootInfo* root : {&roots[0], &roots[1], &others[1]})
    CHECK_EQ(HcclGetRootInfoScalable(root), HCCL_SUCCESS);
  others[0] = roots[0];
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  HcclComm comms[2] = {};
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const auto join = [&](uint32_t count, const HcclRootInfo* list, uint32_t rank, uint32_t more) {
    return HcclCommInitRootInfoScalable(2, count, list, rank, more, &config, &comms[rank]);
  };
  CHECK_REFUSED(join(0, roots, 0, 0), HCCL_E_PARA,
                "nRoot is 0, expected 1 to the number of ranks, 2");
  CHECK_REFUSED(join(3, roots, 0, 0), HCCL_E_PARA,
                "nRoot is 3, expected 1 to the number of ranks, 2");
  CHECK_REFUSED(join(2, roots, 0, 1), HCCL_E_PARA, "nExtRoot is 1, expected 0");
  CHECK_REFUSED(join(2, nullptr, 0, 0), HCCL_E_PTR, "rootInfoList is a null pointer");
  std::thread other([&] {
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK_EQ(join(2, roots, 1, 0), HCCL_SUCCESS);
  });
  CHECK_EQ(join(2, roots, 0, 0), HCCL_SUCCESS);
  other.join();
  CHECK_REFUSED(HcclCommInitRootInfoScalable(2, 2, others, 0, 0, &config, &comms[0]), HCCL_E_PARA,
                "rootInfoList is not that of a rank that came before");
  uint32_t size = 0;
  CHECK_EQ(HcclGetRankSize(comms[1], &size), HCCL_SUCCESS);
  CHECK_EQ(size, 2U);
  for (HcclComm comm : comms) CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST(communicators_are_found_by_their_names) {
  const World world(2);
  char name[COMM_NAME_MAX_LENGTH];
  CHECK_EQ(HcclGetCommName(world.comms[0], name), HCCL_SUCCESS);
  HcclComm found = nullptr;
  HcclCommStatus status = HCCL_COMM_STATUS_RESERVED;
  for (const uint32_t rank : {1U, 0U}) {  // both have the name
    world.enter(rank);
    CHECK_EQ(HcclCommGetHandleWithName(name, &found), HCCL_SUCCESS);
    CHECK_EQ(found, world.comms[rank]);
    CHECK_EQ(HcclCommGetStatus(name, &status), HCCL_SUCCESS);
    CHECK_EQ(status, HCCL_COMM_STATUS_READY);
  }
  const Buffer buffer(floats(), 2);
  HcclAllReduce(buffer.data(), buffer.data(), 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                world.comms[0], world.streams[0]);
  HcclBarrier(world.comms[1], world.streams[1]);
  for (aclrtStream stream : world.streams) CHECK(aclrtSynchronizeStream(stream) != ACL_SUCCESS);
  CHECK_EQ(HcclCommGetStatus(name, &status), HCCL_SUCCESS);
  CHECK_EQ(status, HCCL_COMM_STATUS_INVALID);
  messages();
  CHECK_REFUSED(HcclCommGetHandleWithName("nobody", &found), HCCL_E_NOT_FOUND,
                "commName is nobody, which no communicator of this process is called");
  CHECK_REFUSED(HcclCommGetStatus(nullptr, &status), HCCL_E_PTR,
                "HcclCommGetStatus: commId is a null pointer");
  bool is_group = true;
  CHECK_EQ(HcclGroupStatusGet(&is_group), HCCL_SUCCESS);
  CHECK(!is_group);
  CHECK_EQ(HcclGroupStart(), HCCL_SUCCESS);
  CHECK_EQ(HcclGroupStatusGet(&is_group), HCCL_SUCCESS);
  CHECK(is_group);
  CHECK_EQ(HcclGroupEnd(), HCCL_SUCCESS);
  messages();
}

TEST(windows_of_memory) {
  leaves_nothing([] {
    World world(2);
    HcclComm comm = world.comms[0];
    void* memory = nullptr;
    world.enter(0);
    CHECK_EQ(HcommMemAlloc(&memory, 4096), HCCL_SUCCESS);
    HcclCommSymWindow window = nullptr, found = nullptr;
    CHECK_EQ(HcclCommSymWinRegister(comm, memory, 4096, &window, 1), HCCL_SUCCESS);
    size_t offset = 0;
    CHECK_EQ(HcclCommSymWinGet(comm, static_cast<char*>(memory) + 96, 4000, &found, &offset),
             HCCL_SUCCESS);
    CHECK_EQ(found, window);
    CHECK_EQ(offset, 96U);
    CHECK_REFUSED(HcclCommSymWinGet(comm, static_cast<char*>(memory) + 97, 4000, &found, &offset),
                  HCCL_E_NOT_FOUND, "ptr has 4000 bytes that lie in no window of the communicator");
    CHECK_REFUSED(HcclCommSymWinGet(world.comms[1], memory, 1, &found, &offset), HCCL_E_NOT_FOUND,
                  "ptr has 1 bytes that lie in no window of the communicator");
    CHECK_EQ(HcclCommSymWinDeregister(window), HCCL_SUCCESS);
    CHECK_REFUSED(HcclCommSymWinDeregister(window), HCCL_E_PARA,
                  "winHandle is no window of this process, or has ended");
    CHECK_REFUSED(HcclCommSymWinRegister(comm, memory, 0, &window, 1), HCCL_E_PARA,
                  "size is 0, expected the bytes of a memory");
    CHECK_REFUSED(HcclCommSymWinRegister(comm, nullptr, 1, &window, 1), HCCL_E_PTR,
                  "addr is a null pointer");
    CHECK_EQ(HcclCommSymWinRegister(comm, memory, 4096, &window, 1), HCCL_SUCCESS);
    CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);  // with its window
    world.comms[0] = nullptr;
    CHECK_REFUSED(HcclCommSymWinDeregister(window), HCCL_E_PARA,
                  "winHandle is no window of this process, or has ended");
    CHECK_EQ(HcommMemFree(memory), HCCL_SUCCESS);
    CHECK_REFUSED(HcommMemFree(memory), HCCL_E_PARA,
                  "is not the beginning of a block of aclrtMalloc, or was freed");
    CHECK_REFUSED(HcommMemAlloc(nullptr, 1), HCCL_E_PTR, "HcommMemAlloc: ptr is a null pointer");
  });
}

TEST(ranks_are_connected_each_with_each) {
  const World world(3);
  HcclComm comm = world.comms[1];
  uint32_t* list = nullptr;
  uint32_t count = 0;
  const auto values_are = [&](std::vector<uint32_t> expected) {
    return std::vector<uint32_t>(list, list + count) == expected;
  };
  CHECK_EQ(HcclRankGraphGetLayers(comm, &list, &count), HCCL_SUCCESS);
  CHECK(values_are({0}));
  CHECK_EQ(HcclRankGraphGetRanksByLayer(comm, 0, &list, &count), HCCL_SUCCESS);
  CHECK(values_are({0, 1, 2}));
  CHECK_EQ(HcclRankGraphGetInstSizeListByLayer(comm, 0, &list, &count), HCCL_SUCCESS);
  CHECK(values_are({3}));
  CHECK_EQ(HcclRankGraphGetTopoInstsByLayer(comm, 0, &list, &count), HCCL_SUCCESS);
  CHECK(values_are({0}));
  CHECK_EQ(HcclRankGraphGetRanksByTopoInst(comm, 0, 0, &list, &count), HCCL_SUCCESS);
  CHECK(values_are({0, 1, 2}));
  CHECK_EQ(HcclRankGraphGetRankSizeByLayer(comm, 0, &count), HCCL_SUCCESS);
  CHECK_EQ(count, 3U);
  CommTopo topology = COMM_TOPO_RESERVED;
  CHECK_EQ(HcclRankGraphGetTopoTypeByLayer(comm, 0, &topology), HCCL_SUCCESS);
  CHECK_EQ(topology, COMM_TOPO_1DMESH);
  CHECK_REFUSED(HcclRankGraphGetTopoType(comm, 0, 1, &topology), HCCL_E_PARA,
                "topoInstId is 1, expected 0, the only one");
  CHECK_REFUSED(HcclRankGraphGetRanksByLayer(comm, 1, &list, &count), HCCL_E_PARA,
                "netLayer is 1, expected 0, the only one");
  CHECK_REFUSED(HcclRankGraphGetLayers(comm, nullptr, &count), HCCL_E_PTR,
                "netLayers is a null pointer");
  CHECK_REFUSED(HcclRankGraphGetLayers(nullptr, &list, &count), HCCL_E_PTR,
                "HcclRankGraphGetLayers: comm is a null pointer");
  HcclHeterogMode mode = HCCL_HETEROG_MODE_INVALID;
  CHECK_EQ(HcclGetHeterogMode(comm, &mode), HCCL_SUCCESS);
  CHECK_EQ(mode, HCCL_HETEROG_MODE_HOMOGENEOUS);
  messages();
}

// Some of the refused functions, which are declared without parameters.
extern "C" HcclResult HcclRankGraphGetLinks();
extern "C" HcclResult HcclGetHcclBuffer();
extern "C" HcclResult HcommChannelCreate();

TEST(what_one_host_cannot_do_is_refused) {
  for (const auto function : {&HcclRankGraphGetLinks, &HcclGetHcclBuffer, &HcommChannelCreate}) {
    CHECK_EQ(function(), HCCL_E_NOT_SUPPORT);
    CHECK(contains(messages(), "the host CANN does not have this function, because it is about"));
  }
}

TEST(bad_arguments_are_refused_at_once) {
  const World world(2);
  world.enter(0);
  HcclComm comm = world.comms[0];
  aclrtStream stream = world.streams[0];
  const Buffer buffer(floats(), 256);
  const auto all_reduce = [&](void* data, uint64_t count, HcclDataType type, int op, HcclComm of) {
    return HcclAllReduce(data, buffer.data(), count, type, static_cast<HcclReduceOp>(op), of,
                         stream);
  };
  void* const data = buffer.data();
  constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;
  CHECK_REFUSED(all_reduce(nullptr, 1, kFloat, 0, comm), HCCL_E_PTR,
                "HcclAllReduce: sendBuf is a null pointer");
  CHECK_REFUSED(all_reduce(data, 1, kFloat, 0, nullptr), HCCL_E_PTR,
                "HcclAllReduce: comm is a null pointer");
  CHECK_REFUSED(all_reduce(data, 1, kFloat, 0, &comm), HCCL_E_PARA,
                "is not a communicator of this process, or was destroyed");
  CHECK_REFUSED(all_reduce(data, 257, kFloat, 0, comm), HCCL_E_PARA,
                "sendBuf has 1028 bytes that do not all lie in one block of aclrtMalloc");
  CHECK_REFUSED(all_reduce(data, UINT64_MAX, kFloat, 0, comm), HCCL_E_PARA,
                "would have 18446744073709551615 elements, which no memory has");
  CHECK_REFUSED(all_reduce(&comm, 1, kFloat, 0, comm), HCCL_E_PARA,  // host memory
                "sendBuf has 4 bytes that do not all lie in one block of aclrtMalloc on device 0");
  CHECK_REFUSED(all_reduce(data, 1, HCCL_DATA_TYPE_FP8E4M3, 0, comm), HCCL_E_NOT_SUPPORT,
                "FP8E4M3 and op SUM");
  CHECK_REFUSED(all_reduce(data, 1, kFloat, 4, comm), HCCL_E_NOT_SUPPORT,
                "dataType is FP32 and op an unknown reduction");
  CHECK_REFUSED(all_reduce(data, 1, static_cast<HcclDataType>(13), 0, comm), HCCL_E_NOT_SUPPORT,
                "dataType is an unknown type and op SUM");
  CHECK_REFUSED(HcclBroadcast(data, 1, kFloat, 2, comm, stream), HCCL_E_PARA,
                "root is 2, expected less than the number of ranks, 2");
  CHECK_REFUSED(HcclSend(data, 1, kFloat, 0, comm, stream), HCCL_E_PARA,
                "destRank is 0, the calling rank itself");
  CHECK_REFUSED(HcclSend(data, 1, kFloat, 2, comm, stream), HCCL_E_PARA,
                "destRank is 2, expected less than the number of ranks, 2");
  CHECK_REFUSED(HcclAlltoAll(data, 1, kFloat, data, 1, HCCL_DATA_TYPE_INT8, comm, stream),
                HCCL_E_PARA, "sendType is FP32 and recvType INT8, expected the same");
  CHECK_REFUSED(HcclAlltoAll(data, 1, kFloat, data, 1, kFloat, comm, stream), HCCL_E_PARA,
                "recvBuf is sendBuf; it must be another buffer");
  const uint64_t sends[] = {3, 1}, receives[] = {2, 1}, begins[] = {0, 3};
  const Buffer received(floats(), 256);
  CHECK_REFUSED(HcclAlltoAllV(data, sends, begins, kFloat, received.data(), receives, begins,
                              kFloat, comm, stream),
                HCCL_E_PARA, "rank 0 sends itself 3 elements and receives 2");
  CHECK_REFUSED(HcclAllGatherV(data, 1, data, nullptr, begins, kFloat, comm, stream), HCCL_E_PTR,
                "recvCounts is a null pointer");
  CHECK_REFUSED(HcclAllGatherV(data, 1, data, receives, nullptr, kFloat, comm, stream), HCCL_E_PTR,
                "recvDispls is a null pointer");
  CHECK_REFUSED(HcclAllGatherV(data, 3, received.data(), receives, begins, kFloat, comm, stream),
                HCCL_E_PARA, "recvCounts has 2 for rank 0, expected its sendCount, 3");
  CHECK_REFUSED(HcclReduceScatterV(data, receives, begins, received.data(), 3, kFloat,
                                   HCCL_REDUCE_SUM, comm, stream),
                HCCL_E_PARA, "recvCount is 3 and sendCounts has 2 for rank 0, expected the same");
  CHECK_REFUSED(HcclBarrier(comm, data), HCCL_E_PARA, "is not a stream of this process");
  world.enter(1);
  const Buffer other(floats(), 1);
  CHECK_REFUSED(all_reduce(other.data(), 1, kFloat, 0, comm), HCCL_E_PARA,  // of another device
                "device 0, the communicator's");

  HcclRootInfo root{};
  HcclComm made = nullptr;
  CHECK_REFUSED(HcclGetRootInfo(nullptr), HCCL_E_PTR, "rootInfo is a null pointer");
  CHECK_REFUSED(HcclCommInitRootInfo(1, &root, 0, &made), HCCL_E_PARA,
                "rootInfo is not what HcclGetRootInfo of this library made");
  CHECK_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_REFUSED(HcclCommInitRootInfo(1, &root, 1, &made), HCCL_E_PARA,
                "rank is 1, expected less than the number of ranks, 1");
  HcclCommConfig config{};
  CHECK_REFUSED(HcclCommInitRootInfoConfig(1, &root, 0, &config, &made), HCCL_E_PARA,
                "config was not filled by HcclCommConfigInit");
  CHECK_EQ(HcclCommInitRootInfo(1, &root, 0, &made), HCCL_SUCCESS);
  CHECK_EQ(HcclCommDestroy(made), HCCL_SUCCESS);
  CHECK_REFUSED(HcclCommDestroy(made), HCCL_E_PARA,
                "is not a communicator of this process, or was destroyed");
  CHECK_REFUSED(HcclBarrier(made, stream), HCCL_E_PARA,
                "is not a communicator of this process, or was destroyed");
  int32_t device = 99;
  CHECK_REFUSED(HcclCommInitAll(1, &device, &made), HCCL_E_PARA, "devices has 99");
  CHECK_REFUSED(HcclCommInitClusterInfo("table.json", 0, &made), HCCL_E_NOT_SUPPORT,
                "the host CANN reads no rank tables");
  CHECK_REFUSED(HcclSetConfig(static_cast<HcclConfig>(5), {0}), HCCL_E_PARA,
                "config is 5, expected 0 (HCCL_DETERMINISTIC) or 1 (HCCL_ACCELERATOR)");
}

// Both ranks fail, each with a text that names both operations, and the communicator cannot be used
// any more.
TEST(ranks_that_do_different_things_fail) {
  const World world(2);
  const Buffers buffers = filled(world, floats(), 4);
  CHECK_EQ(HcclAllReduce(buffers[0]->data(), buffers[0]->data(), 4, HCCL_DATA_TYPE_FP32,
                         HCCL_REDUCE_SUM, world.comms[0], world.streams[0]),
           HCCL_SUCCESS);
  CHECK_EQ(HcclAllReduce(buffers[1]->data(), buffers[1]->data(), 3, HCCL_DATA_TYPE_FP32,
                         HCCL_REDUCE_SUM, world.comms[1], world.streams[1]),
           HCCL_SUCCESS);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(aclrtSynchronizeStream(world.streams[rank]), ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
    const std::string text = messages();
    CHECK(contains(text, "HcclAllReduce (FP32, SUM) of 16 bytes"));
    CHECK(contains(text, "HcclAllReduce (FP32, SUM) of 12 bytes"));
    HcclResult error = HCCL_SUCCESS;
    CHECK_EQ(HcclGetCommAsyncError(world.comms[rank], &error), HCCL_SUCCESS);
    CHECK_EQ(error, HCCL_E_PARA);
    CHECK_EQ(HcclBarrier(world.comms[rank], world.streams[rank]), HCCL_E_PARA);
    CHECK(contains(messages(), "the communicator has failed"));
  }
}

TEST(a_rank_that_does_not_come_is_waited_for_no_longer_than_asked) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  HcclRootInfo root;
  CHECK_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
  HcclComm comms[2];
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  config.hcclExecTimeOut = 1;
  std::thread other([&] {
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK_EQ(HcclCommInitRootInfoConfig(2, &root, 1, &config, &comms[1]), HCCL_SUCCESS);
  });
  CHECK_EQ(HcclCommInitRootInfoConfig(2, &root, 0, &config, &comms[0]), HCCL_SUCCESS);
  other.join();
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  CHECK_EQ(HcclBarrier(comms[0], stream), HCCL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
  CHECK(contains(messages(), "waited in vain for rank 1"));
  HcclResult error = HCCL_SUCCESS;
  CHECK_EQ(HcclGetCommAsyncError(comms[0], &error), HCCL_SUCCESS);
  CHECK_EQ(error, HCCL_E_TIMEOUT);
  CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  for (HcclComm comm : comms) CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST(a_rank_that_has_left_is_not_waited_for) {
  World world(2);
  CHECK_EQ(HcclCommDestroy(world.comms[1]), HCCL_SUCCESS);
  world.comms[1] = nullptr;
  CHECK_EQ(HcclBarrier(world.comms[0], world.streams[0]), HCCL_SUCCESS);
  CHECK_EQ(aclrtSynchronizeStream(world.streams[0]), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  CHECK(contains(messages(), "rank 1 has destroyed its communicator"));
}

TEST(what_was_called_before_a_communicator_is_destroyed_is_done) {
  World world(2);
  Gate gate;
  const Buffers buffers = filled(world, floats(), 1);
  CHECK_EQ(run_on(world.streams[0], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(HcclAllReduce(buffers[rank]->data(), buffers[rank]->data(), 1, HCCL_DATA_TYPE_FP32,
                           HCCL_REDUCE_SUM, world.comms[rank], world.streams[rank]),
             HCCL_SUCCESS);
    CHECK_EQ(HcclCommDestroy(world.comms[rank]), HCCL_SUCCESS);
    world.comms[rank] = nullptr;
  }
  gate.open();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(aclrtSynchronizeStream(world.streams[rank]), ACL_SUCCESS);
    CHECK_EQ(buffers[rank]->values()[0], number(0, 0) + number(1, 0));
  }
}

// The other rank learns at once why the operation that it waits for will not start.
TEST(an_operation_behind_a_failed_task_fails_on_all_ranks) {
  const World world(2);
  CHECK_EQ(run_on(world.streams[0],
                  [] { return aclnn_host::fail(ACL_ERROR_RT_AICORE_EXCEPTION, "a fault"); }),
           ACL_SUCCESS);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK_EQ(HcclBarrier(world.comms[rank], world.streams[rank]), HCCL_SUCCESS);
  }
  CHECK_EQ(aclrtSynchronizeStream(world.streams[0]), ACL_ERROR_RT_AICORE_EXCEPTION);
  CHECK_EQ(aclrtSynchronizeStream(world.streams[1]), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  CHECK(
      contains(messages(), "rank 0 dropped the operation, because its stream had failed: a fault"));
}

// A text of any length reaches the other ranks: complete up to two paths of the greatest length,
// and beyond that truncated to whole characters, with a mark.
TEST(the_longest_texts_reach_the_other_ranks) {
  for (const size_t length : {size_t{8100}, size_t{1} << 16}) {
    const World world(2);
    std::string text;
    while (text.size() < length) text += "/\u5b57";  // a character of three bytes
    CHECK_EQ(
        run_on(world.streams[0],
               [&] { return aclnn_host::fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s", text.c_str()); }),
        ACL_SUCCESS);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      CHECK_EQ(HcclBarrier(world.comms[rank], world.streams[rank]), HCCL_SUCCESS);
    }
    CHECK_EQ(aclrtSynchronizeStream(world.streams[0]), ACL_ERROR_RT_AICORE_EXCEPTION);
    messages();
    CHECK_EQ(aclrtSynchronizeStream(world.streams[1]), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
    const std::string found = messages();
    const std::string end = " ... (the rest stands with the rank that failed)";
    CHECK_EQ(contains(found, "had failed: " + text), length < 8192);
    CHECK_EQ(contains(found, "\u5b57/" + end) || contains(found, "\u5b57" + end), length > 8192);
  }
}

TEST(the_longest_names_are_whole_in_names_and_texts) {
  const World world(1);  // for its stream
  HcclRootInfo root;
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  const std::string longest(COMM_NAME_MAX_LENGTH - 1, 'n');
  std::memset(config.hcclCommName, 'n', COMM_NAME_MAX_LENGTH);
  HcclComm comm = nullptr;
  CHECK_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_REFUSED(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm), HCCL_E_PARA,
                "hcclCommName has no end within 128 bytes");
  config.hcclCommName[COMM_NAME_MAX_LENGTH - 1] = '\0';
  CHECK_EQ(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm), HCCL_SUCCESS);
  char name[COMM_NAME_MAX_LENGTH];
  CHECK_EQ(HcclGetCommName(comm, name), HCCL_SUCCESS);
  CHECK_EQ(std::string(name), longest);
  Gate gate;
  CHECK_EQ(run_on(world.streams[0], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
  {
    const Buffer buffer(floats(), 1);
    CHECK_EQ(HcclBroadcast(buffer.data(), 1, HCCL_DATA_TYPE_FP32, 0, comm, world.streams[0]),
             HCCL_SUCCESS);
  }
  gate.open();
  CHECK(aclrtSynchronizeStream(world.streams[0]) != ACL_SUCCESS);
  CHECK(contains(messages(), "HcclBroadcast: communicator " + longest + ", rank 0 of 1: "));
  CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// The text contains a host name of 255 bytes completely; HcclRootInfo has no space for longer ones.
TEST(the_longest_addresses) {
  HcclRootInfo root;
  const std::string longest(255, 'h');
  setenv("HCCL_IF_IP", longest.c_str(), 1);
  CHECK_EQ(HcclGetRootInfo(&root), HCCL_E_TCP_CONNECT);
  CHECK(contains(messages(), "cannot open a TCP port at " + longest + " (HCCL_IF_IP"));
  setenv("HCCL_IF_IP", (longest + "h").c_str(), 1);
  CHECK_REFUSED(HcclGetRootInfo(&root), HCCL_E_PARA, "HCCL_IF_IP is too long for an address");
  setenv("HCCL_IF_IP", "127.0.0.1", 1);
}

// Sets an environment variable, and restores it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST(interfaces_and_ports_are_chosen_by_the_environment) {
  HcclRootInfo root;
  const Variable none("HCCL_IF_IP", nullptr);
  const auto opens = [&](const char* name, const char* value) {
    const Variable variable(name, value);
    const HcclResult status = HcclGetRootInfo(&root);
    if (status != HCCL_SUCCESS) return messages();
    HcclComm comm = nullptr;  // of this rank only, so that the port is closed
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_SUCCESS);
    CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
    return std::string("opened");
  };
  CHECK_EQ(opens("HCCL_SOCKET_IFNAME", "=lo"), "opened");
  CHECK(contains(
      opens("HCCL_SOCKET_IFNAME", "=nothing,l"),
      "HCCL_SOCKET_IFNAME is =nothing,l, which means none of the interfaces that are up: "));
  CHECK(contains(opens("HCCL_SOCKET_FAMILY", "AF_UNIX"),
                 "HCCL_SOCKET_FAMILY is AF_UNIX, expected AF_INET or AF_INET6"));
  {
    const Variable family("HCCL_SOCKET_FAMILY", "AF_INET6");  // a host may have no such address
    const std::string text = opens("HCCL_SOCKET_IFNAME", "=lo");
    CHECK(text == "opened" ||
          contains(text, "HCCL_SOCKET_IFNAME is =lo, which means none of the interfaces"));
  }
  const Variable loopback("HCCL_IF_IP", "127.0.0.1");
  for (const char* wrong : {"65536", "0", "7-6", "1-", "x", "60000,,1"}) {
    CHECK(contains(opens("HCCL_HOST_SOCKET_PORT_RANGE", wrong),
                   "expected auto, or ports such as 60000,60050-60100"));
  }
  CHECK_EQ(opens("HCCL_HOST_SOCKET_PORT_RANGE", "auto"), "opened");

  // A port that is taken, and one that was just freed.
  const auto port_of = [](int file) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof(address);
    CHECK_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
    CHECK_EQ(getsockname(file, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return std::to_string(ntohs(address.sin_port));
  };
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int free = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string first = port_of(taken), second = port_of(free);
  CHECK_EQ(listen(taken, 1), 0);
  CHECK(contains(opens("HCCL_HOST_SOCKET_PORT_RANGE", first.c_str()),
                 "all ports of HCCL_HOST_SOCKET_PORT_RANGE are taken"));
  close(free);
  CHECK_EQ(opens("HCCL_HOST_SOCKET_PORT_RANGE", (first + "," + second).c_str()), "opened");
  CHECK_EQ(opens("HCCL_HOST_SOCKET_PORT_RANGE", second.c_str()), "opened");
  close(taken);
}

TEST(memory_that_is_freed_too_early_fails_the_operation) {
  const World world(2);
  Gate gate;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    world.enter(rank);
    CHECK_EQ(run_on(world.streams[rank], [&] { return gate.wait(), ACL_SUCCESS; }), ACL_SUCCESS);
    const Buffer buffer(floats(), 1);
    CHECK_EQ(HcclBroadcast(buffer.data(), 1, HCCL_DATA_TYPE_FP32, 0, world.comms[rank],
                           world.streams[rank]),
             HCCL_SUCCESS);
  }
  gate.open();
  CHECK_EQ(aclrtSynchronizeStream(world.streams[0]), ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
  CHECK(contains(messages(), "buf was freed before the stream ran the operation"));
  CHECK(aclrtSynchronizeStream(world.streams[1]) != ACL_SUCCESS);
  messages();
}

static int64_t open_sockets() {
  return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"),
                               [](const std::filesystem::directory_entry& entry) {
                                 std::error_code gone;
                                 const auto link = std::filesystem::read_symlink(entry, gone);
                                 return link.string().starts_with("socket:");
                               });
}

TEST(nothing_is_left) {
  leaves_nothing([] {
    for (int i = 0; i < 3; ++i) {
      const World world(4);
      world.run([&](uint32_t rank) { return HcclBarrier(world.comms[rank], world.streams[rank]); });
      CHECK(open_sockets() > 0);
    }
  });
  CHECK_EQ(open_sockets(), 0);  // the rendezvous place is closed, too
}

TEST(texts_of_codes) {
  for (int code = HCCL_SUCCESS; code <= HCCL_E_OOM; ++code) {
    CHECK(std::strlen(HcclGetErrorString(static_cast<HcclResult>(code))) > 0);
    CHECK(std::string(HcclGetErrorString(static_cast<HcclResult>(code))) != "unknown error");
  }
  CHECK_EQ(std::string(HcclGetErrorString(static_cast<HcclResult>(77))), "unknown error");
  CHECK_EQ(HcclGetCommConfigCapability(), 12U);
}
