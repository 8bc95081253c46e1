#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "hccl/hccl_types.h"
#include "host_cann/runtime/deadline.h"

namespace aclnn_host::hccl {

// Why ranks cannot go on together. It ends their communicator.
class Failure : public std::runtime_error {
 public:
  Failure(HcclResult code, const std::string& text) : std::runtime_error(text), code_(code) {}
  HcclResult code() const noexcept { return code_; }

 private:
  HcclResult code_;
};

// The code that another rank gives for its failure; HCCL_E_INTERNAL if there is none such.
inline HcclResult result_of(uint64_t number) noexcept {
  const bool is_known = number > HCCL_SUCCESS && number <= HCCL_E_OOM;
  return is_known ? static_cast<HcclResult>(number) : HCCL_E_INTERNAL;
}

constexpr uint32_t kNoRoot = UINT32_MAX;

// What a rank is doing. Ranks that exchange messages compare it.
struct Description {
  HcclCMDType operation = HCCL_CMD_INVALID;
  HcclDataType type = HCCL_DATA_TYPE_RESERVED;
  HcclReduceOp reduction = HCCL_REDUCE_RESERVED;
  uint32_t root = kNoRoot;

  bool operator==(const Description&) const = default;
};

// Bytes for, or from, another rank, and in which operation.
struct Message {
  uint32_t peer;
  void* data;
  size_t bytes;
  Description what;
};

// How the messages of one rank get to the others.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends and receives all the messages, in no order but that of those between the same two ranks.
  // Throws a Failure if a peer does something else, has failed or gone, or has not come by the
  // deadline. One thread at a time.
  virtual void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                        const Deadline& deadline) = 0;

  // Tells the peers, those too that come later, that this rank takes no more part, and why.
  virtual void fail(const Failure& failure) noexcept = 0;
};

}  // namespace aclnn_host::hccl
