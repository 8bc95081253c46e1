#include "cann/hccl/file.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace aclnn_host::hccl {
namespace {

// The numbers of all Files, one bit for each. It has no lock, because a forked child could find the
// lock taken. Larger numbers, which the system assigns only with a raised fs.nr_open, stay open in
// a child.
constexpr size_t kNumbers = size_t{1} << 20;
std::array<std::atomic<uint64_t>, kNumbers / 64> files;

uint64_t bit_of(int number) {
  return uint64_t{1} << number % 64;
}

void close_all() {
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t open = files[i].load();
    if (open == 0) continue;
    files[i] = 0;
    for (uint64_t rest = open; rest != 0; rest &= rest - 1) {
      close(static_cast<int>(i * 64) + std::countr_zero(rest));
    }
  }
}

}  // namespace

File::File(int number) : number_(number) {
  if (number < 0 || static_cast<size_t>(number) >= kNumbers) return;
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &close_all);
  files[static_cast<size_t>(number) / 64].fetch_or(bit_of(number));
}

File::~File() {
  if (number_ < 0) return;
  if (static_cast<size_t>(number_) >= kNumbers) {
    close(number_);
    return;
  }
  const uint64_t bit = bit_of(number_);
  const uint64_t before = files[static_cast<size_t>(number_) / 64].fetch_and(~bit);
  if ((before & bit) != 0)
    close(number_);  // otherwise this is a child process, where the file is
                     // already closed
}

}  // namespace aclnn_host::hccl
