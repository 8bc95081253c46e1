#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "host_cann/hccl/stores.h"
#include "host_cann/hccl/streams.h"

namespace aclnn_host::hccl {

// A connection on which nothing is said. It ends with the process at the other side, or when that
// has not been reached for a while.
class Presence {
 public:
  // Connects to where a process listens.
  explicit Presence(const Address& address);
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  ~Presence();

  bool has_ended() const noexcept;
  // The error with which it has ended; 0 if the other side has closed it.
  int error() const noexcept;

 private:
  int file_ = -1;
};

// Ranks that do not share a host. Each has a store with one queue, its inbox, to which the others
// give what they send; a thread of the rank empties it.
class Network final : public Streams {
 public:
  // Opens the inbox.
  Network(uint32_t rank, uint32_t ranks);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() override;

  // Where the inbox is.
  Address address() const;

  // Where a rank is: its inbox and its process.
  struct Place {
    Address address;
    int process;
  };
  // Makes the way to the other ranks, of which each has a place.
  void connect(const std::vector<Place>& places);

  void fail(const Failure& failure) noexcept override;

 private:
  enum class Kind : uint32_t { kBytes, kReceipt, kFailure, kLeave, kStop };
  // What stands before the rest of everything that comes into an inbox.
  struct Header {
    Kind kind;
    uint32_t from;
    uint64_t number;  // of a receipt, how many bytes; of a failure, its code
  };
  using Letter = std::vector<uint8_t>;

  struct Peer {
    Place place;
    StorePointer store;
    std::unique_ptr<Presence> presence;

    uint64_t sent = 0;              // bytes
    uint64_t unreceipted = 0;       // bytes that were read, and for which no receipt was sent
    size_t begin = sizeof(Header);  // of what is not read of the first letter

    // What is known of it, guarded by mutex_.
    std::deque<Letter> letters;  // with bytes
    uint64_t receipted = 0;      // of the bytes that were sent
    std::optional<Failure> failure;
    bool is_cut = false;                         // nothing can be sent
    bool is_absent = false;                      // it was seen to have ended
    std::chrono::steady_clock::time_point last;  // when that was, or when something came after it
  };

  bool push(Transfer& transfer) override;
  bool pull(Transfer& transfer) override;
  uint32_t bell() const override;
  void wait(uint32_t seen) override;
  std::optional<Failure> absence(uint32_t peer) override;

  void connect_to(uint32_t peer);
  static Letter letter(const Header& header, size_t bytes = 0);
  void send(Peer& to, const Letter& letter);
  void receive() noexcept;
  bool sort(Letter letter);
  void take_leave(Kind kind, HcclResult code, std::string_view text) noexcept;

  const StorePointer own_;  // with the server
  StorePointer inbox_;      // a connection to it, on which the thread waits
  std::vector<Peer> peers_;
  std::atomic<bool> has_left_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t bell_ = 0;
  std::optional<Failure> defect_;  // of the inbox
  std::thread thread_;
};

}  // namespace aclnn_host::hccl
