#include "cann/hccl/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <system_error>

#include <c10/util/StringUtil.h>

namespace aclnn_host::hccl {
namespace {

constexpr size_t kCacheLine = 64;
constexpr long kPidfdOpen = 434;  // SYS_pidfd_open, which headers before Linux 5.3 lack
constexpr size_t kLargestRing = size_t{1} << 20;
constexpr size_t kSmallestRing = size_t{1} << 14;
constexpr size_t kLargestFile = size_t{64} << 20;  // unless there are very many ranks
constexpr size_t kRingPiece = size_t{128} << 10;   // bytes that are written before the reader is
                                                   // notified

// The states of a rank.
constexpr uint32_t kPresent = 0;
constexpr uint32_t kFailed = 1;
constexpr uint32_t kGone = 2;

size_t ring_capacity(uint32_t ranks) {
  const size_t rings = size_t{ranks} * ranks;
  return std::clamp(std::bit_floor(kLargestFile / std::max<size_t>(rings, 1)), kSmallestRing,
                    kLargestRing);
}

}  // namespace

struct alignas(kCacheLine) SharedMemory::Place {
  std::atomic<uint32_t> bell;      // incremented to notify the rank
  std::atomic<uint32_t> listener;  // 1 while the rank may sleep
  std::atomic<uint32_t> state;
  std::atomic<int32_t> code;  // of its failure
  char text[kLongestText];    // of its failure, written before the state
};

struct alignas(kCacheLine) SharedMemory::Ring {
  std::atomic<uint64_t> written;
  alignas(kCacheLine) std::atomic<uint64_t> read;
};

size_t SharedMemory::file_size(uint32_t ranks) noexcept {
  const size_t rings = size_t{ranks} * ranks;
  return ranks * sizeof(Place) + rings * (sizeof(Ring) + ring_capacity(ranks));
}

SharedMemory::SharedMemory(SharedFile file, uint32_t rank, const std::vector<int>& processes)
    : Streams(rank, static_cast<uint32_t>(processes.size())),
      file_(std::move(file)),
      capacity_(ring_capacity(ranks_)),
      processes_(processes),
      watched_(ranks_) {
  for (uint32_t peer = 0; peer < ranks_; ++peer) {
    if (processes[peer] == getpid()) continue;
    watched_[peer] = File(static_cast<int>(syscall(kPidfdOpen, processes[peer], 0)));
  }
}

SharedMemory::~SharedMemory() {
  take_leave(kGone, "");
}

SharedMemory::Place& SharedMemory::place(uint32_t rank) const {
  return reinterpret_cast<Place*>(file_.data())[rank];
}

SharedMemory::Ring& SharedMemory::ring(uint32_t from, uint32_t to) const {
  char* const rings = file_.data() + ranks_ * sizeof(Place);
  return reinterpret_cast<Ring*>(rings)[size_t{from} * ranks_ + to];
}

char* SharedMemory::bytes_of(const Ring& ring) const {
  const auto* const rings = reinterpret_cast<const Ring*>(file_.data() + ranks_ * sizeof(Place));
  const size_t number = static_cast<size_t>(&ring - rings);
  return file_.data() + ranks_ * sizeof(Place) + size_t{ranks_} * ranks_ * sizeof(Ring) +
         number * capacity_;
}

// The bytes of a ring that are written and not yet read. The peer writes one of the two counters.
size_t SharedMemory::filled(const Ring& ring, uint32_t peer) const {
  const uint64_t count =
      ring.written.load(std::memory_order_acquire) - ring.read.load(std::memory_order_acquire);
  if (count <= capacity_) return count;
  throw Failure(HCCL_E_REMOTE, c10::str("rank ", peer, " has ", count, " bytes on the way in ",
                                        capacity_, ": its counts are wrong"));
}

// Writes as many bytes as fit, at most kRingPiece.
bool SharedMemory::push(Transfer& transfer) {
  Ring& to = ring(rank_, transfer.peer());
  const uint64_t written = to.written.load(std::memory_order_relaxed);
  const size_t most = std::min(capacity_ - filled(to, transfer.peer()), kRingPiece);
  size_t count = 0;
  while (count < most && !transfer.is_done()) {
    const size_t at = (written + count) % capacity_;
    count += transfer.read({bytes_of(to) + at, std::min(most - count, capacity_ - at)});
  }
  if (count == 0) return false;
  to.written.store(written + count, std::memory_order_release);
  ring_bell(transfer.peer());
  return true;
}

// Reads the available bytes, at most kRingPiece.
bool SharedMemory::pull(Transfer& transfer) {
  Ring& from = ring(transfer.peer(), rank_);
  const uint64_t read = from.read.load(std::memory_order_relaxed);
  const size_t most = std::min(filled(from, transfer.peer()), kRingPiece);
  size_t count = 0;
  while (count < most && !transfer.is_done()) {
    const size_t at = (read + count) % capacity_;
    count += transfer.write({bytes_of(from) + at, std::min(most - count, capacity_ - at)}, rank_);
  }
  if (count == 0) return false;
  from.read.store(read + count, std::memory_order_release);
  ring_bell(transfer.peer());
  return true;
}

uint32_t SharedMemory::bell() const {
  return place(rank_).bell.load();
}

void SharedMemory::ring_bell(uint32_t rank) const noexcept {
  Place& there = place(rank);
  there.bell.fetch_add(1);
  if (there.listener.load() == 0) return;
  syscall(SYS_futex, &there.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void SharedMemory::wait(uint32_t seen) {
  constexpr timespec kTime{0, std::chrono::nanoseconds(kTimeout).count()};
  Place& here = place(rank_);
  here.listener.store(1);
  if (here.bell.load() == seen) {
    syscall(SYS_futex, &here.bell, FUTEX_WAIT, seen, &kTime, nullptr, 0);
  }
  here.listener.store(0);
}

std::optional<Failure> SharedMemory::absence(uint32_t peer) {
  const Place& there = place(peer);
  const std::string rank = "rank " + std::to_string(peer);
  switch (there.state.load(std::memory_order_acquire)) {
    case kFailed:
      return Failure(result_of(there.code.load()), {there.text, strnlen(there.text, kLongestText)});
    case kGone: return Failure(HCCL_E_REMOTE, c10::str(rank, " has destroyed its communicator"));
    default: break;
  }
  const int process = processes_[peer];
  if (process == getpid()) return std::nullopt;
  pollfd end{watched_[peer].number(), POLLIN, 0};
  const bool has_ended =
      !watched_[peer] ? kill(process, 0) != 0 && errno == ESRCH : poll(&end, 1, 0) == 1;
  if (!has_ended) return std::nullopt;
  return Failure(HCCL_E_REMOTE, c10::str("the process of ", rank, " (", process, ") has ended"));
}

void SharedMemory::fail(const Failure& failure) noexcept {
  place(rank_).code.store(failure.code());
  take_leave(kFailed, failure.what());
}

// The first state other than kPresent is kept.
void SharedMemory::take_leave(uint32_t state, const char* text) noexcept {
  Place& here = place(rank_);
  if (here.state.load() != kPresent) return;
  write_text(here.text, text);
  here.state.store(state, std::memory_order_release);
  for (uint32_t peer = 0; peer < ranks_; ++peer) ring_bell(peer);
}

}  // namespace aclnn_host::hccl
