#include "host_cann/hccl/network.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "host_cann/hccl/guard.h"

namespace aclnn_host::hccl {
namespace {

constexpr const char* kInbox = "inbox";

// Torch's store takes values of at most 8 MiB, and copies them often.
constexpr size_t kPiece = size_t{512} << 10;
// How much of what was sent to a rank it may not have read yet.
constexpr size_t kWindow = 4 * kPiece;

// The thread waits for letters until it is stopped; torch's store asks how long that may take.
constexpr std::chrono::hours kEver{24};

// How long torch tries to connect to a process that was reached a moment ago.
constexpr std::chrono::seconds kSoon{10};

// How long after a rank's end what it sent before may still come.
constexpr std::chrono::seconds kLastWords{1};

// When a host that does not answer counts as gone: after so many seconds of silence it is asked so
// often, with so many seconds between.
constexpr int kSilence = 5;
constexpr int kQuestions = 3;

// Connects a socket, in the time that ranks have to come. Returns the error.
int connect_in_time(int file, const addrinfo& to) {
  if (::connect(file, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd done{file, POLLOUT, 0};
  const int count = poll(&done, 1, static_cast<int>(connect_timeout().count()));
  if (count <= 0) return count == 0 ? ETIMEDOUT : errno;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Presence::Presence(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list)) {
    throw std::runtime_error(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    file_ = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file_ < 0) {
      error = errno;
      continue;
    }
    error = connect_in_time(file_, *one);
    if (error == 0) break;
    close(file_);
    file_ = -1;
  }
  if (file_ < 0) throw std::system_error(error, std::generic_category());
  const int yes = 1;
  setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPIDLE, &kSilence, sizeof(kSilence));
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPINTVL, &kSilence, sizeof(kSilence));
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPCNT, &kQuestions, sizeof(kQuestions));
}

Presence::~Presence() {
  close(file_);
}

bool Presence::has_ended() const noexcept {
  pollfd end{file_, POLLIN | POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1;
}

int Presence::error() const noexcept {
  char byte;
  const ssize_t count = recv(file_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || errno == ECONNRESET ? 0 : errno;
}

Network::Network(uint32_t rank, uint32_t ranks)
    : Streams(rank, ranks), own_(open_store(own_host(), connect_timeout())), peers_(ranks) {
  inbox_ = connect_to_store(address(), kEver);
  thread_ = std::thread([this] { receive(); });
}

Network::~Network() {
  take_leave(Kind::kLeave, HCCL_SUCCESS, "");
  try {
    own_->queuePush(kInbox, letter({Kind::kStop, rank_, 0}));
  } catch (...) {
    // The inbox is broken, of which the thread has learnt.
  }
  thread_.join();
}

Address Network::address() const {
  return {own_->getHost(), own_->getPort()};
}

void Network::connect(const std::vector<Place>& places) {
  for (uint32_t peer = 0; peer < ranks_; ++peer) peers_[peer].place = places[peer];
  try {
    for (uint32_t peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) connect_to(peer);
    }
  } catch (const Failure& failure) {
    fail(failure);
    throw;
  }
}

void Network::connect_to(uint32_t peer) {
  Peer& to = peers_[peer];
  try {
    to.presence = std::make_unique<Presence>(to.place.address);
    to.store = connect_to_store(to.place.address, kSoon);
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

Network::Letter Network::letter(const Header& header, size_t bytes) {
  Letter made(sizeof(header) + bytes);
  std::memcpy(made.data(), &header, sizeof(header));
  return made;
}

// Gives a letter into the inbox of a rank, unless that has ended.
void Network::send(Peer& to, const Letter& letter) {
  if (to.store == nullptr || to.presence->has_ended()) return;
  try {
    to.store->queuePush(kInbox, letter);
  } catch (const c10::Error&) {
    const std::lock_guard lock(mutex_);
    to.is_cut = true;
  }
}

bool Network::push(Transfer& transfer) {
  Peer& to = peers_[transfer.peer()];
  const size_t count = std::min(transfer.rest(), kPiece);
  {
    const std::lock_guard lock(mutex_);
    if (kWindow - (to.sent - to.receipted) < count) return false;
  }
  Letter bytes = letter({Kind::kBytes, rank_, 0}, count);
  transfer.read({reinterpret_cast<char*>(bytes.data()) + sizeof(Header), count});
  to.sent += count;
  send(to, bytes);
  return true;
}

bool Network::pull(Transfer& transfer) {
  Peer& from = peers_[transfer.peer()];
  Letter* first = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (from.letters.empty()) return false;
    first = &from.letters.front();  // which stays where it is while others come
  }
  const auto* const bytes = reinterpret_cast<const char*>(first->data());
  const size_t count = transfer.write({bytes + from.begin, first->size() - from.begin}, rank_);
  from.begin += count;
  from.unreceipted += count;
  if (from.begin == first->size()) {
    from.begin = sizeof(Header);
    const std::lock_guard lock(mutex_);
    from.letters.pop_front();
  }
  if (from.unreceipted >= kWindow / 2) {
    send(from, letter({Kind::kReceipt, rank_, std::exchange(from.unreceipted, 0)}));
  }
  return true;
}

uint32_t Network::bell() const {
  const std::lock_guard lock(mutex_);
  return bell_;
}

void Network::wait(uint32_t seen) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return bell_ != seen; });
}

std::optional<Failure> Network::absence(uint32_t peer) {
  Peer& there = peers_[peer];
  const bool has_ended = there.presence->has_ended();
  const std::lock_guard lock(mutex_);
  if (there.failure) return there.failure;
  if (defect_) return defect_;
  if (!has_ended && !there.is_cut) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(there.is_absent, true)) there.last = now;
  if (now - there.last < kLastWords) return std::nullopt;
  if (const int error = there.presence->error()) {
    return Failure(HCCL_E_REMOTE, c10::str("rank ", peer, " at ", there.place.address.text(),
                                           " is not reached any more: ", std::strerror(error)));
  }
  return Failure(HCCL_E_REMOTE,
                 c10::str("the process of rank ", peer, " (", there.place.process,
                          ") has ended, or has closed ", there.place.address.text()));
}

// The thread's work.
void Network::receive() noexcept {
  try {
    for (;;) {
      try {
        Letter next = inbox_->queuePop(kInbox, true);
        if (!sort(std::move(next))) return;
      } catch (const c10::DistStoreError&) {
        // Nothing has come for very long.
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    defect_ = failure_of_exception();
  }
  changed_.notify_all();
}

// Puts a letter where it belongs; false if it says to stop. What is not of a rank is dropped.
bool Network::sort(Letter letter) {
  Header header{};
  if (letter.size() < sizeof(header)) return true;
  std::memcpy(&header, letter.data(), sizeof(header));
  if (header.from >= ranks_) return true;
  if (header.from == rank_) return header.kind != Kind::kStop;
  {
    const std::lock_guard lock(mutex_);
    Peer& from = peers_[header.from];
    from.last = std::chrono::steady_clock::now();
    switch (header.kind) {
      case Kind::kBytes: from.letters.push_back(std::move(letter)); break;
      case Kind::kReceipt: from.receipted += header.number; break;
      case Kind::kFailure:
        from.failure.emplace(static_cast<HcclResult>(header.number),
                             std::string(letter.begin() + sizeof(header), letter.end()));
        break;
      case Kind::kLeave:
        from.failure.emplace(HCCL_E_REMOTE,
                             c10::str("rank ", header.from, " has destroyed its communicator"));
        break;
      case Kind::kStop: break;
    }
    ++bell_;
  }
  changed_.notify_all();
  return true;
}

void Network::fail(const Failure& failure) noexcept {
  take_leave(Kind::kFailure, failure.code(), failure.what());
}

// The first leave stays.
void Network::take_leave(Kind kind, HcclResult code, std::string_view text) noexcept {
  if (has_left_.exchange(true)) return;
  try {
    std::array<char, kLongestText> words;
    write_text(words, text);
    const size_t count = std::strlen(words.data());
    Letter farewell = letter({kind, rank_, static_cast<uint64_t>(code)}, count);
    std::memcpy(farewell.data() + sizeof(Header), words.data(), count);
    for (Peer& peer : peers_) send(peer, farewell);
  } catch (...) {
    // Without memory for it, the others see the connections end.
  }
}

}  // namespace aclnn_host::hccl
