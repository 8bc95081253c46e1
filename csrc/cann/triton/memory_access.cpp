#include <algorithm>
#include <cstring>

#include "cann/triton/elements.h"

// Loads, stores and atomic operations. Every address is checked against the device memory.
namespace aclnn_host::triton {
namespace {

std::string hexadecimal(uintptr_t address) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), kDigits[address % 16]);
  while ((address /= 16) != 0);
  return "0x" + text;
}

// Stops a kernel that accesses memory that it may not.
const int64_t* refuse(Machine& machine, const int64_t* words, const char* what, uintptr_t address,
                      size_t bytes) {
  return machine.stop(words, std::string(what) + " " + std::to_string(bytes) + " bytes at " +
                                 hexadecimal(address) + ", " + machine.memory.problem());
}

// The i-th element of an operand.
template <class T>
class Elements {
 public:
  Elements(Machine& machine, int64_t operand)
      : data_(machine.at<T>(operand >> 1)), step_((operand & 1) != 0 ? 0 : 1) {}
  T operator[](int64_t i) const { return data_[i * step_]; }

  // Writes elements to memory, which may not be aligned.
  void copy(void* to, int64_t begin, int64_t count) const {
    if (step_ != 0) {
      std::memcpy(to, data_ + begin, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    auto* element = static_cast<char*>(to);
    for (int64_t i = 0; i < count; ++i, element += sizeof(T)) {
      std::memcpy(element, data_, sizeof(T));
    }
  }

  // How many of at most `most` addresses behind the i-th one are `distance` more than the one
  // before.
  int64_t following(int64_t i, int64_t most, T distance) const {
    return step_ == 0 ? 0 : consecutive(data_ + i, most, distance);
  }

 private:
  const T* data_;
  int64_t step_;
};

// A mask that may be absent.
class Mask {
 public:
  Mask(Machine& machine, int64_t operand)
      : data_(operand < 0 ? nullptr : machine.at<uint8_t>(operand >> 1)),
        step_((operand & 1) != 0 ? 0 : 1) {}
  bool operator[](int64_t i) const { return data_ == nullptr || data_[i * step_] != 0; }

  // The position behind the elements from `begin` on that it lets through.
  int64_t end_of_live(int64_t begin, int64_t count) const {
    if (data_ == nullptr || step_ == 0) return (*this)[0] ? count : begin;
    const void* const end = std::memchr(data_ + begin, 0, static_cast<size_t>(count - begin));
    return end == nullptr ? count : static_cast<const uint8_t*>(end) - data_;
  }

 private:
  const uint8_t* data_;
  int64_t step_;
};

template <class F>
const int64_t* with_bytes(int64_t bytes, F f) {
  switch (bytes) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    default: return f(uint64_t());
  }
}

// Calls visit(address, position, count) for the elements that the mask lets through, of which those
// of a call follow one another in memory, and pad(position) for each of the others. Ends with false
// as soon as a visit fails.
template <class Visit, class Pad>
bool for_each_run(const Elements<uintptr_t>& addresses, const Mask& mask, int64_t count,
                  uintptr_t bytes, Visit visit, Pad pad) {
  for (int64_t i = 0; i < count;) {
    const int64_t live = mask.end_of_live(i, count);
    while (i < live) {
      const int64_t size = 1 + addresses.following(i, live - i - 1, bytes);
      if (!visit(addresses[i], i, size)) return false;
      i += size;
    }
    while (i < count && !mask[i]) pad(i++);
  }
  return true;
}

// Reads from addresses: bytes of an element, count, destination, and the operands addresses, mask
// (-1 for none) and the values where the mask is false (-1 for zeros).
const int64_t* load(Machine& machine, const int64_t* words) {
  return with_bytes(words[2], [&](auto value) -> const int64_t* {
    using T = decltype(value);
    const int64_t count = words[3];
    T* const to = machine.at<T>(words[4]);
    const Elements<uintptr_t> addresses(machine, words[5]);
    const Mask mask(machine, words[6]);
    const bool has_other = words[7] >= 0;
    const Elements<T> other(machine, has_other ? words[7] : 0);
    const auto visit = [&](uintptr_t address, int64_t i, int64_t size) {
      const size_t bytes = static_cast<size_t>(size) * sizeof(T);
      if (!machine.memory.reaches(address, bytes)) {
        refuse(machine, words, "reads", address, bytes);
        return false;
      }
      std::memcpy(&to[i], reinterpret_cast<const void*>(address), bytes);
      return true;
    };
    const auto pad = [&](int64_t i) { to[i] = has_other ? other[i] : T(0); };
    if (!for_each_run(addresses, mask, count, sizeof(T), visit, pad)) return nullptr;
    return words + 8;
  });
}

// Writes to addresses: bytes of an element, count, and the operands addresses, values and mask (-1
// for none).
const int64_t* store(Machine& machine, const int64_t* words) {
  return with_bytes(words[2], [&](auto value) -> const int64_t* {
    using T = decltype(value);
    const int64_t count = words[3];
    const Elements<uintptr_t> addresses(machine, words[4]);
    const Elements<T> values(machine, words[5]);
    const Mask mask(machine, words[6]);
    const auto visit = [&](uintptr_t address, int64_t i, int64_t size) {
      const size_t bytes = static_cast<size_t>(size) * sizeof(T);
      if (!machine.memory.reaches(address, bytes)) {
        refuse(machine, words, "writes", address, bytes);
        return false;
      }
      values.copy(reinterpret_cast<void*>(address), i, size);
      return true;
    };
    if (!for_each_run(addresses, mask, count, sizeof(T), visit, [](int64_t) {})) return nullptr;
    return words + 7;
  });
}

// One dimension of a block in memory: its size, the registers of stride and offset in elements and
// of the tensor's size (all kI64), and whether positions outside the tensor are left out.
struct Extent {
  int64_t size;
  int64_t stride;
  int64_t offset;
  int64_t bound;
  int64_t is_checked;
};

// Calls visit(address, position in the block, count) for the block's elements inside the tensor,
// of which those of a call follow one another in memory, and pad(position, count) for the others.
// Ends with false as soon as a visit fails.
template <class Visit, class Pad>
bool walk(Machine& machine, const Extent* extents, int64_t rank, uintptr_t address, int64_t bytes,
          int64_t position, Visit& visit, Pad& pad) {
  int64_t behind = 1;
  for (int64_t i = 1; i < rank; ++i) behind *= extents[i].size;
  const int64_t stride = machine.scalar<int64_t>(extents->stride);
  const int64_t offset = machine.scalar<int64_t>(extents->offset);
  const int64_t bound = machine.scalar<int64_t>(extents->bound);
  const int64_t size = extents->size;
  int64_t first = 0;
  int64_t last = size;
  if (extents->is_checked != 0) {
    first = std::clamp<int64_t>(-offset, 0, size);
    last = std::clamp<int64_t>(bound - offset, first, size);
    pad(position, first * behind);
    pad(position + last * behind, (size - last) * behind);
  }
  const auto at = [&](int64_t i) {
    return address + static_cast<uintptr_t>((offset + i) * stride * bytes);
  };
  if (rank == 1 && stride == 1) {
    return first == last || visit(at(first), position + first, last - first);
  }
  for (int64_t i = first; i < last; ++i) {
    const int64_t next = position + i * behind;
    if (!(rank == 1 ? visit(at(i), next, 1)
                    : walk(machine, extents + 1, rank - 1, at(i), bytes, next, visit, pad))) {
      return false;
    }
  }
  return true;
}

// Reads a block of a tensor: bytes of an element, destination, register of the address, bits of the
// elements outside, rank, extents.
const int64_t* load_block(Machine& machine, const int64_t* words) {
  return with_bytes(words[2], [&](auto value) -> const int64_t* {
    using T = decltype(value);
    T* const to = machine.at<T>(words[3]);
    const T outside = static_cast<T>(words[5]);
    const int64_t rank = words[6];
    uintptr_t wrong = 0;
    size_t size = 0;
    auto visit = [&](uintptr_t address, int64_t position, int64_t count) {
      wrong = address;
      size = static_cast<size_t>(count) * sizeof(T);
      if (!machine.memory.reaches(address, size)) return false;
      std::memcpy(&to[position], reinterpret_cast<const void*>(address), size);
      return true;
    };
    auto pad = [&](int64_t position, int64_t count) { std::fill_n(to + position, count, outside); };
    if (!walk(machine, reinterpret_cast<const Extent*>(words + 7), rank,
              machine.scalar<uintptr_t>(words[4]), sizeof(T), 0, visit, pad)) {
      return refuse(machine, words, "reads", wrong, size);
    }
    return words + 7 + 5 * rank;
  });
}

// Writes a block of a tensor: bytes of an element, the operand with the values, register of the
// address, rank, extents.
const int64_t* store_block(Machine& machine, const int64_t* words) {
  return with_bytes(words[2], [&](auto value) -> const int64_t* {
    using T = decltype(value);
    const Elements<T> values(machine, words[3]);
    const int64_t rank = words[5];
    uintptr_t wrong = 0;
    size_t size = 0;
    auto visit = [&](uintptr_t address, int64_t position, int64_t count) {
      wrong = address;
      size = static_cast<size_t>(count) * sizeof(T);
      if (!machine.memory.reaches(address, size)) return false;
      values.copy(reinterpret_cast<void*>(address), position, count);
      return true;
    };
    auto pad = [](int64_t, int64_t) {};
    if (!walk(machine, reinterpret_cast<const Extent*>(words + 6), rank,
              machine.scalar<uintptr_t>(words[4]), sizeof(T), 0, visit, pad)) {
      return refuse(machine, words, "writes", wrong, size);
    }
    return words + 6 + 5 * rank;
  });
}

// What an atomic operation does to the element in memory, as Triton numbers it.
enum Change : int64_t {
  kAnd = 1,
  kOr,
  kXor,
  kAddInteger,
  kAddFloat,
  kMax,
  kMin,
  kMaxU,
  kMinU,
  kExchange
};

uint64_t changed_integer(int64_t change, int64_t kind, uint64_t old, uint64_t value) {
  const int shift = static_cast<int>(64 - 8 * bytes_of(kind));
  const auto signed_of = [&](uint64_t x) { return static_cast<int64_t>(x << shift) >> shift; };
  switch (change) {
    case kAnd: return old & value;
    case kOr: return old | value;
    case kXor: return old ^ value;
    case kAddInteger: return old + value;
    case kMax: return signed_of(old) > signed_of(value) ? old : value;
    case kMin: return signed_of(old) < signed_of(value) ? old : value;
    case kMaxU: return std::max(old, value);
    case kMinU: return std::min(old, value);
    default: return value;
  }
}

template <class V>
V changed_float(int64_t change, V old, V value) {
  switch (change) {
    case kAddInteger:
    case kAddFloat: return old + value;
    case kMax: return old > value || value != value ? old : value;
    case kMin: return old < value || value != value ? old : value;
    default: return value;
  }
}

uint64_t changed(int64_t change, int64_t kind, uint64_t old, uint64_t value) {
  const auto half = [](uint64_t bits) { return static_cast<uint16_t>(bits); };
  switch (kind) {
    case kF16:
      return f16_of_float(
          changed_float(change, float_of_f16(half(old)), float_of_f16(half(value))));
    case kBF16:
      return bf16_of_float(
          changed_float(change, float_of_bf16(half(old)), float_of_bf16(half(value))));
    case kF32:
      return std::bit_cast<uint32_t>(
          changed_float(change, std::bit_cast<float>(static_cast<uint32_t>(old)),
                        std::bit_cast<float>(static_cast<uint32_t>(value))));
    case kF64:
      return std::bit_cast<uint64_t>(
          changed_float(change, std::bit_cast<double>(old), std::bit_cast<double>(value)));
    default: return changed_integer(change, kind, old, value);
  }
}

// Changes elements in memory and reads what they were: kind, count, destination, change, and the
// operands addresses, values and mask (-1 for none). The programs of a kernel with such
// operations run one after another, so that every change is atomic.
const int64_t* atomic(Machine& machine, const int64_t* words) {
  return with_bytes(bytes_of(words[2]), [&](auto value) -> const int64_t* {
    using T = decltype(value);
    const int64_t count = words[3];
    T* const to = machine.at<T>(words[4]);
    const Elements<uintptr_t> addresses(machine, words[6]);
    const Elements<T> values(machine, words[7]);
    const Mask mask(machine, words[8]);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = 0;
      if (!mask[i]) continue;
      const uintptr_t address = addresses[i];
      if (!machine.memory.reaches(address, sizeof(T))) {
        return refuse(machine, words, "changes", address, sizeof(T));
      }
      std::memcpy(&to[i], reinterpret_cast<const void*>(address), sizeof(T));
      const T next = static_cast<T>(changed(words[5], words[2], to[i], values[i]));
      std::memcpy(reinterpret_cast<void*>(address), &next, sizeof(T));
    }
    return words + 9;
  });
}

// Writes values where the memory equals others, and reads what it was: bytes of an element, count,
// destination, and the operands addresses, expected and new values.
const int64_t* compare_and_swap(Machine& machine, const int64_t* words) {
  return with_bytes(words[2], [&](auto value) -> const int64_t* {
    using T = decltype(value);
    const int64_t count = words[3];
    T* const to = machine.at<T>(words[4]);
    const Elements<uintptr_t> addresses(machine, words[5]);
    const Elements<T> expected(machine, words[6]);
    const Elements<T> values(machine, words[7]);
    for (int64_t i = 0; i < count; ++i) {
      const uintptr_t address = addresses[i];
      if (!machine.memory.reaches(address, sizeof(T))) {
        return refuse(machine, words, "changes", address, sizeof(T));
      }
      std::memcpy(&to[i], reinterpret_cast<const void*>(address), sizeof(T));
      const T next = values[i];
      if (to[i] == expected[i]) std::memcpy(reinterpret_cast<void*>(address), &next, sizeof(T));
    }
    return words + 8;
  });
}

constexpr Operation kAccesses[] = {
    {"load", load},
    {"store", store},
    {"load_block", load_block},
    {"store_block", store_block},
    {"atomic", atomic},
    {"compare_and_swap", compare_and_swap},
};

}  // namespace

std::span<const Operation> memory_operations() {
  return kAccesses;
}

}  // namespace aclnn_host::triton
