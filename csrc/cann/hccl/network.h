#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cann/hccl/addresses.h"
#include "cann/hccl/connection.h"
#include "cann/hccl/streams.h"

namespace aclnn_host::hccl {

// Ranks that do not share a host. Each connects to each other one, and sends on this connection.
// What comes in on the others' connections a thread of the rank receives. How much of it waits to
// be read is bounded here, whatever the others do.
class Network final : public Streams {
 public:
  // Opens the door to other ranks of the communicator.
  Network(uint32_t rank, uint32_t ranks, const Secret& secret, const std::string& key);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() override;

  // Where the door is.
  const Address& address() const noexcept { return address_; }

  // Where a rank is: its door and its process.
  struct Place {
    Address address;
    int process;
  };
  // Makes the way to the other ranks, of which each has a place.
  void connect(const std::vector<Place>& places, const Deadline& deadline);

  void fail(const Failure& failure) noexcept override;

 private:
  struct Peer {
    Place place;
    std::unique_ptr<Connection> outgoing;

    uint64_t unreceipted = 0;  // what was read, and for which no receipt was sent
    size_t begin = 0;          // of what is not read of the first letter

    // What is known of it, guarded by mutex_. Letters with bytes are counted by what they cost.
    std::deque<Letter> letters;  // with bytes
    uint64_t held = 0;           // what came, and for which no receipt was sent
    uint64_t sent = 0;
    uint64_t receipted = 0;  // of what was sent
    std::optional<Failure> failure;
    bool has_closed = false;                     // nothing more can come
    bool is_absent = false;                      // it was seen to have ended
    std::chrono::steady_clock::time_point last;  // when that was, or when something came after it

    // The thread's.
    std::unique_ptr<Connection> incoming;
    bool has_come = false;  // once; it does not come again
  };

  bool push(Transfer& transfer) override;
  bool pull(Transfer& transfer) override;
  uint32_t bell() const override;
  void wait(uint32_t seen) override;
  std::optional<Failure> absence(uint32_t peer) override;

  void connect_to(uint32_t peer, const Deadline& deadline);
  void send(Peer& to, Letter letter);
  void serve() noexcept;
  void welcome();
  void receive_from(uint32_t rank);
  void sort(uint32_t rank, Letter letter);
  void take_leave(uint32_t kind, HcclResult code, std::string_view text) noexcept;
  void ring();

  const Secret secret_;
  const std::string key_;
  Address address_;
  Door door_;
  std::vector<Peer> peers_;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_connected_ = false;  // the thread may look at the outgoing connections
  std::atomic<bool> is_closed_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t bell_ = 0;
  Waker waker_;
  std::thread thread_;
};

}  // namespace aclnn_host::hccl
