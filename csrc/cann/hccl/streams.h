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

// A message on its way: an envelope and the data, of which so many bytes have been passed on.
class Transfer {
 public:
  explicit Transfer(const Message& of) : message_(of), envelope_(of) {}

  uint32_t peer() const { return message_.peer; }
  size_t rest() const { return sizeof(Envelope) + message_.bytes - passed_; }
  bool is_done() const { return rest() == 0; }

  // Copies the next bytes of a message that leaves, as many as there is room for; returns how many.
  size_t read(std::span<char> to);
  // Copies the next bytes of a message that comes to rank `own`, and returns how many were wanted.
  // Throws a Failure if the envelope is not that of the message that was expected.
  size_t write(std::span<const char> from, uint32_t own);

 private:
  // In numbers, since what another process sends may be no value of an enumeration.
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
  Envelope envelope_;  // as sent; of a message that comes, overwritten by what was sent
  size_t passed_ = 0;
};

// A transport in which a stream of bytes leads from each rank to each other one.
class Streams : public Transport {
 public:
  void exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                const Deadline& deadline) final;

 protected:
  Streams(uint32_t rank, uint32_t ranks) : rank_(rank), ranks_(ranks) {}

  // Passes on what there is room for, or what is there; false if that is nothing.
  virtual bool push(Transfer& transfer) = 0;
  virtual bool pull(Transfer& transfer) = 0;

  // A number that changes when another rank has done something.
  virtual uint32_t bell() const = 0;
  // Sleeps until the number is no longer that, or kPatience is at an end.
  virtual void wait(uint32_t seen) = 0;
  // Why nothing more comes from the peer, if so.
  virtual std::optional<Failure> absence(uint32_t peer) = 0;

  // How often a waiting rank looks whether the others are still there.
  static constexpr std::chrono::milliseconds kPatience{100};
  // How many bytes of a failure's text the others learn: two paths of the greatest length fit.
  static constexpr size_t kLongestText = size_t{8} << 10;

  // Writes a text and its end, or as many whole characters of it as there is room for and a remark
  // that it goes on.
  static void write_text(std::span<char> to, std::string_view text) noexcept;

  const uint32_t rank_;
  const uint32_t ranks_;
};

}  // namespace aclnn_host::hccl
