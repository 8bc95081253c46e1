#pragma once

#include <array>
#include <cstdint>

namespace aclnn_host {

// The source of the random numbers of a call: its seed and its offset, as torch_npu passes them.
struct Source {
  uint64_t seed;
  uint64_t offset;
};
inline Source source_of(uint64_t seed, uint64_t offset) {
  return {seed, offset};
}
inline Source source_of(int64_t seed, int64_t offset) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)};
}

// Philox4x32-10, the generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (2011): each block of four words is a function of its number alone, so that any thread can
// compute any of them. The key is the seed; the counter is the block's number and the offset.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  explicit Philox(Source source) : source_(source) {}

  Block block(uint64_t number) const {
    Block counter{low(number), high(number), low(source_.offset), high(source_.offset)};
    uint32_t key0 = low(source_.seed), key1 = high(source_.seed);
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {high(product1) ^ counter[1] ^ key0, low(product1),
                 high(product0) ^ counter[3] ^ key1, low(product0)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    return counter;
  }

  // The 64-bit numbers, two in each block.
  uint64_t wide(uint64_t number) const { return wide(block(number / 2), number % 2); }
  static uint64_t wide(const Block& words, uint64_t half) {
    return words[2 * half] | uint64_t{words[2 * half + 1]} << 32;
  }

 private:
  static uint32_t low(uint64_t bits) { return static_cast<uint32_t>(bits); }
  static uint32_t high(uint64_t bits) { return static_cast<uint32_t>(bits >> 32); }

  Source source_;
};

}  // namespace aclnn_host
