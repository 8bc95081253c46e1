// Processes that do not belong to a communicator, or that do and send invalid data: each causes an
// error, in time, and nothing else. docs/reliability.md lists the guarantees. The tests link HCCL's
// own objects, so that a peer can implement half of the protocol.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <set>
#include <string_view>
#include <thread>

#include "cann/hccl/connection.h"
#include "cann/hccl/network.h"
#include "cann/hccl/packets.h"
#include "cann/hccl/rendezvous.h"
#include "cann/hccl/shared_file.h"
#include "cann/hccl/shared_memory.h"
#include "hccl_support.h"

using namespace aclnn_host::hccl;
using aclnn_host::Deadline;

// Simulates a machine without OpenSSL.
static bool hides_crypto = false;
extern "C" ACL_FUNC_VISIBILITY void* dlopen(const char* name, int flags) noexcept {
  using Function = void*(const char*, int);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "dlopen"));
  const bool is_crypto = name != nullptr && std::string_view(name).starts_with("libcrypto");
  return real(hides_crypto && is_crypto ? "libhidden.so" : name, flags);
}

// Simulates systems that refuse memory files with some flags; returns the error.
static int (*refusal_of_memory_files)(unsigned flags) = nullptr;
extern "C" ACL_FUNC_VISIBILITY int memfd_create(const char* name, unsigned flags) noexcept {
  using Function = int(const char*, unsigned);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "memfd_create"));
  errno = refusal_of_memory_files == nullptr ? 0 : refusal_of_memory_files(flags);
  return errno == 0 ? real(name, flags) : -1;
}

// Simulates that memory is exhausted for allocations of this size.
static std::atomic<size_t> bytes_refused = 0;
[[gnu::noinline]] void* operator new(size_t bytes) {
  const bool is_refused = bytes > 0 && bytes == bytes_refused;
  void* const made = is_refused ? nullptr : std::malloc(std::max<size_t>(bytes, 1));
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace {

Deadline soon() {
  return Deadline(10'000);
}

// The text of the exception that the body throws; "" if it throws none.
template <class Body>
std::string refusal_of(Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Root root_of(const HcclRootInfo& information) {
  Root root;
  std::memcpy(&root, information.internal, sizeof(root));
  return root;
}

HcclRootInfo open_information() {
  CHECK_EQ(::environment, 0);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  HcclRootInfo information;
  CHECK_EQ(HcclGetRootInfo(&information), HCCL_SUCCESS);
  return information;
}

File outsider(const Root& root) {
  return connect_to(Address{root.address, root.port}, soon());
}

// Everything that is received until the other side closes the connection.
std::string all_from(const File& file) {
  std::string text, end;
  char byte;
  while ((end = refusal_of([&] { receive_all(file, {&byte, 1}, soon()); })).empty()) text += byte;
  CHECK(contains(end, "reset"));  // not the timeout
  return text;
}

// A child runs the body and reports its result.
void in_a_child(const std::function<bool()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

// Two ranks join with the root information and compute a sum.
void ranks_meet(const HcclRootInfo& information) {
  std::array<double, 2> sums{};
  const auto rank_of = [&](uint32_t rank) {
    CHECK_EQ(aclrtSetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
    HcclComm comm = nullptr;
    if (!CHECK_EQ(HcclCommInitRootInfo(2, &information, rank, &comm), HCCL_SUCCESS)) {
      std::fprintf(stderr, "%s\n", messages().c_str());
      return;
    }
    aclrtStream stream = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    {
      const Buffer buffer(floats(), std::vector<double>{rank + 1.0});
      CHECK_EQ(HcclAllReduce(buffer.data(), buffer.data(), 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                             comm, stream),
               HCCL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      sums[rank] = buffer.values().front();
    }
    CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  };
  std::thread other(rank_of, 1);
  rank_of(0);
  other.join();
  CHECK_EQ(sums[0], 3.0);
  CHECK_EQ(sums[1], 3.0);
}

std::set<std::string> own_sockets() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string link = std::filesystem::read_symlink(entry, gone);
    if (link.starts_with("socket:[")) found.insert(link.substr(8, link.size() - 9));
  }
  return found;
}

// The addresses at which this process listens, from /proc/net.
std::set<std::string> listening_addresses() {
  const std::set<std::string> own = own_sockets();
  std::set<std::string> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, word, inode;
      words >> number >> local >> remote >> state;
      for (int i = 0; i < 6; ++i) words >> inode;
      if (state == "0A" && own.contains(inode)) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

// A secret, and the listeners of a communicator of two ranks in this process.
struct Pair {
  Secret secret = random_secret();
  std::string key = "pair";
  File socket = listen_at("127.0.0.1");  // of rank 1, which the test implements
  Network::Place place{{"127.0.0.1", port_of(socket)}, getpid()};
  Network network{0, 2, secret, key};
  std::unique_ptr<Connection> to_network;

  // Both sides connect.
  Pair() {
    std::thread other([&] {
      Listener listener(std::move(socket), secret, "packets of " + key + " to rank 1");
      std::vector<PeerSocket> admitted;
      while (admitted.empty()) {
        admitted = listener.admit();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      from_network_ = std::move(admitted.front());
    });
    network.connect({place, place}, soon());
    other.join();
    to_network = std::make_unique<Connection>(peer_socket(1), std::span<const size_t>());
  }
  PeerSocket peer_socket(uint32_t rank) {
    return authenticate(connect_to(network.address(), soon()), secret,
                        "packets of " + key + " to rank 0", rank, soon());
  }
  // The error of a rank that sends more than fits the window.
  std::string end_of_sending() {
    std::vector<char> much(size_t{8} << 20);
    const Message message{1, much.data(), much.size(), {HCCL_CMD_SEND}};
    return refusal_of([&] { network.exchange({&message, 1}, {}, Deadline(3000)); });
  }

 private:
  PeerSocket from_network_;
};

// Gives these files to the first process that proves the secret.
std::string fetched(std::vector<int> files, size_t bytes) {
  const Secret secret = random_secret();
  const std::string name = "aclnn_torch/test/" + random_text();
  Listener listener(listen_as(name), secret, "shared memory");
  std::thread giver([&] {
    std::vector<PeerSocket> admitted;
    while (admitted.empty()) admitted = listener.admit();
    char byte = 0;
    iovec words{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &words;
    message.msg_iovlen = 1;
    if (!files.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
    }
    CHECK_EQ(sendmsg(admitted.front().file.number(), &message, 0), 1);
  });
  const std::string text = refusal_of([&] { fetch_file(name, secret, 1, bytes, soon()); });
  giver.join();
  return text;
}

File memory_file(size_t bytes, int seals) {
  File file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  CHECK_EQ(ftruncate(file.number(), static_cast<off_t>(bytes)), 0);
  CHECK_EQ(fcntl(file.number(), F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr size_t kBytes = 4096;

// The text of the place's next packet; "" if it closes the connection.
constexpr std::array<size_t, 3> kAnswers = {0, 1 << 20, 1 << 14};
std::string text_from(Connection& connection) {
  std::string text;
  const auto take = [&](const Packet& packet) {
    text.assign(packet.body().begin(), packet.body().end());
  };
  do {
    wait_for(connection.file(), POLLIN, soon());
  } while (connection.receive(take) && text.empty());
  return text;
}

// The kinds of packets in network.cpp.
enum : uint32_t { kOfBytes, kOfReceipt, kOfFailure };

const std::array<size_t, 2> kLargest = {64, 0};

// The packets that a reader returns for bytes that arrive in pieces, and its refusal.
std::vector<std::string> read_all(const std::optional<Secret>& key, std::span<const char> bytes,
                                  std::mt19937& random, std::string* refusal) {
  PacketReader reader(key, kLargest);
  std::vector<std::string> packets;
  *refusal = refusal_of([&] {
    while (!bytes.empty()) {
      const auto room = reader.room();
      CHECK(!room.empty() && room.size() <= 32 + 64 + sizeof(Tag));
      const size_t count = std::min({room.size(), bytes.size(), size_t{1} + random() % 40});
      std::ranges::copy(bytes.first(count), room.begin());
      bytes = bytes.subspan(count);
      if (const auto packet = reader.advance(count)) {
        const auto body = packet->body();
        packets.emplace_back(body.begin(), body.end());
      }
    }
  });
  return packets;
}

}  // namespace

// This test is first, because a process looks for the library only once.
TEST(without_a_library_for_proofs_there_is_one_host) {
  in_a_child([] {
    hides_crypto = true;
    const HcclRootInfo information = open_information();
    CHECK_EQ(root_of(information).port, 0);
    CHECK(listening_addresses().empty());
    ranks_meet(information);
    Root root = root_of(open_information());
    root.host[0] ^= 1;
    HcclRootInfo elsewhere{};
    std::memcpy(elsewhere.internal, &root, sizeof(root));
    HcclComm comm = nullptr;
    CHECK_EQ(HcclCommInitRootInfo(2, &elsewhere, 1, &comm), HCCL_E_NOT_SUPPORT);
    CHECK(contains(messages(), "it found no libcrypto"));
    root.port = 1;  // of a process that has one
    std::memcpy(elsewhere.internal, &root, sizeof(root));
    CHECK_EQ(HcclCommInitRootInfo(2, &elsewhere, 1, &comm), HCCL_E_NOT_SUPPORT);
    CHECK(contains(messages(), "libcrypto, which this process cannot load; install OpenSSL: lib"));
    std::fflush(nullptr);
    return check::failures() == 0;
  });
}

TEST(listeners_are_at_the_chosen_address_alone) {
  const HcclRootInfo information = open_information();
  CHECK(listening_addresses() == std::set<std::string>{"0100007F"});
  const Network network(0, 2, random_secret(), "listener");
  CHECK(listening_addresses() == std::set<std::string>{"0100007F"});
  ranks_meet(information);
}

TEST(no_listener_is_at_all_addresses) {
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  for (const char* const all : {"0.0.0.0", "0", "::"}) {
    setenv("HCCL_IF_IP", all, 1);
    HcclRootInfo information;
    CHECK_EQ(HcclGetRootInfo(&information), HCCL_E_PARA);
    CHECK(contains(messages(), "HCCL_IF_IP is " + std::string(all) +
                                   ", which stands for all addresses of this host, expected the "
                                   "one under which other hosts find it"));
  }
  setenv("HCCL_IF_IP", "127.0.0.1", 1);
}

TEST(a_listener_of_ip_6_is_at_its_address_alone) {
  SKIP_IF(!std::filesystem::exists("/proc/self/net/if_inet6"), "this machine has no IPv6");
  const std::set<std::string> before = listening_addresses();
  const File listener = listen_at("::1");
  std::set<std::string> now = listening_addresses();
  for (const std::string& address : before) now.erase(address);
  CHECK(now == std::set<std::string>{"00000000000000000000000001000000"});
}

// A program that speaks another protocol, one that sends an incomplete message, and one that
// guesses. Every connection receives the 40 bytes of the challenge.
TEST(an_outsider_learns_and_changes_nothing) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const std::string list_keys("\0\x01\x02\x03\x04\x0f", 6);  // of torch's TCPStore
  std::string guess(1 << 16, 'x');
  for (const std::string& words : {list_keys, std::string("GET / HTTP/1.1\r\n\r\n"), guess}) {
    const File file = outsider(root);
    refusal_of([&] { send_all(file, words, soon()); });  // it may be rejected earlier
    shutdown(file.number(), SHUT_WR);
    const std::string answer = all_from(file);
    CHECK(answer.size() <= 40);
    for (const std::string_view secret :
         {std::string_view(root.name), std::string_view(root.secret.data(), root.secret.size())})
      CHECK(answer.find(secret) == answer.npos);
  }
  ranks_meet(information);
}

TEST(another_secret_is_refused) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  Secret wrong = root.secret;
  wrong.back() ^= 1;
  const auto says = [&](File file, const Secret& secret, const std::string& purpose) {
    return refusal_of([&] { authenticate(std::move(file), secret, purpose, 0, soon()); });
  };
  const std::string closed = "it has ended, or has another secret than rootInfo's";
  CHECK(contains(says(outsider(root), wrong, root.name), closed));
  CHECK(contains(says(connect_to(root.local_name, soon()), wrong, root.name), closed));
  CHECK(contains(says(outsider(root), root.secret, "something else"), closed));
  CHECK_EQ(says(outsider(root), root.secret, root.name), "");
  const Rendezvous rendezvous = rendezvous_of({&information, 1});  // it keeps the place open
  ServerAddress forged = rendezvous.server_address;
  forged.secret = wrong;
  CHECK(contains(refusal_of([&] { exchange_words(forged, {root.name, "", 1, 2, ""}); }),
                 "cannot reach the rank that made rootInfo at this host: " + closed));
  ranks_meet(information);
}

// The listening side proves the secret, too: a rank sends nothing to a process that has taken over
// the address.
TEST(a_place_without_the_secret_is_refused) {
  const File listener = listen_at("127.0.0.1");
  const auto says = [&](const std::string& words) {
    std::thread place([&] {
      wait_for(listener.number(), POLLIN, soon());
      const File candidate(
          accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      send_all(candidate, words, soon());
      std::array<char, 68> answer;
      refusal_of([&] { receive_all(candidate, answer, Deadline(200)); });
      refusal_of([&] { send_all(candidate, std::string(32, 'w'), soon()); });
    });
    const std::string text = refusal_of([&] {
      authenticate(connect_to(Address{"127.0.0.1", port_of(listener)}, soon()), random_secret(),
                   "it", 0, soon());
    });
    place.join();
    return text;
  };
  CHECK(contains(says(std::string(40, 'g')), "another program listens there"));
  CHECK(contains(says("aclnnhc2" + std::string(32, 'r')),
                 "it does not prove that it has rootInfo's secret"));
}

// The answer of a rank to one challenge, sent for another one.
TEST(a_recorded_answer_is_refused) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const File first = outsider(root), second = outsider(root);
  const File listener = listen_at("127.0.0.1");
  std::array<char, 40> challenge;
  std::array<char, 68> answer;
  receive_all(first, challenge, soon());
  // The rank connects to the recorder, which passes on the place's challenge.
  std::thread rank([&] {
    refusal_of([&] {
      authenticate(connect_to(Address{"127.0.0.1", port_of(listener)}, soon()), root.secret,
                   root.name, 0, soon());
    });
  });
  wait_for(listener.number(), POLLIN, soon());
  {
    const File candidate(
        accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    send_all(candidate, challenge, soon());
    receive_all(candidate, answer, soon());
  }
  rank.join();
  receive_all(second, challenge, soon());
  send_all(second, answer, soon());
  CHECK_EQ(all_from(second), "");
  send_all(first, answer, soon());  // while the challenge that it answers is valid
  std::array<char, 32> accept_clients;
  CHECK_EQ(refusal_of([&] { receive_all(first, accept_clients, soon()); }), "");
  ranks_meet(information);
}

TEST(a_flood_of_silent_connections_holds_nobody_up) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const size_t before = own_sockets().size();
  std::vector<File> flood;
  for (int i = 0; i < 300; ++i) flood.push_back(outsider(root));
  for (const File& one : flood) refusal_of([&] { send_all(one, "half", soon()); });
  const size_t most = before + flood.size() + 256;
  while (own_sockets().size() < most) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) CHECK(own_sockets().size() <= most);
  const Address listener{root.address, root.port};
  CHECK_EQ(refusal_of([&] { connect_authenticated(listener, root.secret, root.name, 0, soon()); }),
           "");
  ranks_meet(information);
}

// As many connections as the limit allows, at once. Those that have answered before are admitted.
TEST(whoever_has_answered_does_not_give_way) {
  const Secret secret = random_secret();
  File socket = listen_at("127.0.0.1");
  const Address address{"127.0.0.1", port_of(socket)};
  Listener listener(std::move(socket), secret, "it");
  File candidate = connect_to(address, soon());
  std::vector<pollfd> files;
  int timeout = -1;
  while (files.size() < 2) {
    CHECK(listener.admit().empty());
    files.clear();
    listener.watch(files, timeout);
  }
  std::thread rank([&] {
    CHECK_EQ(refusal_of([&] { authenticate(std::move(candidate), secret, "it", 0, soon()); }), "");
  });
  wait_for(files[1].fd, POLLIN, soon());
  std::vector<File> flood;
  for (int i = 0; i < 256; ++i) flood.push_back(connect_to(address, soon()));
  CHECK_EQ(listener.admit().size(), size_t{1});
  rank.join();
}

// A connection that proves the secret and then sends nothing.
TEST(a_client_that_says_nothing_is_sent_away) {
  setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const PeerSocket peer_socket = authenticate(outsider(root), root.secret, root.name, 0, soon());
  CHECK_EQ(all_from(peer_socket.file), "");
  unsetenv("HCCL_CONNECT_TIMEOUT");
}

// The kernel reports the user of a connecting process; only root can change its user.
TEST(other_users_of_the_host_are_refused) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  SKIP_IF(geteuid() != 0, "only root can become another user");
  in_a_child([&] {
    constexpr uid_t kNobody = 65534;
    if (setuid(kNobody) != 0) return false;
    const std::string text =
        refusal_of([&] { connect_to(std::string(root.local_name), Deadline(1000)); });
    sockaddr_un address{};  // without the check of the listening process
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path + 1, root.local_name);
    const File file(socket(AF_UNIX, SOCK_STREAM, 0));
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(root.local_name));
    connect(file.number(), reinterpret_cast<const sockaddr*>(&address), size);
    char byte;
    const bool is_closed = recv(file.number(), &byte, 1, 0) <= 0;
    return contains(text, "Permission denied") && is_closed;
  });
  ranks_meet(information);
}

// In a user namespace without a mapping all users have one number, including this process's user.
TEST(users_that_cannot_be_told_apart_are_refused) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  CHECK(is_user_known() && host_identity() == host_identity());
  in_a_child([&] {
    if (unshare(CLONE_NEWUSER) != 0) {
      std::printf("not run where the system makes no user namespaces\n");
      std::fflush(nullptr);
      return true;
    }
    const std::string text =
        refusal_of([&] { connect_to(std::string(root.local_name), Deadline(1000)); });
    return !is_user_known() && contains(text, "Permission denied") &&
           host_identity() != host_identity();
  });
}

TEST(memory_is_made_on_systems_that_know_other_flags) {
  constexpr unsigned kNotExecuted = 8;
  refusal_of_memory_files = [](unsigned flags) {  // vm.memfd_noexec is 2
    return (flags & kNotExecuted) == 0 ? EACCES : 0;
  };
  CHECK_EQ(refusal_of([] { SharedFile{kBytes}; }), "");
  refusal_of_memory_files = [](unsigned flags) {  // before Linux 6.3
    return (flags & kNotExecuted) != 0 ? EINVAL : 0;
  };
  CHECK_EQ(refusal_of([] { SharedFile{kBytes}; }), "");
  refusal_of_memory_files = [](unsigned) { return ENOSYS; };
  CHECK_EQ(refusal_of([] { SharedFile{kBytes}; }),
           "cannot make a file in memory: Function not implemented");
  refusal_of_memory_files = nullptr;
}

TEST(memory_that_is_not_sealed_and_of_the_size_is_refused) {
  char path[] = "/tmp/aclnn_hostile_XXXXXX";
  const File victim(mkstemp(path));
  const std::string content = "34 bytes that nobody may overwrite";
  CHECK_EQ(write(victim.number(), content.data(), content.size()), ssize_t{34});
  const File folder(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const File good = memory_file(kBytes, kSeals);
  CHECK_EQ(fetched({good.number()}, kBytes), "");
  CHECK(contains(fetched({victim.number()}, 34), "rank 0 gave a file whose size may change"));
  CHECK(contains(fetched({folder.number()}, kBytes), "rank 0 gave no regular file"));
  CHECK(contains(fetched({memory_file(kBytes, 0).number()}, kBytes), "whose size may change"));
  CHECK(contains(fetched({memory_file(kBytes, F_SEAL_GROW).number()}, kBytes), "size may change"));
  CHECK(contains(fetched({memory_file(kBytes - 1, kSeals).number()}, kBytes),
                 "rank 0 gave a file of 4095 bytes instead of 4096"));
  CHECK(contains(fetched({}, kBytes), "rank 0 gave no file"));
  CHECK(contains(fetched({good.number(), good.number()}, kBytes), "rank 0 gave no file"));
  std::string now(64, '\0');
  CHECK_EQ(pread(victim.number(), now.data(), now.size(), 0), ssize_t{34});
  CHECK_EQ(now.substr(0, 34), content);
  unlink(path);
}

// Random data that another rank writes to the shared memory.
TEST(shared_memory_full_of_garbage_ends_the_exchange) {
  const size_t bytes = SharedMemory::file_size(2);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SharedFile file(bytes);
    char* const data = file.data();
    SharedMemory memory(std::move(file), 0, {getpid(), getpid()});
    std::mt19937 random(seed);
    const size_t head = bytes - 4 * (size_t{1} << 20);  // without the contents of the rings
    for (size_t i = 0; i < head; ++i) {
      if (random() % (seed % 7 + 1) == 0) data[i] = static_cast<char>(random());
    }
    std::vector<char> buffer(1 << 16);
    const Message message{1, buffer.data(), buffer.size(), {HCCL_CMD_SEND}};
    CHECK(refusal_of([&] { memory.exchange({&message, 1}, {&message, 1}, Deadline(50)); }) != "");
  }
}

TEST(counts_of_shared_memory_are_checked) {
  const size_t bytes = SharedMemory::file_size(2);
  SharedFile file(bytes);
  // The counters of the four rings, 128 bytes each, precede their contents; the third ring leads
  // from rank 1 to rank 0.
  char* const counts = file.data() + bytes - 4 * (size_t{1} << 20) - 2 * 128;
  SharedMemory memory(std::move(file), 0, {getpid(), getpid()});
  const uint64_t written = (size_t{1} << 20) + 1;
  std::memcpy(counts, &written, sizeof(written));
  char byte = 0;
  const Message message{1, &byte, 1, {HCCL_CMD_SEND}};
  CHECK_EQ(refusal_of([&] { memory.exchange({}, {&message, 1}, Deadline(50)); }),
           "rank 1 has 1048577 bytes on the way in 1048576: its counts are wrong");
}

TEST(a_rank_that_floods_another_is_cut_off) {
  Pair pair;
  const std::vector<char> piece(size_t{512} << 10);
  for (int i = 0; i < 5; ++i)
    pair.to_network->send(Packet(kOfBytes, 0, std::span<const char>(piece)));
  while (!pair.to_network->flush() && !pair.to_network->is_broken()) std::this_thread::yield();
  CHECK(contains(pair.end_of_sending(),
                 "rank 1 sent what is refused: more than 2097152 bytes that "
                 "nobody has read yet"));
}

// A packet of one byte needs a hundred times as much memory.
TEST(a_rank_that_floods_another_with_small_letters_is_cut_off) {
  Pair pair;
  for (int i = 0; i < 20'000; ++i)
    pair.to_network->send(Packet(kOfBytes, 0, std::string_view("x")));
  while (!pair.to_network->flush() && !pair.to_network->is_broken()) std::this_thread::yield();
  CHECK(contains(pair.end_of_sending(), "rank 1 sent what is refused: more than 2097152 bytes"));
}

// Between hosts that have the same address, a connection may reach another rank.
TEST(a_connection_to_another_rank_is_refused) {
  Pair pair;
  const auto says = [&](const std::string& purpose) {
    return refusal_of([&] {
      authenticate(connect_to(pair.network.address(), soon()), pair.secret, purpose, 1, soon());
    });
  };
  CHECK(contains(says("packets of pair to rank 1"), "it has ended, or has another secret"));
  CHECK_EQ(says("packets of pair to rank 0"), "");
}

TEST(a_rank_that_has_gone_does_not_come_again) {
  Pair pair;
  pair.to_network.reset();
  CHECK(contains(pair.end_of_sending(),
                 "the process of rank 1 (" + std::to_string(getpid()) + ") has ended, or has "));
  CHECK_EQ(all_from(pair.peer_socket(1).file), "");
}

TEST(a_rank_that_sends_nonsense_is_cut_off) {
  const auto ends = [](Packet packet) {
    Pair pair;
    pair.to_network->send(std::move(packet));
    return pair.end_of_sending();
  };
  CHECK(contains(ends(Packet(kOfReceipt, uint64_t{1} << 63, size_t{0})),
                 "a receipt for 9223372036854775808 bytes of "));
  CHECK(contains(ends(Packet(7, 0, size_t{0})), "a packet of kind 7, which there is not"));
  CHECK(contains(ends(Packet(kOfBytes, 0, size_t{600} << 10)),
                 "a packet of 614400 bytes, expected at most 524288"));
  CHECK(contains(ends(Packet(kOfBytes, 0, size_t{0})), "a packet without bytes"));
  Pair pair;
  pair.to_network->send(Packet(kOfFailure, 12345, std::string("no such code")));
  const std::vector<char> much(size_t{8} << 20);
  const Message message{1, const_cast<char*>(much.data()), much.size(), {HCCL_CMD_SEND}};
  HcclResult code = HCCL_SUCCESS;
  try {
    pair.network.exchange({&message, 1}, {}, soon());
  } catch (const Failure& failure) {
    code = failure.code();
  }
  CHECK_EQ(code, HCCL_E_INTERNAL);
}

// Of two connections that claim to be rank 1, the first is accepted; rank 7 of 2 does not exist.
TEST(a_second_rank_of_a_number_is_refused) {
  Pair pair;
  for (const uint32_t rank : {1U, 7U, 0U}) CHECK_EQ(all_from(pair.peer_socket(rank).file), "");
  pair.to_network->send(Packet(kOfFailure, HCCL_E_OOM, std::string("the first speaks")));
  CHECK_EQ(pair.end_of_sending(), "the first speaks");
}

TEST(a_rank_that_stalls_costs_no_more_than_the_time_allowed) {
  Pair pair;
  char byte = 0;
  const Message message{1, &byte, 1, {HCCL_CMD_SEND}};
  const std::string text =
      refusal_of([&] { pair.network.exchange({}, {&message, 1}, Deadline(300)); });
  CHECK(contains(text, "waited in vain for rank 1"));
}

// Requests of a process that has the secret and violates the protocol.
TEST(malformed_requests_do_not_end_the_place) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const Rendezvous rendezvous = rendezvous_of({&information, 1});  // it keeps the place open
  const auto answer_to = [&](std::span<const char> request, uint64_t rank = 0) {
    Connection connection(
        authenticate(outsider(root), root.secret, root.name, static_cast<uint32_t>(rank), soon()),
        kAnswers);
    connection.send(Packet(0, 0, request));
    return text_from(connection);
  };
  const auto asked = [&](std::vector<std::string> texts, uint32_t rank = 0) {
    return answer_to(joined(texts), rank);
  };
  CHECK_EQ(asked({"key", "", "18446744073709551615", "1", ""}),
           "18446744073709551615 is no number from 0 to 32768");
  CHECK_EQ(asked({"key", "", "2", "-1", ""}), "-1 is no number from 0 to 2147483647");
  CHECK_EQ(asked({"key", "", "2", "1"}), "a packet that is not one of 5 texts");
  const std::string nobody = "a rank without a key, with too many words, or of no such rank";
  CHECK_EQ(asked({"", "", "2", "1", ""}), nobody);
  CHECK_EQ(asked({"key", "", "2", "1", std::string(2000, 'w')}), nobody);
  CHECK_EQ(asked({"key", "", "2", "1", ""}, 2), nobody);
  const uint64_t huge = uint64_t{1} << 63;
  CHECK_EQ(answer_to({reinterpret_cast<const char*>(&huge), sizeof(huge)}),
           "a text of 9223372036854775808 bytes where 0 are left");
  ranks_meet(information);
  CHECK_EQ(asked({root.name, "", "2", "1", ""}, 1), "rank 1 has joined already");
}

// A fuzzer of the packets' parser: packets are returned as they were written, and after a change of
// their bytes only those before the change are. `make sanitize` runs it under AddressSanitizer.
TEST(changed_repeated_and_exchanged_letters_are_refused) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const auto key = std::optional<Secret>(random_secret());
    PacketWriter writer(key);
    std::vector<std::string> bodies;
    std::vector<std::vector<char>> pieces;
    for (uint32_t i = 0; i < 1 + random() % 6; ++i) {
      bodies.push_back(std::string(random() % 65, static_cast<char>('a' + i)));
      pieces.push_back(writer.write(Packet(0, random(), bodies.back())));
    }
    const auto whole = [&] {
      std::vector<char> bytes;
      for (const auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
      return bytes;
    };
    std::string refusal;
    CHECK(read_all(key, whole(), random, &refusal) == bodies && refusal.empty());
    size_t intact = random() % pieces.size();  // the number of unchanged packets
    const auto at = pieces.begin() + static_cast<ptrdiff_t>(intact);
    switch (round % 4) {
      case 0: (*at)[random() % at->size()] ^= static_cast<char>(1 << random() % 7); break;
      case 1: pieces.insert(at, std::vector<char>(200, static_cast<char>(random()))); break;
      case 2:
        ++intact;
        pieces.insert(at + 1, std::vector<char>(*at));
        break;
      default:
        if (at + 1 == pieces.end()) continue;
        std::iter_swap(at, at + 1);
    }
    bodies.resize(intact);
    CHECK(read_all(key, whole(), random, &refusal) == bodies);
    // A changed size may make an incomplete packet.
    CHECK(!refusal.empty() || round % 4 == 0);
  }
}

// Fuzzes the parser with random bytes, without a tag, with which all would be refused.
TEST(any_bytes_are_letters_or_refused) {
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> bytes(random() % 400);
    for (char& byte : bytes) byte = static_cast<char>(random() % 3 ? 0 : random());
    std::string refusal;
    read_all(std::nullopt, bytes, random, &refusal);
    refusal_of([&] { parted(bytes, random() % 6); });
  }
  const std::string header(
      "\1\0\0\0"
      "\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\x80",
      32);
  std::string refusal;
  CHECK(read_all(std::nullopt, header, random, &refusal).empty());
  CHECK_EQ(refusal, "a packet of 9223372036854775808 bytes, expected at most 0");
}

// A rendezvous that cannot become complete ends for all waiting ranks.
TEST(a_rank_that_leaves_before_all_have_come_ends_the_rendezvous) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const Rendezvous rendezvous = rendezvous_of({&information, 1});  // it keeps the place open
  const auto come = [&](uint32_t rank) {
    auto connection = std::make_unique<Connection>(
        authenticate(outsider(root), root.secret, root.name, rank, soon()), kAnswers);
    const auto request = joined({root.name, "", "3", "100", ""});
    connection->send(Packet(0, 0, std::span<const char>(request)));
    return connection;
  };
  auto early = come(0);
  const auto waiting = come(1);
  // The answer shows that the place has read the earlier packets.
  CHECK_EQ(
      refusal_of([&] { exchange_words(rendezvous.server_address, {root.name, "", 0, 2, ""}); }),
      "nRanks is 2 for rank 0 and 3 for one that came before");
  early.reset();
  CHECK_EQ(text_from(*waiting), "rank 0 has ended before all ranks had come");
  CHECK_EQ(
      refusal_of([&] { exchange_words(rendezvous.server_address, {root.name, "", 2, 3, ""}); }),
      "the others have given up: rank 0 has ended before all ranks had come");
}

// A waiting rank is rejected for an invalid packet. Its group drops it, so that later ranks fail
// cleanly.
TEST(a_rank_that_waits_and_sends_nonsense_ends_the_rendezvous) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const Rendezvous rendezvous = rendezvous_of({&information, 1});  // it keeps the place open
  const auto connection = [&](uint32_t rank) {
    return std::make_unique<Connection>(
        authenticate(outsider(root), root.secret, root.name, rank, soon()), kAnswers);
  };
  const auto request = joined({root.name, "", "2", "100", ""});
  auto first = connection(0);
  first->send(Packet(0, 0, std::span<const char>(request)));
  first->send(Packet(0, 0, std::span<const char>(request)));
  CHECK_EQ(text_from(*first), "a rank comes once on a connection");
  first.reset();
  CHECK_EQ(
      refusal_of([&] { exchange_words(rendezvous.server_address, {root.name, "", 1, 2, ""}); }),
      "the others have given up: rank 0 has ended before all ranks had come");
}

// A request for which memory is exhausted fails for its rank only.
TEST(a_place_without_memory_for_a_communicator_goes_on) {
  const HcclRootInfo information = open_information();
  const Root root = root_of(information);
  const Rendezvous rendezvous = rendezvous_of({&information, 1});  // it keeps the place open
  const auto ask = [&] {
    Connection connection(authenticate(outsider(root), root.secret, root.name, 0, soon()),
                          kAnswers);
    const auto request = joined({"key", "", "32768", "1", ""});
    connection.send(Packet(0, 0, std::span<const char>(request)));
    return text_from(connection);
  };
  bytes_refused = size_t{32768} * sizeof(std::string);
  CHECK_EQ(ask(), "");
  bytes_refused = 0;
  CHECK(contains(ask(), ", 31, 32 and 32735 others of 32768 did not come within 1 s"));
  ranks_meet(information);
}
