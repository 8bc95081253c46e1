// Shared by the tests of collective communication: numbers of every type, and ranks that are
// devices of one process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "hccl/hccl.h"
#include "runtime_support.h"

// True if each rank uses the network as if it had its own host; test_hccl*_network.cpp set it.
#ifdef ACLNN_TEST_OVER_NETWORK
inline constexpr bool kOverNetwork = true;
#else
inline constexpr bool kOverNetwork = false;
#endif

// Set before anything reads it. Torch's store resolves addresses, which must not depend on a slow
// name server.
inline const int environment =
    setenv("ACLNN_TORCH_DEVICES", "8", 1) + setenv("HCCL_IF_IP", "127.0.0.1", 1) +
    setenv("ACLNN_TORCH_HCCL_NETWORK", kOverNetwork ? "1" : "0", 1) +
    setenv("ACLNN_TORCH_PRODUCT", "host", 1) + setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);

// Numbers of a type, as bytes and as doubles.
struct Numbers {
  HcclDataType type;
  size_t size;
  std::function<void(char*, double)> write;
  std::function<double(const char*)> read;
};

template <class T>
inline Numbers numbers(HcclDataType type) {
  return {type, sizeof(T),
          [](char* to, double value) {
            const T stored = static_cast<T>(value);
            std::memcpy(to, &stored, sizeof(T));
          },
          [](const char* from) {
            T stored;
            std::memcpy(&stored, from, sizeof(T));
            return static_cast<double>(stored);
          }};
}

// BFLOAT16 of representable values, and of others rounded to even.
inline Numbers bfloat16() {
  return {HCCL_DATA_TYPE_BFP16, 2,
          [](char* to, double value) {
            const float number = static_cast<float>(value);
            uint32_t bits;
            std::memcpy(&bits, &number, 4);
            const auto upper = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
            std::memcpy(to, &upper, 2);
          },
          [](const char* from) {
            uint16_t upper;
            std::memcpy(&upper, from, 2);
            const uint32_t bits = uint32_t{upper} << 16;
            float number;
            std::memcpy(&number, &bits, 4);
            return double{number};
          }};
}

inline Numbers float16() {
  return {HCCL_DATA_TYPE_FP16, 2,
          [](char* to, double value) {
            const uint16_t bits = aclFloatToFloat16(static_cast<float>(value));
            std::memcpy(to, &bits, 2);
          },
          [](const char* from) {
            uint16_t bits;
            std::memcpy(&bits, from, 2);
            return double{aclFloat16ToFloat(bits)};
          }};
}

inline const std::vector<Numbers>& all_types() {
  static const std::vector<Numbers> types = {
      numbers<int8_t>(HCCL_DATA_TYPE_INT8),     numbers<int16_t>(HCCL_DATA_TYPE_INT16),
      numbers<int32_t>(HCCL_DATA_TYPE_INT32),   float16(),
      numbers<float>(HCCL_DATA_TYPE_FP32),      numbers<int64_t>(HCCL_DATA_TYPE_INT64),
      numbers<uint64_t>(HCCL_DATA_TYPE_UINT64), numbers<uint8_t>(HCCL_DATA_TYPE_UINT8),
      numbers<uint16_t>(HCCL_DATA_TYPE_UINT16), numbers<uint32_t>(HCCL_DATA_TYPE_UINT32),
      numbers<double>(HCCL_DATA_TYPE_FP64),     bfloat16()};
  return types;
}
inline const Numbers& floats() {
  return all_types()[4];
}

// Device memory for this many numbers.
class Buffer {
 public:
  Buffer(const Numbers& of, size_t count) : of_(of), count_(count) {
    CHECK_EQ(aclrtMalloc(&data_, std::max<size_t>(count * of.size, 1), ACL_MEM_MALLOC_HUGE_FIRST),
             ACL_SUCCESS);
  }
  Buffer(const Numbers& of, const std::vector<double>& values) : Buffer(of, values.size()) {
    for (size_t i = 0; i < count_; ++i)
      of.write(static_cast<char*>(data_) + i * of.size, values[i]);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { CHECK_EQ(aclrtFree(data_), ACL_SUCCESS); }

  void* data() const { return data_; }
  std::vector<double> values() const {
    std::vector<double> found;
    for (size_t i = 0; i < count_; ++i) {
      found.push_back(of_.read(static_cast<const char*>(data_) + i * of_.size));
    }
    return found;
  }

 private:
  const Numbers& of_;
  const size_t count_;
  void* data_ = nullptr;
};

// The ranks of this process, each with a device and a stream.
class World {
 public:
  explicit World(uint32_t ranks) : comms(ranks), streams(ranks) {
    CHECK_EQ(environment, 0);
    std::vector<int32_t> devices(ranks);
    std::iota(devices.begin(), devices.end(), 0);
    for (uint32_t rank = ranks; rank-- > 0;) {
      enter(rank);
      CHECK_EQ(aclrtCreateStream(&streams[rank]), ACL_SUCCESS);
    }
    CHECK_EQ(HcclCommInitAll(ranks, devices.data(), comms.data()), HCCL_SUCCESS);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    for (HcclComm comm : comms) {
      if (comm != nullptr) CHECK_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
    }
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      CHECK_EQ(aclrtDestroyStream(streams[rank]), ACL_SUCCESS);
      CHECK_EQ(aclrtResetDeviceForce(static_cast<int32_t>(rank)), ACL_SUCCESS);
    }
  }

  uint32_t ranks() const { return static_cast<uint32_t>(comms.size()); }
  void enter(uint32_t rank) const {
    CHECK_EQ(aclrtSetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
  }

  // Calls body(rank) for each rank, on its device, and waits for all streams.
  void run(const std::function<HcclResult(uint32_t)>& body) const {
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      enter(rank);
      if (!CHECK_EQ(body(rank), HCCL_SUCCESS)) std::fprintf(stderr, "%s\n", messages().c_str());
    }
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      const aclError status = aclrtSynchronizeStream(streams[rank]);
      if (!CHECK_EQ(status, ACL_SUCCESS)) std::fprintf(stderr, "%s\n", messages().c_str());
    }
  }

  std::vector<HcclComm> comms;
  std::vector<aclrtStream> streams;
};

using Buffers = std::vector<std::unique_ptr<Buffer>>;

// Small numbers, different for each rank and index.
inline double number(uint32_t rank, size_t i) {
  return static_cast<double>((rank * 5 + i * 3) % 7 % 4 + 1);
}
inline std::vector<double> values(uint32_t rank, size_t count) {
  std::vector<double> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = number(rank, i);
  return made;
}

// The initial data of each rank, and memory for a result.
inline Buffers filled(const World& world, const Numbers& of, size_t count) {
  Buffers made;
  for (uint32_t rank = 0; rank < world.ranks(); ++rank) {
    world.enter(rank);
    made.push_back(std::make_unique<Buffer>(of, values(rank, count)));
  }
  return made;
}
inline Buffers room(const World& world, const Numbers& of, size_t count) {
  Buffers made;
  for (uint32_t rank = 0; rank < world.ranks(); ++rank) {
    world.enter(rank);
    made.push_back(std::make_unique<Buffer>(of, std::vector<double>(count, 9)));
  }
  return made;
}

inline double reduced(HcclReduceOp op, uint32_t ranks, size_t i) {
  double result = number(0, i);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    const double next = number(rank, i);
    if (op == HCCL_REDUCE_SUM) result += next;
    if (op == HCCL_REDUCE_PROD) result *= next;
    if (op == HCCL_REDUCE_MAX) result = std::max(result, next);
    if (op == HCCL_REDUCE_MIN) result = std::min(result, next);
  }
  return result;
}

inline const HcclReduceOp kReductions[] = {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX,
                                           HCCL_REDUCE_MIN};

// Converts a value to the type. Products of eight numbers up to 4 exceed INT8, so it wraps around,
// as sums do.
inline double wrapped(const Numbers& of, double value) {
  char bytes[16];
  if (of.type == HCCL_DATA_TYPE_INT8) value = static_cast<int8_t>(static_cast<int64_t>(value));
  if (of.type == HCCL_DATA_TYPE_UINT8) value = static_cast<uint8_t>(static_cast<int64_t>(value));
  of.write(bytes, value);
  return of.read(bytes);
}

inline std::vector<double> all_reduced(const Numbers& of, HcclReduceOp op, uint32_t ranks,
                                       size_t begin, size_t count) {
  std::vector<double> expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = wrapped(of, reduced(op, ranks, begin + i));
  return expected;
}
