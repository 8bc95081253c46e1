#include "cann/hccl/network.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <c10/util/StringUtil.h>

#include "cann/hccl/hccl_guard.h"

namespace aclnn_host::hccl {
namespace {

constexpr size_t kPiece = size_t{512} << 10;
// The most bytes in flight to a rank that has not read them.
constexpr size_t kWindow = 4 * kPiece;
// The part of the window that a packet uses: its bytes and an allowance for its other memory, so
// that many small packets take no more memory than a few large ones.
constexpr size_t cost_of(size_t bytes) {
  return bytes + 128;
}

// The kinds of packets. The number of a receipt is the acknowledged size, that of a failure its
// code.
enum Kind : uint32_t { kBytes, kReceipt, kFailure, kLeave };

// The time after a rank's end during which its last packets may still arrive, and the time that a
// leaving rank waits until its last packet is sent.
constexpr std::chrono::seconds kLastWords{1};

// Keepalive parameters: after kSilence seconds without an answer, kQuestions probes are sent
// kSilence seconds apart.
constexpr int kSilence = 5;
constexpr int kQuestions = 3;

void watch_for_silence(int file) {
  const int yes = 1;
  setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &kSilence, sizeof(kSilence));
  setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &kSilence, sizeof(kSilence));
  setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &kQuestions, sizeof(kQuestions));
}

// True if the other side, which sends nothing on this connection, has closed it.
bool has_ended(int file) noexcept {
  pollfd end{file, POLLIN | POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1;
}

// The error of such a connection; 0 if the other side has closed it, or has not.
int error_of(int file) noexcept {
  char byte;
  const ssize_t count = recv(file, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || errno == ECONNRESET || errno == EAGAIN ? 0 : errno;
}

// The purpose that both sides of a connection prove. It includes the receiving rank, because hosts
// that have the same address, such as 127.0.0.1, may have the same ports.
std::string purpose_of(const std::string& key, uint32_t rank) {
  return c10::str("packets of ", key, " to rank ", rank);
}

File listener_of(Address& address) {
  File listener = listen_at(address.host);
  address.port = port_of(listener);
  return listener;
}

}  // namespace

Network::Network(uint32_t rank, uint32_t ranks, const Secret& secret, const std::string& key)
    : Streams(rank, ranks),
      secret_(secret),
      key_(key),
      address_{own_host(), 0},
      listener_(listener_of(address_), secret, purpose_of(key, rank)),
      peers_(ranks) {
  thread_ = std::thread([this] { serve(); });
}

Network::~Network() {
  take_leave(kLeave, HCCL_SUCCESS, "");
  const auto end = std::chrono::steady_clock::now() + kLastWords;
  for (Peer& peer : peers_) {
    while (peer.outgoing != nullptr && !has_ended(peer.outgoing->file()) &&
           !peer.outgoing->flush() && std::chrono::steady_clock::now() < end) {
      pollfd room{peer.outgoing->file(), POLLOUT, 0};
      poll(&room, 1, 10);
    }
  }
  is_closed_ = true;
  waker_.wake();
  thread_.join();
}

void Network::connect(const std::vector<Place>& places, const Deadline& deadline) {
  for (uint32_t peer = 0; peer < ranks_; ++peer) peers_[peer].place = places[peer];
  try {
    for (uint32_t peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) connect_to(peer, deadline);
    }
  } catch (const Failure& failure) {
    fail(failure);
    throw;
  }
  is_connected_ = true;
}

void Network::connect_to(uint32_t peer, const Deadline& deadline) {
  Peer& to = peers_[peer];
  try {
    PeerSocket peer_socket =
        connect_authenticated(to.place.address, secret_, purpose_of(key_, peer), rank_, deadline);
    watch_for_silence(peer_socket.file.number());
    to.outgoing = std::make_unique<Connection>(std::move(peer_socket), std::span<const size_t>());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    throw Failure(
        HCCL_E_TCP_CONNECT,
        c10::str("rank ", rank_, " cannot reach rank ", peer, " at ", to.place.address.text(),
                 " (HCCL_IF_IP or HCCL_SOCKET_IFNAME choose another there): ",
                 failure_of_exception().what()));
  }
}

// Sends a packet, unless the rank has ended.
void Network::send(Peer& to, Packet packet) {
  if (to.outgoing == nullptr || has_ended(to.outgoing->file())) return;
  to.outgoing->send(std::move(packet));
  if (!to.outgoing->flush()) waker_.wake();
}

bool Network::push(Transfer& transfer) {
  Peer& to = peers_[transfer.peer()];
  const size_t count = std::min(transfer.rest(), kPiece);
  {
    const std::lock_guard lock(mutex_);
    if (kWindow - (to.sent - to.receipted) < cost_of(count)) return false;
    to.sent += cost_of(count);
  }
  Packet bytes(kBytes, 0, count);
  transfer.read(bytes.body());
  send(to, std::move(bytes));
  return true;
}

bool Network::pull(Transfer& transfer) {
  Peer& from = peers_[transfer.peer()];
  const Packet* first = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (from.packets.empty()) return false;
    first = &from.packets.front();  // it does not move while others are added
  }
  const auto body = first->body();
  const size_t count = transfer.write(body.subspan(from.begin), rank_);
  from.begin += count;
  if (from.begin == body.size()) {
    from.begin = 0;
    from.unreceipted += cost_of(body.size());
    const std::lock_guard lock(mutex_);
    from.packets.pop_front();
  }
  if (from.unreceipted >= kWindow / 2) {
    const uint64_t read = std::exchange(from.unreceipted, 0);
    {
      const std::lock_guard lock(mutex_);
      from.held -= read;
    }
    send(from, Packet(kReceipt, read, size_t{0}));
  }
  return true;
}

uint32_t Network::bell() const {
  const std::lock_guard lock(mutex_);
  return bell_;
}

void Network::ring() {
  {
    const std::lock_guard lock(mutex_);
    ++bell_;
  }
  changed_.notify_all();
}

void Network::wait(uint32_t seen) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kTimeout, [&] { return bell_ != seen; });
}

std::optional<Failure> Network::absence(uint32_t peer) {
  Peer& there = peers_[peer];
  const bool has_gone = has_ended(there.outgoing->file()) || there.outgoing->is_broken();
  const std::lock_guard lock(mutex_);
  if (there.failure) return there.failure;
  if (!has_gone && !there.has_closed) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(there.is_absent, true)) there.last = now;
  if (now - there.last < kLastWords) return std::nullopt;
  if (const int error = error_of(there.outgoing->file())) {
    return Failure(HCCL_E_REMOTE, c10::str("rank ", peer, " at ", there.place.address.text(),
                                           " is not reached any more: ", std::strerror(error)));
  }
  return Failure(HCCL_E_REMOTE,
                 c10::str("the process of rank ", peer, " (", there.place.process,
                          ") has ended, or has closed ", there.place.address.text()));
}

// The thread's main function. If memory is exhausted, it tries again.
void Network::serve() noexcept {
  std::vector<pollfd> files;
  while (!is_closed_) {
    try {
      files.clear();
      int timeout = 60'000;
      waker_.watch(files);
      listener_.watch(files, timeout);
      const bool is_connected = is_connected_;
      for (Peer& peer : peers_) {
        if (peer.incoming) files.push_back({peer.incoming->file(), POLLIN, 0});
        if (is_connected && peer.outgoing && !peer.outgoing->flush()) {
          files.push_back({peer.outgoing->file(), POLLOUT, 0});
        }
      }
      poll(files.data(), files.size(), timeout);
      waker_.settle();
      accept_clients();
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        if (peers_[rank].incoming) receive_from(rank);
      }
    } catch (...) {
      poll(nullptr, 0, 10);
    }
  }
}

void Network::accept_clients() {
  for (PeerSocket& peer_socket : listener_.admit()) {
    const uint32_t rank = peer_socket.rank;
    if (rank >= ranks_ || rank == rank_ || peers_[rank].has_come) continue;
    static constexpr std::array<size_t, 4> kLargest = {kPiece, 0, kLongestText, 0};
    peers_[rank].incoming = std::make_unique<Connection>(std::move(peer_socket), kLargest);
    peers_[rank].has_come = true;
  }
}

void Network::receive_from(uint32_t rank) {
  Peer& from = peers_[rank];
  std::optional<Failure> refusal;
  try {
    if (from.incoming->receive([&](Packet packet) { sort(rank, std::move(packet)); })) return;
  } catch (const Failure& failure) {
    refusal.emplace(HCCL_E_REMOTE,
                    c10::str("rank ", rank, " sent what is refused: ", failure.what()));
  }
  from.incoming.reset();
  {
    const std::lock_guard lock(mutex_);
    from.has_closed = true;
    if (!from.failure) from.failure = refusal;
  }
  ring();
}

// Processes a packet that has arrived.
void Network::sort(uint32_t rank, Packet packet) {
  const auto body = std::as_const(packet).body();
  {
    const std::lock_guard lock(mutex_);
    Peer& from = peers_[rank];
    from.last = std::chrono::steady_clock::now();
    switch (packet.kind()) {
      case kBytes:
        if (body.empty()) throw Failure(HCCL_E_NETWORK, "a packet without bytes");
        from.held += cost_of(body.size());
        if (from.held > kWindow) {
          throw Failure(HCCL_E_NETWORK, c10::str("more than ", kWindow,
                                                 " bytes that nobody has "
                                                 "read yet"));
        }
        from.packets.push_back(std::move(packet));
        break;
      case kReceipt:
        if (packet.number() > from.sent - from.receipted) {
          throw Failure(HCCL_E_NETWORK, c10::str("a receipt for ", packet.number(), " bytes of ",
                                                 from.sent - from.receipted, " on the way"));
        }
        from.receipted += packet.number();
        break;
      case kFailure:
        from.failure.emplace(result_of(packet.number()), std::string(body.begin(), body.end()));
        break;
      case kLeave:
        from.failure.emplace(HCCL_E_REMOTE,
                             c10::str("rank ", rank, " has destroyed its communicator"));
        break;
      default: break;  // the connection refuses other kinds
    }
  }
  ring();
}

void Network::fail(const Failure& failure) noexcept {
  take_leave(kFailure, failure.code(), failure.what());
}

// The first leave is kept.
void Network::take_leave(uint32_t kind, HcclResult code, std::string_view text) noexcept {
  if (has_left_.exchange(true)) return;
  try {
    std::array<char, kLongestText> words;
    write_text(words, text);
    const std::span<const char> written(words.data(), std::strlen(words.data()));
    for (Peer& peer : peers_) {
      send(peer, Packet(kind, static_cast<uint64_t>(code), written));
    }
  } catch (...) {
    // If memory is exhausted, the others see the connections end.
  }
}

}  // namespace aclnn_host::hccl
