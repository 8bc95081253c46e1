#include "host_cann/descriptors/executor_table.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <new>

#include "host_cann/descriptors/executor.h"

namespace aclnn_host {
namespace {

// A handle: four bits with which no user-space address begins, the slot's use count, the slot's
// index, and four flag bits.
constexpr uint64_t kTag = uint64_t{0xA} << 60;
constexpr uint64_t kNextUse = uint64_t{1} << 28;
constexpr uint64_t kUses = (kNextUse << 32) - kNextUse;
constexpr uint64_t kPlaces = uint64_t{1} << 24;
constexpr uint64_t kAlive = 1;
constexpr uint64_t kRepeatable = 2;
constexpr uint64_t kFlags = 15;

struct Entry {
  // The slot's last handle, and flags.
  std::atomic<uint64_t> state = 0;
  std::atomic<aclOpExecutor*> executor = nullptr;
  // The next free slot, counted from 1; 0 for none.
  std::atomic<uint32_t> next_free = 0;
};

// Slots are allocated in chunks, which are never freed.
constexpr uint64_t kChunk = 1024;
using Chunk = std::array<Entry, kChunk>;
constinit std::atomic<Chunk*> chunks[kPlaces / kChunk] = {};
constinit std::atomic<uint64_t> made = 0;  // slots in use, or free

// The first free slot, counted from 1; the bits above it count changes (against ABA).
constinit std::atomic<uint64_t> free_places = 0;

Entry& place_at(uint64_t index) {
  return (*chunks[index / kChunk].load(std::memory_order_acquire))[index % kChunk];
}

// Returns a slot that was never used.
uint64_t new_place() {
  uint64_t index = made.load(std::memory_order_relaxed);
  do {
    if (index == kPlaces) throw std::bad_alloc();
    std::atomic<Chunk*>& chunk = chunks[index / kChunk];
    if (chunk.load(std::memory_order_acquire) == nullptr) {
      auto fresh = std::make_unique<Chunk>();
      Chunk* none = nullptr;
      if (chunk.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) {
        fresh.release();
      }
    }
  } while (!made.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
  return index;
}

uint64_t take_place() {
  uint64_t first = free_places.load(std::memory_order_acquire);
  while (const auto number = static_cast<uint32_t>(first)) {
    const uint32_t next = place_at(number - 1).next_free.load(std::memory_order_relaxed);
    const uint64_t changed = ((first >> 32) + 1) << 32 | next;
    if (free_places.compare_exchange_weak(first, changed, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      return number - 1;
    }
  }
  return new_place();
}

void free_place(uint64_t index) {
  Entry& place = place_at(index);
  uint64_t first = free_places.load(std::memory_order_relaxed);
  uint64_t changed;
  do {
    place.next_free.store(static_cast<uint32_t>(first), std::memory_order_relaxed);
    changed = ((first >> 32) + 1) << 32 | (index + 1);
  } while (!free_places.compare_exchange_weak(first, changed, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
}

uint64_t number_of(const aclOpExecutor* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

uint64_t index_of(uint64_t handle) {
  return handle >> 4 & (kPlaces - 1);
}

// The slot that a handle names; null if the handle is invalid.
Entry* place_of(uint64_t handle) {
  if (handle >> 60 != kTag >> 60 || (handle & kFlags) != 0) return nullptr;
  const uint64_t index = index_of(handle);
  return index < made.load(std::memory_order_acquire) ? &place_at(index) : nullptr;
}

// Ends a handle whose slot has one of the states.
std::unique_ptr<aclOpExecutor> end(uint64_t handle, std::initializer_list<uint64_t> flags) {
  Entry* const place = place_of(handle);
  if (place == nullptr) return nullptr;
  for (const uint64_t flag : flags) {
    uint64_t state = handle | flag;
    if (place->state.compare_exchange_strong(state, handle, std::memory_order_acq_rel)) {
      std::unique_ptr<aclOpExecutor> executor(place->executor.load(std::memory_order_relaxed));
      free_place(index_of(handle));
      return executor;
    }
  }
  return nullptr;
}

}  // namespace

aclOpExecutor* hand_out(std::unique_ptr<aclOpExecutor> executor) {
  const uint64_t index = take_place();
  Entry& place = place_at(index);
  const uint64_t uses = (place.state.load(std::memory_order_relaxed) + kNextUse) & kUses;
  const uint64_t handle = kTag | uses | index << 4;
  place.executor.store(executor.release(), std::memory_order_relaxed);
  place.state.store(handle | kAlive, std::memory_order_release);
  return reinterpret_cast<aclOpExecutor*>(handle);
}

aclOpExecutor* find_executor(const aclOpExecutor* handle) noexcept {
  const uint64_t number = number_of(handle);
  Entry* const place = place_of(number);
  if (place == nullptr) return nullptr;
  const uint64_t state = place->state.load(std::memory_order_acquire);
  const bool alive = (state & ~kFlags) == number && (state & kAlive) != 0;
  return alive ? place->executor.load(std::memory_order_relaxed) : nullptr;
}

std::unique_ptr<aclOpExecutor> use_up(const aclOpExecutor* handle) noexcept {
  return end(number_of(handle), {kAlive});
}

std::unique_ptr<aclOpExecutor> take_back(const aclOpExecutor* handle) noexcept {
  return end(number_of(handle), {kAlive, kAlive | kRepeatable});
}

bool make_repeatable(const aclOpExecutor* handle) noexcept {
  const uint64_t number = number_of(handle);
  Entry* const place = place_of(number);
  if (place == nullptr) return false;
  uint64_t state = number | kAlive;
  return place->state.compare_exchange_strong(state, state | kRepeatable,
                                              std::memory_order_acq_rel) ||
         state == (number | kAlive | kRepeatable);
}

bool was_executor(const aclOpExecutor* handle) noexcept {
  const uint64_t number = number_of(handle);
  const Entry* const place = place_of(number);
  return place != nullptr && (number & kUses) != 0 &&
         (number & kUses) <= (place->state.load(std::memory_order_relaxed) & kUses);
}

}  // namespace aclnn_host
