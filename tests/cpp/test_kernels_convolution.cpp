// The direct loops of convolution, its implicit GEMM and the layout kernels, in every version that
// this CPU can run: compared with the reference, and the reference with known sums; divided among
// threads in several ways; nothing is written outside.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "check.h"
#include "host_cann/kernels/convolution_depthwise.h"
#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/kernels/convolution_implicit_gemm.h"
#include "host_cann/kernels/layout.h"
#include "kernel_types.h"

using namespace aclnn_host;

namespace {

template <class T>
constexpr aclDataType kType = std::is_same_v<T, float>    ? ACL_FLOAT
                              : std::is_same_v<T, double> ? ACL_DOUBLE
                              : std::is_same_v<T, Half>   ? ACL_FLOAT16
                                                          : ACL_BF16;

struct Version {
  const char* name;
  const DirectKernelsByType& direct;
  const DirectKernelsByType& depthwise;
  const ImplicitGemmKernelsByType& implicit_gemm;
  bool multiplies_bfloat16;
  const LayoutKernelsByType& layout;
};

template <Capability kCapability>
Version version(const char* name) {
  return {name,
          convolution_direct_kernels<kCapability>(),
          convolution_depthwise_kernels<kCapability>(),
          convolution_implicit_gemm_kernels<kCapability>(),
          multiplies_bfloat16<kCapability>(),
          layout_kernels<kCapability>()};
}

// The versions that this CPU can run, except the reference.
std::vector<Version> versions() {
  std::vector<Version> all;
  for_each_capability([&all]<Capability kCapability>(const char* name) {
    all.push_back(version<kCapability>(name));
  });
  return all;
}

// Small multiples of 1/4. All sums here are exact in every type, so all versions must agree in
// every bit.
template <class T>
T exact_number(int quarters) {
  const float value = static_cast<float>(quarters) / 4;
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if constexpr (std::is_same_v<T, Brain>) return {static_cast<uint16_t>(bits >> 16)};
    if (quarters == 0) return {0};
    const uint32_t sign = bits >> 31 << 15;
    return {static_cast<uint16_t>(sign | (((bits & 0x7fffffff) >> 13) - (112 << 10)))};
  }
}

template <class T>
std::vector<T> exact_numbers(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> all(n);
  for (T& number : all) number = exact_number<T>(static_cast<int>(random() % 5) - 2);
  return all;
}

int64_t volume(const ConvolutionSizes::Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

// The sizes of a convolution with these parameters.
ConvolutionSizes sizes_of(int64_t batch, int64_t groups, int64_t src_channels, int64_t dst_channels,
                          ConvolutionSizes::Values src, ConvolutionSizes::Values kernel,
                          ConvolutionSizes::Values stride, ConvolutionSizes::Values padding,
                          ConvolutionSizes::Values dilation) {
  ConvolutionSizes sizes{batch, groups, src_channels, dst_channels, src,
                         {},    kernel, stride,       padding,      dilation};
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = dilation[d] * (kernel[d] - 1) + 1;
    sizes.dst[d] = (src[d] + 2 * padding[d] - reach) / stride[d] + 1;
  }
  return sizes;
}

// src extends beyond the kernel's reach, as that of a transposed convolution with output padding.
ConvolutionSizes longer(ConvolutionSizes sizes, int64_t by) {
  sizes.src[2] += by;
  return sizes;
}

std::vector<ConvolutionSizes> cases() {
  return {
      sizes_of(1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
      sizes_of(2, 1, 2, 3, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
      sizes_of(2, 5, 1, 1, {1, 20, 33}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
      sizes_of(2, 3, 1, 2, {1, 23, 70}, {1, 5, 5}, {1, 2, 2}, {0, 2, 2}, {1, 1, 1}),
      sizes_of(1, 2, 1, 1, {1, 40, 41}, {1, 7, 7}, {1, 3, 2}, {0, 3, 1}, {1, 1, 1}),
      sizes_of(1, 2, 2, 2, {1, 1, 300}, {1, 1, 4}, {1, 1, 1}, {0, 0, 3}, {1, 1, 1}),
      sizes_of(2, 2, 2, 1, {1, 17, 13}, {1, 3, 2}, {1, 1, 3}, {0, 2, 0}, {1, 4, 6}),
      // A stride and a dilation with a common factor, elements that no window reads, large padding.
      sizes_of(1, 2, 1, 2, {1, 19, 22}, {1, 3, 3}, {1, 4, 6}, {0, 2, 3}, {1, 2, 4}),
      sizes_of(1, 1, 2, 3, {1, 11, 10}, {1, 2, 1}, {1, 4, 3}, {0, 0, 0}, {1, 1, 1}),
      sizes_of(1, 1, 2, 2, {1, 1, 2}, {1, 2, 3}, {1, 1, 1}, {0, 3, 4}, {1, 1, 1}),
      sizes_of(2, 2, 1, 2, {5, 6, 7}, {2, 3, 2}, {2, 1, 2}, {1, 1, 0}, {1, 2, 1}),
      // Rows of several vectors, several rows at a time: kernels of 3, 5 and 7 rows, and of more
      // columns than are summed at once; strides and dilations along the rows; too few rows.
      sizes_of(2, 3, 1, 1, {1, 13, 40}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}, {1, 1, 1}),
      sizes_of(1, 2, 1, 2, {1, 9, 70}, {1, 7, 7}, {1, 1, 1}, {0, 3, 3}, {1, 1, 1}),
      sizes_of(1, 2, 2, 2, {4, 6, 30}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
      sizes_of(2, 2, 1, 1, {3, 11, 61}, {2, 3, 4}, {2, 1, 2}, {0, 1, 1}, {1, 1, 3}),
      sizes_of(1, 2, 1, 1, {3, 5, 45}, {1, 3, 11}, {1, 1, 1}, {0, 1, 5}, {1, 1, 1}),
      sizes_of(1, 1, 1, 1, {1, 5, 64}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
      longer(sizes_of(1, 2, 1, 1, {1, 9, 53}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 3}), 2),
      longer(sizes_of(1, 2, 1, 1, {1, 9, 30}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 3}), 40),
      // Sums over more than one segment.
      sizes_of(1, 1, 1, 1, {1, 90, 91}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
  };
}

template <class T>
struct Call {
  ConvolutionSizes sizes;
  std::vector<T> src, dst, weight, src_bias, dst_bias;

  explicit Call(const ConvolutionSizes& sizes)
      : sizes(sizes),
        src(exact_numbers<T>(items() * sizes.src_channels * volume(sizes.src), 1)),
        dst(exact_numbers<T>(items() * sizes.dst_channels * volume(sizes.dst), 2)),
        weight(exact_numbers<T>(
            sizes.groups * sizes.dst_channels * sizes.src_channels * volume(sizes.kernel), 3)),
        src_bias(exact_numbers<T>(sizes.groups * sizes.src_channels, 4)),
        dst_bias(exact_numbers<T>(sizes.groups * sizes.dst_channels, 5)) {}

  int64_t items() const { return sizes.batch * sizes.groups; }
};

// The three sums, each followed by a red zone.
template <class T>
struct Results {
  std::vector<T> dst, src;
  std::vector<RealOf<T>> weight;
};

constexpr int64_t kRedZone = 64;
constexpr unsigned char kPaint = 0xa5;

template <class V>
std::vector<V> painted(size_t n) {
  std::vector<V> all(n + kRedZone);
  std::memset(static_cast<void*>(all.data()), kPaint, all.size() * sizeof(V));
  return all;
}

// `parts` calls share the work, each with scratch memory that is filled with NaN.
template <class T>
Results<T> run(const DirectKernelsByType& version, const Call<T>& call, int64_t parts) {
  const DirectKernels& kernels = version.find(kType<T>);
  Results<T> out{painted<T>(call.dst.size()), painted<T>(call.src.size()),
                 painted<RealOf<T>>(call.weight.size())};
  const int64_t size = kernels.scratch_size(call.sizes);
  std::vector<unsigned char> memory(size + 64 + kRedZone);
  unsigned char* const scratch =
      memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  const auto each = [&](auto kernel, int64_t items, const ConvolutionTensors& from, void* to) {
    for (int64_t i = 0; i < parts; ++i) {
      std::fill(memory.begin(), memory.end(), 0xff);  // NaN
      kernel(call.sizes, from, items * i / parts, items * (i + 1) / parts, to, scratch);
      CHECK(std::all_of(scratch + size, memory.data() + memory.size(),
                        [](unsigned char byte) { return byte == 0xff; }));
    }
  };
  const void *src = call.src.data(), *dst = call.dst.data(), *weight = call.weight.data();
  each(kernels.forward, call.items(), {src, nullptr, weight, call.dst_bias.data()}, out.dst.data());
  each(kernels.backward_data, call.items(), {nullptr, dst, weight, call.src_bias.data()},
       out.src.data());
  each(kernels.backward_weight, call.sizes.groups, {src, dst, nullptr, nullptr}, out.weight.data());
  return out;
}

// Memory between red zones, filled with NaN.
class DirtyMemory {
 public:
  explicit DirtyMemory(int64_t size)
      : size_(size), bytes_(size + 128 + kRedZone), begin_(aligned(bytes_.data())) {
    std::fill(bytes_.begin(), bytes_.end(), 0xff);  // NaN
  }
  unsigned char* data() const { return begin_; }
  bool is_clean_outside() const {
    const auto clean = [](unsigned char byte) { return byte == 0xff; };
    return std::all_of(bytes_.data(), static_cast<const unsigned char*>(begin_), clean) &&
           std::all_of(static_cast<const unsigned char*>(begin_) + size_,
                       bytes_.data() + bytes_.size(), clean);
  }

 private:
  static unsigned char* aligned(unsigned char* data) {
    return data + (64 - reinterpret_cast<uintptr_t>(data) % 64);
  }

  const int64_t size_;
  std::vector<unsigned char> bytes_;
  unsigned char* const begin_;
};

// The operands of a pass, all of one type.
struct Operands {
  ConvolutionSizes sizes;
  std::vector<float> src, dst, weight;
};

void run(const ImplicitGemmPass& pass, const Operands& from, const std::vector<float>* bias,
         int64_t parts, std::vector<float>& out) {
  const ConvolutionTensors tensors{from.src.data(), from.dst.data(), from.weight.data(),
                                   bias != nullptr ? bias->data() : nullptr};
  const DirtyMemory shared(pass.shared_size(from.sizes));
  for (int64_t i = 0; i < parts; ++i) pass.prepare(from.sizes, tensors, i, parts, shared.data());
  for (int64_t i = 0; i < parts; ++i) {
    const DirtyMemory scratch(pass.scratch_size(from.sizes));
    pass.compute(from.sizes, tensors, i, parts, shared.data(), out.data(), scratch.data());
    CHECK(scratch.is_clean_outside());
  }
  CHECK(shared.is_clean_outside());
}

Results<float> run(const ImplicitGemmKernels& kernels, const Call<float>& call, int64_t parts) {
  Results<float> out{painted<float>(call.dst.size()), painted<float>(call.src.size()),
                     painted<float>(call.weight.size())};
  run(kernels.forward, {call.sizes, call.src, {}, call.weight}, &call.dst_bias, parts, out.dst);
  run(kernels.backward_data, {call.sizes, {}, call.dst, call.weight}, &call.src_bias, parts,
      out.src);
  run(kernels.backward_weight, {call.sizes, call.src, call.dst, {}}, nullptr, parts, out.weight);
  return out;
}

// Packs [outer, count, inner] to pairs of BFLOAT16 along `count`. The bits of these exact numbers
// are the upper halves of FLOAT.
std::vector<float> pairs(const std::vector<float>& values, int64_t outer, int64_t count) {
  const int64_t inner = static_cast<int64_t>(values.size()) / (outer * count);
  std::vector<float> words;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < count; c += 2) {
      for (int64_t i = 0; i < inner; ++i) {
        const auto at = static_cast<size_t>((o * count + c) * inner + i);
        const auto next = at + static_cast<size_t>(inner);
        const uint32_t first = std::bit_cast<uint32_t>(values[at]) >> 16;
        const uint32_t second = c + 1 < count ? std::bit_cast<uint32_t>(values[next]) >> 16 : 0;
        words.push_back(std::bit_cast<float>(first | second << 16));
      }
    }
  }
  return words;
}

Results<float> run_packed(const ImplicitGemmKernels& kernels, const Call<float>& call,
                          int64_t parts) {
  Results<float> out{painted<float>(call.dst.size()), painted<float>(call.src.size()),
                     painted<float>(call.weight.size())};
  const ConvolutionSizes& sizes = call.sizes;
  Operands dst{sizes,
               pairs(call.src, call.items(), sizes.src_channels),
               {},
               pairs(call.weight, sizes.groups * sizes.dst_channels, sizes.src_channels)};
  dst.sizes.src_channels = (sizes.src_channels + 1) / 2;
  run(kernels.forward, dst, &call.dst_bias, parts, out.dst);
  Operands src{sizes,
               {},
               pairs(call.dst, call.items(), sizes.dst_channels),
               pairs(call.weight, sizes.groups, sizes.dst_channels)};
  src.sizes.dst_channels = (sizes.dst_channels + 1) / 2;
  run(kernels.backward_data, src, &call.src_bias, parts, out.src);
  Operands weight{sizes, pairs(call.src, 1, sizes.batch), pairs(call.dst, 1, sizes.batch), {}};
  weight.sizes.batch = (sizes.batch + 1) / 2;
  run(kernels.backward_weight, weight, nullptr, parts, out.weight);
  return out;
}

template <class V>
bool same_bits(const std::vector<V>& a, const std::vector<V>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0;
}

const DirectKernelsByType& reference() {
  return convolution_direct_kernels<Capability::kReference>();
}

}  // namespace

TEST(every_version_computes_the_reference_however_it_is_divided) {
  for_each_type([]<class T>() {
    for (const ConvolutionSizes& sizes : cases()) {
      const Call<T> call(sizes);
      const Results<T> expected = run(reference(), call, 1);
      for (const Version& version : versions()) {
        for (const int64_t parts : {1, 2, 7}) {
          const Results<T> got = run(version.direct, call, parts);
          const std::string text = std::string(version.name) + ": ";
          const auto report = [&](bool ok, const char* what) {
            check::report(ok, __FILE__, __LINE__, text + what);
          };
          report(same_bits(got.dst, expected.dst), "forward");
          report(same_bits(got.src, expected.src), "backward data");
          report(same_bits(got.weight, expected.weight), "backward weight");
        }
      }
    }
  });
}

// In addition to cases(): sizes around tiles of 6 and 12 rows and 16 and 32 columns, blocks of 512
// windows, of 256 products and of 96 rows, long lines, many images, planes.
std::vector<ConvolutionSizes> implicit_gemm_cases() {
  std::vector<ConvolutionSizes> all = cases();
  for (const int64_t channels : {11, 12, 13, 33}) {
    all.push_back(sizes_of(2, 1, channels, 40 - channels, {1, 9, 14}, {1, 3, 3}, {1, 1, 1},
                           {0, 1, 1}, {1, 1, 1}));
  }
  for (const ConvolutionSizes& sizes : {
           sizes_of(3, 1, 40, 110, {1, 12, 30}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
           sizes_of(2, 1, 34, 13, {1, 29, 27}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}),
           sizes_of(2, 1, 5, 7, {1, 37, 40}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}),
           sizes_of(2, 1, 3, 4, {1, 1, 1100}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}),
           sizes_of(1, 1, 3, 4, {1, 2, 1500}, {1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {1, 1, 3}),
           sizes_of(70, 1, 3, 4, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
           sizes_of(600, 1, 2, 3, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
           sizes_of(1, 1, 2, 3, {1, 700, 3}, {1, 2, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
           sizes_of(2, 1, 9, 14, {6, 7, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
           sizes_of(1, 1, 9, 14, {70, 3, 4}, {3, 1, 3}, {2, 1, 2}, {1, 0, 1}, {3, 1, 1}),
           sizes_of(2, 9, 4, 3, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
           sizes_of(1, 3, 4, 3, {1, 4, 4}, {1, 1, 1}, {1, 3, 3}, {0, 1, 1}, {1, 1, 1}),
       }) {
    all.push_back(sizes);
  }
  return all;
}

TEST(implicit_gemm_computes_those_of_the_reference_however_they_are_divided) {
  for (const ConvolutionSizes& sizes : implicit_gemm_cases()) {
    const Call<float> call(sizes);
    const Results<float> expected = run(reference(), call, 1);
    const auto check_results = [&](const Results<float>& got, const std::string& version) {
      const auto report = [&](bool ok, const char* what) {
        check::report(ok, __FILE__, __LINE__,
                      version + what + " " + std::to_string(sizes.batch) + " x " +
                          std::to_string(sizes.src_channels) + " x " +
                          std::to_string(sizes.src[1]) + " x " + std::to_string(sizes.src[2]));
      };
      report(same_bits(got.dst, expected.dst), "forward");
      report(same_bits(got.src, expected.src), "backward data");
      report(same_bits(got.weight, expected.weight), "backward weight");
    };
    for (const Version& version : versions()) {
      for (const int64_t parts : {1, 2, 7}) {
        const std::string name = version.name;
        check_results(run(version.implicit_gemm.float32, call, parts), name + ": float, ");
        if (!version.multiplies_bfloat16) continue;
        check_results(run_packed(version.implicit_gemm.bfloat16, call, parts),
                      name + ": bfloat16, ");
      }
    }
  }
}

TEST(elements_are_paired_with_others_or_zeros) {
  for (const Version& version : versions()) {
    for (const int64_t outer : {1, 3}) {
      for (const int64_t count : {1, 2, 5}) {
        for (const int64_t inner : {1, 3, 16, 33, 100}) {
          const std::vector<Brain> all = exact_numbers<Brain>(outer * count * inner, 1);
          std::vector<float> floats;
          for (const Brain element : all) floats.push_back(static_cast<float>(element.value()));
          const std::vector<float> expected = pairs(floats, outer, count);
          const auto size = static_cast<int64_t>(expected.size());
          std::vector<float> words = painted<float>(expected.size());
          for (const int64_t part : {0, 1, 2}) {
            version.implicit_gemm.pack(reinterpret_cast<const BFloat16*>(all.data()), count, inner,
                                       size * part / 3, size * (part + 1) / 3, words.data());
          }
          const std::vector<float> paint = painted<float>(0);
          CHECK(std::memcmp(words.data(), expected.data(), expected.size() * sizeof(float)) == 0);
          CHECK(std::memcmp(words.data() + size, paint.data(), paint.size() * sizeof(float)) == 0);
        }
      }
    }
  }
}

// Checks that `kernels` find each of the `bad` values between a finite value and zeros.
template <class T>
void check_finding(const ImplicitGemmKernels& kernels, T finite, const std::vector<T>& bad) {
  for (const int64_t count : {0, 1, 7, 8, 16, 33, 100}) {
    std::vector<T> values(static_cast<size_t>(count), finite);
    CHECK(kernels.are_finite(values.data(), count));
    for (const T value : bad) {
      for (T& element : values) {
        element = value;
        CHECK(!kernels.are_finite(values.data(), count));
        element = T{};
      }
    }
  }
}

TEST(what_is_not_finite_is_found_wherever_it_stands) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Version& version : versions()) {
    check_finding<float>(version.implicit_gemm.float32, -3e38f, {inf, -inf, std::nanf("")});
    check_finding<Brain>(version.implicit_gemm.bfloat16, {0xff7f}, {{0x7f80}, {0xff80}, {0x7fc0}});
  }
}

// Permutes [batch, channels, positions] to [batch, positions, channels], followed by a red zone.
template <class T>
std::vector<T> channels_last(const std::vector<T>& values, int64_t batch, int64_t channels,
                             int64_t positions) {
  std::vector<T> transposed = values;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < positions; ++i) {
        transposed[(n * positions + i) * channels + c] = values[(n * channels + c) * positions + i];
      }
    }
  }
  return transposed;
}

TEST(channels_last_depthwise_kernels_compute_what_the_others_do) {
  std::vector<Version> all = versions();
  all.push_back(version<Capability::kReference>("reference"));
  for_each_type([&]<class T>() {
    for (const int64_t groups : {1, 3, 37, 150}) {
      for (const ConvolutionSizes& sizes : {
               sizes_of(2, groups, 1, 1, {1, 6, 9}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
               sizes_of(1, groups, 1, 1, {1, 7, 8}, {1, 2, 5}, {1, 2, 3}, {0, 1, 4}, {1, 3, 1}),
               sizes_of(2, groups, 1, 1, {3, 4, 5}, {2, 1, 3}, {2, 1, 2}, {1, 0, 0}, {1, 1, 2}),
               sizes_of(1, groups, 1, 1, {1, 1, 3}, {1, 2, 3}, {1, 1, 1}, {0, 2, 4}, {1, 1, 1}),
               // Positions of a row that are computed together, all or all but those at the edges.
               sizes_of(2, groups, 1, 1, {1, 5, 15}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
               sizes_of(1, groups, 1, 1, {2, 6, 18}, {2, 2, 5}, {1, 2, 1}, {0, 0, 0}, {1, 1, 1}),
               sizes_of(1, groups, 1, 1, {1, 4, 13}, {1, 3, 7}, {1, 1, 1}, {0, 2, 6}, {1, 1, 1}),
               sizes_of(1, groups, 1, 1, {1, 1, 1200}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}),
               // Sums over more than one segment.
               sizes_of(1, groups, 1, 1, {1, 1, 1200}, {1, 1, 2}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}),
           }) {
        Call<T> call(sizes);
        Results<T> expected = run(reference(), call, 1);
        const auto transpose = [&](std::vector<T>& values, const ConvolutionSizes::Values& image) {
          values = channels_last(values, sizes.batch, groups, volume(image));
        };
        for (auto* values : {&call.src, &expected.src}) transpose(*values, sizes.src);
        for (auto* values : {&call.dst, &expected.dst}) transpose(*values, sizes.dst);
        for (const Version& version : all) {
          for (const int64_t parts : {1, 3}) {
            const Results<T> got = run(version.depthwise, call, parts);
            CHECK(same_bits(got.dst, expected.dst));
            CHECK(same_bits(got.src, expected.src));
            CHECK(same_bits(got.weight, expected.weight));
          }
        }
      }
    }
  });
}

// One row and two taps: sums that can be computed by hand.
TEST(the_reference_computes_the_formulas) {
  Call<float> call(sizes_of(1, 1, 1, 1, {1, 1, 4}, {1, 1, 2}, {1, 1, 2}, {0, 0, 1}, {1, 1, 1}));
  call.src = {1, 2, 3, 4};
  call.weight = {10, 1};
  call.dst = {5, 6, 7};  // at positions -1 and 0, 1 and 2, 3 and 4
  call.dst_bias = {100};
  call.src_bias = {1000};
  const Results<float> got = run(reference(), call, 1);
  const auto begins = [](const std::vector<float>& values, std::vector<float> expected) {
    return std::equal(expected.begin(), expected.end(), values.begin());
  };
  CHECK(begins(got.dst, {101, 123, 140}));
  CHECK(begins(got.src, {1005, 1060, 1006, 1070}));
  CHECK(begins(got.weight, {2 * 6 + 4 * 7, 1 * 5 + 3 * 6}));
}

// Results that are not multiplied with them do not become NaN.
TEST(infinities_reach_only_what_they_are_multiplied_with) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Version& version : versions()) {
    for (const int i : {0, 1, 2, 3}) {
      const bool in_weight = i % 2 == 0;
      const auto strided =
          sizes_of(2, 2, 1, 1, {1, 9, 9}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1});
      const auto wide =
          sizes_of(2, 2, 1, 1, {1, 9, 40}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1});
      Call<float> call(i < 2 ? strided : wide);
      (in_weight ? call.weight[4] : call.src[8]) = inf;
      std::replace(call.dst.begin(), call.dst.end(), 0.0f, 1.0f);
      const Results<float> expected = run(reference(), call, 1);
      const Results<float> got = run(version.direct, call, 1);
      CHECK(same_bits(got.weight, expected.weight));
      CHECK(same_bits(got.src, expected.src));
      const auto& sums = in_weight ? got.src : got.weight;
      CHECK(std::any_of(sums.begin(), sums.end(), [](float sum) { return std::isinf(sum); }));
      CHECK(std::none_of(sums.begin(), sums.end(), [](float sum) { return std::isnan(sum); }));
    }
  }
}

// Results that are not exact: within the roundings of this number of products.
TEST(sums_have_the_errors_of_their_roundings) {
  const ConvolutionSizes sizes =
      sizes_of(3, 2, 2, 2, {1, 31, 37}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1});
  Call<float> call(sizes);
  std::mt19937 random(6);
  for (auto* values : {&call.src, &call.dst, &call.weight}) {
    for (float& value : *values) value = 1 + static_cast<float>(random() % 65536) / 65536;
  }
  const Results<float> expected = run(reference(), call, 1);
  const double unit = std::ldexp(1.0, -24);
  for (const Version& version : versions()) {
    const Results<float> got = run(version.direct, call, 1);
    const auto near = [&](const std::vector<float>& a, const std::vector<float>& b, size_t n,
                          int64_t products) {
      for (size_t i = 0; i < n; ++i) {
        // The bias is at most as large as the positive products.
        if (!(std::abs(a[i] - b[i]) <= unit * double(2 * products + 2) * (std::abs(b[i]) + 1))) {
          return false;
        }
      }
      return true;
    };
    CHECK(near(got.dst, expected.dst, call.dst.size(), 18));
    CHECK(near(got.src, expected.src, call.src.size(), 18));
    // Of 3441 products, whose errors have either sign: about the root of this number of roundings.
    CHECK(near(got.weight, expected.weight, call.weight.size(), 59));
  }
}

// The sum in a lane is added to a double after at most 4096 elements of a channel, or 512 of a
// lane.
TEST(errors_of_a_sum_do_not_grow_with_the_length_of_a_row) {
  const float unit = std::ldexp(1.0f, -24);
  for (const int64_t rows : {1, 4}) {
    Call<float> call(
        sizes_of(1, 2, 1, 1, {1, rows, 300'000}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}));
    std::fill(call.src.begin(), call.src.end(), 1.0f);
    std::fill(call.dst.begin(), call.dst.end(), 0.1f);
    const Results<float> expected = run(reference(), call, 1);
    for (const Version& version : versions()) {
      const Results<float> got = run(version.direct, call, 1);
      for (size_t i = 0; i < call.weight.size(); ++i) {
        CHECK(std::abs(got.weight[i] - expected.weight[i]) <= 512 * unit * expected.weight[i]);
      }
    }
  }
}

// Biases that make the products' roundings visible: 1e6 times those of FLOAT, 1e15 times those of
// DOUBLE, with bits that do not fit a sum with one product.
template <class T>
void set_biases(std::vector<T>& biases) {
  const T least = std::ldexp(T(1), std::numeric_limits<T>::digits - 4);
  for (size_t i = 0; i < biases.size(); ++i) biases[i] = least + static_cast<T>(2 * i + 1) / 8;
}

// Adds a bias to each channel of the results.
template <class T>
void add_biases(const std::vector<T>& biases, int64_t positions, bool channels_last, size_t count,
                std::vector<T>& results) {
  for (size_t i = 0; i < count; ++i) {
    results[i] += biases[(channels_last ? i : i / positions) % biases.size()];
  }
}

// Checks that `run` adds src biases to the exact sums of a call with a single rounding.
template <class T, class Run>
void check_biases(const ConvolutionSizes& sizes, bool channels_last, const std::string& name,
                  Run run) {
  Call<T> call(sizes);
  for (auto* biases : {&call.dst_bias, &call.src_bias}) {
    std::fill(biases->begin(), biases->end(), T(0));
  }
  Results<T> expected = run(call);
  for (auto* biases : {&call.dst_bias, &call.src_bias}) set_biases(*biases);
  add_biases(call.dst_bias, volume(sizes.dst), channels_last, call.dst.size(), expected.dst);
  add_biases(call.src_bias, volume(sizes.src), channels_last, call.src.size(), expected.src);
  const Results<T> got = run(call);
  check::report(same_bits(got.dst, expected.dst), __FILE__, __LINE__, name + ", forward");
  check::report(same_bits(got.src, expected.src), __FILE__, __LINE__, name + ", backward data");
}

TEST(a_bias_costs_one_rounding_however_large_it_is) {
  std::vector<Version> all = versions();
  all.push_back(version<Capability::kReference>("reference"));
  for (const Version& version : all) {
    const std::string name = version.name;
    const auto check_loops = [&]<class T>(const ConvolutionSizes& sizes, bool channels_last) {
      check_biases<T>(sizes, channels_last, name + (channels_last ? ": depthwise" : ": direct"),
                      [&](const Call<T>& call) {
                        return run(channels_last ? version.depthwise : version.direct, call, 1);
                      });
    };
    for (const ConvolutionSizes& sizes : cases()) {
      check_loops.operator()<float>(sizes, false);
      check_loops.operator()<double>(sizes, false);
    }
    for (const ConvolutionSizes& sizes : {
             sizes_of(2, 37, 1, 1, {1, 6, 9}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
             sizes_of(1, 150, 1, 1, {1, 7, 8}, {1, 2, 5}, {1, 2, 3}, {0, 1, 4}, {1, 3, 1}),
             sizes_of(1, 37, 1, 1, {1, 4, 13}, {1, 3, 7}, {1, 1, 1}, {0, 2, 6}, {1, 1, 1}),
         }) {
      check_loops.operator()<float>(sizes, true);
      check_loops.operator()<double>(sizes, true);
    }
    for (const ConvolutionSizes& sizes : implicit_gemm_cases()) {
      check_biases<float>(sizes, false, name + ": implicit GEMM", [&](const Call<float>& call) {
        return run(version.implicit_gemm.float32, call, 2);
      });
      if (version.implicit_gemm.pack == nullptr || !version.multiplies_bfloat16) continue;
      check_biases<float>(sizes, false, name + ": bfloat16 implicit GEMM",
                          [&](const Call<float>& call) {
                            return run_packed(version.implicit_gemm.bfloat16, call, 2);
                          });
    }
  }
}

TEST(every_version_transposes_and_sums_as_the_reference) {
  for_each_type([]<class T>() {
    const LayoutKernels& plain = layout_kernels<Capability::kReference>().find(kType<T>);
    for (const Version& version : versions()) {
      const LayoutKernels& kernels = version.layout.find(kType<T>);
      for (const int64_t rows : {1, 3, 16, 31, 32, 65, 200}) {
        for (const int64_t columns : {1, 2, 15, 16, 33, 64, 131}) {
          const auto from = exact_numbers<T>(rows * (columns + 3), 7);
          auto got = painted<T>(columns * (rows + 2));
          auto expected = got;
          kernels.transpose(from.data(), columns + 3, got.data(), rows + 2, rows, columns);
          plain.transpose(from.data(), columns + 3, expected.data(), rows + 2, rows, columns);
          CHECK(same_bits(got, expected));
          CHECK_EQ(kernels.sum(from.data(), rows * columns),
                   plain.sum(from.data(), rows * columns));
          std::vector<double> sums(columns + 1, 0.5), wanted = sums;
          kernels.add_rows(from.data(), rows, columns, sums.data());
          plain.add_rows(from.data(), rows, columns, wanted.data());
          CHECK(same_bits(sums, wanted));
        }
      }
    }
  });
}
