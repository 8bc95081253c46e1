#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "cann/hccl/file.h"
#include "cann/hccl/shared_file.h"
#include "cann/hccl/streams.h"

namespace aclnn_host::hccl {

// Transport between ranks of one host. A ring buffer in shared memory leads from each rank to each
// other one, and each rank has a bell, which the others ring after they have written data for it or
// read its data. Everything that other ranks write to the memory is checked before it is used.
class SharedMemory final : public Streams {
 public:
  // The size of the file for this many ranks, in bytes.
  static size_t file_size(uint32_t ranks) noexcept;

  // processes: the id of each rank's process.
  SharedMemory(SharedFile file, uint32_t rank, const std::vector<int>& processes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() override;

  void fail(const Failure& failure) noexcept override;

 private:
  struct Place;  // of a rank: its bell, and whether it takes part
  struct Ring;   // the numbers of bytes written and read

  bool push(Transfer& transfer) override;
  bool pull(Transfer& transfer) override;
  uint32_t bell() const override;
  void wait(uint32_t seen) override;
  std::optional<Failure> absence(uint32_t peer) override;

  Place& place(uint32_t rank) const;
  Ring& ring(uint32_t from, uint32_t to) const;
  char* bytes_of(const Ring& ring) const;
  size_t filled(const Ring& ring, uint32_t peer) const;
  void ring_bell(uint32_t rank) const noexcept;
  void take_leave(uint32_t state, const char* text) noexcept;

  const SharedFile file_;
  const size_t capacity_;  // of a ring
  std::vector<int> processes_;
  std::vector<File> watched_;  // becomes readable when the process of a rank ends; empty for this
                               // one
};

}  // namespace aclnn_host::hccl
