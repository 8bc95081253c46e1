#include "host_cann/arguments/elementwise_plan.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <numeric>

#include <ATen/Parallel.h>

#include "host_cann/kernels/streaming.h"
#include "host_cann/kernels/tuning.h"

namespace aclnn_host {
namespace {

// Elements per tile into which strided operands are gathered: three tiles of the widest type fit
// into the L1 cache.
constexpr int64_t kTile = 512;
// Chunks of a contiguous range begin at multiples of this many elements, so that every thread's
// part begins on a cache line if the tensor does.
constexpr int64_t kBlock = 4096;
// From this many elements per thread on, results are looked up if the kernel gains by that. At most
// two threads compute the results of all numbers before, in 100 to 300 us. gelu of BFLOAT16,
// computed and looked up, in us, by AVX2 on one thread, on two, and by AVX512 on two: 590 and 817,
// 309 and 421, 125 and 242 for 2^19 elements; 1152 and 951, 600 and 533, 345 and 331 for 2^20; 2191
// and 1383, 1170 and 759, 694 and 542 for 2^21.
constexpr int64_t kLeastLookedUp = 1 << 20;
// An upper limit: 2^63 elements cannot have more dimensions of two or more elements.
constexpr int kMaxRank = 64;

// Copies n elements between memory with a stride (in elements) and contiguous memory.
template <size_t kSize>
void copy_strided(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * to_stride * static_cast<int64_t>(kSize),
                from + i * from_stride * static_cast<int64_t>(kSize), kSize);
  }
}

using CopyFunction = void (*)(const char*, int64_t, char*, int64_t, int64_t);

CopyFunction find_copy(size_t element_size) {
  switch (element_size) {
    case 1: return copy_strided<1>;
    case 2: return copy_strided<2>;
    case 4: return copy_strided<4>;
    case 8: return copy_strided<8>;
    default: return copy_strided<16>;
  }
}

// The results of a unary kernel of 16 bits for all numbers; null if there is no memory for them.
using ResultOfNumber = std::array<uint16_t, 1 << 16>;

std::unique_ptr<ResultOfNumber> results_of(const ElementwiseKernel& kernel,
                                           const void* coefficients) {
  std::unique_ptr<ResultOfNumber> results(new (std::nothrow) ResultOfNumber);
  if (results == nullptr) return results;
  const auto blocks = static_cast<int64_t>(results->size()) / kBlock;
  at::parallel_for(0, blocks, kGrain / kBlock, [&](int64_t begin, int64_t end) {
    std::array<uint16_t, kBlock> numbers;
    for (int64_t i = begin * kBlock; i < end * kBlock; i += kBlock) {
      std::iota(numbers.begin(), numbers.end(), static_cast<uint16_t>(i));
      kernel(coefficients, numbers.data(), nullptr, results->data() + i, kBlock, false);
    }
  });
  return results;
}

// The same bits as the kernel's, for one more access to the caches. Reads four numbers before it
// writes four results: as far as the compiler knows, a result may change the next number.
void look_up(const ResultOfNumber& results, const char* from, char* to, int64_t n) {
  const auto result = [&](int64_t i) {
    uint16_t number;
    std::memcpy(&number, from + i * 2, 2);
    return results[number];
  };
  const auto store = [&](int64_t i, uint16_t value) { std::memcpy(to + i * 2, &value, 2); };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const uint16_t a = result(i), b = result(i + 1), c = result(i + 2), d = result(i + 3);
    store(i, a);
    store(i + 1, b);
    store(i + 2, c);
    store(i + 3, d);
  }
  for (; i < n; ++i) store(i, result(i));
}

// Calls body(offset, done, n) for the runs of one operand, along the last dimension, that make up
// the elements [begin, begin + count) in iteration order: the run's n elements start `offset`
// elements into the operand, and `done` elements precede it.
template <class Body>
void for_each_run(const Dims& sizes, const Dims& strides, int64_t begin, int64_t count, Body body) {
  const int last = static_cast<int>(sizes.size()) - 1;
  int64_t index[kMaxRank];
  int64_t offset = 0;
  int64_t rest = begin;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    offset += index[d] * strides[d];
  }
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(sizes[last] - index[last], count - done);
    body(offset, done, n);
    done += n;
    // Next row: the last dimension is finished, unless this was the end.
    offset -= index[last] * strides[last];
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

// Broadcasts a view to another shape.
void expand(TensorView& view, const Dims& shape) {
  if (view.shape == shape) return;
  const uint64_t more = shape.size() - view.shape.size();
  Dims strides;
  int64_t* out = strides.resize(shape.size());
  for (uint64_t d = 0; d < shape.size(); ++d) {
    out[d] = d < more || view.shape[d - more] != shape[d] ? 0 : view.strides[d - more];
  }
  view.shape = shape;
  view.strides = strides;
}

}  // namespace

Geometry::Geometry(std::span<const TensorView* const> tensors) {
  const size_t tensor_count = tensors.size();
  const TensorView& out = *tensors.back();
  const uint64_t rank = out.shape.size();
  count = element_count(out.shape).value_or(0);
  if (count == 0) return;

  // Dimensions of size 1 are skipped.
  Dims order;
  int64_t* dims = order.resize(rank);
  uint64_t kept = 0;
  for (uint64_t d = 0; d < rank; ++d) {
    if (out.shape[d] != 1) dims[kept++] = static_cast<int64_t>(d);
  }
  // Dimensions with equal strides keep their order. (std::stable_sort would allocate.)
  std::sort(dims, dims + kept, [&](int64_t a, int64_t b) {
    const int64_t first = std::abs(out.strides[a]);
    const int64_t second = std::abs(out.strides[b]);
    return first != second ? first > second : a < b;
  });

  sizes.resize(std::max<uint64_t>(kept, 1));
  for (size_t t = 0; t < tensor_count; ++t) strides[t].resize(std::max<uint64_t>(kept, 1));
  uint64_t merged = 0;  // number of merged dimensions
  for (uint64_t i = 0; i < kept; ++i) {
    const int64_t d = dims[i];
    bool merges = merged > 0;
    for (size_t t = 0; merges && t < tensor_count; ++t) {
      merges = strides[t][merged - 1] == tensors[t]->strides[d] * out.shape[d];
    }
    if (!merges) sizes.begin()[merged++] = 1;
    sizes.begin()[merged - 1] *= out.shape[d];
    for (size_t t = 0; t < tensor_count; ++t) {
      strides[t].begin()[merged - 1] = tensors[t]->strides[d];
    }
  }
  if (merged == 0) {  // a single element
    sizes.begin()[0] = 1;
    for (size_t t = 0; t < tensor_count; ++t) strides[t].begin()[0] = 1;
    merged = 1;
  }
  sizes.shrink(merged);
  contiguous = merged == 1;
  for (size_t t = 0; t < tensor_count; ++t) {
    strides[t].shrink(merged);
    contiguous = contiguous && strides[t][0] == 1;
  }
}

ElementwisePlan::ElementwisePlan(ElementwiseKernel kernel, aclDataType dtype,
                                 std::span<const TensorView* const> arguments)
    : tensor_count(arguments.size()),
      input_count(std::max<size_t>(arguments.size() - 1, 1)),
      kernel(kernel),
      dtype(dtype) {
  size_t i = 0;
  for (const TensorView* argument : arguments) tensors[i++] = *argument;
  for (size_t t = 0; t < input_count; ++t) expand(tensors[t], operand(input_count).shape);
  for (size_t t = 0; t <= input_count; ++t) {
    const aclDataType own = operand(t).dtype;
    casts[t] = own == dtype      ? nullptr
               : t < input_count ? find_cast(own, dtype)
                                 : find_cast(dtype, own);
  }
  const TensorView* operands[kMaxTensors];
  for (size_t t = 0; t <= input_count; ++t) operands[t] = &operand(t);
  geometry = Geometry({operands, input_count + 1});
}

aclnnStatus ElementwisePlan::compute(void*) {
  if (geometry.contiguous && !has_casts()) {
    compute_contiguous();
  } else {
    at::parallel_for(0, geometry.count, kGrain,
                     [this](int64_t begin, int64_t end) { compute_strided(begin, end); });
  }
  return OK;
}

bool ElementwisePlan::has_casts() const {
  return std::any_of(casts, casts + input_count + 1, [](CastFunction cast) { return cast; });
}

void ElementwisePlan::compute_contiguous() {
  const char* first = operand(0).data();
  const char* second = input_count > 1 ? operand(1).data() : nullptr;
  char* out = operand(input_count).data();
  const auto size = static_cast<int64_t>(aclDataTypeSize(operand(0).dtype));
  const int64_t bytes = geometry.count * size * static_cast<int64_t>(input_count + 1);
  const bool streaming = bytes > kStreamingBytes;
  std::unique_ptr<ResultOfNumber> results;
  if (kernel.gains_by_lookup() && input_count == 1 && size == 2 &&
      geometry.count >= kLeastLookedUp * at::get_num_threads()) {
    results = results_of(kernel, coefficients);
  }
  const auto run = [&](int64_t begin, int64_t end) {
    if (results != nullptr) {
      look_up(*results, first + begin * size, out + begin * size, end - begin);
      return;
    }
    const StreamingScope scope(streaming);
    kernel(coefficients, first + begin * size, second ? second + begin * size : nullptr,
           out + begin * size, end - begin, streaming);
  };
  if (geometry.count <= kGrain) {
    run(0, geometry.count);
    return;
  }
  const int64_t blocks = (geometry.count + kBlock - 1) / kBlock;
  at::parallel_for(0, blocks, kGrain / kBlock, [&](int64_t begin, int64_t end) {
    run(begin * kBlock, std::min(end * kBlock, geometry.count));
  });
}

void ElementwisePlan::compute_strided(int64_t begin, int64_t end) const {
  // Elements in their own dtype, and in the kernel's.
  alignas(64) char tiles[kMaxTensors][kTile * 16];
  alignas(64) char numbers[kMaxTensors][kTile * sizeof(double)];
  const Dims& sizes = geometry.sizes;
  const int64_t row = sizes[sizes.size() - 1];
  int64_t size[kMaxTensors];
  for (size_t t = 0; t <= input_count; ++t) {
    size[t] = static_cast<int64_t>(aclDataTypeSize(operand(t).dtype));
  }
  const auto stride = [&](size_t t) { return geometry.strides[t][sizes.size() - 1]; };
  // Long rows are processed one at a time, so that operands with contiguous rows need no gathering;
  // shorter rows are gathered, many to a tile.
  const bool by_row = row >= kTile / 4;
  const size_t out = input_count;
  const bool out_in_place = by_row && stride(out) == 1 && casts[out] == nullptr;

  for (int64_t i = begin; i < end;) {
    const int64_t in_row = row - i % row;
    const int64_t n = std::min({kTile, end - i, by_row ? in_row : kTile});
    const char* inputs[2] = {nullptr, nullptr};
    for (size_t t = 0; t < input_count; ++t) {
      const CopyFunction copy = find_copy(static_cast<size_t>(size[t]));
      for_each_run(sizes, geometry.strides[t], i, n, [&](int64_t offset, int64_t done, int64_t m) {
        const char* from = operand(t).data() + offset * size[t];
        if (by_row && stride(t) == 1) {
          inputs[t] = from;
        } else {
          copy(from, stride(t), tiles[t] + done * size[t], 1, m);
          inputs[t] = tiles[t];
        }
      });
      if (casts[t] != nullptr) {
        casts[t](inputs[t], numbers[t], n);
        inputs[t] = numbers[t];
      }
    }
    const auto for_each_out_run = [&](auto body) {
      for_each_run(sizes, geometry.strides[out], i, n,
                   [&](int64_t offset, int64_t done, int64_t m) {
                     body(operand(out).data() + offset * size[out], done, m);
                   });
    };
    if (out_in_place) {
      for_each_out_run([&](char* to, int64_t, int64_t m) {
        kernel(coefficients, inputs[0], inputs[1], to, m, false);
      });
    } else {
      char* result = casts[out] == nullptr ? tiles[out] : numbers[out];
      kernel(coefficients, inputs[0], inputs[1], result, n, false);
      if (casts[out] != nullptr) casts[out](result, tiles[out], n);
      const CopyFunction copy = find_copy(static_cast<size_t>(size[out]));
      for_each_out_run([&](char* to, int64_t done, int64_t m) {
        copy(tiles[out] + done * size[out], 1, to, stride(out), m);
      });
    }
    i += n;
  }
}

}  // namespace aclnn_host
