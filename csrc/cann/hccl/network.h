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

// Transport between ranks of several hosts. Each rank connects to every other one and sends on that
// connection; a thread receives on the connections from the others. The memory for received data is
// bounded, whatever the others send.
class Network final : public Streams {
 public:
  // Listens for the other ranks of the communicator.
  Network(uint32_t rank, uint32_t ranks, const Secret& secret, const std::string& key);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() override;

  // The address of the listening socket.
  const Address& address() const noexcept { return address_; }

  // The address and the process id of a rank.
  struct Place {
    Address address;
    int process;
  };
  // Connects to the other ranks. `places` has one element for each rank.
  void connect(const std::vector<Place>& places, const Deadline& deadline);

  void fail(const Failure& failure) noexcept override;

 private:
  struct Peer {
    Place place;
    std::unique_ptr<Connection> outgoing;

    uint64_t unreceipted = 0;  // bytes read for which no receipt was sent
    size_t begin = 0;          // the first unread byte of the first packet

    // The state of the peer, guarded by mutex_. Sizes are those of cost_of().
    std::deque<Packet> packets;  // of the kind kBytes
    uint64_t held = 0;           // received, and no receipt sent
    uint64_t sent = 0;
    uint64_t receipted = 0;  // of the bytes in `sent`
    std::optional<Failure> failure;
    bool has_closed = false;                     // nothing more can arrive
    bool is_absent = false;                      // its end was noticed
    std::chrono::steady_clock::time_point last;  // when its end was noticed, or the last arrival
                                                 // after that

    // Used by the thread only.
    std::unique_ptr<Connection> incoming;
    bool has_come = false;  // it has connected once; a second time is refused
  };

  bool push(Transfer& transfer) override;
  bool pull(Transfer& transfer) override;
  uint32_t bell() const override;
  void wait(uint32_t seen) override;
  std::optional<Failure> absence(uint32_t peer) override;

  void connect_to(uint32_t peer, const Deadline& deadline);
  void send(Peer& to, Packet packet);
  void serve() noexcept;
  void accept_clients();
  void receive_from(uint32_t rank);
  void sort(uint32_t rank, Packet packet);
  void take_leave(uint32_t kind, HcclResult code, std::string_view text) noexcept;
  void ring();

  const Secret secret_;
  const std::string key_;
  Address address_;
  Listener listener_;
  std::vector<Peer> peers_;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_connected_ = false;  // the thread may use the outgoing connections
  std::atomic<bool> is_closed_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t bell_ = 0;
  Waker waker_;
  std::thread thread_;
};

}  // namespace aclnn_host::hccl
