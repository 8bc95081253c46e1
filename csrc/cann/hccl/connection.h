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

// A connection whose two sides have proved to each other that they hold the secret. Over the
// network by tags of each other's random bytes, after which every letter has a tag of keys that
// serve this connection alone. On one host the kernel keeps others out: it tells the user of the
// process at the other side, and the secret itself is the proof.
struct Contact {
  File file;
  uint32_t rank = 0;              // that the side which connected says it has
  std::optional<Secret> sending;  // the keys of letters
  std::optional<Secret> receiving;
};

// Proves the secret to the side that listens, and that it has it. `purpose` is what both sides know
// the connection is for. Throws a Failure, or a std::system_error if the other side closes the
// connection or is silent until the deadline.
Contact introduce(File file, const Secret& secret, const std::string& purpose, uint32_t rank,
                  const Deadline& deadline);

// Connects to where somebody listens, and does so. A few times, since a door at which many stand
// sends the first away.
Contact visit(const Address& where, const Secret& secret, const std::string& purpose, uint32_t rank,
              const Deadline& deadline);
Contact visit(const std::string& where, const Secret& secret, const std::string& purpose,
              uint32_t rank, const Deadline& deadline);

// The side that listens. Who connects has a few seconds to prove the secret, and there is room for
// so many who have not; whoever came first then gives way. For one thread.
class Door {
 public:
  Door(File listener, const Secret& secret, std::string purpose);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door();

  // Adds to the files that poll is to watch, and shortens its timeout, in milliseconds.
  void watch(std::vector<pollfd>& files, int& timeout) const;
  // Lets in whoever has proved the secret since. Never waits.
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
  Clock::time_point closed_until_{};  // while the process can open no more files
};

// Letters over a contact. One thread receives; any may send.
class Connection {
 public:
  Connection(Contact contact, std::span<const size_t> largest);

  int file() const noexcept { return file_.number(); }
  uint32_t rank() const noexcept { return rank_; }

  // Sends a letter, and keeps what the system does not take yet. Letters to a side that has closed
  // the connection are lost.
  void send(Letter letter);
  // Goes on with what was kept; false if there is more.
  bool flush();
  bool is_broken() const;

  // Passes on what has come, some at a time. False if the other side has closed the connection.
  bool receive(const std::function<void(Letter)>& take);

 private:
  bool flush_locked();

  const File file_;
  const uint32_t rank_;
  LetterReader reader_;

  mutable std::mutex mutex_;  // guards the rest
  LetterWriter writer_;
  std::deque<std::vector<char>> unsent_;
  size_t begin_ = 0;  // of what is not sent of the first
  bool is_broken_ = false;
};

// What wakes a thread that polls.
class Waker {
 public:
  Waker();
  void wake() noexcept;
  void watch(std::vector<pollfd>& files) const { files.push_back({file_.number(), POLLIN, 0}); }
  void settle() noexcept;  // after a wake

 private:
  const File file_;
};

}  // namespace aclnn_host::hccl
