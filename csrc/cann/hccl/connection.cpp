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

constexpr size_t kMostGuests = 256;
constexpr int kMostVisits = 5;
constexpr std::chrono::seconds kPatienceWithGuests{10};
constexpr std::chrono::milliseconds kClosed{100};
constexpr std::chrono::milliseconds kPause{20};

// The most bytes that the thread reads from one connection before it serves others.
constexpr size_t kMostAtOnce = size_t{1} << 20;

// The first packet, from the listening side.
struct Challenge {
  char magic[sizeof(kMagic)];
  Secret random;
};
struct Answer {
  Secret random;
  uint32_t rank;
  Tag proof;
};
struct Welcome {
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
struct Introduction {
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

  Contact contact(File file, bool connects) const {
    Contact made{std::move(file), rank, {}, {}};
    if (is_network) {
      made.sending = derive(connects ? "letters of who connects" : "letters of who listens");
      made.receiving = derive(connects ? "letters of who listens" : "letters of who connects");
      const int yes = 1;
      setsockopt(made.file.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    }
    return made;
  }
};

constexpr std::string_view kProofOfConnecting = "proof of who connects";
constexpr std::string_view kProofOfListening = "proof of who listens";

template <class Where>
Contact visit_again(const Where& where, const Secret& secret, const std::string& purpose,
                    uint32_t rank, const Deadline& deadline) {
  for (int visits = 1;; ++visits) {
    try {
      return introduce(connect_to(where, deadline), secret, purpose, rank, deadline);
    } catch (const std::system_error& error) {
      const bool was_sent_away = error.code() == std::errc::connection_reset;
      if (!was_sent_away || visits == kMostVisits || deadline.is_past()) throw;
    }
    std::this_thread::sleep_for(visits * kPause);
  }
}

}  // namespace

Contact introduce(File file, const Secret& secret, const std::string& purpose, uint32_t rank,
                  const Deadline& deadline) {
  Challenge challenge;
  receive_all(file, bytes_of(challenge), deadline);
  if (std::memcmp(challenge.magic, kMagic, sizeof(kMagic)) != 0) {
    throw Failure(HCCL_E_TCP_CONNECT, "another program listens there");
  }
  const Introduction ours{secret,           purpose,         is_of_network(file),
                          challenge.random, random_secret(), rank};
  Answer answer{ours.answer, rank, ours.derive(kProofOfConnecting)};
  send_all(file, bytes_of(answer), deadline);
  Welcome welcome;
  try {
    receive_all(file, bytes_of(welcome), deadline);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::connection_reset) throw;
    throw std::system_error(error.code(), "it has ended, or has another secret than rootInfo's");
  }
  if (!are_equal(welcome.proof, ours.derive(kProofOfListening))) {
    throw Failure(HCCL_E_TCP_CONNECT, "it does not prove that it has rootInfo's secret");
  }
  return ours.contact(std::move(file), true);
}

Contact visit(const Address& where, const Secret& secret, const std::string& purpose, uint32_t rank,
              const Deadline& deadline) {
  return visit_again(where, secret, purpose, rank, deadline);
}

Contact visit(const std::string& where, const Secret& secret, const std::string& purpose,
              uint32_t rank, const Deadline& deadline) {
  return visit_again(where, secret, purpose, rank, deadline);
}

// A connection that has not proved the secret yet.
struct Door::Guest {
  File file;
  Secret challenge;
  Clock::time_point deadline;
  Answer answer;
  size_t filled = 0;
};

Door::Door(File listener, const Secret& secret, std::string purpose)
    : listener_(std::move(listener)),
      secret_(secret),
      purpose_(std::move(purpose)),
      is_network_(is_of_network(listener_)) {}

Door::~Door() = default;

void Door::watch(std::vector<pollfd>& files, int& timeout) const {
  if (Clock::now() >= closed_until_) {
    files.push_back({listener_.number(), POLLIN, 0});
  } else {
    timeout = std::min(timeout, static_cast<int>(kClosed.count()));
  }
  for (const Guest& guest : guests_) files.push_back({guest.file.number(), POLLIN, 0});
  if (!guests_.empty()) timeout = std::min(timeout, 1000);
}

std::vector<Contact> Door::admit() {
  std::vector<Contact> admitted;
  // Connections that exist are read first, because each new one may displace the oldest.
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const bool stays = listen_to(*guest, admitted);
    guest = stays ? std::next(guest) : guests_.erase(guest);
  }
  accept_all();
  return admitted;
}

void Door::accept_all() {
  const auto now = Clock::now();
  if (now < closed_until_) return;
  for (size_t count = 0; count < kMostGuests; ++count) {
    File file(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!file) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        closed_until_ = now + kClosed;
        if (!guests_.empty()) guests_.pop_front();
      }
      return;
    }
    if (!is_network_ && !is_same_user(file.number())) continue;
    Challenge challenge;
    std::memcpy(challenge.magic, kMagic, sizeof(kMagic));
    challenge.random = random_secret();
    const auto sent = ::send(file.number(), &challenge, sizeof(challenge), MSG_NOSIGNAL);
    if (sent != ssize_t{sizeof(challenge)}) continue;
    if (guests_.size() == kMostGuests) guests_.pop_front();
    guests_.push_back({std::move(file), challenge.random, now + kPatienceWithGuests, {}});
  }
}

// Reads more of a guest's answer. Returns false if the guest is to be removed.
bool Door::listen_to(Guest& guest, std::vector<Contact>& admitted) {
  const auto room = bytes_of(guest.answer).subspan(guest.filled);
  const ssize_t count = recv(guest.file.number(), room.data(), room.size(), 0);
  if (count <= 0) {
    return count < 0 && (errno == EAGAIN || errno == EINTR) && Clock::now() < guest.deadline;
  }
  guest.filled += static_cast<size_t>(count);
  if (guest.filled < sizeof(Answer)) return true;
  const Introduction theirs{
      secret_, purpose_, is_network_, guest.challenge, guest.answer.random, guest.answer.rank};
  if (!are_equal(guest.answer.proof, theirs.derive(kProofOfConnecting))) return false;
  const Welcome welcome{theirs.derive(kProofOfListening)};
  const auto sent = ::send(guest.file.number(), &welcome, sizeof(welcome), MSG_NOSIGNAL);
  if (sent == ssize_t{sizeof(welcome)}) {
    admitted.push_back(theirs.contact(std::move(guest.file), false));
  }
  return false;
}

Connection::Connection(Contact contact, std::span<const size_t> largest)
    : file_(std::move(contact.file)),
      rank_(contact.rank),
      reader_(contact.receiving, largest),
      writer_(contact.sending) {}

void Connection::send(Letter letter) {
  const std::lock_guard lock(mutex_);
  if (is_broken_) return;
  unsent_.push_back(writer_.write(std::move(letter)));
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

bool Connection::receive(const std::function<void(Letter)>& take) {
  for (size_t total = 0; total < kMostAtOnce;) {
    const auto room = reader_.room();
    const ssize_t count = recv(file_.number(), room.data(), room.size(), 0);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    total += static_cast<size_t>(count);
    if (auto letter = reader_.advance(static_cast<size_t>(count))) take(std::move(*letter));
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
