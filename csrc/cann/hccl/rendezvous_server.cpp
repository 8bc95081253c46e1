#include "cann/hccl/rendezvous_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include <c10/util/StringUtil.h>

#include "cann/hccl/hccl_guard.h"
#include "cann/hccl/names.h"
#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

// The kinds of packets here: a rank joins; it receives the words of all ranks; it is refused.
enum Word : uint32_t { kJoin, kAll, kRefusal };
constexpr size_t kLongestText = size_t{16} << 10;
constexpr size_t kLongestRequest = size_t{1} << 20;
constexpr size_t kLongestWords = 1024;
constexpr std::array<size_t, 1> kFromClients = {kLongestRequest};
constexpr std::array<size_t, 3> kFromServer = {0, kMostRanks * (kLongestWords + sizeof(uint64_t)),
                                               kLongestText};

// The limit of communicators at one server that are incomplete or have failed.
constexpr size_t kMostGroups = 4096;

constexpr const char* kWayOut =
    "; its process has ended. If torch has restarted the ranks, its store gave them the root "
    "information of those before: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1";

// A rank waits this much longer than the server.
constexpr std::chrono::seconds kGrace{5};

uint64_t number_of(const std::string& text, uint64_t most) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number <= most) return number;
  throw Failure(HCCL_E_NETWORK, c10::str(text, " is no number from 0 to ", most));
}

// Connects to the server: by its name on the same host, otherwise by its address.
PeerSocket connect(const ServerAddress& to, uint32_t rank, const Deadline& deadline) {
  const std::string where = to.local_name.empty() ? to.address.text() : "this host";
  try {
    return to.local_name.empty()
               ? connect_authenticated(to.address, to.secret, to.name, rank, deadline)
               : connect_authenticated(to.local_name, to.secret, to.name, rank, deadline);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const auto* const system = dynamic_cast<const std::system_error*>(&error);
    const bool is_refused = system != nullptr && system->code() == std::errc::connection_refused;
    throw Failure(HCCL_E_TCP_CONNECT,
                  c10::str("cannot reach the rank that made rootInfo at ", where, ": ",
                           error.what(), is_refused ? kWayOut : ""));
  }
}

}  // namespace

std::vector<std::string> exchange_words(const ServerAddress& to, const JoinRequest& request) {
  const auto timeout = connect_timeout();
  Connection connection(connect(to, request.rank, Deadline(milliseconds_of(timeout))), kFromServer);
  const std::vector<char> bytes =
      joined({request.key, request.agreement, std::to_string(request.ranks),
              std::to_string(timeout.count()), request.words});
  if (bytes.size() > kLongestRequest) {
    throw Failure(HCCL_E_PARA, "the list of ranks, or of root information, is too long");
  }
  connection.send(Packet(kJoin, 0, std::span<const char>(bytes)));
  const Deadline deadline(milliseconds_of(timeout + kGrace));
  std::optional<Packet> reply;
  const auto has_ended = [](const char* why) {
    return Failure(HCCL_E_REMOTE, c10::str("the rank that made rootInfo, where the others join, "
                                           "has ended or cannot be reached: ",
                                           why));
  };
  try {
    while (!reply) {
      if (connection.is_broken()) throw has_ended("it has closed the connection");
      const short events = connection.flush() ? POLLIN : POLLIN | POLLOUT;
      wait_for(connection.file(), events, deadline);
      if (!connection.receive([&](Packet packet) { reply = std::move(packet); }) && !reply) {
        throw has_ended("it has closed the connection");
      }
    }
  } catch (const std::system_error& error) {
    throw has_ended(error.what());
  }
  if (reply->kind() == kAll) return parted(std::as_const(*reply).body(), request.ranks);
  const auto text = reply->body();
  throw Failure(result_of(reply->number()), std::string(text.begin(), text.end()));
}

RendezvousServer::Client::Client(PeerSocket peer_socket, Clock::time_point its_deadline)
    : connection(std::move(peer_socket), kFromClients),
      deadline(its_deadline),
      rank(connection.rank()) {}

RendezvousServer::RendezvousServer(const std::string& host) : timeout_(connect_timeout()) {
  address_.name = "hccl_" + random_text();
  address_.secret = random_secret();
  address_.local_name = "aclnn_torch/" + random_text();
  local_listener_ =
      std::make_unique<Listener>(listen_as(address_.local_name), address_.secret, address_.name);
  address_.address = {host, 0};
  if (why_no_tags().empty()) {
    File listener = listen_at(host);
    address_.address.port = port_of(listener);
    network_listener_ =
        std::make_unique<Listener>(std::move(listener), address_.secret, address_.name);
  }
  thread_ = std::thread([this] { serve(); });
}

RendezvousServer::~RendezvousServer() {
  is_closed_ = true;
  waker_.wake();
  thread_.join();
}

// The thread's main function. If memory is exhausted, a client is dropped, and the server goes on.
void RendezvousServer::serve() noexcept {
  std::vector<pollfd> files;
  while (!is_closed_) {
    try {
      files.clear();
      int timeout = milliseconds_to_next_deadline();
      waker_.watch(files);
      for (Listener* const listener : {local_listener_.get(), network_listener_.get()}) {
        if (listener != nullptr) listener->watch(files, timeout);
      }
      for (Client& client : clients_) {
        const short more = client.connection.flush() ? 0 : POLLOUT;
        files.push_back({client.connection.file(), static_cast<short>(POLLIN | more), 0});
      }
      poll(files.data(), files.size(), timeout);
      for (Listener* const listener : {local_listener_.get(), network_listener_.get()}) {
        if (listener != nullptr) accept_clients(*listener);
      }
      for (auto client = clients_.begin(); client != clients_.end();) {
        const auto next = std::next(client);
        if (!read_from(*client)) {
          remove(*client);
          clients_.erase(client);
        }
        client = next;
      }
      end_late_groups();
    } catch (...) {
      // The next iteration tries again.
    }
  }
}

int RendezvousServer::milliseconds_to_next_deadline() const {
  constexpr int64_t kMost = 60'000;
  int64_t least = kMost;
  const auto wait_for = [&](Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    least = std::clamp<int64_t>(left.count(), 0, least);
  };
  for (const auto& [key, group] : groups_) {
    if (!group.is_complete && group.end.empty()) wait_for(group.deadline);
  }
  for (const Client& client : clients_) {
    if (client.key.empty()) wait_for(client.deadline);
  }
  return static_cast<int>(least);
}

void RendezvousServer::accept_clients(Listener& listener) {
  for (PeerSocket& peer_socket : listener.admit()) {
    clients_.emplace_back(std::move(peer_socket), Clock::now() + timeout_);
  }
}

// Returns false if the client is to be removed.
bool RendezvousServer::read_from(Client& client) {
  try {
    const bool is_there =
        client.connection.receive([&](const Packet& packet) { handle(client, packet); });
    const bool is_late = client.key.empty() && Clock::now() >= client.deadline;
    return is_there && !is_late && !client.connection.is_broken();
  } catch (const Failure& failure) {
    refuse(client, failure.code(), failure.what());
    return false;
  } catch (const std::bad_alloc&) {
    return false;  // the packets that were read are lost
  }
}

void RendezvousServer::handle(Client& client, const Packet& packet) {
  if (!client.key.empty()) {
    throw Failure(HCCL_E_NETWORK, "a rank comes once on a connection");
  }
  const auto texts = parted(packet.body(), 5);
  const auto& [key, agreement, words] = std::tie(texts[0], texts[1], texts[4]);
  const auto ranks = static_cast<uint32_t>(number_of(texts[2], kMostRanks));
  const std::chrono::seconds timeout(number_of(texts[3], std::numeric_limits<int32_t>::max()));
  if (key.empty() || words.size() > kLongestWords || client.rank >= ranks) {
    throw Failure(HCCL_E_NETWORK, "a rank without a key, with too many words, or of no such rank");
  }
  auto entry = groups_.find(key);
  if (entry == groups_.end()) {
    if (groups_.size() >= kMostGroups) {
      throw Failure(HCCL_E_UNAVAIL,
                    c10::str(kMostGroups, " communicators join here, or failed to"));
    }
    entry = groups_.emplace(key, Group(agreement, ranks)).first;  // all of it, or an exception
  }
  Group& group = entry->second;
  if (group.agreement != agreement) {
    throw Failure(HCCL_E_PARA, "rootInfoList is not that of a rank that came before");
  }
  if (group.ranks != ranks) {
    throw Failure(HCCL_E_PARA, c10::str("nRanks is ", ranks, " for rank ", client.rank, " and ",
                                        group.ranks, " for one that came before"));
  }
  if (!group.end.empty()) throw Failure(HCCL_E_REMOTE, "the others have given up: " + group.end);
  if (group.is_complete || group.clients[client.rank] != nullptr) {
    throw Failure(HCCL_E_PARA, c10::str("rank ", client.rank, " has joined already"));
  }
  client.key = key;
  group.clients[client.rank] = &client;
  group.words[client.rank] = words;
  if (const auto deadline = Clock::now() + timeout; deadline < group.deadline) {
    group.deadline = deadline;
    group.timeout_text = std::to_string(timeout.count());
  }
  if (std::ranges::find(group.clients, nullptr) == group.clients.end()) complete(key, group);
}

// Sends every rank the words of all. The key of a sub-communicator is not used again; that of the
// root information may be.
void RendezvousServer::complete(const std::string& key, Group& group) {
  const std::vector<char> all = joined(group.words);
  group.is_complete = true;
  for (Client* const client : group.close()) {
    client->connection.send(Packet(kAll, 0, std::span<const char>(all)));
  }
  if (key != address_.name) groups_.erase(key);
}

void RendezvousServer::refuse(Client& client, HcclResult code, const std::string& text) {
  client.connection.send(Packet(
      kRefusal, code, std::span<const char>(text).first(std::min(text.size(), kLongestText))));
}

// Ends the waiting of all ranks in the group.
void RendezvousServer::end(Group& group, HcclResult code, const std::string& text) {
  group.end = text;
  for (Client* const client : group.close()) {
    if (client != nullptr) refuse(*client, code, text);
  }
}

void RendezvousServer::end_late_groups() {
  for (auto& [key, group] : groups_) {
    if (group.is_complete || !group.end.empty() || Clock::now() < group.deadline) continue;
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0; rank < group.ranks; ++rank) {
      if (group.clients[rank] == nullptr) missing.push_back(rank);
    }
    end(group, HCCL_E_TIMEOUT,
        c10::str(text_of_ranks(missing), " of ", group.ranks, " did not come within ",
                 group.timeout_text, " s (HCCL_CONNECT_TIMEOUT)"));
  }
}

// A client has disconnected, or is removed. A group that waits for it cannot become complete.
void RendezvousServer::remove(Client& client) {
  const auto found = groups_.find(client.key);
  if (found == groups_.end()) return;
  auto& waiting = found->second.clients;
  if (client.rank >= waiting.size() || waiting[client.rank] != &client) return;
  waiting[client.rank] = nullptr;
  end(found->second, HCCL_E_REMOTE,
      c10::str("rank ", client.rank, " has ended before all ranks had come"));
}

}  // namespace aclnn_host::hccl
