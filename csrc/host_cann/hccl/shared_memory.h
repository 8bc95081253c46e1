#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host_cann/hccl/streams.h"

namespace aclnn_host::hccl {

// A file in memory, without a name, mapped as a whole. It ends with the last process that has it.
class SharedFile {
 public:
  // A new file of zeros.
  explicit SharedFile(size_t bytes);
  // The file of another process, or of this one, by its path().
  SharedFile(const std::string& path, size_t bytes);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  // Where processes of the same user find it while this object lives.
  std::string path() const;
  char* data() const noexcept { return data_; }

 private:
  void map(size_t bytes);

  int file_ = -1;
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

// The ranks of one host. From each to each other leads a ring of bytes in shared memory, and each
// rank has a bell that the others ring when they have written or read something of its.
class SharedMemory final : public Streams {
 public:
  // How many bytes the file of so many ranks has.
  static size_t file_size(uint32_t ranks) noexcept;

  // processes: the id of each rank's process.
  SharedMemory(std::unique_ptr<SharedFile> file, uint32_t rank, const std::vector<int>& processes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() override;

  void fail(const Failure& failure) noexcept override;

 private:
  struct Place;  // of a rank: its bell, and whether it takes part
  struct Ring;   // how much was written and read

  bool push(Transfer& transfer) override;
  bool pull(Transfer& transfer) override;
  uint32_t bell() const override;
  void wait(uint32_t seen) override;
  std::optional<Failure> absence(uint32_t peer) override;

  Place& place(uint32_t rank) const;
  Ring& ring(uint32_t from, uint32_t to) const;
  char* bytes_of(const Ring& ring) const;
  void ring_bell(uint32_t rank) const noexcept;
  void take_leave(uint32_t state, const char* text) noexcept;

  const std::unique_ptr<SharedFile> file_;
  const size_t capacity_;  // of a ring
  std::vector<int> processes_;
  std::vector<int> watched_;  // a file that tells when the process of a rank ends; -1 for this one
};

}  // namespace aclnn_host::hccl
