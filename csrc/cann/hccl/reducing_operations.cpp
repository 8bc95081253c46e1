// The collective operations that reduce data.
#include <algorithm>
#include <memory>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/operation_call.h"
#include "cann/hccl/rank_parts.h"
#include "cann/hccl/reduction.h"
#include "hccl/hccl.h"
#include "host_cann/runtime/float_status.h"

namespace aclnn_host::hccl {
namespace {

// The bytes of each rank's part that are exchanged and reduced at a time; received data is held in
// host memory meanwhile.
constexpr size_t kMostAtATime = size_t{1} << 20;

// For fewer bytes every rank reduces all elements, instead of each rank a part.
constexpr size_t kSmall = size_t{4} << 10;

// The elements to reduce, and the reduction.
struct Reduction {
  HcclDataType type;
  HcclReduceOp operation;
  size_t element;
  bool reports_overflow;  // of its stream: an overflow sets the device's float status

  Reduction(HcclDataType type, HcclReduceOp operation, size_t element, aclrtStream stream)
      : type(type),
        operation(operation),
        element(element),
        reports_overflow((operation == HCCL_REDUCE_SUM || operation == HCCL_REDUCE_PROD) &&
                         aclnn_host::reports_overflow(stream)) {}

  // Receives the same elements from every other rank, sends `outgoing`, and reduces.
  void operator()(Session& session, const std::vector<Message>& outgoing, const char* own,
                  size_t count, char* result) const {
    const size_t bytes = count * element;
    const auto received =
        std::make_unique_for_overwrite<char[]>(std::max<size_t>(bytes * (session.ranks() - 1), 1));
    size_t next = 0;
    std::vector<const void*> sources(session.ranks(), own);
    const auto incoming = session.for_others([&](uint32_t peer) -> std::span<char> {
      char* const place = received.get() + bytes * next++;
      sources[peer] = place;
      return {place, bytes};
    });
    session.exchange(outgoing, incoming);
    if (count == 0) return;
    reduce(type, operation, sources, result, count);
    if (reports_overflow && !are_finite(type, result, count)) note_overflow();
  }

  size_t most_at_a_time() const { return kMostAtATime / element; }
};

void all_reduce(Session& session, const Reduction& reduction, char* send, char* receive,
                size_t count) {
  const size_t element = reduction.element;
  if (count * element <= kSmall) {
    const auto everything =
        session.for_others([&](uint32_t) -> std::span<char> { return {send, count * element}; });
    reduction(session, everything, send, count, receive);
    return;
  }
  const uint32_t ranks = session.ranks();
  const size_t step = reduction.most_at_a_time() * ranks;
  for (size_t begin = 0; begin < count; begin += step) {
    const size_t size = std::min(step, count - begin);
    const auto first = [&](uint32_t rank) { return begin + size * rank / ranks; };
    const auto part = [&](char* of, uint32_t rank) -> std::span<char> {
      return {of + first(rank) * element, (first(rank + 1) - first(rank)) * element};
    };
    const std::span<char> own = part(receive, session.rank());
    reduction(session, session.for_others([&](uint32_t peer) { return part(send, peer); }),
              part(send, session.rank()).data(), own.size() / element, own.data());
    session.exchange(session.for_others([&](uint32_t) { return own; }),
                     session.for_others([&](uint32_t peer) { return part(receive, peer); }));
  }
}

void reduce_scatter(Session& session, const Reduction& reduction, char* send,
                    const std::vector<uint64_t>& counts, const std::vector<uint64_t>& displacements,
                    char* receive) {
  const size_t element = reduction.element;
  const size_t step = reduction.most_at_a_time();
  const size_t longest = std::ranges::max(counts);
  size_t begin = 0;
  do {  // runs once even without elements, so that the ranks synchronise
    const auto part = [&](uint32_t rank) -> std::span<char> {
      const size_t count = counts[rank] > begin ? std::min(step, counts[rank] - begin) : 0;
      return {send + (displacements[rank] + begin) * element, count * element};
    };
    const std::span<char> own = part(session.rank());
    reduction(session, session.for_others(part), own.data(), own.size() / element,
              receive + begin * element);
    begin += step;
  } while (begin < longest);
}

void reduce_to_root(Session& session, const Reduction& reduction, uint32_t root, char* send,
                    char* receive, size_t count) {
  const size_t step = reduction.most_at_a_time();
  size_t begin = 0;
  do {
    const size_t size = std::min(step, count - begin);
    char* const part = send + begin * reduction.element;
    if (session.rank() == root) {
      reduction(session, {}, part, size, receive + begin * reduction.element);
    } else {
      session.exchange({{session.message(root, part, size * reduction.element)}}, {});
    }
    begin += step;
  } while (begin < count);
}

HcclResult reduce_scatter(Call& call, void* send, const std::vector<uint64_t>& counts,
                          const std::vector<uint64_t>& displacements, void* receive, uint64_t count,
                          const Reduction& reduction) {
  if (counts[call.rank()] != count) {
    throw Failure(HCCL_E_PARA,
                  c10::str("recvCount is ", count, " and sendCounts has ", counts[call.rank()],
                           " for rank ", call.rank(), ", expected the same"));
  }
  char* const sent = call.use("sendBuf", send, end_of("sendCounts", counts, displacements));
  char* const received = call.use("recvBuf", receive, count);
  return call.submit([=](Session& session) {
    reduce_scatter(session, reduction, sent, counts, displacements, received);
  });
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclAllReduce";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_ALLREDUCE, dataType, op});
    char* const send = call.use("sendBuf", sendBuf, count);
    char* const receive = call.use("recvBuf", recvBuf, count);
    const Reduction reduction{dataType, op, call.element(), stream};
    return call.submit(
        [=](Session& session) { all_reduce(session, reduction, send, receive, count); });
  });
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                      HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclReduce";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_REDUCE, dataType, op, root});
    char* const send = call.use("sendBuf", sendBuf, count);
    char* const receive = call.is_root() ? call.use("recvBuf", recvBuf, count) : nullptr;
    const Reduction reduction{dataType, op, call.element(), stream};
    return call.submit(
        [=](Session& session) { reduce_to_root(session, reduction, root, send, receive, count); });
  });
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                             aclrtStream stream) {
  constexpr const char* kApi = "HcclReduceScatter";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_REDUCE_SCATTER, dataType, op});
    const std::vector<uint64_t> counts(call.ranks(), recvCount);
    return reduce_scatter(call, sendBuf, counts, in_a_row(counts), recvBuf, recvCount,
                          {dataType, op, call.element(), stream});
  });
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                              void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclReduceScatterV";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_REDUCE_SCATTER_V, dataType, op});
    return reduce_scatter(call, sendBuf, values_of("sendCounts", sendCounts, call.ranks()),
                          values_of("sendDispls", sendDispls, call.ranks()), recvBuf, recvCount,
                          {dataType, op, call.element(), stream});
  });
}
