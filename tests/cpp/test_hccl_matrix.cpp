// Every operation of HCCL on every type, with 2, 4 and 8 ranks, compared with results computed on
// the host; and reductions that round, compared bit by bit.
#include <string>

#include "hccl_support.h"

namespace {

constexpr uint32_t kRanks[] = {2, 4, 8};
constexpr size_t kCount = 37;  // elements of a part

// The number of elements that rank `from` sends to `to`: parts of different sizes, which are not
// contiguous.
uint64_t size_of_part(uint32_t from, uint32_t to) {
  return (from + 2 * to) % 4;
}

// The send buffers of the ranks, with a part for each rank and more, and receive buffers of the
// same size, filled with 9.
struct Case {
  Case(const World& of_ranks, const Numbers& of_type)
      : world(of_ranks),
        type(of_type),
        ranks(world.ranks()),
        length(ranks * (kCount + 3)),
        sent(filled(world, type, length)),
        received(room(world, type, length)) {}

  void* send(uint32_t rank) const { return sent[rank]->data(); }
  void* receive(uint32_t rank) const { return received[rank]->data(); }
  HcclComm comm(uint32_t rank) const { return world.comms[rank]; }
  aclrtStream stream(uint32_t rank) const { return world.streams[rank]; }

  // Checks that every rank received expected(rank), and that nothing was written after it.
  void expect(const char* what,
              const std::function<std::vector<double>(uint32_t rank)>& expected) const {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> values = expected(rank);
      values.resize(length, 9);
      const bool same = received[rank]->values() == values;
      CHECK_EQ(same ? "as expected" : std::string(what) + " differs", "as expected");
    }
  }

  const World& world;
  const Numbers& type;
  const uint32_t ranks;
  const size_t length;
  const Buffers sent;
  const Buffers received;
};

void append(std::vector<double>& to, uint32_t rank, size_t begin, size_t count) {
  for (size_t i = 0; i < count; ++i) to.push_back(number(rank, begin + i));
}

void all_gather(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const Case run(world, type);
  world.run([&](uint32_t rank) {
    return HcclAllGather(run.send(rank), run.receive(rank), kCount, type.type, run.comm(rank),
                         run.stream(rank));
  });
  run.expect("AllGather", [&](uint32_t) {
    std::vector<double> all;
    for (uint32_t from = 0; from < ranks; ++from) append(all, from, 0, kCount);
    return all;
  });
}

void scatter(const World& world, const Numbers& type) {
  const uint32_t root = world.ranks() - 1;
  const Case run(world, type);
  world.run([&](uint32_t rank) {
    return HcclScatter(run.send(rank), run.receive(rank), kCount, type.type, root, run.comm(rank),
                       run.stream(rank));
  });
  run.expect("Scatter", [&](uint32_t rank) {
    std::vector<double> part;
    append(part, root, rank * kCount, kCount);
    return part;
  });
}

void broadcast(const World& world, const Numbers& type) {
  const uint32_t root = world.ranks() - 1;
  const Case run(world, type);
  world.run([&](uint32_t rank) {
    return HcclBroadcast(rank == root ? run.send(rank) : run.receive(rank), kCount, type.type, root,
                         run.comm(rank), run.stream(rank));
  });
  run.expect("Broadcast", [&](uint32_t rank) {
    std::vector<double> all;
    if (rank != root) append(all, root, 0, kCount);
    return all;
  });
}

void all_to_all(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const Case run(world, type);
  world.run([&](uint32_t rank) {
    return HcclAlltoAll(run.send(rank), kCount, type.type, run.receive(rank), kCount, type.type,
                        run.comm(rank), run.stream(rank));
  });
  run.expect("AlltoAll", [&](uint32_t rank) {
    std::vector<double> all;
    for (uint32_t from = 0; from < ranks; ++from) append(all, from, rank * kCount, kCount);
    return all;
  });
}

void batch_send_recv(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const Case run(world, type);
  world.run([&](uint32_t rank) {  // to the next rank, from the previous one, all at once
    HcclSendRecvItem items[] = {
        {HCCL_SEND, run.send(rank), kCount, type.type, (rank + 1) % ranks},
        {HCCL_RECV, run.receive(rank), kCount, type.type, (rank + ranks - 1) % ranks}};
    return HcclBatchSendRecv(items, 2, run.comm(rank), run.stream(rank));
  });
  run.expect("BatchSendRecv", [&](uint32_t rank) {
    std::vector<double> part;
    append(part, (rank + ranks - 1) % ranks, 0, kCount);
    return part;
  });
}

void send_and_recv(const World& world, const Numbers& type) {
  const Case run(world, type);
  world.run([&](uint32_t rank) {  // pairs
    return rank % 2 == 0 ? HcclSend(run.send(rank), kCount, type.type, rank + 1, run.comm(rank),
                                    run.stream(rank))
                         : HcclRecv(run.receive(rank), kCount, type.type, rank - 1, run.comm(rank),
                                    run.stream(rank));
  });
  run.expect("Send and Recv", [&](uint32_t rank) {
    std::vector<double> part;
    if (rank % 2 == 1) append(part, rank - 1, 0, kCount);
    return part;
  });
}

// The parts of the ranks are kCount elements apart, in reverse order.
std::vector<uint64_t> apart(uint32_t ranks) {
  std::vector<uint64_t> begins(ranks);
  for (uint32_t i = 0; i < ranks; ++i) begins[i] = (ranks - 1 - i) * kCount;
  return begins;
}

void all_gather_v(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const std::vector<uint64_t> begins = apart(ranks);
  const Case run(world, type);
  std::vector<uint64_t> counts;
  for (uint32_t from = 0; from < ranks; ++from) counts.push_back(size_of_part(from, 0));
  world.run([&](uint32_t rank) {
    return HcclAllGatherV(run.send(rank), counts[rank], run.receive(rank), counts.data(),
                          begins.data(), type.type, run.comm(rank), run.stream(rank));
  });
  run.expect("AllGatherV", [&](uint32_t) {
    std::vector<double> all(ranks * kCount, 9);
    for (uint32_t from = 0; from < ranks; ++from) {
      for (size_t i = 0; i < counts[from]; ++i) all[begins[from] + i] = number(from, i);
    }
    return all;
  });
}

void all_to_all_v(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const std::vector<uint64_t> begins = apart(ranks);
  const Case run(world, type);
  world.run([&](uint32_t rank) {
    std::vector<uint64_t> sends, receipts;
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      sends.push_back(size_of_part(rank, peer));
      receipts.push_back(size_of_part(peer, rank));
    }
    return HcclAlltoAllV(run.send(rank), sends.data(), begins.data(), type.type, run.receive(rank),
                         receipts.data(), begins.data(), type.type, run.comm(rank),
                         run.stream(rank));
  });
  run.expect("AlltoAllV", [&](uint32_t rank) {
    std::vector<double> all(ranks * kCount, 9);
    for (uint32_t from = 0; from < ranks; ++from) {
      for (size_t i = 0; i < size_of_part(from, rank); ++i) {
        all[begins[from] + i] = number(from, begins[rank] + i);
      }
    }
    return all;
  });
}

void all_to_all_vc(const World& world, const Numbers& type) {
  const uint32_t ranks = world.ranks();
  const Case run(world, type);
  std::vector<uint64_t> matrix;
  for (uint32_t from = 0; from < ranks; ++from) {
    for (uint32_t to = 0; to < ranks; ++to) matrix.push_back(size_of_part(from, to));
  }
  world.run([&](uint32_t rank) {
    return HcclAlltoAllVC(run.send(rank), matrix.data(), type.type, run.receive(rank), type.type,
                          run.comm(rank), run.stream(rank));
  });
  run.expect("AlltoAllVC", [&](uint32_t rank) {
    std::vector<double> all;
    for (uint32_t from = 0; from < ranks; ++from) {
      size_t begin = 0;
      for (uint32_t to = 0; to < rank; ++to) begin += size_of_part(from, to);
      append(all, from, begin, size_of_part(from, rank));
    }
    return all;
  });
}

// Every operation that copies.
constexpr void (*kCopies[])(const World&, const Numbers&) = {
    all_gather,    scatter,      broadcast,    all_to_all,   batch_send_recv,
    send_and_recv, all_gather_v, all_to_all_v, all_to_all_vc};

void reductions(const World& world, const Numbers& type, HcclReduceOp op) {
  const uint32_t ranks = world.ranks(), root = ranks - 1;
  const HcclDataType code = type.type;
  const auto expected = [&](size_t begin, size_t count) {
    return all_reduced(type, op, ranks, begin, count);
  };
  {
    const Case run(world, type);
    world.run([&](uint32_t rank) {
      return HcclAllReduce(run.send(rank), run.receive(rank), kCount, code, op, run.comm(rank),
                           run.stream(rank));
    });
    run.expect("AllReduce", [&](uint32_t) { return expected(0, kCount); });
  }
  {
    const Case run(world, type);
    world.run([&](uint32_t rank) {
      return HcclReduce(run.send(rank), run.receive(rank), kCount, code, op, root, run.comm(rank),
                        run.stream(rank));
    });
    run.expect("Reduce", [&](uint32_t rank) { return expected(0, rank == root ? kCount : 0); });
  }
  {
    const Case run(world, type);
    world.run([&](uint32_t rank) {
      return HcclReduceScatter(run.send(rank), run.receive(rank), kCount, code, op, run.comm(rank),
                               run.stream(rank));
    });
    run.expect("ReduceScatter", [&](uint32_t rank) { return expected(rank * kCount, kCount); });
  }
  {
    const Case run(world, type);
    const std::vector<uint64_t> begins = apart(ranks);
    std::vector<uint64_t> counts;
    for (uint32_t rank = 0; rank < ranks; ++rank) counts.push_back(size_of_part(rank, 1));
    world.run([&](uint32_t rank) {
      return HcclReduceScatterV(run.send(rank), counts.data(), begins.data(), run.receive(rank),
                                counts[rank], code, op, run.comm(rank), run.stream(rank));
    });
    run.expect("ReduceScatterV",
               [&](uint32_t rank) { return expected(begins[rank], counts[rank]); });
  }
}

}  // namespace

TEST(every_copying_operation_on_every_type) {
  for (const uint32_t ranks : kRanks) {
    const World world(ranks);
    for (const Numbers& type : all_types()) {
      for (const auto copy : kCopies) copy(world, type);
    }
  }
}

TEST(every_reducing_operation_on_every_type_with_every_reduction) {
  for (const uint32_t ranks : kRanks) {
    const World world(ranks);
    for (const Numbers& type : all_types()) {
      for (const HcclReduceOp op : kReductions) reductions(world, type, op);
    }
  }
}

// Sums and products that round: they are computed in the order of the ranks, for 16-bit numbers in
// FLOAT, and rounded once at the end. Every rank gets these bits from every operation, whether all
// ranks reduce all elements, as for few elements, or each rank a part.
TEST(what_rounds_has_the_same_bits_on_every_rank) {
  const auto value = [](uint32_t rank, size_t i) {
    return 0.5 + 1.0 / static_cast<double>(1 + (i * 7 + rank * 1000) % 997);
  };
  for (const uint32_t ranks : kRanks) {
    const World world(ranks);
    for (const size_t at : {size_t{3}, size_t{4}, size_t{10}, size_t{11}}) {
      const Numbers& type = all_types()[at];
      for (const HcclReduceOp op : {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD}) {
        for (const size_t count : {size_t{64}, size_t{4096}}) {
          Buffers sent, everywhere, scattered;
          std::vector<std::vector<double>> inputs;
          for (uint32_t rank = 0; rank < ranks; ++rank) {
            std::vector<double> made(count);
            for (size_t i = 0; i < count; ++i) made[i] = value(rank, i);
            world.enter(rank);
            sent.push_back(std::make_unique<Buffer>(type, made));
            inputs.push_back(sent.back()->values());  // rounded to the type
            everywhere.push_back(std::make_unique<Buffer>(type, count));
            scattered.push_back(std::make_unique<Buffer>(type, count / ranks));
          }
          std::vector<char> expected(count * type.size);
          for (size_t i = 0; i < count; ++i) {
            float single = static_cast<float>(inputs[0][i]);
            double twice = inputs[0][i];
            for (uint32_t rank = 1; rank < ranks; ++rank) {
              const double next = inputs[rank][i];
              const auto next_single = static_cast<float>(next);
              single = op == HCCL_REDUCE_SUM ? single + next_single : single * next_single;
              twice = op == HCCL_REDUCE_SUM ? twice + next : twice * next;
            }
            type.write(&expected[i * type.size], type.size == 8 ? twice : double{single});
          }
          world.run([&](uint32_t rank) {
            HcclAllReduce(sent[rank]->data(), everywhere[rank]->data(), count, type.type, op,
                          world.comms[rank], world.streams[rank]);
            return HcclReduceScatter(sent[rank]->data(), scattered[rank]->data(), count / ranks,
                                     type.type, op, world.comms[rank], world.streams[rank]);
          });
          const size_t part = count / ranks * type.size;
          for (uint32_t rank = 0; rank < ranks; ++rank) {
            CHECK_EQ(std::memcmp(everywhere[rank]->data(), expected.data(), expected.size()), 0);
            CHECK_EQ(std::memcmp(scattered[rank]->data(), &expected[rank * part], part), 0);
          }
        }
      }
    }
  }
}
