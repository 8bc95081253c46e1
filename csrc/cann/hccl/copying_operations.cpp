// The collective operations that copy data between ranks.
#include <cstring>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/operation_call.h"
#include "cann/hccl/rank_parts.h"
#include "hccl/hccl.h"

namespace aclnn_host::hccl {
namespace {

void copy(char* to, const char* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// Each rank sends each rank a part.
void all_to_all(Session& session, const Parts& send, const Parts& receive) {
  const std::span<char> own = send(session.rank());
  copy(receive(session.rank()).data(), own.data(), own.size());
  session.exchange(session.for_others(send), session.for_others(receive));
}

HcclResult all_to_all(Call& call, const void* send, const std::vector<uint64_t>& send_counts,
                      const std::vector<uint64_t>& send_displacements, const void* receive,
                      const std::vector<uint64_t>& receive_counts,
                      const std::vector<uint64_t>& receive_displacements) {
  const uint32_t own = call.rank();
  if (send_counts[own] != receive_counts[own]) {
    throw Failure(HCCL_E_PARA, c10::str("rank ", own, " sends itself ", send_counts[own],
                                        " elements and receives ", receive_counts[own]));
  }
  if (send == receive && send != nullptr) {
    throw Failure(HCCL_E_PARA, "recvBuf is sendBuf; it must be another buffer");
  }
  const Parts sends{
      call.use("sendBuf", send, end_of("sendCounts", send_counts, send_displacements)), send_counts,
      send_displacements, call.element()};
  const Parts receipts{
      call.use("recvBuf", receive, end_of("recvCounts", receive_counts, receive_displacements)),
      receive_counts, receive_displacements, call.element()};
  return call.submit([=](Session& session) { all_to_all(session, sends, receipts); });
}

void expect_same_type(HcclDataType sent, HcclDataType received) {
  if (sent == received) return;
  throw Failure(HCCL_E_PARA, c10::str("sendType is ", name_of(sent), " and recvType ",
                                      name_of(received), ", expected the same"));
}

HcclResult all_gather(Call& call, void* send, uint64_t count, void* receive,
                      const std::vector<uint64_t>& counts,
                      const std::vector<uint64_t>& displacements) {
  const uint32_t own = call.rank();
  if (counts[own] != count) {
    throw Failure(HCCL_E_PARA, c10::str("recvCounts has ", counts[own], " for rank ", own,
                                        ", expected its sendCount, ", count));
  }
  char* const sent = call.use("sendBuf", send, count);
  const Parts receipts{call.use("recvBuf", receive, end_of("recvCounts", counts, displacements)),
                       counts, displacements, call.element()};
  const size_t bytes = count * call.element();
  return call.submit([=](Session& session) {
    copy(receipts(own).data(), sent, bytes);
    session.exchange(session.for_others([&](uint32_t) -> std::span<char> { return {sent, bytes}; }),
                     session.for_others(receipts));
  });
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root,
                         HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclBroadcast";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_BROADCAST, dataType, HCCL_REDUCE_RESERVED, root});
    char* const data = call.use("buf", buf, count);
    const size_t bytes = count * call.element();
    return call.submit([=](Session& session) {
      if (session.rank() != root) {
        session.exchange({}, {{session.message(root, data, bytes)}});
      } else {
        session.exchange(
            session.for_others([&](uint32_t) -> std::span<char> { return {data, bytes}; }), {});
      }
    });
  });
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                       uint32_t root, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclScatter";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_SCATTER, dataType, HCCL_REDUCE_RESERVED, root});
    char* const send =
        call.is_root() ? call.use("sendBuf", sendBuf, recvCount, call.ranks()) : nullptr;
    char* const receive = call.use("recvBuf", recvBuf, recvCount);
    const size_t bytes = recvCount * call.element();
    return call.submit([=](Session& session) {
      if (session.rank() != root) {
        session.exchange({}, {{session.message(root, receive, bytes)}});
        return;
      }
      copy(receive, send + root * bytes, bytes);
      const auto part = [&](uint32_t rank) -> std::span<char> {
        return {send + rank * bytes, bytes};
      };
      session.exchange(session.for_others(part), {});
    });
  });
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclAllGather";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_ALLGATHER, dataType});
    const std::vector<uint64_t> counts(call.ranks(), sendCount);
    return all_gather(call, sendBuf, sendCount, recvBuf, counts, in_a_row(counts));
  });
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm,
                          aclrtStream stream) {
  constexpr const char* kApi = "HcclAllGatherV";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_ALLGATHER_V, dataType});
    return all_gather(call, sendBuf, sendCount, recvBuf,
                      values_of("recvCounts", recvCounts, call.ranks()),
                      values_of("recvDispls", recvDispls, call.ranks()));
  });
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclAlltoAll";
  return called(kApi, [&] {
    expect_same_type(sendType, recvType);
    Call call(kApi, comm, stream, {HCCL_CMD_ALLTOALL, sendType});
    const std::vector<uint64_t> sends(call.ranks(), sendCount);
    const std::vector<uint64_t> receipts(call.ranks(), recvCount);
    return all_to_all(call, sendBuf, sends, in_a_row(sends), recvBuf, receipts, in_a_row(receipts));
  });
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm,
                         aclrtStream stream) {
  constexpr const char* kApi = "HcclAlltoAllV";
  return called(kApi, [&] {
    expect_same_type(sendType, recvType);
    Call call(kApi, comm, stream, {HCCL_CMD_ALLTOALLV, sendType});
    return all_to_all(call, sendBuf, values_of("sendCounts", sendCounts, call.ranks()),
                      values_of("sdispls", sdispls, call.ranks()), recvBuf,
                      values_of("recvCounts", recvCounts, call.ranks()),
                      values_of("rdispls", rdispls, call.ranks()));
  });
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm,
                          aclrtStream stream) {
  constexpr const char* kApi = "HcclAlltoAllVC";
  return called(kApi, [&] {
    expect_same_type(sendType, recvType);
    Call call(kApi, comm, stream, {HCCL_CMD_ALLTOALLVC, sendType});
    const size_t ranks = call.ranks();
    const auto matrix = values_of("sendCountMatrix", sendCountMatrix, ranks * ranks);
    const auto row = matrix.begin() + static_cast<ptrdiff_t>(call.rank() * ranks);
    const std::vector<uint64_t> sends(row, row + static_cast<ptrdiff_t>(ranks));
    std::vector<uint64_t> receipts;
    receipts.reserve(ranks);
    for (size_t peer = 0; peer < ranks; ++peer) {
      receipts.push_back(matrix[peer * ranks + call.rank()]);
    }
    return all_to_all(call, sendBuf, sends, in_a_row(sends), recvBuf, receipts, in_a_row(receipts));
  });
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclBarrier";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_BARRIER});
    return call.submit([](Session& session) {
      const auto nothing = session.for_others([](uint32_t) { return std::span<char>(); });
      session.exchange(nothing, nothing);
    });
  });
}
