#include "cann/hccl/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

constexpr char kMagic[8] = {'a', 'c', 'l', 'n', 'n', 'h', 'c', '2'};

constexpr size_t kMostCandidates = 256;
constexpr int kMostAttempts = 5;
constexpr std::chrono::seconds kCandidateTimeout{10};
constexpr std::chrono::milliseconds kClosed{100};
constexpr std::chrono::milliseconds kPause{20};

// The most bytes that the thread reads from one connection before it serves others.
constexpr size_t kMostAtOnce = size_t{1} << 20;

// The first packet, from the listening side.
struct Challenge {
  char magic[sizeof(kMagic)];
  Secret random;
};
struct Response {
  Secret random;
  uint32_t rank;
  Tag proof;
};
struct Confirmation {
  Tag proof;
};

template <class T>
std::span<char> bytes_of(T& of) {
  return {reinterpret_cast<char*>(&of), sizeof(of)};
}

bool is_of_network(const File& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family != AF_UNIX;
}

// The values that both sides of a connection know.
struct Handshake {
  const Secret& secret;
  const std::string& purpose;
  bool is_network;
  Secret challenge;
  Secret answer;
  uint32_t rank;

  // Derives a tag that only the two sides of this connection can compute; each use has a different
  // one.
  Tag derive(std::string_view use) const {
    if (!is_network) return secret;
    std::vector<char> bytes(use.begin(), use.end());
    bytes.push_back('\0');
    bytes.insert(bytes.end(), challenge.begin(), challenge.end());
    bytes.insert(bytes.end(), answer.begin(), answer.end());
    const auto* const number = reinterpret_cast<const char*>(&rank);
    bytes.insert(bytes.end(), number, number + sizeof(rank));
    bytes.insert(bytes.end(), purpose.begin(), purpose.end());
    return tag_of(secret, bytes);
  }

  PeerSocket authenticated(File file, bool connects) const {
    PeerSocket made{std::move(file), rank, {}, {}};
    if (is_network) {
      made.sending = derive(connects ? "packets of who connects" : "packets of who listens");
      made.receiving = derive(connects ? "packets of who listens" : "packets of who connects");
      const int yes = 1;
      setsockopt(made.file.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    }
    return made;
  }
};

constexpr std::string_view kProofOfConnecting = "proof of who connects";
constexpr std::string_view kProofOfListening = "proof of who listens";

template <class Where>
PeerSocket retry_connecting(const Where& where, const Secret& secret, const std::string& purpose,
                            uint32_t rank, const Deadline& deadline) {
  for (int attempts = 1;; ++attempts) {
    try {
      return authenticate(connect_to(where, deadline), secret, purpose, rank, deadline);
    } catch (const std::system_error& error) {
      const bool was_sent_away = error.code() == std::errc::connection_reset;
      if (!was_sent_away || attempts == kMostAttempts || deadline.is_past()) throw;
    }
    std::this_thread::sleep_for(attempts * kPause);
  }
}

}  // namespace

PeerSocket authenticate(File file, const Secret& secret, const std::string& purpose, uint32_t rank,
                        const Deadline& deadline) {
  Challenge challenge;
  receive_all(file, bytes_of(challenge), deadline);
  if (std::memcmp(challenge.magic, kMagic, sizeof(kMagic)) != 0) {
    throw Failure(HCCL_E_TCP_CONNECT, "another program listens there");
  }
  const Handshake ours{secret,           purpose,         is_of_network(file),
                       challenge.random, random_secret(), rank};
  Response answer{ours.answer, rank, ours.derive(kProofOfConnecting)};
  send_all(file, bytes_of(answer), deadline);
  Confirmation confirmation;
  try {
    receive_all(file, bytes_of(confirmation), deadline);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::connection_reset) throw;
    throw std::system_error(error.code(), "it has ended, or has another secret than rootInfo's");
  }
  if (!are_equal(confirmation.proof, ours.derive(kProofOfListening))) {
    throw Failure(HCCL_E_TCP_CONNECT, "it does not prove that it has rootInfo's secret");
  }
  return ours.authenticated(std::move(file), true);
}

PeerSocket connect_authenticated(const Address& where, const Secret& secret,
                                 const std::string& purpose, uint32_t rank,
                                 const Deadline& deadline) {
  return retry_connecting(where, secret, purpose, rank, deadline);
}

PeerSocket connect_authenticated(const std::string& where, const Secret& secret,
                                 const std::string& purpose, uint32_t rank,
                                 const Deadline& deadline) {
  return retry_connecting(where, secret, purpose, rank, deadline);
}

// A connection that has not proved the secret yet.
struct Listener::Candidate {
  File file;
  Secret challenge;
  Clock::time_point deadline;
  Response answer;
  size_t filled = 0;
};

Listener::Listener(File socket, const Secret& secret, std::string purpose)
    : socket_(std::move(socket)),
      secret_(secret),
      purpose_(std::move(purpose)),
      is_network_(is_of_network(socket_)) {}

Listener::~Listener() = default;

void Listener::watch(std::vector<pollfd>& files, int& timeout) const {
  if (Clock::now() >= closed_until_) {
    files.push_back({socket_.number(), POLLIN, 0});
  } else {
    timeout = std::min(timeout, static_cast<int>(kClosed.count()));
  }
  for (const Candidate& candidate : candidates_)
    files.push_back({candidate.file.number(), POLLIN, 0});
  if (!candidates_.empty()) timeout = std::min(timeout, 1000);
}

std::vector<PeerSocket> Listener::admit() {
  std::vector<PeerSocket> admitted;
  // Connections that exist are read first, because each new one may displace the oldest.
  for (auto candidate = candidates_.begin(); candidate != candidates_.end();) {
    const bool stays = listen_to(*candidate, admitted);
    candidate = stays ? std::next(candidate) : candidates_.erase(candidate);
  }
  accept_all();
  return admitted;
}

void Listener::accept_all() {
  const auto now = Clock::now();
  if (now < closed_until_) return;
  for (size_t count = 0; count < kMostCandidates; ++count) {
    File file(accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!file) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        closed_until_ = now + kClosed;
        if (!candidates_.empty()) candidates_.pop_front();
      }
      return;
    }
    if (!is_network_ && !is_same_user(file.number())) continue;
    Challenge challenge;
    std::memcpy(challenge.magic, kMagic, sizeof(kMagic));
    challenge.random = random_secret();
    const auto sent = ::send(file.number(), &challenge, sizeof(challenge), MSG_NOSIGNAL);
    if (sent != ssize_t{sizeof(challenge)}) continue;
    if (candidates_.size() == kMostCandidates) candidates_.pop_front();
    candidates_.push_back({std::move(file), challenge.random, now + kCandidateTimeout, {}});
  }
}

// Reads more of a candidate's answer. Returns false if the candidate is to be removed.
bool Listener::listen_to(Candidate& candidate, std::vector<PeerSocket>& admitted) {
  const auto room = bytes_of(candidate.answer).subspan(candidate.filled);
  const ssize_t count = recv(candidate.file.number(), room.data(), room.size(), 0);
  if (count <= 0) {
    return count < 0 && (errno == EAGAIN || errno == EINTR) && Clock::now() < candidate.deadline;
  }
  candidate.filled += static_cast<size_t>(count);
  if (candidate.filled < sizeof(Response)) return true;
  const Handshake theirs{secret_,
                         purpose_,
                         is_network_,
                         candidate.challenge,
                         candidate.answer.random,
                         candidate.answer.rank};
  if (!are_equal(candidate.answer.proof, theirs.derive(kProofOfConnecting))) return false;
  const Confirmation confirmation{theirs.derive(kProofOfListening)};
  const auto sent =
      ::send(candidate.file.number(), &confirmation, sizeof(confirmation), MSG_NOSIGNAL);
  if (sent == ssize_t{sizeof(confirmation)}) {
    admitted.push_back(theirs.authenticated(std::move(candidate.file), false));
  }
  return false;
}

Connection::Connection(PeerSocket peer_socket, std::span<const size_t> largest)
    : file_(std::move(peer_socket.file)),
      rank_(peer_socket.rank),
      reader_(peer_socket.receiving, largest),
      writer_(peer_socket.sending) {}

void Connection::send(Packet packet) {
  const std::lock_guard lock(mutex_);
  if (is_broken_) return;
  unsent_.push_back(writer_.write(std::move(packet)));
  flush_locked();
}

bool Connection::flush() {
  const std::lock_guard lock(mutex_);
  return flush_locked();
}

bool Connection::flush_locked() {
  while (!unsent_.empty()) {
    const std::vector<char>& first = unsent_.front();
    const ssize_t count =
        ::send(file_.number(), first.data() + begin_, first.size() - begin_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return false;
    if (count < 0) {
      is_broken_ = true;
      unsent_.clear();
      return true;
    }
    begin_ += static_cast<size_t>(count);
    if (begin_ < first.size()) continue;
    begin_ = 0;
    unsent_.pop_front();
  }
  return true;
}

bool Connection::is_broken() const {
  const std::lock_guard lock(mutex_);
  return is_broken_;
}

bool Connection::receive(const std::function<void(Packet)>& take) {
  for (size_t total = 0; total < kMostAtOnce;) {
    const auto room = reader_.room();
    const ssize_t count = recv(file_.number(), room.data(), room.size(), 0);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    total += static_cast<size_t>(count);
    if (auto packet = reader_.advance(static_cast<size_t>(count))) take(std::move(*packet));
  }
  return true;
}

Waker::Waker() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!file_) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
}

void Waker::wake() noexcept {
  eventfd_write(file_.number(), 1);
}

void Waker::settle() noexcept {
  eventfd_t count;
  eventfd_read(file_.number(), &count);
}

}  // namespace aclnn_host::hccl
