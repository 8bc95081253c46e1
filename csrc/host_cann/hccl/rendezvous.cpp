#include "host_cann/hccl/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <system_error>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "host_cann/hccl/names.h"
#include "host_cann/hccl/network.h"
#include "host_cann/hccl/shared_memory.h"
#include "host_cann/hccl/stores.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host::hccl {
namespace {

constexpr char kMagic[8] = {'a', 'c', 'l', 'n', 'n', 'h', 'c', '1'};

// What stands in HcclRootInfo.
struct Root {
  char magic[sizeof(kMagic)];
  uint16_t port;
  char host[256];
  char name[64];
};
static_assert(sizeof(Root) <= sizeof(HcclRootInfo));

// The servers that this process has opened. A server lives as long as a communicator that met
// there, or until the first one has.
struct Servers {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Meeting::Server>> awaited;  // by name
  std::map<std::string, std::weak_ptr<Meeting::Server>> met;

  static void after_fork() noexcept {}
};

Servers& servers() {
  return PerProcess<Servers>::get();
}

std::string random_name() {
  std::random_device random;
  std::ostringstream text;
  text << "hccl_" << std::hex << random() << random() << random() << random();
  return text.str();
}

// What two processes have in common if they can open each other's files in /proc: the running
// system, its numbers of processes, and the user. A process that is asked to use the network shares
// it with none.
std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 128> space{};
  if (readlink("/proc/self/ns/pid", space.data(), space.size() - 1) < 0) space[0] = '\0';
  return c10::str(boot, space.data(), geteuid(), settings().hccl_network ? random_name() : "");
}

std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// What a rank tells the others of itself.
struct Entry {
  std::string host;
  int process;
  std::string path;  // of rank 0: the shared file

  std::string text() const { return host + '\n' + std::to_string(process) + '\n' + path; }
  static Entry of(const std::vector<uint8_t>& bytes) {
    std::istringstream text(std::string(bytes.begin(), bytes.end()));
    Entry entry{};
    std::string process;
    std::getline(text, entry.host);
    std::getline(text, process);
    std::getline(text, entry.path);
    entry.process = static_cast<int>(std::strtol(process.c_str(), nullptr, 10));
    return entry;
  }
};

Root read(const HcclRootInfo& information) {
  Root root;
  std::memcpy(&root, information.internal, sizeof(root));
  if (std::memcmp(root.magic, kMagic, sizeof(kMagic)) != 0) {
    throw Failure(HCCL_E_PARA, "rootInfo is not what HcclGetRootInfo of this library made");
  }
  root.host[sizeof(root.host) - 1] = root.name[sizeof(root.name) - 1] = '\0';
  return root;
}

// Runs what talks to the store, which is gone when the process of its server is.
template <class Body>
void while_connected(Body&& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    throw Failure(HCCL_E_REMOTE, c10::str("the rank that made rootInfo, where the others meet, "
                                          "has ended or cannot be reached: ",
                                          error.what_without_backtrace()));
  }
}

// Waits until every rank has set its key, and returns what it set.
std::vector<std::vector<uint8_t>> wait_for_all(c10d::Store& store, const std::string& prefix,
                                               uint32_t ranks) {
  std::vector<std::string> keys;
  keys.reserve(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) keys.push_back(prefix + std::to_string(rank));
  try {
    store.wait(keys, connect_timeout());
  } catch (const std::exception&) {
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (!store.check({keys[rank]})) missing.push_back(rank);
    }
    if (missing.empty()) throw;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(connect_timeout());
    throw Failure(HCCL_E_TIMEOUT,
                  c10::str(text_of_ranks(missing), " of ", ranks, " did not come within ",
                           seconds.count(), " s (HCCL_CONNECT_TIMEOUT)"));
  }
  return store.multiGet(keys);
}

// Opens the file of rank 0, which may have ended since it told where that is.
std::unique_ptr<SharedFile> open_file(const Entry& of, size_t size) {
  try {
    return std::make_unique<SharedFile>(of.path, size);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory) throw;
    throw Failure(HCCL_E_REMOTE, c10::str("the process of rank 0 (", of.process, ") has ended"));
  }
}

// The way between ranks of one host.
std::unique_ptr<Transport> share(std::unique_ptr<SharedFile> file, uint32_t rank,
                                 const std::vector<Entry>& entries) {
  if (file == nullptr) {
    file = open_file(entries[0], SharedMemory::file_size(static_cast<uint32_t>(entries.size())));
  }
  std::vector<int> processes;
  processes.reserve(entries.size());
  for (const Entry& entry : entries) processes.push_back(entry.process);
  return std::make_unique<SharedMemory>(std::move(file), rank, processes);
}

// The way between ranks of several hosts.
std::unique_ptr<Transport> connect(c10d::Store& store, const std::string& name, uint32_t rank,
                                   const std::vector<Entry>& entries) {
  const auto ranks = static_cast<uint32_t>(entries.size());
  auto network = std::make_unique<Network>(rank, ranks);
  store.set(name + "/address/" + std::to_string(rank), bytes_of(network->address().text()));
  std::vector<Network::Place> places;
  for (const auto& bytes : wait_for_all(store, name + "/address/", ranks)) {
    const std::string text(bytes.begin(), bytes.end());
    places.push_back({Address::of(text), entries[places.size()].process});
  }
  network->connect(places);
  return network;
}

// Tells the other ranks of this one, and makes the way to them.
std::unique_ptr<Transport> join(c10d::Store& store, const std::string& name, uint32_t rank,
                                uint32_t ranks) {
  const std::vector<uint8_t> agreed =
      store.compareSet(name + "/ranks", {}, bytes_of(std::to_string(ranks)));
  if (agreed != bytes_of(std::to_string(ranks))) {
    throw Failure(HCCL_E_PARA,
                  c10::str("nRanks is ", ranks, " for rank ", rank, " and ",
                           std::string(agreed.begin(), agreed.end()), " for one that came before"));
  }
  if (store.add(name + "/claim/" + std::to_string(rank), 1) != 1) {
    throw Failure(HCCL_E_PARA, c10::str("rank ", rank, " has joined already"));
  }
  std::unique_ptr<SharedFile> file;
  if (rank == 0) file = std::make_unique<SharedFile>(SharedMemory::file_size(ranks));
  const Entry own{host_identity(), getpid(), file ? file->path() : ""};
  store.set(name + "/rank/" + std::to_string(rank), bytes_of(own.text()));

  std::vector<Entry> entries;
  for (const auto& bytes : wait_for_all(store, name + "/rank/", ranks)) {
    entries.push_back(Entry::of(bytes));
  }
  const bool share_a_host =
      std::ranges::all_of(entries, [&](const Entry& entry) { return entry.host == own.host; });
  auto transport =
      share_a_host ? share(std::move(file), rank, entries) : connect(store, name, rank, entries);
  // Rank 0 must not close the file before all have opened it. From here on the ranks notice when
  // one of them ends.
  std::vector<Message> greetings;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer != rank) greetings.push_back({peer, nullptr, 0, {HCCL_CMD_INIT}});
  }
  try {
    transport->exchange(greetings, greetings,
                        Deadline(static_cast<int32_t>(connect_timeout().count())));
  } catch (const Failure& failure) {
    transport->fail(failure);
    throw;
  }
  return transport;
}

}  // namespace

HcclRootInfo open_root() {
  const std::string host = own_host();
  const std::string name = random_name();
  Root root{};
  std::memcpy(root.magic, kMagic, sizeof(kMagic));
  if (host.size() >= sizeof(root.host)) {
    throw Failure(HCCL_E_PARA, "HCCL_IF_IP is too long for an address");
  }
  const StorePointer store = open_store(host, connect_timeout());
  root.port = store->getPort();
  {
    const auto server = std::make_shared<Meeting::Server>(store);
    auto& state = servers();
    const std::lock_guard lock(state.mutex);
    state.awaited.emplace(name, server);
  }
  host.copy(root.host, sizeof(root.host) - 1);
  name.copy(root.name, sizeof(root.name) - 1);
  HcclRootInfo information{};
  std::memcpy(information.internal, &root, sizeof(root));
  return information;
}

Meeting come_to(std::span<const HcclRootInfo> roots) {
  const Root root = read(roots.front());
  Meeting meeting;
  meeting.name = root.name;
  std::string others;
  {
    auto& state = servers();
    const std::lock_guard lock(state.mutex);
    std::erase_if(state.met, [](const auto& entry) { return entry.second.expired(); });
    if (const auto own = state.awaited.find(root.name); own != state.awaited.end()) {
      meeting.server = own->second;
      state.met.emplace(own->first, own->second);
      state.awaited.erase(own);
    } else if (const auto other = state.met.find(root.name); other != state.met.end()) {
      meeting.server = other->second.lock();
    }
    for (const HcclRootInfo& other : roots.subspan(1)) {
      const std::string name = read(other).name;
      state.awaited.erase(name);  // nobody comes there
      others += name + '\n';
    }
  }
  const Address address{root.host, root.port};
  try {
    meeting.store = connect_to_store(address, connect_timeout());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(HCCL_E_TCP_CONNECT, c10::str("cannot reach the rank that made rootInfo at ",
                                               address.text(), ": ", error.what()));
  }
  while_connected([&] {
    if (meeting.store->compareSet(meeting.name + "/roots", {}, bytes_of(others + "end")) !=
        bytes_of(others + "end")) {
      throw Failure(HCCL_E_PARA, "rootInfoList is not that of a rank that came before");
    }
  });
  return meeting;
}

std::unique_ptr<Transport> meet(c10d::Store& store, const std::string& name, uint32_t rank,
                                uint32_t ranks) {
  std::unique_ptr<Transport> transport;
  while_connected([&] { transport = join(store, name, rank, ranks); });
  return transport;
}

}  // namespace aclnn_host::hccl
