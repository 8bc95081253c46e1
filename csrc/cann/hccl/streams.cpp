#include "cann/hccl/streams.h"

#include <algorithm>
#include <cstring>

#include <c10/util/StringUtil.h>

#include "cann/hccl/names.h"

namespace aclnn_host::hccl {
namespace {

// The peers of unfinished transfers.
std::vector<uint32_t> missing_peers(const std::vector<Transfer>& sends,
                                    const std::vector<Transfer>& receipts) {
  std::vector<uint32_t> missing;
  for (const auto* const transfers : {&sends, &receipts}) {
    for (const Transfer& transfer : *transfers) {
      if (!transfer.is_done()) missing.push_back(transfer.peer());
    }
  }
  return missing;
}

}  // namespace

// The next bytes, at most `most`: a part of the envelope or of the data.
std::span<char> Transfer::next(size_t most) {
  if (passed_ < sizeof(Envelope)) {
    char* const begin = reinterpret_cast<char*>(&envelope_);
    return {begin + passed_, std::min(most, sizeof(Envelope) - passed_)};
  }
  const size_t offset = passed_ - sizeof(Envelope);
  return {static_cast<char*>(message_.data) + offset, std::min(most, message_.bytes - offset)};
}

size_t Transfer::read(std::span<char> to) {
  size_t count = 0;
  while (count < to.size() && !is_done()) {
    const auto bytes = next(to.size() - count);
    std::memcpy(to.data() + count, bytes.data(), bytes.size());
    passed_ += bytes.size();
    count += bytes.size();
  }
  return count;
}

size_t Transfer::write(std::span<const char> from, uint32_t own) {
  size_t count = 0;
  while (count < from.size() && !is_done()) {
    const auto bytes = next(from.size() - count);
    std::memcpy(bytes.data(), from.data() + count, bytes.size());
    passed_ += bytes.size();
    count += bytes.size();
    if (passed_ == sizeof(Envelope)) check_envelope(own);
  }
  return count;
}

Transfer::Envelope::Envelope(const Message& of)
    : operation(of.what.operation),
      type(of.what.type),
      reduction(of.what.reduction),
      root(of.what.root),
      bytes(of.bytes) {}

// Numbers without an enumerator become the reserved or invalid one.
Description Transfer::Envelope::what() const {
  return {
      operation < HCCL_CMD_MAX ? static_cast<HcclCMDType>(operation) : HCCL_CMD_INVALID,
      type < HCCL_DATA_TYPE_RESERVED ? static_cast<HcclDataType>(type) : HCCL_DATA_TYPE_RESERVED,
      reduction < HCCL_REDUCE_RESERVED ? static_cast<HcclReduceOp>(reduction)
                                       : HCCL_REDUCE_RESERVED,
      root};
}

void Transfer::check_envelope(uint32_t own) const {
  if (envelope_ == Envelope(message_)) return;
  throw Failure(HCCL_E_PARA,
                c10::str("rank ", own, " is in ", text_of(message_.what, message_.bytes), ", rank ",
                         message_.peer, " in ", text_of(envelope_.what(), envelope_.bytes),
                         "; all ranks must call the same operations in the same order"));
}

void Streams::exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                       const Deadline& deadline) {
  std::vector<Transfer> sends(outgoing.begin(), outgoing.end());
  std::vector<Transfer> receipts(incoming.begin(), incoming.end());

  // Advances each peer's first unfinished message. Its later messages wait.
  std::vector<char> waits(ranks_);
  const auto advance = [&](std::vector<Transfer>& of, auto&& step) {
    std::ranges::fill(waits, 0);
    bool has_advanced = false;
    for (Transfer& transfer : of) {
      const uint32_t peer = transfer.peer();
      if (transfer.is_done() || waits[peer]) continue;
      if (step(transfer)) has_advanced = true;
      if (!transfer.is_done()) waits[peer] = 1;
    }
    return has_advanced;
  };
  bool is_absent = false;
  for (;;) {
    const uint32_t seen = bell();
    const bool sent = advance(sends, [&](Transfer& transfer) { return push(transfer); });
    const bool received = advance(receipts, [&](Transfer& transfer) { return pull(transfer); });
    const std::vector<uint32_t> missing = missing_peers(sends, receipts);
    if (missing.empty()) return;
    if (sent || received) continue;
    std::optional<Failure> absent;
    for (const uint32_t peer : missing) {
      if (!absent) absent = absence(peer);
    }
    if (absent && is_absent) throw *absent;
    is_absent = absent.has_value();
    if (is_absent) continue;  // its last bytes may have arrived before its end
    if (deadline.is_past()) {
      throw Failure(HCCL_E_TIMEOUT, c10::str("waited in vain for ", text_of_ranks(missing)));
    }
    wait(seen);
  }
}

void Streams::write_text(std::span<char> to, std::string_view text) noexcept {
  constexpr std::string_view kRest = " ... (the rest stands with the rank that failed)";
  size_t count = text.size();
  if (count >= to.size()) {
    count = to.size() - kRest.size() - 1;
    const auto continues = [&] { return (static_cast<unsigned char>(text[count]) & 0xc0) == 0x80; };
    while (count > 0 && continues()) --count;
    kRest.copy(to.data() + count, kRest.size());
    to[count + kRest.size()] = '\0';
  } else {
    to[count] = '\0';
  }
  text.copy(to.data(), count);
}

}  // namespace aclnn_host::hccl
