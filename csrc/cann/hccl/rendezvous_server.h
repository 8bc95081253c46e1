#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cann/hccl/addresses.h"
#include "cann/hccl/connection.h"
#include "cann/hccl/proof.h"
#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// The largest number of ranks of a communicator.
constexpr uint32_t kMostRanks = 32768;

// The addresses of a rendezvous server, and the secret that its clients prove.
struct ServerAddress {
  std::string local_name;  // for processes of its host; empty on other hosts
  Address address;         // for other hosts; port 0 if there is none
  std::string name;        // of the rendezvous
  Secret secret;
};

// The data with which a rank joins.
struct JoinRequest {
  std::string key;        // of the communicator
  std::string agreement;  // equal for all ranks
  uint32_t rank;
  uint32_t ranks;
  std::string words;  // data for the other ranks
};

// Waits until all ranks of the communicator have joined, and returns the words of each. Throws a
// Failure if they do not join in time, or disagree.
std::vector<std::string> exchange_words(const ServerAddress& to, const JoinRequest& request);

// The server at which the ranks of a communicator, and later those of its sub-communicators,
// exchange their addresses. A thread serves it in the process that made the root information.
class RendezvousServer {
 public:
  // Listens for processes of this host under a name and, if authentication tags can be computed,
  // for other hosts at the address `host`.
  explicit RendezvousServer(const std::string& host);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  ~RendezvousServer();

  const ServerAddress& server_address() const noexcept { return address_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A connection that has proved the secret, and the data that its rank has sent.
  struct Client {
    Client(PeerSocket peer_socket, Clock::time_point its_deadline);
    Connection connection;
    const Clock::time_point deadline;  // for its data
    std::string key;                   // of its group; empty before it joins one
    uint32_t rank = 0;
  };

  // The ranks of one communicator that are joining.
  struct Group {
    Group(std::string its_agreement, uint32_t its_ranks)
        : agreement(std::move(its_agreement)),
          ranks(its_ranks),
          clients(its_ranks),
          words(its_ranks) {}
    // Closes the group to further ranks. Returns the clients and releases their memory.
    std::vector<Client*> close() {
      std::vector<std::string>().swap(words);
      return std::exchange(clients, std::vector<Client*>());
    }

    std::string agreement;
    uint32_t ranks;
    std::vector<Client*> clients;  // by rank; null for ranks that have not joined; empty when
                                   // closed
    std::vector<std::string> words;
    Clock::time_point deadline = Clock::time_point::max();
    std::string timeout_text;  // the timeout that set the deadline
    std::string end;           // the reason why the group is closed
    bool is_complete = false;
  };

  void serve() noexcept;
  int milliseconds_to_next_deadline() const;
  void accept_clients(Listener& listener);
  bool read_from(Client& client);
  void handle(Client& client, const Packet& packet);
  void complete(const std::string& key, Group& group);
  static void refuse(Client& client, HcclResult code, const std::string& text);
  void end(Group& group, HcclResult code, const std::string& text);
  void end_late_groups();
  void remove(Client& client);

  const std::chrono::seconds timeout_;
  ServerAddress address_;
  std::unique_ptr<Listener> local_listener_;
  std::unique_ptr<Listener> network_listener_;  // null if no authentication tags can be computed
  std::list<Client> clients_;
  std::map<std::string, Group> groups_;  // by key
  Waker waker_;
  std::atomic<bool> is_closed_ = false;
  std::thread thread_;
};

}  // namespace aclnn_host::hccl
