#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cann/hccl/rendezvous.h"
#include "cann/hccl/transport.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"

namespace aclnn_host::hccl {

// One rank's part in a group. Its operations are done one at a time, in the order in which they
// were called, whatever their streams. After a failure there are no more.
class Communicator {
 public:
  // What a program may choose.
  struct Options {
    std::string name;                             // empty: one is made up
    std::optional<std::chrono::seconds> timeout;  // HCCL_EXEC_TIMEOUT if not given; 0: none
  };

  // Meets the other ranks. `key` is what the meeting calls this communicator.
  Communicator(const Meeting& meeting, const std::string& key, uint32_t rank, uint32_t ranks,
               int32_t device, const Options& options);

  uint32_t rank() const noexcept { return rank_; }
  uint32_t ranks() const noexcept { return ranks_; }
  int32_t device() const noexcept { return device_; }
  const std::string& name() const noexcept { return name_; }
  const Meeting& meeting() const noexcept { return meeting_; }

  // How the ranks are connected: each with each, in one layer. Programs get addresses of the lists.
  struct Graph {
    std::vector<uint32_t> layers = {0};
    std::vector<uint32_t> instances = {0};  // of the layer
    std::vector<uint32_t> sizes;            // of the instances
    std::vector<uint32_t> ranks;
  };
  Graph& graph() noexcept { return graph_; }

  // What programs call it; null before publish().
  HcclComm handle() const noexcept { return handle_.load(); }

  // What the meeting calls the part with these ranks: the n-th one of its kind.
  std::string key_of_part(const std::string& kind);

  // A place in the order of operations, which is given up with it.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Communicator> of);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    friend class Communicator;
    const std::shared_ptr<Communicator> of_;
    uint64_t number_;
  };

  // Waits until it is the turn's time.
  void wait_for(const Turn& turn, const Deadline& deadline);

  // Sends and receives in the turn of the caller.
  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                const Deadline& deadline);

  // The deadline of an operation that begins now.
  Deadline deadline() const;

  // Ends the communicator's work, here and for its peers. The first failure stays.
  void fail(const Failure& failure) noexcept;
  std::optional<Failure> failure() const;

 private:
  friend HcclComm publish(std::shared_ptr<Communicator> communicator);

  const Meeting meeting_;
  const std::string key_;
  const uint32_t rank_;
  const uint32_t ranks_;
  const int32_t device_;
  const std::string name_;
  const int32_t timeout_;  // in milliseconds
  const std::unique_ptr<Transport> transport_;
  Graph graph_;
  std::atomic<HcclComm> handle_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable turned_;
  std::set<uint64_t> turns_;  // those that are not given up
  uint64_t next_turn_ = 0;
  std::map<std::string, uint64_t> parts_;  // how many of each kind were made
  std::optional<Failure> failure_;
};

using CommunicatorTable = HandleTable<Communicator, Object::kCommunicator>;
inline CommunicatorTable& communicators() {
  return PerProcess<CommunicatorTable>::get();
}

// Gives a communicator its handle.
HcclComm publish(std::shared_ptr<Communicator> communicator);

// The communicator of a handle; null, with a message in api's name and *status set, if it is none.
std::shared_ptr<Communicator> require_communicator(const char* api, HcclComm handle,
                                                   HcclResult* status);

}  // namespace aclnn_host::hccl
