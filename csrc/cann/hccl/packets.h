#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cann/hccl/proof.h"

namespace aclnn_host::hccl {

// A packet that one process sends another over a connection.
class Packet {
 public:
  // A packet with space for a body of this size.
  Packet(uint32_t kind, uint64_t number, size_t body_bytes);
  Packet(uint32_t kind, uint64_t number, std::span<const char> body);

  uint32_t kind() const { return header().kind; }
  uint64_t number() const { return header().number; }  // its meaning depends on the kind
  std::span<char> body() { return {bytes_.data() + sizeof(Header), header().body_bytes}; }
  std::span<const char> body() const {
    return {bytes_.data() + sizeof(Header), header().body_bytes};
  }

 private:
  friend class PacketWriter;
  friend class PacketReader;

  struct Header {
    uint32_t kind;
    uint32_t unused;
    uint64_t number;
    uint64_t sequence;  // the number of packets before it on this connection
    uint64_t body_bytes;
  };

  explicit Packet(std::vector<char> bytes) : bytes_(std::move(bytes)) {}
  Header header() const;

  std::vector<char> bytes_;  // header, body, and on a sealed connection a tag
};

// Serialises packets, for one direction of a connection. With a key, each ends with an
// authentication tag.
class PacketWriter {
 public:
  explicit PacketWriter(const std::optional<Secret>& key) : key_(key) {}
  std::vector<char> write(Packet packet);

 private:
  std::optional<Secret> key_;
  uint64_t next_ = 0;
};

// Parses packets. The input is not trusted: the size of a packet is checked before memory is
// allocated for it, and its sequence number and tag are checked before it is returned.
class PacketReader {
 public:
  // `largest` has the limit of the body of each kind; other kinds are refused.
  PacketReader(const std::optional<Secret>& key, std::span<const size_t> largest)
      : key_(key), largest_(largest) {}

  // The buffer for the next bytes. Never empty.
  std::span<char> room();
  // Accepts `count` bytes that were read into room(). Returns a packet when it is complete. Throws
  // a Failure with HCCL_E_NETWORK if the packet is invalid; the reader cannot be used afterwards.
  std::optional<Packet> advance(size_t count);

 private:
  void check_header() const;

  std::optional<Secret> key_;
  std::span<const size_t> largest_;
  std::vector<char> bytes_ = std::vector<char>(sizeof(Packet::Header));
  size_t filled_ = 0;
  uint64_t next_ = 0;
};

// Serialises several texts, and parses them. Throws a Failure if the bytes are not those of `count`
// texts.
std::vector<char> joined(const std::vector<std::string>& texts);
std::vector<std::string> parted(std::span<const char> bytes, size_t count);

}  // namespace aclnn_host::hccl
