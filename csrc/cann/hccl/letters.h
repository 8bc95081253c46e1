#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cann/hccl/proof.h"

namespace aclnn_host::hccl {

// What one process tells another over a connection.
class Letter {
 public:
  // A letter with room for a body.
  Letter(uint32_t kind, uint64_t number, size_t body_bytes);
  Letter(uint32_t kind, uint64_t number, std::span<const char> body);

  uint32_t kind() const { return header().kind; }
  uint64_t number() const { return header().number; }  // what it means depends on the kind
  std::span<char> body() { return {bytes_.data() + sizeof(Header), header().body_bytes}; }
  std::span<const char> body() const {
    return {bytes_.data() + sizeof(Header), header().body_bytes};
  }

 private:
  friend class LetterWriter;
  friend class LetterReader;

  struct Header {
    uint32_t kind;
    uint32_t unused;
    uint64_t number;
    uint64_t sequence;  // how many letters came before on this connection
    uint64_t body_bytes;
  };

  explicit Letter(std::vector<char> bytes) : bytes_(std::move(bytes)) {}
  Header header() const;

  std::vector<char> bytes_;  // header, body, and on a sealed connection a tag
};

// Makes letters into bytes, for one direction of a connection. With a key each ends with the tag of
// its bytes.
class LetterWriter {
 public:
  explicit LetterWriter(const std::optional<Secret>& key) : key_(key) {}
  std::vector<char> write(Letter letter);

 private:
  std::optional<Secret> key_;
  uint64_t next_ = 0;
};

// Makes bytes into letters. What comes is not trusted: the size of a letter is bounded before there
// is room for it, its place in the sequence and its tag are checked before it is passed on.
class LetterReader {
 public:
  // largest: how many bytes a body of each kind may have; other kinds are refused.
  LetterReader(const std::optional<Secret>& key, std::span<const size_t> largest)
      : key_(key), largest_(largest) {}

  // Where the next bytes belong. Never empty.
  std::span<char> room();
  // Takes note of so many bytes in the room. Returns the letter when it is whole. Throws a Failure
  // with HCCL_E_NETWORK if it is none that was to come; then nothing more can be read.
  std::optional<Letter> advance(size_t count);

 private:
  void check_header() const;

  std::optional<Secret> key_;
  std::span<const size_t> largest_;
  std::vector<char> bytes_ = std::vector<char>(sizeof(Letter::Header));
  size_t filled_ = 0;
  uint64_t next_ = 0;
};

// Several texts as one, and back. Throws a Failure if the bytes are not those of `count` texts.
std::vector<char> joined(const std::vector<std::string>& texts);
std::vector<std::string> parted(std::span<const char> bytes, size_t count);

}  // namespace aclnn_host::hccl
