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

// One rank of a communicator. Its operations run one at a time, in the order of the calls, on
// whatever streams. After a failure no more operations run.
class Communicator {
 public:
  // Options that a program may set.
  struct Options {
    std::string name;                             // generated if empty
    std::optional<std::chrono::seconds> timeout;  // HCCL_EXEC_TIMEOUT if absent; 0 means no timeout
  };

  // Joins the other ranks. `key` is the communicator's name in the rendezvous.
  Communicator(const Rendezvous& rendezvous, const std::string& key, uint32_t rank, uint32_t ranks,
               int32_t device, const Options& options);

  uint32_t rank() const noexcept { return rank_; }
  uint32_t ranks() const noexcept { return ranks_; }
  int32_t device() const noexcept { return device_; }
  const std::string& name() const noexcept { return name_; }
  const Rendezvous& rendezvous() const noexcept { return rendezvous_; }

  // The topology: all ranks are connected to each other, in one layer. Programs receive pointers to
  // the lists.
  struct Graph {
    std::vector<uint32_t> layers = {0};
    std::vector<uint32_t> instances = {0};  // of the layer
    std::vector<uint32_t> sizes;            // of the instances
    std::vector<uint32_t> ranks;
  };
  Graph& graph() noexcept { return graph_; }

  // The handle that programs use; null before publish().
  HcclComm handle() const noexcept { return handle_.load(); }

  // The rendezvous's key of a sub-communicator with these ranks, numbered within its kind.
  std::string key_of_part(const std::string& kind);

  // A position in the order of operations. The destructor gives it up.
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

  // Waits until all earlier turns are given up.
  void wait_for(const Turn& turn, const Deadline& deadline);

  // Sends and receives; the caller holds the current turn.
  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                const Deadline& deadline);

  // The deadline of an operation that starts now.
  Deadline deadline() const;

  // Ends the communicator, here and for its peers. The first failure is kept.
  void fail(const Failure& failure) noexcept;
  std::optional<Failure> failure() const;

 private:
  friend HcclComm publish(std::shared_ptr<Communicator> communicator);

  const Rendezvous rendezvous_;
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
  std::set<uint64_t> turns_;  // not yet given up
  uint64_t next_turn_ = 0;
  std::map<std::string, uint64_t> parts_;  // the number of sub-communicators of each kind
  std::optional<Failure> failure_;
};

using CommunicatorTable = HandleTable<Communicator, Object::kCommunicator>;
inline CommunicatorTable& communicators() {
  return PerProcess<CommunicatorTable>::get();
}

// Gives a communicator its handle.
HcclComm publish(std::shared_ptr<Communicator> communicator);

// The communicator of a handle. For an invalid handle, returns null, sets *status and records an
// error message in api's name.
std::shared_ptr<Communicator> require_communicator(const char* api, HcclComm handle,
                                                   HcclResult* status);

}  // namespace aclnn_host::hccl
