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

#include "cann/hccl/letters.h"
#include "cann/hccl/proof.h"
#include "cann/hccl/sockets.h"

namespace aclnn_host::hccl {

// A connection whose two sides have proved to each other that they know the secret. Over the
// network each side sends an authentication tag of the other's random bytes, and every later letter
// has a tag with keys of this connection. On one host the kernel reports the user of the peer
// process, and the secret itself is the proof.
struct Contact {
  File file;
  uint32_t rank = 0;              // the rank that the connecting side claims
  std::optional<Secret> sending;  // the keys of the letters' tags
  std::optional<Secret> receiving;
};

// Proves the secret to the listening side, and checks that side's proof. `purpose` identifies the
// use of the connection, and both sides know it. Throws a Failure, or a std::system_error if the
// other side closes the connection or does not answer by the deadline.
Contact introduce(File file, const Secret& secret, const std::string& purpose, uint32_t rank,
                  const Deadline& deadline);

// Connects to a listening process, and introduces itself. Retries a few times, because a full Door
// rejects its oldest guest.
Contact visit(const Address& where, const Secret& secret, const std::string& purpose, uint32_t rank,
              const Deadline& deadline);
Contact visit(const std::string& where, const Secret& secret, const std::string& purpose,
              uint32_t rank, const Deadline& deadline);

// The listening side. A process that connects has a few seconds to prove the secret. The number of
// those that have not is limited; the oldest is rejected. To be used by one thread.
class Door {
 public:
  Door(File listener, const Secret& secret, std::string purpose);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door();

  // Adds the descriptors to poll, and shortens the timeout, in milliseconds.
  void watch(std::vector<pollfd>& files, int& timeout) const;
  // Returns the connections that have proved the secret since the last call. Never blocks.
  std::vector<Contact> admit();

 private:
  struct Guest;
  using Clock = std::chrono::steady_clock;

  void accept_all();
  bool listen_to(Guest& guest, std::vector<Contact>& admitted);

  const File listener_;
  const Secret secret_;
  const std::string purpose_;
  const bool is_network_;
  std::list<Guest> guests_;
  Clock::time_point closed_until_{};  // while the process can open no more descriptors
};

// Transports letters over a contact. One thread receives; any thread may send.
class Connection {
 public:
  Connection(Contact contact, std::span<const size_t> largest);

  int file() const noexcept { return file_.number(); }
  uint32_t rank() const noexcept { return rank_; }

  // Sends a letter; bytes that the socket does not accept yet are queued. Letters to a side that
  // has closed the connection are dropped.
  void send(Letter letter);
  // Sends queued bytes; false if some remain.
  bool flush();
  bool is_broken() const;

  // Reads a limited number of letters and passes them on. Returns false if the other side has
  // closed the connection.
  bool receive(const std::function<void(Letter)>& take);

 private:
  bool flush_locked();

  const File file_;
  const uint32_t rank_;
  LetterReader reader_;

  mutable std::mutex mutex_;  // guards the members below
  LetterWriter writer_;
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
