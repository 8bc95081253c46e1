#include "torch_ops/memory_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <list>
#include <map>
#include <mutex>
#include <new>

#include <c10/core/CPUAllocator.h>

namespace aclnn_torch {
namespace {

// The C library caches smaller blocks itself and is faster.
constexpr size_t kSmallest = size_t{64} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
// Kept blocks of at least this size are offered to the kernel, which reclaims them when memory is
// short. For smaller blocks the system call is too slow compared with the work on them.
constexpr size_t kOffered = size_t{16} << 20;

// A block has one of four sizes between a power of two and the next, so that at most a fifth of it
// is unused. kClasses counts the resulting size classes.
constexpr size_t kSteps = 4;
constexpr size_t kClasses = kSteps * (63 - std::countr_zero(kSmallest));

size_t class_of(size_t bytes) {
  const size_t octave = std::bit_width(bytes - 1) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  const size_t step = ((bytes - 1) >> (octave - 2)) - kSteps;
  return (octave - std::countr_zero(kSmallest)) * kSteps + step + 1;
}

size_t size_of(size_t size_class) {
  const size_t octave = size_class / kSteps + std::countr_zero(kSmallest);
  return (kSteps + size_class % kSteps) << (octave - 2);
}

// Maps fresh memory; null on failure. At or above the size of a huge page, it is huge-page aligned.
void* map(size_t bytes) noexcept {
  const size_t spare = bytes < kHugePage ? 0 : kHugePage;
  void* mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      /*fd=*/-1, /*offset=*/0);
  if (mapped == MAP_FAILED) return nullptr;
  if (spare == 0) return mapped;
  char* const begin = static_cast<char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, spare - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

struct Block {
  explicit Block(size_t size_class)
      : size_class(size_class), size(size_of(size_class)), data(map(size)) {
    if (data == nullptr) throw std::bad_alloc();
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { munmap(data, size); }

  const size_t size_class;
  const size_t size;
  void* const data;
  uint64_t released = 0;             // when it was released, as a count of releases
  std::list<Block>::iterator place;  // its own position
};

class Pool final : public c10::Allocator {
 public:
  static Pool& instance() {
    static Pool* const pool = [] {  // never destroyed: tensors may outlive every static object
      auto* const pool = new Pool;
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
      return pool;
    }();
    return *pool;
  }

  c10::DataPtr allocate(size_t bytes) override {
    Block* const block = bytes < kSmallest ? nullptr : acquire(bytes);
    if (block == nullptr) return c10::GetCPUAllocator()->allocate(bytes);
    c10::profiledCPUMemoryReporter().New(block->data, bytes);
    // A plain context, as the C library's allocator has it: lazy clones require the context to be
    // the memory itself.
    return {block->data, block->data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peaks() {
    const std::lock_guard lock(mutex_);
    for (MemoryCount* count :
         {&stats_.allocations, &stats_.allocated_bytes, &stats_.reserved_bytes}) {
      count->peak = count->current;
    }
  }

  void set_limit(size_t bytes) {
    Blocks surplus;
    const std::lock_guard lock(mutex_);
    stats_.limit_bytes = bytes;
    trim(bytes, surplus);
  }

  void empty() {
    Blocks surplus;
    const std::lock_guard lock(mutex_);
    trim(0, surplus);
  }

 private:
  using Blocks = std::list<Block>;  // splicing nodes between lists allocates nothing

  // Returns a block of at least this many bytes, or null if none is available.
  Block* acquire(size_t bytes) {
    const size_t size_class = class_of(bytes);
    if (size_class >= kClasses) return nullptr;
    Blocks surplus;  // unmapped after the lock is released
    std::unique_lock lock(mutex_);
    if (stats_.limit_bytes == 0) return nullptr;
    Blocks& kept = kept_[size_class];
    if (!kept.empty()) {
      ++stats_.num_reuses;
      return use(kept);
    }
    const size_t size = size_of(size_class);
    trim(stats_.limit_bytes - std::min(stats_.limit_bytes, size), surplus);
    lock.unlock();
    surplus.clear();
    Blocks fresh = make(size_class);
    if (fresh.empty()) return nullptr;
    lock.lock();
    blocks_.emplace(fresh.front().data, &fresh.front());
    stats_.reserved_bytes.add(static_cast<int64_t>(size));
    return use(fresh);
  }

  // A list of one new block; empty if the system has no memory, even after freeing the kept blocks.
  Blocks make(size_t size_class) {
    Blocks fresh;
    for (const bool first : {true, false}) {
      try {
        fresh.emplace_back(size_class);
        fresh.front().place = fresh.begin();
        break;
      } catch (const std::bad_alloc&) {
        if (!first) break;
        empty();
        const std::lock_guard lock(mutex_);
        ++stats_.num_alloc_retries;
      }
    }
    return fresh;
  }

  // Marks the first block of a list as used.
  Block* use(Blocks& from) {
    Block& block = from.front();
    used_.splice(used_.begin(), from, block.place);
    stats_.allocations.add(1);
    stats_.allocated_bytes.add(static_cast<int64_t>(block.size));
    return &block;
  }

  static void release(void* data) { instance().keep(instance().find(data)); }

  Block& find(void* data) {
    const std::lock_guard lock(mutex_);
    return *blocks_.find(data)->second;
  }

  void keep(Block& block) {
    c10::profiledCPUMemoryReporter().Delete(block.data);
    // Whole huge pages only: for a partial one the kernel would walk its small pages one by one.
    if (block.size >= kOffered) madvise(block.data, block.size / kHugePage * kHugePage, MADV_FREE);
    Blocks surplus;
    const std::lock_guard lock(mutex_);
    block.released = ++releases_;
    Blocks& kept = kept_[block.size_class];
    kept.splice(kept.begin(), used_, block.place);
    stats_.allocations.subtract(1);
    stats_.allocated_bytes.subtract(static_cast<int64_t>(block.size));
    trim(stats_.limit_bytes, surplus);
  }

  // Moves kept blocks to `surplus`, least recently used first, until at most this many bytes are
  // reserved.
  void trim(size_t bytes, Blocks& surplus) {
    while (static_cast<size_t>(stats_.reserved_bytes.current) > bytes) {
      Blocks* oldest = nullptr;
      for (Blocks& kept : kept_) {
        if (kept.empty()) continue;
        if (oldest == nullptr || kept.back().released < oldest->back().released) oldest = &kept;
      }
      if (oldest == nullptr) return;
      stats_.reserved_bytes.subtract(static_cast<int64_t>(oldest->back().size));
      blocks_.erase(oldest->back().data);
      surplus.splice(surplus.end(), *oldest, oldest->back().place);
    }
  }

  std::mutex mutex_;
  std::map<void*, Block*> blocks_;  // all blocks, by their memory
  Blocks used_;
  std::array<Blocks, kClasses> kept_;  // by size class, the most recently released first
  uint64_t releases_ = 0;
  MemoryStats stats_;
};

}  // namespace

void MemoryCount::add(int64_t amount) {
  current += amount;
  allocated += amount;
  peak = std::max(peak, current);
}

void MemoryCount::subtract(int64_t amount) {
  current -= amount;
  freed += amount;
}

c10::Allocator& memory_pool() {
  return Pool::instance();
}

MemoryStats memory_stats() {
  return Pool::instance().stats();
}

void reset_peak_memory_stats() {
  Pool::instance().reset_peaks();
}

void empty_cache() {
  Pool::instance().empty();
}

void set_memory_limit(size_t bytes) {
  Pool::instance().set_limit(bytes);
}

}  // namespace aclnn_torch
