#include "cann/hccl/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/hccl_guard.h"
#include "cann/hccl/network.h"
#include "cann/hccl/shared_file.h"
#include "cann/hccl/shared_memory.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host::hccl {
namespace {

constexpr char kRootMagic[8] = {'a', 'c', 'l', 'n', 'n', 'h', 'c', '2'};

// The servers that this process runs. A server lives as long as a communicator that was made
// there, or until the first one is made.
struct Places {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<RendezvousServer>> awaited;  // by the rendezvous's name
  std::map<std::string, std::weak_ptr<RendezvousServer>> met;

  static void after_fork() noexcept {}
};

Places& places() {
  return PerProcess<Places>::get();
}

std::string target_of(const char* link) {
  std::array<char, 128> target{};
  const ssize_t size = readlink(link, target.data(), target.size());
  return {target.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

template <size_t N>
void put(char (&field)[N], const std::string& text) {
  if (text.size() >= N) {
    throw Failure(HCCL_E_PARA, c10::str(text, " is too long: ", text.size(), " bytes, expected ",
                                        N - 1, " at most"));
  }
  std::ranges::fill(field, '\0');
  text.copy(field, N - 1);
}

template <size_t N>
std::string text_in(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

Root read(const HcclRootInfo& information) {
  Root root;
  std::memcpy(&root, information.internal, sizeof(root));
  if (std::memcmp(root.magic, kRootMagic, sizeof(kRootMagic)) != 0) {
    throw Failure(HCCL_E_PARA, "rootInfo is not what HcclGetRootInfo of this library made");
  }
  return root;
}

// The data that a rank sends the others.
struct Entry {
  std::string host;
  int process;
  std::string listener;  // of rank 0: the name from which ranks of its host get the shared memory
  std::string address;   // of its network listener, if any

  std::string text() const {
    const auto bytes = joined({host, std::to_string(process), listener, address});
    return {bytes.begin(), bytes.end()};
  }
  static Entry of(const std::string& text) {
    const auto parts = parted(text, 4);
    Entry entry{parts[0], 0, parts[2], parts[3]};
    const char* const end = parts[1].data() + parts[1].size();
    const auto [rest, error] = std::from_chars(parts[1].data(), end, entry.process);
    if (error == std::errc() && rest == end && entry.process > 0) return entry;
    throw Failure(HCCL_E_NETWORK, c10::str(parts[1], " is no number of a process"));
  }
};

std::vector<Entry> exchange_entries(const Rendezvous& rendezvous, JoinRequest request,
                                    const Entry& own) {
  request.words = own.text();
  std::vector<Entry> entries;
  for (const std::string& words : exchange_words(rendezvous.server_address, request)) {
    entries.push_back(Entry::of(words));
  }
  return entries;
}

std::vector<int> processes_of(const std::vector<Entry>& entries) {
  std::vector<int> processes;
  processes.reserve(entries.size());
  for (const Entry& entry : entries) processes.push_back(entry.process);
  return processes;
}

// Gets the shared memory of rank 0, which may have ended since it announced it.
SharedFile fetch(const Entry& of, const Secret& secret, uint32_t rank, size_t bytes,
                 const Deadline& deadline) {
  try {
    return fetch_file(of.listener, secret, rank, bytes, deadline);
  } catch (const std::system_error& error) {
    throw Failure(HCCL_E_REMOTE, c10::str("the process of rank 0 (", of.process,
                                          ") has ended, or has given up: ", error.what()));
  }
}

// Exchanges the first messages, after which the ranks notice when one of them ends.
void greet(Transport& transport, uint32_t rank, uint32_t ranks, const Deadline& deadline) {
  std::vector<Message> greetings;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer != rank) greetings.push_back({peer, nullptr, 0, {HCCL_CMD_INIT}});
  }
  try {
    transport.exchange(greetings, greetings, deadline);
  } catch (const Failure& failure) {
    transport.fail(failure);
    throw;
  }
}

}  // namespace

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const bool is_alone = settings().hccl_network || boot.empty() || !is_user_known();
  return c10::str(boot, ' ', target_of("/proc/self/ns/pid"), ' ', target_of("/proc/self/ns/user"),
                  ' ', target_of("/proc/self/ns/net"), ' ', geteuid(),
                  is_alone ? random_text() : "");
}

HcclRootInfo open_root() {
  Root root{};
  std::memcpy(root.magic, kRootMagic, sizeof(kRootMagic));
  const std::string address = own_host();
  if (address.size() >= sizeof(root.address)) {
    throw Failure(HCCL_E_PARA, "HCCL_IF_IP is too long for an address");
  }
  const auto server = std::make_shared<RendezvousServer>(address);
  const ServerAddress& server_address = server->server_address();
  root.port = server_address.address.port;
  put(root.address, address);
  put(root.host, host_identity());
  put(root.local_name, server_address.local_name);
  put(root.name, server_address.name);
  root.secret = server_address.secret;
  {
    auto& state = places();
    const std::lock_guard lock(state.mutex);
    state.awaited.emplace(server_address.name, server);
  }
  HcclRootInfo information{};
  std::memcpy(information.internal, &root, sizeof(root));
  return information;
}

Rendezvous rendezvous_of(std::span<const HcclRootInfo> roots) {
  const Root root = read(roots.front());
  Rendezvous rendezvous;
  ServerAddress& server_address = rendezvous.server_address;
  server_address.name = text_in(root.name);
  server_address.secret = root.secret;
  server_address.address = {text_in(root.address), root.port};
  if (text_in(root.host) == host_identity()) server_address.local_name = text_in(root.local_name);
  auto& state = places();
  const std::lock_guard lock(state.mutex);
  std::erase_if(state.met, [](const auto& entry) { return entry.second.expired(); });
  if (const auto own = state.awaited.find(server_address.name); own != state.awaited.end()) {
    rendezvous.server = own->second;
    state.met.emplace(own->first, own->second);
    state.awaited.erase(own);
  } else if (const auto other = state.met.find(server_address.name); other != state.met.end()) {
    rendezvous.server = other->second.lock();
  }
  for (const HcclRootInfo& other : roots.subspan(1)) {
    const std::string name = text_in(read(other).name);
    state.awaited.erase(name);  // no rank joins there
    rendezvous.roots += name + '\n';
  }
  if (server_address.local_name.empty() && root.port == 0) {
    throw Failure(HCCL_E_NOT_SUPPORT,
                  "the process that made rootInfo takes ranks of its own host alone: it found no "
                  "libcrypto, with which ranks of several hosts prove that they belong together; "
                  "install OpenSSL there");
  }
  if (server_address.local_name.empty()) expect_tags();
  return rendezvous;
}

std::unique_ptr<Transport> join(const Rendezvous& rendezvous, const std::string& key, uint32_t rank,
                                uint32_t ranks) {
  const Secret& secret = rendezvous.server_address.secret;
  const JoinRequest request{key, rendezvous.roots, rank, ranks, {}};
  Entry own{host_identity(), getpid(), rank == 0 ? "aclnn_torch/" + random_text() : "", ""};
  std::optional<File> listener;
  if (rank == 0) listener = listen_as(own.listener);
  const std::vector<Entry> entries = exchange_entries(rendezvous, request, own);
  const Deadline deadline(milliseconds_of(connect_timeout()));
  const bool share_a_host =
      std::ranges::all_of(entries, [&](const Entry& entry) { return entry.host == own.host; });
  if (!share_a_host) {
    listener.reset();
    auto network = std::make_unique<Network>(rank, ranks, secret, key);
    own.address = network->address().text();
    const JoinRequest again{key + " by network", rendezvous.roots, rank, ranks, {}};
    std::vector<Network::Place> places;
    for (const Entry& entry : exchange_entries(rendezvous, again, own)) {
      places.push_back({Address::of(entry.address), entry.process});
    }
    network->connect(places, deadline);
    greet(*network, rank, ranks, deadline);
    return network;
  }
  const size_t bytes = SharedMemory::file_size(ranks);
  std::optional<FileServer> file_server;  // until all ranks have the file
  SharedFile file =
      rank == 0 ? SharedFile(bytes) : fetch(entries[0], secret, rank, bytes, deadline);
  if (rank == 0) file_server.emplace(std::move(*listener), file, secret);
  auto memory = std::make_unique<SharedMemory>(std::move(file), rank, processes_of(entries));
  greet(*memory, rank, ranks, deadline);
  return memory;
}

}  // namespace aclnn_host::hccl
