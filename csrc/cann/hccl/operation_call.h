#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "acl/acl_rt.h"
#include "cann/hccl/communicator.h"
#include "cann/hccl/hccl_guard.h"
#include "cann/hccl/names.h"

namespace aclnn_host::hccl {

// One rank's side of an operation while it runs.
class Session {
 public:
  Session(Communicator& of, const Description& what)
      : of_(of), deadline_(of.deadline()), what_(what) {}

  uint32_t rank() const { return of_.rank(); }
  uint32_t ranks() const { return of_.ranks(); }
  const Deadline& deadline() const { return deadline_; }

  // A message of this operation.
  Message message(uint32_t peer, void* data, size_t bytes) const {
    return {peer, data, bytes, what_};
  }

  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming) {
    of_.exchange(outgoing, incoming, deadline_);
  }

  // Messages to, or from, every other rank; part(peer) returns the bytes.
  template <class Part>
  std::vector<Message> for_others(Part&& part) const {
    std::vector<Message> messages;
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      if (peer == rank()) continue;
      const std::span<char> bytes = part(peer);
      messages.push_back(message(peer, bytes.data(), bytes.size()));
    }
    return messages;
  }

 private:
  Communicator& of_;
  const Deadline deadline_;
  const Description what_;
};

// Device memory that an operation uses.
struct Buffer {
  const char* argument;
  char* data;
  size_t bytes;
  uint64_t block = 0;  // of the memory block at the time of the call
};

// A call of an operation: the common checks, and the submission to the stream.
class Call {
 public:
  Call(const char* api, HcclComm comm, aclrtStream stream, const Description& what);

  // A refusal whose error message is already recorded.
  struct Refused {
    HcclResult status;
  };

  uint32_t rank() const { return of_->rank(); }
  uint32_t ranks() const { return of_->ranks(); }
  bool is_root() const { return rank() == what_.root; }
  size_t element() const { return element_size(what_.type); }

  void expect_rank(const char* argument, uint32_t rank) const;

  // Checks and records memory of `count` elements, times `parts`, that the operation uses.
  char* use(const char* argument, const void* address, uint64_t count, uint64_t parts = 1) {
    return use(argument, address, count, parts, element());
  }
  char* use(const char* argument, const void* address, uint64_t count, uint64_t parts,
            size_t size_of_element);

  // Submits the operation to the stream. The body runs when its turn comes.
  HcclResult submit(std::function<void(Session&)> body);

 private:
  void check_type() const;

  const char* const api_;
  const aclrtStream stream_;
  const Description what_;
  std::shared_ptr<Communicator> of_;
  std::vector<Buffer> buffers_;
};

// Runs the body of an operation's function.
template <class Body>
HcclResult called(const char* api, Body&& body) noexcept {
  return guarded(api, [&] {
    try {
      return body();
    } catch (const Call::Refused& refusal) {
      return refusal.status;
    }
  });
}

}  // namespace aclnn_host::hccl
