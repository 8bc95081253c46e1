// Ranks that are processes and are killed: in an operation, during the rendezvous, and while their
// communicator is created. The others fail with an error text, long before the alarm would end
// them, and no files remain. Each rank is a child of this process, which runs no rank itself.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "hccl_support.h"

namespace {

constexpr unsigned kTimeout = 60;  // seconds

// Functions that a rank runs at certain points, set in its own process.
struct Points {
  std::function<void()> in_rendezvous;     // after joining, before the others have its data
  std::function<void()> in_making;         // after all have joined, before it gets the shared
                                           // memory or connects to the first other rank
  std::function<void()> waits_for_a_peer;  // during an operation
};
Points points;

void die() {
  raise(SIGKILL);
}

// A child of a rank, such as a data loader, which outlives the rank.
pid_t fork_heir() {
  const pid_t heir = fork();
  if (heir != 0) return heir;
  alarm(kTimeout);
  for (;;) pause();
}

// Waits until an unreaped process has ended.
void wait_for_end(pid_t process) {
  const auto file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  pollfd end{file, POLLIN, 0};
  CHECK_EQ(poll(&end, 1, -1), 1);
  close(file);
}

}  // namespace

// Replaces functions of the C library, which libhccl.so calls at these points.
extern "C" ACL_FUNC_VISIBILITY int connect(int file, const sockaddr* address, socklen_t size) {
  using Function = int(int, const sockaddr*, socklen_t);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "connect"));
  static int connections = 0;  // first to the place, once or twice, then to the first other rank
  if (++connections == (kOverNetwork ? 3 : 2) && points.in_making) points.in_making();
  const int result = real(file, address, size);
  if (points.in_rendezvous) points.in_rendezvous();
  return result;
}

extern "C" ACL_FUNC_VISIBILITY long syscall(long number, ...) noexcept {
  using Function = long(long, ...);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "syscall"));
  long values[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& value : values) value = va_arg(arguments, long);
  va_end(arguments);
  const bool waits = number == SYS_futex && static_cast<int>(values[1]) == FUTEX_WAIT;
  if (waits && points.waits_for_a_peer) points.waits_for_a_peer();
  return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

// Over the network a rank also polls before it sends, to see whether the other rank exists. It
// waits once it has polled more often than it can send.
extern "C" ACL_FUNC_VISIBILITY int poll(pollfd* files, nfds_t count, int timeout) {
  using Function = int(pollfd*, nfds_t, int);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "poll"));
  static int looks = 0;
  const bool looks_for_a_peer = count == 1 && (files[0].events & POLLRDHUP) != 0;
  if (looks_for_a_peer && points.waits_for_a_peer && ++looks > 20) points.waits_for_a_peer();
  return real(files, count, timeout);
}

namespace {

// Ranks that are child processes and return texts through pipes.
class Processes {
 public:
  // Each child runs body(rank), and the parent receives the text.
  Processes(uint32_t ranks, const std::function<std::string(uint32_t)>& body) {
    CHECK_EQ(environment, 0);
    std::fflush(nullptr);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      int ends[2];
      CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
      const pid_t child = fork();
      if (child == 0) {
        alarm(kTimeout);
        const int before = check::failures();
        const std::string text = body(rank);
        CHECK_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
        _exit(check::failures() == before ? 0 : 1);
      }
      close(ends[1]);
      children_.push_back({child, ends[0], ""});
    }
    for (Child& one : children_) {
      char part[4096];
      for (ssize_t count; (count = read(one.pipe, part, sizeof(part))) > 0;)
        one.text.append(part, static_cast<size_t>(count));
      close(one.pipe);
    }
    for (Child& one : children_) CHECK_EQ(waitpid(one.process, &one.status, 0), one.process);
  }

  const std::string& text(uint32_t rank) const { return children_[rank].text; }
  // The text of other ranks about a rank that has ended.
  std::string end_of(uint32_t rank) const {
    return "the process of rank " + std::to_string(rank) + " (" +
           std::to_string(children_[rank].process) + ") has ended";
  }
  // True if a rank's text says that another rank has ended: the killed one, or one that ended after
  // reporting it.
  bool names_an_end(uint32_t rank) const {
    for (uint32_t other = 0; other < children_.size(); ++other) {
      if (other == rank) continue;
      if (contains(text(rank), end_of(other))) return true;
      if (kOverNetwork && contains(text(rank), cannot_reach(other))) return true;
    }
    return false;
  }
  // The text of ranks that connect to a rank after its end.
  static std::string cannot_reach(uint32_t rank) {
    return "cannot reach rank " + std::to_string(rank) + " at 127.0.0.1:";
  }
  bool was_killed(uint32_t rank) const {
    return WIFSIGNALED(children_[rank].status) && WTERMSIG(children_[rank].status) == SIGKILL;
  }
  bool has_succeeded(uint32_t rank) const {
    return WIFEXITED(children_[rank].status) && WEXITSTATUS(children_[rank].status) == 0;
  }

 private:
  struct Child {
    pid_t process;
    int pipe;
    std::string text;
    int status = -1;
  };
  std::vector<Child> children_;
};

// Passes the root information, and the process id of rank 0, to the other ranks.
class ServerAddress {
 public:
  ServerAddress() { CHECK_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ServerAddress(const ServerAddress&) = delete;
  ServerAddress& operator=(const ServerAddress&) = delete;
  ~ServerAddress() {
    close(ends_[0]);
    close(ends_[1]);
  }

  HcclRootInfo join(uint32_t rank, uint32_t ranks) {
    CHECK_EQ(aclrtSetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
    Packet packet{};
    if (rank == 0) {
      CHECK_EQ(HcclGetRootInfo(&packet.root), HCCL_SUCCESS);
      packet.process = getpid();
      for (uint32_t other = 1; other < ranks; ++other) {
        CHECK_EQ(write(ends_[1], &packet, sizeof(packet)), static_cast<ssize_t>(sizeof(packet)));
      }
    } else {
      CHECK_EQ(read(ends_[0], &packet, sizeof(packet)), static_cast<ssize_t>(sizeof(packet)));
    }
    root_process = packet.process;
    return packet.root;
  }

  pid_t root_process = -1;

 private:
  struct Packet {
    HcclRootInfo root;
    pid_t process;
  };
  int ends_[2];
};

// One rank in its process.
struct Rank {
  Rank(ServerAddress& server_address, uint32_t number, uint32_t ranks) {
    const HcclRootInfo root = server_address.join(number, ranks);
    status = HcclCommInitRootInfo(ranks, &root, number, &comm);
    if (status == HCCL_SUCCESS) CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    if (status != HCCL_SUCCESS) return;
    CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }

  HcclResult status;
  HcclComm comm = nullptr;
  aclrtStream stream = nullptr;
};

// The files that a killed process could leave. Other tests trace and profile at the same time, in
// files with other names.
std::set<std::string> files_of_ours() {
  std::set<std::string> found;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::string name = entry.path().filename();
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      if (contains(name, "hccl")) found.insert(entry.path());
    }
  }
  return found;
}

void leaves_no_files(const std::function<void()>& body) {
  const std::set<std::string> before = files_of_ours();
  body();
  CHECK(files_of_ours() == before);
}

struct Operation {
  const char* name;
  HcclResult (*call)(void*, void*, uint64_t, HcclComm, aclrtStream);
};

constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;

// Operations in which every rank needs every other one.
const Operation kOperations[] = {
    {"HcclAllReduce",
     [](void* send, void* receive, uint64_t count, HcclComm comm, aclrtStream stream) {
       return HcclAllReduce(send, receive, count, kFloat, HCCL_REDUCE_SUM, comm, stream);
     }},
    {"HcclReduceScatter",
     [](void* send, void* receive, uint64_t count, HcclComm comm, aclrtStream stream) {
       return HcclReduceScatter(send, receive, count / 4, kFloat, HCCL_REDUCE_SUM, comm, stream);
     }},
    {"HcclAllGather",
     [](void* send, void* receive, uint64_t count, HcclComm comm, aclrtStream stream) {
       return HcclAllGather(send, receive, count / 4, kFloat, comm, stream);
     }},
    {"HcclAlltoAll",
     [](void* send, void* receive, uint64_t count, HcclComm comm, aclrtStream stream) {
       return HcclAlltoAll(send, count / 4, kFloat, receive, count / 4, kFloat, comm, stream);
     }}};

}  // namespace

TEST(ranks_that_are_processes) {
  for (const uint32_t ranks : {2U, 4U, 8U}) {
    ServerAddress server_address;
    const Processes all(ranks, [&](uint32_t own) -> std::string {
      const Rank rank(server_address, own, ranks);
      if (!CHECK_EQ(rank.status, HCCL_SUCCESS)) return messages();
      const size_t count = 1000;
      const Buffer sent(floats(), values(own, ranks * count));
      const Buffer reduced(floats(), ranks * count), gathered(floats(), ranks * count);
      const Buffer part(floats(), count), exchanged(floats(), ranks * count);
      CHECK_EQ(HcclAllReduce(sent.data(), reduced.data(), ranks * count, kFloat, HCCL_REDUCE_SUM,
                             rank.comm, rank.stream),
               HCCL_SUCCESS);
      CHECK_EQ(HcclAllGather(sent.data(), gathered.data(), count, kFloat, rank.comm, rank.stream),
               HCCL_SUCCESS);
      CHECK_EQ(HcclReduceScatter(sent.data(), part.data(), count, kFloat, HCCL_REDUCE_MAX,
                                 rank.comm, rank.stream),
               HCCL_SUCCESS);
      CHECK_EQ(HcclAlltoAll(sent.data(), count, kFloat, exchanged.data(), count, kFloat, rank.comm,
                            rank.stream),
               HCCL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
      std::vector<double> all_of_them, to_me;
      for (uint32_t from = 0; from < ranks; ++from) {
        for (size_t i = 0; i < count; ++i) {
          all_of_them.push_back(number(from, i));
          to_me.push_back(number(from, own * count + i));
        }
      }
      CHECK(reduced.values() == all_reduced(floats(), HCCL_REDUCE_SUM, ranks, 0, ranks * count));
      CHECK(gathered.values() == all_of_them);
      CHECK(part.values() == all_reduced(floats(), HCCL_REDUCE_MAX, ranks, own * count, count));
      CHECK(exchanged.values() == to_me);
      return messages();
    });
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      CHECK(all.has_succeeded(rank));
      CHECK_EQ(all.text(rank), "");
    }
  }
}

// Rank 3 of 4 is killed while it waits for the others, which start after that.
TEST(a_rank_that_dies_in_an_operation_fails_all_others) {
  leaves_no_files([] {
    for (const Operation& operation : kOperations) {
      ServerAddress server_address;
      int victim[2];
      CHECK_EQ(pipe2(victim, O_CLOEXEC), 0);
      const Processes all(4, [&](uint32_t own) {
        const Rank rank(server_address, own, 4);
        CHECK_EQ(rank.status, HCCL_SUCCESS);
        const size_t count = size_t{4} << 20;  // more than the transport buffers is missing
        const Buffer sent(floats(), count), received(floats(), count);
        pid_t process = getpid();
        if (own == 3) {
          points.waits_for_a_peer = die;
          for (int other = 0; other < 3; ++other)
            CHECK_EQ(write(victim[1], &process, sizeof(process)), ssize_t{sizeof(process)});
        } else {
          CHECK_EQ(read(victim[0], &process, sizeof(process)), ssize_t{sizeof(process)});
          wait_for_end(process);
        }
        CHECK_EQ(operation.call(sent.data(), received.data(), count, rank.comm, rank.stream),
                 HCCL_SUCCESS);
        CHECK_EQ(aclrtSynchronizeStream(rank.stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
        const std::string text = messages();
        HcclResult error = HCCL_SUCCESS;
        CHECK_EQ(HcclGetCommAsyncError(rank.comm, &error), HCCL_SUCCESS);
        CHECK_EQ(error, HCCL_E_REMOTE);
        return text;
      });
      close(victim[0]);
      close(victim[1]);
      CHECK(all.was_killed(3));
      for (uint32_t rank = 0; rank < 3; ++rank) {
        CHECK(all.has_succeeded(rank));
        CHECK(contains(all.text(rank), std::string(operation.name) + ": communicator hccl_"));
        CHECK(all.names_an_end(rank));
      }
    }
  });
}

// A forked child has copies of all descriptors of its parent.
TEST(a_rank_that_dies_and_leaves_a_child_fails_all_others) {
  ServerAddress server_address;
  int victim[2];
  CHECK_EQ(pipe2(victim, O_CLOEXEC), 0);
  const Processes all(2, [&](uint32_t own) {
    setenv("HCCL_EXEC_TIMEOUT", "5", 1);
    const Rank rank(server_address, own, 2);
    CHECK_EQ(rank.status, HCCL_SUCCESS);
    if (own == 1) {
      const pid_t heir = fork_heir();
      CHECK_EQ(write(victim[1], &heir, sizeof(heir)), ssize_t{sizeof(heir)});
      die();
    }
    pid_t heir = -1;
    CHECK_EQ(read(victim[0], &heir, sizeof(heir)), ssize_t{sizeof(heir)});
    const Buffer buffer(floats(), 1);
    CHECK_EQ(HcclRecv(buffer.data(), 1, kFloat, 1, rank.comm, rank.stream), HCCL_SUCCESS);
    CHECK_EQ(aclrtSynchronizeStream(rank.stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
    kill(heir, SIGKILL);
    return messages();
  });
  close(victim[0]);
  close(victim[1]);
  CHECK(all.was_killed(1));
  CHECK(all.has_succeeded(0));
  CHECK(contains(all.text(0), all.end_of(1)));
}

// Waits until a process is stopped.
static void wait_for_stop(pid_t process) {
  std::string word;
  while (word != "T") {
    std::ifstream state("/proc/" + std::to_string(process) + "/stat");
    state >> word >> word >> word;  // number, name, state
  }
}

// The kernel of a stopped process accepts data while there is buffer space.
TEST(a_rank_that_stands_still_is_waited_for_no_longer_than_asked) {
  ServerAddress server_address;
  int victim[2];
  CHECK_EQ(pipe2(victim, O_CLOEXEC), 0);
  const Processes all(2, [&](uint32_t own) {
    setenv("HCCL_EXEC_TIMEOUT", "1", 1);
    pid_t process = getpid();
    std::string text;
    {
      const Rank rank(server_address, own, 2);
      CHECK_EQ(rank.status, HCCL_SUCCESS);
      if (own == 1) {
        CHECK_EQ(write(victim[1], &process, sizeof(process)), ssize_t{sizeof(process)});
        raise(SIGSTOP);
      }
      CHECK_EQ(read(victim[0], &process, sizeof(process)), ssize_t{sizeof(process)});
      wait_for_stop(process);
      const size_t count = size_t{4} << 20;
      const Buffer sent(floats(), count);
      CHECK_EQ(HcclSend(sent.data(), count, kFloat, 1, rank.comm, rank.stream), HCCL_SUCCESS);
      CHECK_EQ(aclrtSynchronizeStream(rank.stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
      text = messages();
    }
    kill(process, SIGKILL);  // after this rank's end, which must not wait for it either
    return text;
  });
  close(victim[0]);
  close(victim[1]);
  CHECK(all.was_killed(1));
  CHECK(all.has_succeeded(0));
  CHECK(contains(all.text(0), "waited in vain for rank 1"));
}

// The error of a rank whose communicator cannot be created.
static std::string refusal(ServerAddress& server_address, uint32_t own, uint32_t ranks,
                           std::initializer_list<HcclResult> expected) {
  const Rank rank(server_address, own, ranks);
  const std::string text = messages();
  if (!CHECK(std::ranges::find(expected, rank.status) != expected.end()))
    std::fprintf(stderr, "rank %u: %d: %s\n", own, rank.status, text.c_str());
  return text;
}

// The rank has connected to the place and not sent its data: the others wait until the timeout.
TEST(a_rank_that_dies_in_the_rendezvous_fails_all_others) {
  leaves_no_files([] {
    for (const uint32_t victim : {0U, 2U}) {
      ServerAddress server_address;
      const Processes all(4, [&](uint32_t own) {
        setenv("HCCL_CONNECT_TIMEOUT", "2", 1);
        if (own == victim) points.in_rendezvous = die;
        return refusal(server_address, own, 4, {HCCL_E_TIMEOUT, HCCL_E_REMOTE, HCCL_E_TCP_CONNECT});
      });
      CHECK(all.was_killed(victim));
      for (uint32_t rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        CHECK(all.has_succeeded(rank));
        // The process of rank 0 serves the place and may end before the others.
        const bool names_it =
            contains(all.text(rank), "rank 2 of 4 did not come within 2 s (HCCL_CONNECT_TIMEOUT)");
        CHECK(names_it || (rank != 0 && contains(all.text(rank), "the rank that made rootInfo")));
      }
    }
  });
}

// As after an elastic restart of torch, whose store still has the root information. No rank waits
// for the timeout.
TEST(root_information_of_a_process_that_has_ended_is_told_at_once) {
  ServerAddress server_address;
  int heirs[2];
  CHECK_EQ(pipe2(heirs, O_CLOEXEC), 0);
  const Processes all(2, [&](uint32_t own) -> std::string {
    setenv("HCCL_CONNECT_TIMEOUT", "5", 1);
    const HcclRootInfo root = server_address.join(own, 2);
    pid_t heir = -1;  // it does not listen in its parent's place
    if (own == 0) {
      heir = fork_heir();
      CHECK_EQ(write(heirs[1], &heir, sizeof(heir)), ssize_t{sizeof(heir)});
      die();
    }
    CHECK_EQ(read(heirs[0], &heir, sizeof(heir)), ssize_t{sizeof(heir)});
    wait_for_end(server_address.root_process);
    HcclComm comm = nullptr;
    CHECK_EQ(HcclCommInitRootInfo(2, &root, 1, &comm), HCCL_E_TCP_CONNECT);
    kill(heir, SIGKILL);
    return messages();
  });
  close(heirs[0]);
  close(heirs[1]);
  CHECK(all.has_succeeded(1));
  CHECK(contains(all.text(1),
                 "Connection refused; its process has ended. If torch has restarted "
                 "the ranks, its store gave them the root information of those "
                 "before: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"));
}

// All ranks have joined, and one is killed before it has opened the shared memory or connections:
// the others notice.
TEST(a_rank_that_dies_while_a_communicator_is_made_fails_all_others) {
  leaves_no_files([] {
    for (const uint32_t victim : {0U, 1U}) {
      ServerAddress server_address;
      const Processes all(4, [&](uint32_t own) {
        if (own == 1 && victim == 1) points.in_making = die;
        if (own == 1 && victim == 0) {
          points.in_making = [&] {
            kill(server_address.root_process, SIGKILL);
            wait_for_end(server_address.root_process);
          };
        }
        return refusal(server_address, own, 4, {HCCL_E_REMOTE, HCCL_E_TCP_CONNECT});
      });
      CHECK(all.was_killed(victim));
      for (uint32_t rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        CHECK(all.has_succeeded(rank));
        // Rank 0 may have ended for that reason while others still join in its process.
        CHECK(all.names_an_end(rank) ||
              (rank != 0 && contains(all.text(rank), "the rank that made rootInfo")));
      }
    }
  });
}
