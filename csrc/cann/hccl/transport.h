#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "hccl/hccl_types.h"
#include "host_cann/runtime/deadline.h"

namespace aclnn_host::hccl {

// The reason why ranks cannot go on together. It ends their communicator.
class Failure : public std::runtime_error {
 public:
  Failure(HcclResult code, const std::string& text) : std::runtime_error(text), code_(code) {}
  HcclResult code() const noexcept { return code_; }

 private:
  HcclResult code_;
};

// The code that another rank reports for its failure; HCCL_E_INTERNAL if it is unknown.
inline HcclResult result_of(uint64_t number) noexcept {
  const bool is_known = number > HCCL_SUCCESS && number <= HCCL_E_OOM;
  return is_known ? static_cast<HcclResult>(number) : HCCL_E_INTERNAL;
}

constexpr uint32_t kNoRoot = UINT32_MAX;

// Describes a rank's operation. Ranks that exchange messages compare it.
struct Description {
  HcclCMDType operation = HCCL_CMD_INVALID;
  HcclDataType type = HCCL_DATA_TYPE_RESERVED;
  HcclReduceOp reduction = HCCL_REDUCE_RESERVED;
  uint32_t root = kNoRoot;

  bool operator==(const Description&) const = default;
};

// Bytes to, or from, another rank, and their operation.
struct Message {
  uint32_t peer;
  void* data;
  size_t bytes;
  Description what;
};

// Transports the messages of one rank to the others.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends and receives all messages. Only messages between the same two ranks keep their order.
  // Throws a Failure if a peer runs another operation, has failed or ended, or is not ready by the
  // deadline. One thread at a time.
  virtual void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                        const Deadline& deadline) = 0;

  // Informs all peers, including later ones, that this rank no longer takes part, and of the
  // reason.
  virtual void fail(const Failure& failure) noexcept = 0;
};

}  // namespace aclnn_host::hccl
