#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cann/triton/elements.h"

// Operations that rearrange or combine the elements of a register, and control flow. Their words
// begin with number and place.
namespace aclnn_host::triton {
namespace {

// Calls `f` with a value of an unsigned type of the size.
template <class F>
void with_size(int64_t bytes, F f) {
  switch (bytes) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    default: return f(uint64_t());
  }
}

// One dimension of a strided copy; strides count elements.
struct Dimension {
  int64_t size;
  int64_t to;
  int64_t from;
};

template <class T>
void copy_strided(T* to, const T* from, const Dimension* dimensions, int64_t rank) {
  if (rank == 0) {
    *to = *from;
    return;
  }
  const auto [size, to_stride, from_stride] = *dimensions;
  if (rank > 1) {
    for (int64_t i = 0; i < size; ++i) {
      copy_strided(to + i * to_stride, from + i * from_stride, dimensions + 1, rank - 1);
    }
  } else if (to_stride == 1 && from_stride == 1) {
    std::copy_n(from, size, to);
  } else {
    for (int64_t i = 0; i < size; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// A strided copy between registers: bytes of an element, destination, source, two registers with a
// further distance in elements of kI64 (-1 for none) from each, rank, dimensions.
const int64_t* move(Machine& machine, const int64_t* words) {
  const auto distance = [&](int64_t offset) {
    return offset < 0 ? 0 : machine.scalar<int64_t>(offset);
  };
  const int64_t to = distance(words[5]);
  const int64_t from = distance(words[6]);
  const int64_t rank = words[7];
  const auto* const dimensions = reinterpret_cast<const Dimension*>(words + 8);
  with_size(words[2], [&](auto value) {
    using T = decltype(value);
    copy_strided(machine.at<T>(words[3]) + to, machine.at<T>(words[4]) + from, dimensions, rank);
  });
  return words + 8 + 3 * rank;
}

// The consecutive numbers from a first one: destination, first, count.
const int64_t* range(Machine& machine, const int64_t* words) {
  auto* const to = machine.at<int32_t>(words[2]);
  std::iota(to, to + words[4], static_cast<int32_t>(words[3]));
  return words + 5;
}

// The position of the program in the grid, and the grid's size: destination, axis.
const int64_t* program_id(Machine& machine, const int64_t* words) {
  *machine.at<int32_t>(words[2]) = static_cast<int32_t>(machine.program_id(words[3]));
  return words + 4;
}

const int64_t* num_programs(Machine& machine, const int64_t* words) {
  *machine.at<int32_t>(words[2]) = static_cast<int32_t>(machine.programs(words[3]));
  return words + 4;
}

// Adds rows of a product of matrices to a third one. Each element's terms are added one after
// another, so that its bits do not depend on how many are computed at once.
template <int64_t kRows, class T>
inline __attribute__((always_inline)) void add_rows(T* to, const T* a, const T* b, int64_t columns,
                                                    int64_t depth) {
  using Vector __attribute__((vector_size(64))) = T;
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(T);
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    Vector sums[kRows];
    for (int64_t row = 0; row < kRows; ++row) {
      std::memcpy(&sums[row], to + row * columns + i, sizeof(Vector));
    }
    for (int64_t k = 0; k < depth; ++k) {
      Vector line;
      std::memcpy(&line, b + k * columns + i, sizeof(Vector));
      for (int64_t row = 0; row < kRows; ++row) sums[row] += a[row * depth + k] * line;
    }
    for (int64_t row = 0; row < kRows; ++row) {
      std::memcpy(to + row * columns + i, &sums[row], sizeof(Vector));
    }
  }
  for (; i < columns; ++i) {
    for (int64_t row = 0; row < kRows; ++row) {
      T& sum = to[row * columns + i];
      for (int64_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[k * columns + i];
    }
  }
}

template <class T>
inline __attribute__((always_inline)) void add_product(T* to, const T* a, const T* b, int64_t rows,
                                                       int64_t columns, int64_t depth) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    add_rows<4>(to + row * columns, a + row * depth, b, columns, depth);
  }
  for (; row < rows; ++row) add_rows<1>(to + row * columns, a + row * depth, b, columns, depth);
}

ACLNN_WIDE void add_product_f32(float* to, const float* a, const float* b, int64_t rows,
                                int64_t columns, int64_t depth) {
  add_product(to, a, b, rows, columns, depth);
}

ACLNN_WIDE void add_product_f64(double* to, const double* a, const double* b, int64_t rows,
                                int64_t columns, int64_t depth) {
  add_product(to, a, b, rows, columns, depth);
}

ACLNN_WIDE void add_product_i32(uint32_t* to, const uint32_t* a, const uint32_t* b, int64_t rows,
                                int64_t columns, int64_t depth) {
  add_product(to, a, b, rows, columns, depth);
}

template <class T>
void multiply(Machine& machine, const int64_t* words,
              void (*add)(T*, const T*, const T*, int64_t, int64_t, int64_t)) {
  const int64_t rows = words[7];
  const int64_t columns = words[8];
  const int64_t depth = words[9];
  for (int64_t batch = 0; batch < words[6]; ++batch) {
    add(machine.at<T>(words[3]) + batch * rows * columns,
        machine.at<T>(words[4]) + batch * rows * depth,
        machine.at<T>(words[5]) + batch * depth * columns, rows, columns, depth);
  }
}

// Adds products of matrices to the destination: kind (kI32, kF32 or kF64), destination, left,
// right, batches, rows, columns, depth.
const int64_t* dot(Machine& machine, const int64_t* words) {
  switch (words[2]) {
    case kI32: multiply(machine, words, add_product_i32); break;
    case kF32: multiply(machine, words, add_product_f32); break;
    default: multiply(machine, words, add_product_f64);
  }
  return words + 10;
}

// Picks elements along an axis: bytes of an element, destination, source, indices (kI64), sizes
// before, along and behind the axis, and the number of indices along it.
const int64_t* gather(Machine& machine, const int64_t* words) {
  const int64_t before = words[6];
  const int64_t size = words[7];
  const int64_t behind = words[8];
  const int64_t picked = words[9];
  const auto* const indices = machine.at<int64_t>(words[5]);
  const auto is_outside = [&](int64_t index) { return index < 0 || index >= size; };
  const int64_t* const end = indices + before * picked * behind;
  const int64_t* const wrong = std::find_if(indices, end, is_outside);
  if (wrong != end) {
    return machine.stop(words, "gather with index " + std::to_string(*wrong) + ", expected 0 to " +
                                   std::to_string(size - 1));
  }
  with_size(words[2], [&](auto value) {
    using T = decltype(value);
    T* const to = machine.at<T>(words[3]);
    const T* const from = machine.at<T>(words[4]);
    for (int64_t i = 0; i < before; ++i) {
      for (int64_t j = 0; j < picked * behind; ++j) {
        const int64_t index = indices[i * picked * behind + j];
        to[i * picked * behind + j] = from[(i * size + index) * behind + j % behind];
      }
    }
  });
  return words + 10;
}

// Counts the elements (kI64) in bins of width one from 0 on; the others are not counted:
// destination (kI32), bins, source, count, mask (an operand, or -1).
const int64_t* histogram(Machine& machine, const int64_t* words) {
  auto* const to = machine.at<int32_t>(words[2]);
  const int64_t bins = words[3];
  const auto* const from = machine.at<int64_t>(words[4]);
  const int64_t count = words[5];
  std::fill_n(to, bins, 0);
  const uint8_t* const mask = words[6] < 0 ? nullptr : machine.at<uint8_t>(words[6] >> 1);
  const bool is_splat = words[6] >= 0 && (words[6] & 1) != 0;
  for (int64_t i = 0; i < count; ++i) {
    if (mask != nullptr && mask[is_splat ? 0 : i] == 0) continue;
    if (from[i] >= 0 && from[i] < bins) ++to[from[i]];
  }
  return words + 7;
}

template <class T>
void sort_rows(T* data, int64_t rows, int64_t size, bool descends) {
  const auto before = [&](T a, T b) {
    if (descends) std::swap(a, b);
    return a < b || (a == a && b != b);  // NaN is the largest
  };
  for (; rows > 0; --rows, data += size) std::stable_sort(data, data + size, before);
}

// Sorts rows in place: kind (a signed integer's, kF32 or kF64), register, rows, size, descending.
const int64_t* sort(Machine& machine, const int64_t* words) {
  const auto as = [&](auto value) {
    sort_rows(machine.at<decltype(value)>(words[3]), words[4], words[5], words[6] != 0);
  };
  switch (words[2]) {
    case kI1: as(uint8_t()); break;
    case kI8: as(int8_t()); break;
    case kI16: as(int16_t()); break;
    case kI32: as(int32_t()); break;
    case kI64: as(int64_t()); break;
    case kF32: as(float()); break;
    default: as(double());
  }
  return words + 7;
}

// Control flow: the position in the code, and the condition's register.
const int64_t* jump(Machine& machine, const int64_t* words) {
  return machine.begin() + words[2];
}

const int64_t* jump_unless(Machine& machine, const int64_t* words) {
  return machine.scalar<uint8_t>(words[3]) != 0 ? words + 4 : machine.begin() + words[2];
}

const int64_t* end(Machine& /*machine*/, const int64_t* /*words*/) {
  return nullptr;
}

// Ends the kernel with a message unless all elements hold: message, count, operand.
const int64_t* require(Machine& machine, const int64_t* words) {
  const auto* const data = machine.at<uint8_t>(words[4] >> 1);
  const int64_t count = (words[4] & 1) != 0 ? 1 : words[3];
  if (std::find(data, data + count, 0) == data + count) return words + 5;
  return machine.stop(words, machine.text(words[2]));
}

// The distance in elements at which a slice begins, checked against the sizes: destination (kI64),
// rank, and for each dimension offset (a register of kI64), size of the whole, of the slice, step,
// stride of the whole.
const int64_t* slice(Machine& machine, const int64_t* words) {
  const int64_t rank = words[3];
  int64_t distance = 0;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t* const dimension = words + 4 + 5 * i;
    const int64_t first = machine.scalar<int64_t>(dimension[0]);
    const int64_t last = first + (dimension[2] - 1) * dimension[3];
    if (first < 0 || first >= dimension[1] || last >= dimension[1]) {
      return machine.stop(words, "a slice takes elements " + std::to_string(first) + " to " +
                                     std::to_string(last) + " of dimension " + std::to_string(i) +
                                     ", which has " + std::to_string(dimension[1]));
    }
    distance += first * dimension[4];
  }
  *machine.at<int64_t>(words[2]) = distance;
  return words + 4 + 5 * rank;
}

constexpr Operation kBlocks[] = {
    {"move", move},
    {"range", range},
    {"program_id", program_id},
    {"num_programs", num_programs},
    {"dot", dot},
    {"gather", gather},
    {"histogram", histogram},
    {"sort", sort},
    {"jump", jump},
    {"jump_unless", jump_unless},
    {"end", end},
    {"require", require},
    {"slice", slice},
};

}  // namespace

std::span<const Operation> block_operations() {
  return kBlocks;
}

}  // namespace aclnn_host::triton
