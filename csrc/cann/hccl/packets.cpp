#include "cann/hccl/packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Failure(HCCL_E_NETWORK, what);
}

size_t tag_bytes(const std::optional<Secret>& key) {
  return key ? sizeof(Tag) : 0;
}

}  // namespace

Packet::Packet(uint32_t kind, uint64_t number, size_t body_bytes)
    : bytes_(sizeof(Header) + body_bytes) {
  const Header header{kind, 0, number, 0, body_bytes};
  std::memcpy(bytes_.data(), &header, sizeof(header));
}

Packet::Packet(uint32_t kind, uint64_t number, std::span<const char> body)
    : Packet(kind, number, body.size()) {
  std::ranges::copy(body, this->body().begin());
}

Packet::Header Packet::header() const {
  Header header;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  return header;
}

std::vector<char> PacketWriter::write(Packet packet) {
  Packet::Header header = packet.header();
  header.sequence = next_++;
  std::memcpy(packet.bytes_.data(), &header, sizeof(header));
  if (key_) {
    const Tag tag = tag_of(*key_, packet.bytes_);
    packet.bytes_.insert(packet.bytes_.end(), tag.begin(), tag.end());
  }
  return std::move(packet.bytes_);
}

std::span<char> PacketReader::room() {
  return std::span(bytes_).subspan(filled_);
}

std::optional<Packet> PacketReader::advance(size_t count) {
  filled_ += count;
  if (filled_ < bytes_.size()) return std::nullopt;
  if (bytes_.size() == sizeof(Packet::Header)) {
    check_header();
    Packet::Header header;
    std::memcpy(&header, bytes_.data(), sizeof(header));
    bytes_.resize(sizeof(header) + header.body_bytes + tag_bytes(key_));
    if (filled_ < bytes_.size()) return std::nullopt;
  }
  if (key_) {
    const size_t end = bytes_.size() - sizeof(Tag);
    Tag tag;
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(end), tag.size(), tag.begin());
    if (!are_equal(tag, tag_of(*key_, std::span(bytes_).first(end)))) {
      refuse("a packet whose tag is not that of its bytes");
    }
  }
  ++next_;
  filled_ = 0;
  return Packet(std::exchange(bytes_, std::vector<char>(sizeof(Packet::Header))));
}

void PacketReader::check_header() const {
  Packet::Header header;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.kind >= largest_.size()) {
    refuse(c10::str("a packet of kind ", header.kind, ", which there is not"));
  }
  if (header.sequence != next_) {
    refuse(c10::str("packet ", header.sequence, " in the place of packet ", next_));
  }
  if (header.body_bytes > largest_[header.kind]) {
    refuse(c10::str("a packet of ", header.body_bytes, " bytes, expected at most ",
                    largest_[header.kind]));
  }
}

std::vector<char> joined(const std::vector<std::string>& texts) {
  std::vector<char> bytes;
  for (const std::string& text : texts) {
    const uint64_t size = text.size();
    const auto* const first = reinterpret_cast<const char*>(&size);
    bytes.insert(bytes.end(), first, first + sizeof(size));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  return bytes;
}

std::vector<std::string> parted(std::span<const char> bytes, size_t count) {
  std::vector<std::string> texts;
  while (!bytes.empty() && texts.size() < count) {
    uint64_t size = 0;
    if (bytes.size() < sizeof(size)) break;
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes = bytes.subspan(sizeof(size));
    if (size > bytes.size())
      refuse(c10::str("a text of ", size, " bytes where ", bytes.size(), " are left"));
    texts.emplace_back(bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  if (!bytes.empty() || texts.size() != count) {
    refuse(c10::str("a packet that is not one of ", count, " texts"));
  }
  return texts;
}

}  // namespace aclnn_host::hccl
