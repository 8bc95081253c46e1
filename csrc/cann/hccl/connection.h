#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cann/hccl/packets.h"
#include "cann/hccl/proof.h"
#include "cann/hccl/sockets.h"

namespace aclnn_host::hccl {

// A connection whose two sides have proved to each other that they know the secret. Over the
// network each side sends an authentication tag of the other's random bytes, and every later packet
// has a tag with keys of this connection. On one host the kernel reports the user of the peer
// process, and the secret itself is the proof.
struct PeerSocket {
  File file;
  uint32_t rank = 0;              // the rank that the connecting side claims
  std::optional<Secret> sending;  // the keys of the packets' tags
  std::optional<Secret> receiving;
};

// Proves the secret to the listening side, and checks that side's proof. `purpose` identifies the
// use of the connection, and both sides know it. Throws a Failure, or a std::system_error if the
// other side closes the connection or does not answer by the deadline.
PeerSocket authenticate(File file, const Secret& secret, const std::string& purpose, uint32_t rank,
                        const Deadline& deadline);

// Connects to a listening process, and authenticates itself. Retries a few times, because a full
// Listener rejects its oldest candidate.
PeerSocket connect_authenticated(const Address& where, const Secret& secret,
                                 const std::string& purpose, uint32_t rank,
                                 const Deadline& deadline);
PeerSocket connect_authenticated(const std::string& where, const Secret& secret,
                                 const std::string& purpose, uint32_t rank,
                                 const Deadline& deadline);

// The listening side. A process that connects has a few seconds to prove the secret. The number of
// those that have not is limited; the oldest is rejected. To be used by one thread.
class Listener {
 public:
  Listener(File socket, const Secret& secret, std::string purpose);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // Adds the descriptors to poll, and shortens the timeout, in milliseconds.
  void watch(std::vector<pollfd>& files, int& timeout) const;
  // Returns the connections that have proved the secret since the last call. Never blocks.
  std::vector<PeerSocket> admit();

 private:
  struct Candidate;
  using Clock = std::chrono::steady_clock;

  void accept_all();
  bool listen_to(Candidate& candidate, std::vector<PeerSocket>& admitted);

  const File socket_;
  const Secret secret_;
  const std::string purpose_;
  const bool is_network_;
  std::list<Candidate> candidates_;
  Clock::time_point closed_until_{};  // while the process can open no more descriptors
};

// Transports packets over such a socket. One thread receives; any thread may send.
class Connection {
 public:
  Connection(PeerSocket peer_socket, std::span<const size_t> largest);

  int file() const noexcept { return file_.number(); }
  uint32_t rank() const noexcept { return rank_; }

  // Sends a packet; bytes that the socket does not accept yet are queued. Packets to a side that
  // has closed the connection are dropped.
  void send(Packet packet);
  // Sends queued bytes; false if some remain.
  bool flush();
  bool is_broken() const;

  // Reads a limited number of packets and passes them on. Returns false if the other side has
  // closed the connection.
  bool receive(const std::function<void(Packet)>& take);

 private:
  bool flush_locked();

  const File file_;
  const uint32_t rank_;
  PacketReader reader_;

  mutable std::mutex mutex_;  // guards the members below
  PacketWriter writer_;
  std::deque<std::vector<char>> unsent_;
  size_t begin_ = 0;  // the first byte of the first packet that is not sent
  bool is_broken_ = false;
};

// Wakes a thread that polls.
class Waker {
 public:
  Waker();
  void wake() noexcept;
  void watch(std::vector<pollfd>& files) const { files.push_back({file_.number(), POLLIN, 0}); }
  void settle() noexcept;  // call it after a wake

 private:
  const File file_;
};

}  // namespace aclnn_host::hccl
