#include "host_cann/hccl/shared_memory.h"

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
#include <string_view>
#include <system_error>

#include <c10/util/StringUtil.h>

#include "host_cann/hccl/names.h"

namespace aclnn_host::hccl {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kLargestRing = size_t{1} << 20;
constexpr size_t kSmallestRing = size_t{1} << 14;
constexpr size_t kLargestFile = size_t{64} << 20;  // unless there are very many ranks
constexpr size_t kPiece = size_t{128} << 10;       // what is written before the reader is told

// How often a waiting rank looks whether the others are still there.
constexpr timespec kPatience{0, 100'000'000};

// The states of a rank.
constexpr uint32_t kPresent = 0;
constexpr uint32_t kFailed = 1;
constexpr uint32_t kGone = 2;

size_t ring_capacity(uint32_t ranks) {
  const size_t rings = size_t{ranks} * ranks;
  return std::clamp(std::bit_floor(kLargestFile / std::max<size_t>(rings, 1)), kSmallestRing,
                    kLargestRing);
}

// Writes a text, or as many whole characters of it as there is room for and a remark that it goes
// on: two paths of the greatest length fit.
void write_text(char* to, size_t room, std::string_view text) noexcept {
  constexpr std::string_view kRest = " ... (the rest stands with the rank that failed)";
  size_t count = text.size();
  if (count >= room) {
    count = room - kRest.size() - 1;
    const auto continues = [&] { return (static_cast<unsigned char>(text[count]) & 0xc0) == 0x80; };
    while (count > 0 && continues()) --count;
    kRest.copy(to + count, kRest.size());
  }
  text.copy(to, count);
}

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

SharedFile::SharedFile(size_t bytes) : file_(memfd_create("aclnn_torch HCCL", MFD_CLOEXEC)) {
  if (file_ < 0) throw_system_error("cannot make a file in memory");
  // Taken now, since a page that the system does not have later would end the process.
  if (const int error = posix_fallocate(file_, 0, static_cast<off_t>(bytes)); error != 0) {
    close(file_);
    throw std::system_error(error, std::generic_category(),
                            "cannot take " + std::to_string(bytes) + " bytes of shared memory");
  }
  map(bytes);
}

SharedFile::SharedFile(const std::string& path, size_t bytes)
    : file_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  if (file_ < 0) throw_system_error("cannot open " + path);
  map(bytes);
}

void SharedFile::map(size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    close(file_);
    throw std::system_error(error, std::generic_category(), "cannot map shared memory");
  }
  data_ = static_cast<char*>(data);
  bytes_ = bytes;
}

SharedFile::~SharedFile() {
  munmap(data_, bytes_);
  close(file_);
}

std::string SharedFile::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

struct alignas(kCacheLine) SharedMemory::Place {
  std::atomic<uint32_t> bell;      // rung by counting
  std::atomic<uint32_t> listener;  // 1 while the rank may sleep
  std::atomic<uint32_t> state;
  std::atomic<int32_t> code;  // of its failure
  char text[8 << 10];         // of its failure, written before the state is
};

struct alignas(kCacheLine) SharedMemory::Ring {
  std::atomic<uint64_t> written;
  alignas(kCacheLine) std::atomic<uint64_t> read;
};

// A message with its envelope in front, of which so many bytes have been passed on.
struct SharedMemory::Transfer {
  struct Envelope {
    Description what;
    uint64_t bytes;
  };

  explicit Transfer(const Message& of) : message(of), envelope{of.what, of.bytes} {}

  Message message;
  Envelope envelope;  // as sent; of a message that comes, overwritten by what was sent
  size_t passed = 0;

  size_t size() const { return sizeof(Envelope) + message.bytes; }
  bool is_done() const { return passed == size(); }

  // The next bytes, of which `most` are wanted: a part of the envelope or of the data.
  std::span<char> next(size_t most) {
    if (passed < sizeof(Envelope)) {
      char* const begin = reinterpret_cast<char*>(&envelope);
      return {begin + passed, std::min(most, sizeof(Envelope) - passed)};
    }
    const size_t offset = passed - sizeof(Envelope);
    return {static_cast<char*>(message.data) + offset, std::min(most, message.bytes - offset)};
  }
};

size_t SharedMemory::file_size(uint32_t ranks) noexcept {
  const size_t rings = size_t{ranks} * ranks;
  return ranks * sizeof(Place) + rings * (sizeof(Ring) + ring_capacity(ranks));
}

SharedMemory::SharedMemory(std::unique_ptr<SharedFile> file, uint32_t rank,
                           const std::vector<int>& processes)
    : file_(std::move(file)),
      rank_(rank),
      ranks_(static_cast<uint32_t>(processes.size())),
      capacity_(ring_capacity(ranks_)),
      processes_(processes),
      watched_(ranks_, -1) {
  for (uint32_t peer = 0; peer < ranks_; ++peer) {
    if (processes[peer] == getpid()) continue;
    watched_[peer] = static_cast<int>(syscall(SYS_pidfd_open, processes[peer], 0));
  }
}

SharedMemory::~SharedMemory() {
  take_leave(kGone, "");
  for (const int file : watched_) {
    if (file >= 0) close(file);
  }
}

SharedMemory::Place& SharedMemory::place(uint32_t rank) const {
  return reinterpret_cast<Place*>(file_->data())[rank];
}

SharedMemory::Ring& SharedMemory::ring(uint32_t from, uint32_t to) const {
  char* const rings = file_->data() + ranks_ * sizeof(Place);
  return reinterpret_cast<Ring*>(rings)[size_t{from} * ranks_ + to];
}

char* SharedMemory::bytes_of(const Ring& ring) const {
  const auto* const rings = reinterpret_cast<const Ring*>(file_->data() + ranks_ * sizeof(Place));
  const size_t number = static_cast<size_t>(&ring - rings);
  return file_->data() + ranks_ * sizeof(Place) + size_t{ranks_} * ranks_ * sizeof(Ring) +
         number * capacity_;
}

// Writes what there is room for, a piece at most; false if that is nothing.
bool SharedMemory::push(Transfer& transfer) const {
  Ring& to = ring(rank_, transfer.message.peer);
  const uint64_t written = to.written.load(std::memory_order_relaxed);
  const size_t room = capacity_ - (written - to.read.load(std::memory_order_acquire));
  const size_t most = std::min(room, kPiece);
  size_t count = 0;
  while (count < most && !transfer.is_done()) {
    const size_t at = (written + count) % capacity_;
    const auto bytes = transfer.next(std::min(most - count, capacity_ - at));
    std::memcpy(bytes_of(to) + at, bytes.data(), bytes.size());
    transfer.passed += bytes.size();
    count += bytes.size();
  }
  if (count == 0) return false;
  to.written.store(written + count, std::memory_order_release);
  ring_bell(transfer.message.peer);
  return true;
}

// Reads what is there, a piece at most; false if that is nothing.
bool SharedMemory::pull(Transfer& transfer) const {
  Ring& from = ring(transfer.message.peer, rank_);
  const uint64_t read = from.read.load(std::memory_order_relaxed);
  const size_t most = std::min<size_t>(from.written.load(std::memory_order_acquire) - read, kPiece);
  size_t count = 0;
  while (count < most && !transfer.is_done()) {
    const size_t at = (read + count) % capacity_;
    const auto bytes = transfer.next(std::min(most - count, capacity_ - at));
    std::memcpy(bytes.data(), bytes_of(from) + at, bytes.size());
    transfer.passed += bytes.size();
    count += bytes.size();
    if (transfer.passed != sizeof(Transfer::Envelope)) continue;
    const Message& expected = transfer.message;
    const auto& [theirs, size] = transfer.envelope;
    if (theirs == expected.what && size == expected.bytes) continue;
    throw Failure(HCCL_E_PARA,
                  c10::str("rank ", rank_, " is in ", text_of(expected.what, expected.bytes),
                           ", rank ", expected.peer, " in ", text_of(theirs, size),
                           "; all ranks must call the same operations in the same order"));
  }
  if (count == 0) return false;
  from.read.store(read + count, std::memory_order_release);
  ring_bell(transfer.message.peer);
  return true;
}

void SharedMemory::ring_bell(uint32_t rank) const noexcept {
  Place& there = place(rank);
  there.bell.fetch_add(1);
  if (there.listener.load() == 0) return;
  syscall(SYS_futex, &there.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Sleeps until this rank's bell has been rung since it was seen, or the patience is at an end.
void SharedMemory::wait(uint32_t seen) const noexcept {
  Place& here = place(rank_);
  here.listener.store(1);
  if (here.bell.load() == seen) {
    syscall(SYS_futex, &here.bell, FUTEX_WAIT, seen, &kPatience, nullptr, 0);
  }
  here.listener.store(0);
}

// Why nothing more comes from the peer, if so.
std::optional<Failure> SharedMemory::absence(uint32_t peer) const {
  const Place& there = place(peer);
  const std::string rank = "rank " + std::to_string(peer);
  switch (there.state.load(std::memory_order_acquire)) {
    case kFailed: return Failure(static_cast<HcclResult>(there.code.load()), there.text);
    case kGone: return Failure(HCCL_E_REMOTE, c10::str(rank, " has destroyed its communicator"));
    default: break;
  }
  const int process = processes_[peer];
  if (process == getpid()) return std::nullopt;
  pollfd end{watched_[peer], POLLIN, 0};
  const bool has_ended =
      watched_[peer] < 0 ? kill(process, 0) != 0 && errno == ESRCH : poll(&end, 1, 0) == 1;
  if (!has_ended) return std::nullopt;
  return Failure(HCCL_E_REMOTE, c10::str("the process of ", rank, " (", process, ") has ended"));
}

// The peers of the transfers that are not done.
std::vector<uint32_t> SharedMemory::missing_peers(const std::vector<Transfer>& sends,
                                                  const std::vector<Transfer>& receipts) {
  std::vector<uint32_t> missing;
  for (const auto* const transfers : {&sends, &receipts}) {
    for (const Transfer& transfer : *transfers) {
      if (!transfer.is_done()) missing.push_back(transfer.message.peer);
    }
  }
  return missing;
}

void SharedMemory::exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                            const Deadline& deadline) {
  std::vector<Transfer> sends(outgoing.begin(), outgoing.end());
  std::vector<Transfer> receipts(incoming.begin(), incoming.end());

  // Lets each peer's first message that is not done go on. The others wait for it.
  std::vector<char> waits(ranks_);
  const auto advance = [&](std::vector<Transfer>& of, auto&& step) {
    std::ranges::fill(waits, 0);
    bool has_advanced = false;
    for (Transfer& transfer : of) {
      const uint32_t peer = transfer.message.peer;
      if (transfer.is_done() || waits[peer]) continue;
      if (step(transfer)) has_advanced = true;
      if (!transfer.is_done()) waits[peer] = 1;
    }
    return has_advanced;
  };
  bool is_absent = false;
  for (;;) {
    const uint32_t seen = place(rank_).bell.load();
    const bool sent = advance(sends, [&](Transfer& transfer) { return push(transfer); });
    const bool received = advance(receipts, [&](Transfer& transfer) { return pull(transfer); });
    const std::vector<uint32_t> missing = missing_peers(sends, receipts);
    if (missing.empty()) return;
    if (sent || received) continue;
    std::optional<Failure> absent;
    for (const uint32_t peer : missing) {
      if (!absent) absent = absence(peer);
    }
    if (absent && is_absent) throw *absent;
    is_absent = absent.has_value();
    if (is_absent) continue;  // its last bytes may have come before it went
    if (deadline.is_past()) {
      throw Failure(HCCL_E_TIMEOUT, c10::str("waited in vain for ", text_of_ranks(missing)));
    }
    wait(seen);
  }
}

void SharedMemory::fail(const Failure& failure) noexcept {
  place(rank_).code.store(failure.code());
  take_leave(kFailed, failure.what());
}

// The first state other than present stays.
void SharedMemory::take_leave(uint32_t state, const char* text) noexcept {
  Place& here = place(rank_);
  if (here.state.load() != kPresent) return;
  write_text(here.text, sizeof(here.text), text);
  here.state.store(state, std::memory_order_release);
  for (uint32_t peer = 0; peer < ranks_; ++peer) ring_bell(peer);
}

}  // namespace aclnn_host::hccl
