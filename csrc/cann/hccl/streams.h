#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {

// The transfer of one message: its envelope and data, and the number of bytes already passed.
class Transfer {
 public:
  explicit Transfer(const Message& of) : message_(of), envelope_(of) {}

  uint32_t peer() const { return message_.peer; }
  size_t rest() const { return sizeof(Envelope) + message_.bytes - passed_; }
  bool is_done() const { return rest() == 0; }

  // Copies as many of the next bytes of an outgoing message as fit; returns their number.
  size_t read(std::span<char> to);
  // Copies the next bytes of a message to rank `own`, and returns the number of bytes used. Throws
  // a Failure if the envelope is not that of the expected message.
  size_t write(std::span<const char> from, uint32_t own);

 private:
  // Enumerations as integers, because another process may send any number.
  struct Envelope {
    explicit Envelope(const Message& of);
    bool operator==(const Envelope&) const = default;
    Description what() const;

    uint32_t operation;
    uint32_t type;
    uint32_t reduction;
    uint32_t root;
    uint64_t bytes;
  };

  std::span<char> next(size_t most);
  void check_envelope(uint32_t own) const;

  Message message_;
  Envelope envelope_;  // of an incoming message: overwritten by the received one
  size_t passed_ = 0;
};

// A transport with a stream of bytes from each rank to each other one.
class Streams : public Transport {
 public:
  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                const Deadline& deadline) final;

 protected:
  Streams(uint32_t rank, uint32_t ranks) : rank_(rank), ranks_(ranks) {}

  // Passes on as many bytes as fit, or are available; false if there are none.
  virtual bool push(Transfer& transfer) = 0;
  virtual bool pull(Transfer& transfer) = 0;

  // A number that changes when another rank has done something.
  virtual uint32_t bell() const = 0;
  // Sleeps until the bell differs from `seen`, or kTimeout has passed.
  virtual void wait(uint32_t seen) = 0;
  // The reason why nothing more arrives from the peer, if so.
  virtual std::optional<Failure> absence(uint32_t peer) = 0;

  // The interval at which a waiting rank checks whether the others still exist.
  static constexpr std::chrono::milliseconds kTimeout{100};
  // The size of the buffer for a failure's text: two paths of the greatest length fit.
  static constexpr size_t kLongestText = size_t{8} << 10;

  // Writes a text with a terminator. If the buffer is too small, writes as many whole characters as
  // fit, and marks the truncation.
  static void write_text(std::span<char> to, std::string_view text) noexcept;

  const uint32_t rank_;
  const uint32_t ranks_;
};

}  // namespace aclnn_host::hccl
