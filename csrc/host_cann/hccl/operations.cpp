// The operations of a communicator, as tasks on streams.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <c10/util/StringUtil.h>

#include "hccl/hccl.h"
#include "host_cann/hccl/communicator.h"
#include "host_cann/hccl/guard.h"
#include "host_cann/hccl/names.h"
#include "host_cann/hccl/reduction.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/product.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host::hccl {
namespace {

// How much of each rank's part is exchanged and reduced at a time: what is received to be reduced
// lies in memory of the host meanwhile.
constexpr size_t kMostAtATime = size_t{4} << 20;

// Below that, in bytes, every rank reduces everything, instead of a part for all.
constexpr size_t kSmall = size_t{4} << 10;

// What a stream fails with.
aclError stream_status(HcclResult code) {
  switch (code) {
    case HCCL_E_TIMEOUT: return ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;
    case HCCL_E_REMOTE: return ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
    default: return ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
  }
}

// Memory of a device that an operation uses.
struct Buffer {
  const char* argument;
  char* data;
  size_t bytes;
  uint64_t block = 0;  // the number of its block when the operation was called
};

// One rank's side of an operation while it runs.
class Session {
 public:
  Session(Communicator& of, const Description& what)
      : of_(of), deadline_(of.deadline()), what_(what) {}

  uint32_t rank() const { return of_.rank(); }
  uint32_t ranks() const { return of_.ranks(); }
  const Deadline& deadline() const { return deadline_; }

  // A message of this operation.
  Message message(uint32_t peer, void* data, size_t bytes) const {
    return {peer, data, bytes, what_};
  }

  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming) {
    of_.exchange(outgoing, incoming, deadline_);
  }

  // A message to, or from, each other rank; part(peer) says what, as a span of bytes.
  template <class Part>
  std::vector<Message> for_others(Part&& part) const {
    std::vector<Message> messages;
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      if (peer == rank()) continue;
      const std::span<char> bytes = part(peer);
      messages.push_back(message(peer, bytes.data(), bytes.size()));
    }
    return messages;
  }

 private:
  Communicator& of_;
  const Deadline deadline_;
  const Description what_;
};

using Body = std::function<void(Session&)>;

class Operation final : public Task {
 public:
  // A captured operation takes its turn when it is executed.
  Operation(const char* api, std::shared_ptr<Communicator> of, const Description& what,
            std::vector<Buffer> buffers, Body body, bool is_captured)
      : api_(api),
        of_(std::move(of)),
        what_(what),
        buffers_(std::move(buffers)),
        body_(std::move(body)) {
    if (!is_captured) turn_ = std::make_unique<Communicator::Turn>(of_);
  }

  aclError run() noexcept override {
    try {
      try {
        const auto turn = turn_ ? std::move(turn_) : std::make_unique<Communicator::Turn>(of_);
        Session session(*of_, what_);
        of_->wait_for(*turn, session.deadline());
        MemoryInUse in_use;
        for (const Buffer& buffer : buffers_) {
          if (buffer.bytes == 0) continue;
          in_use.add(buffer.data, buffer.bytes);
          expect_alive(buffer);
        }
        body_(session);
        return ACL_SUCCESS;
      } catch (...) {
        return give_up(failure_of_exception());
      }
    } catch (...) {
      return ACL_ERROR_BAD_ALLOC;  // not even for the text
    }
  }

  void abandon(aclError status, const std::string& message) noexcept override {
    try {
      give_up({HCCL_E_REMOTE,
               c10::str("rank ", of_->rank(),
                        " dropped the operation, because its stream had failed: ", message)});
    } catch (...) {
      of_->fail({HCCL_E_REMOTE, "a stream had failed"});
    }
  }

 private:
  static void expect_alive(const Buffer& buffer) {
    if (is_replayed() || block_number(buffer.data) == buffer.block) return;
    throw Failure(HCCL_E_PARA,
                  c10::str(buffer.argument,
                           " was freed before the stream ran the operation; free it after "
                           "the stream is synchronised"));
  }

  aclError give_up(const Failure& failure) {
    of_->fail(failure);
    turn_.reset();
    return fail(stream_status(failure.code()), "%s: communicator %s, rank %u of %u: %s", api_,
                of_->name().c_str(), of_->rank(), of_->ranks(), failure.what());
  }

  const char* const api_;
  const std::shared_ptr<Communicator> of_;
  const Description what_;
  const std::vector<Buffer> buffers_;
  const Body body_;
  std::unique_ptr<Communicator::Turn> turn_;
};

// A call: what all of them check and do.
class Call {
 public:
  Call(const char* api, HcclComm comm, aclrtStream stream, const Description& what)
      : api_(api), stream_(stream), what_(what) {
    HcclResult status = HCCL_SUCCESS;
    of_ = require_communicator(api, comm, &status);
    if (of_ == nullptr) throw Refused{status};
    if (const auto failure = of_->failure()) {
      throw Failure(failure->code(), c10::str("the communicator has failed: ", failure->what()));
    }
    if (what.root != kNoRoot) expect_rank("root", what.root);
    if (what.type != HCCL_DATA_TYPE_RESERVED) check_type();
  }

  // A refusal whose text is stored already.
  struct Refused {
    HcclResult status;
  };

  uint32_t rank() const { return of_->rank(); }
  uint32_t ranks() const { return of_->ranks(); }
  bool is_root() const { return rank() == what_.root; }
  size_t element() const { return element_size(what_.type); }

  void expect_rank(const char* argument, uint32_t rank) const {
    if (rank < ranks()) return;
    throw Failure(HCCL_E_PARA, c10::str(argument, " is ", rank,
                                        ", expected less than the number of ranks, ", ranks()));
  }

  // Memory of so many elements that the operation uses.
  char* use(const char* argument, const void* address, uint64_t count, uint64_t parts = 1) {
    return use(argument, address, count, parts, element());
  }
  char* use(const char* argument, const void* address, uint64_t count, uint64_t parts,
            size_t size_of_element) {
    constexpr uint64_t kMost = uint64_t{1} << 60;
    if (count > kMost / size_of_element / parts) {
      throw Failure(HCCL_E_PARA,
                    c10::str(argument, " would have ", count, " elements, which no memory has"));
    }
    Buffer buffer{argument, static_cast<char*>(const_cast<void*>(address)),
                  count * parts * size_of_element};
    if (buffer.bytes == 0) return buffer.data;
    if (address == nullptr) throw Failure(HCCL_E_PTR, c10::str(argument, " is a null pointer"));
    Block block;
    if (!find_block(address, buffer.bytes, &block) || block.side != Side::kDevice ||
        block.device != of_->device() || !block.grants(address, buffer.bytes)) {
      throw Failure(HCCL_E_PARA,
                    c10::str(argument, " has ", buffer.bytes,
                             " bytes that do not all lie in one block of aclrtMalloc on "
                             "device ",
                             of_->device(), ", the communicator's"));
    }
    buffer.block = block_number(address);
    buffers_.push_back(buffer);
    return buffer.data;
  }

  // Gives the stream the operation.
  HcclResult submit(Body body) {
    auto task = std::make_unique<Operation>(api_, of_, what_, std::move(buffers_), std::move(body),
                                            is_captured(stream_));
    const aclError status = aclnn_host::submit(api_, stream_, std::move(task));
    if (status == ACL_SUCCESS) return HCCL_SUCCESS;
    return status == ACL_ERROR_RT_INVALID_HANDLE ? HCCL_E_PARA : HCCL_E_RUNTIME;
  }

 private:
  void check_type() const {
    const bool exists = element_size(what_.type) > 0 && what_.type != HCCL_DATA_TYPE_INT128;
    const bool reduces = what_.reduction != HCCL_REDUCE_RESERVED;
    if (exists && (!reduces || is_reduced(what_.type, what_.reduction))) return;
    std::string text = c10::str("dataType is ", name_of(what_.type));
    if (reduces) text += c10::str(" and op ", name_of(what_.reduction));
    throw Failure(HCCL_E_NOT_SUPPORT,
                  c10::str(text, ", which ", product_name(current_product()), " does not have"));
  }

  const char* const api_;
  const aclrtStream stream_;
  const Description what_;
  std::shared_ptr<Communicator> of_;
  std::vector<Buffer> buffers_;
};

// Runs the body of an operation's function.
template <class Body>
HcclResult called(const char* api, Body&& body) noexcept {
  return guarded(api, [&] {
    try {
      return body();
    } catch (const Call::Refused& refusal) {
      return refusal.status;
    }
  });
}

// The values of an array with one for each rank.
std::vector<uint64_t> per_rank(const char* argument, const void* values, size_t count) {
  if (values == nullptr) throw Failure(HCCL_E_PTR, c10::str(argument, " is a null pointer"));
  const auto* const first = static_cast<const uint64_t*>(values);
  return {first, first + count};
}

// Where parts of so many elements at such displacements end, in elements.
uint64_t end_of(const char* argument, const std::vector<uint64_t>& counts,
                const std::vector<uint64_t>& displacements) {
  constexpr uint64_t kMost = uint64_t{1} << 60;
  uint64_t end = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > kMost || displacements[i] > kMost) {
      throw Failure(HCCL_E_PARA, c10::str(argument, " has ", counts[i], " for rank ", i,
                                          ", which no memory has"));
    }
    if (counts[i] > 0) end = std::max(end, displacements[i] + counts[i]);
  }
  return end;
}

// Displacements of parts that follow one another.
std::vector<uint64_t> in_a_row(const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> displacements(counts.size());
  for (size_t i = 1; i < counts.size(); ++i) {
    displacements[i] = displacements[i - 1] + counts[i - 1];
  }
  return displacements;
}

void copy(char* to, const char* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// Elements of the ranks that are reduced.
struct Reduction {
  HcclDataType type;
  HcclReduceOp operation;
  size_t element;

  // Receives the same elements of every other rank, sends what `outgoing` says, and reduces.
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
    if (count > 0) reduce(type, operation, sources, result, count);
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
  do {  // once, too, if there is nothing to reduce: the ranks meet
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

// Parts of a buffer, in bytes: one for each rank.
struct Parts {
  char* data;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;
  size_t element;

  std::span<char> operator()(uint32_t rank) const {
    return {data + displacements[rank] * element, counts[rank] * element};
  }
};

// Each rank gives each rank a part.
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

// What the messages of sends and receives are called: either side meets the other's.
Description point_to_point(HcclDataType type) {
  return {HCCL_CMD_SEND, type, HCCL_REDUCE_RESERVED, kNoRoot};
}

// Sends and receives that begin together.
HcclResult send_and_receive(const char* api, std::span<const HcclSendRecvItem> items, HcclComm comm,
                            aclrtStream stream) {
  Call call(api, comm, stream, {HCCL_CMD_BATCH_SEND_RECV});
  std::vector<Message> outgoing;
  std::vector<Message> incoming;
  for (const HcclSendRecvItem& item : items) {
    const bool sends = item.sendRecvType == HCCL_SEND;
    const char* const rank = sends ? "destRank" : "srcRank";
    if (!sends && item.sendRecvType != HCCL_RECV) {
      throw Failure(HCCL_E_PARA, c10::str("sendRecvType is ", item.sendRecvType,
                                          ", expected HCCL_SEND or HCCL_RECV"));
    }
    call.expect_rank(rank, item.remoteRank);
    if (item.remoteRank == call.rank()) {
      throw Failure(HCCL_E_PARA, c10::str(rank, " is ", call.rank(), ", the calling rank itself"));
    }
    const size_t element = element_size(item.dataType);
    if (element == 0 || item.dataType == HCCL_DATA_TYPE_INT128) {
      throw Failure(HCCL_E_NOT_SUPPORT,
                    c10::str("dataType is ", name_of(item.dataType), ", which there is not"));
    }
    char* const data = call.use(sends ? "sendBuf" : "recvBuf", item.buf, item.count, 1, element);
    (sends ? outgoing : incoming)
        .push_back({item.remoteRank, data, item.count * element, point_to_point(item.dataType)});
  }
  return call.submit([=](Session& session) { session.exchange(outgoing, incoming); });
}

// What was called between HcclGroupStart and HcclGroupEnd, in the thread.
struct Group {
  int depth = 0;
  struct Item {
    HcclComm comm;
    aclrtStream stream;
    HcclSendRecvItem item;
  };
  std::vector<Item> items;
};

Group& group() {
  thread_local Group state;
  return state;
}

HcclResult send_or_receive(const char* api, const HcclSendRecvItem& item, HcclComm comm,
                           aclrtStream stream) {
  if (group().depth == 0) return send_and_receive(api, {&item, 1}, comm, stream);
  group().items.push_back({comm, stream, item});
  return HCCL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;
using aclnn_host::fail;

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclAllReduce";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_ALLREDUCE, dataType, op});
    char* const send = call.use("sendBuf", sendBuf, count);
    char* const receive = call.use("recvBuf", recvBuf, count);
    const Reduction reduction{dataType, op, call.element()};
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
    const Reduction reduction{dataType, op, call.element()};
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
                          {dataType, op, call.element()});
  });
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                              void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclReduceScatterV";
  return called(kApi, [&] {
    Call call(kApi, comm, stream, {HCCL_CMD_REDUCE_SCATTER_V, dataType, op});
    return reduce_scatter(call, sendBuf, per_rank("sendCounts", sendCounts, call.ranks()),
                          per_rank("sendDispls", sendDispls, call.ranks()), recvBuf, recvCount,
                          {dataType, op, call.element()});
  });
}

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
                      per_rank("recvCounts", recvCounts, call.ranks()),
                      per_rank("recvDispls", recvDispls, call.ranks()));
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
    return all_to_all(call, sendBuf, per_rank("sendCounts", sendCounts, call.ranks()),
                      per_rank("sdispls", sdispls, call.ranks()), recvBuf,
                      per_rank("recvCounts", recvCounts, call.ranks()),
                      per_rank("rdispls", rdispls, call.ranks()));
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
    const auto matrix = per_rank("sendCountMatrix", sendCountMatrix, ranks * ranks);
    const auto row = matrix.begin() + static_cast<ptrdiff_t>(call.rank() * ranks);
    const std::vector<uint64_t> sends(row, row + static_cast<ptrdiff_t>(ranks));
    std::vector<uint64_t> receipts;
    for (size_t peer = 0; peer < ranks; ++peer) {
      receipts.push_back(matrix[peer * ranks + call.rank()]);
    }
    return all_to_all(call, sendBuf, sends, in_a_row(sends), recvBuf, receipts, in_a_row(receipts));
  });
}

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                    HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclSend";
  return called(kApi, [&] {
    return send_or_receive(kApi, {HCCL_SEND, sendBuf, count, dataType, destRank}, comm, stream);
  });
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                    HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclRecv";
  return called(kApi, [&] {
    return send_or_receive(kApi, {HCCL_RECV, recvBuf, count, dataType, srcRank}, comm, stream);
  });
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream) {
  constexpr const char* kApi = "HcclBatchSendRecv";
  return called(kApi, [&] {
    if (sendRecvInfo == nullptr) return null_argument(kApi, "sendRecvInfo");
    return send_and_receive(kApi, {sendRecvInfo, itemNum}, comm, stream);
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

HcclResult HcclGroupStart(void) {
  ++group().depth;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd(void) {
  constexpr const char* kApi = "HcclGroupEnd";
  return called(kApi, [&]() -> HcclResult {
    if (group().depth == 0) {
      fail(HCCL_E_PARA, "%s: there is no group; call HcclGroupStart first", kApi);
      return HCCL_E_PARA;
    }
    if (--group().depth > 0) return HCCL_SUCCESS;
    // Those of each communicator and stream, in the order of the first of them.
    std::vector<Group::Item> items;
    items.swap(group().items);
    HcclResult first = HCCL_SUCCESS;
    while (!items.empty()) {
      const auto [comm, stream, of] = items.front();
      std::vector<HcclSendRecvItem> together;
      std::erase_if(items, [&](const Group::Item& item) {
        if (item.comm != comm || item.stream != stream) return false;
        together.push_back(item.item);
        return true;
      });
      const HcclResult status =
          called(kApi, [&] { return send_and_receive(kApi, together, comm, stream); });
      if (first == HCCL_SUCCESS) first = status;
    }
    return first;
  });
}
