#include "host_cann/runtime/clear.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host_cann/runtime/memory.h"

namespace aclnn_host {
namespace {

constexpr size_t kLeastBytes = size_t{16} << 20;  // less is set before the file is read
constexpr uintptr_t kPiece = uintptr_t{2} << 20;  // is cleared or left as a whole: a huge page

// The pages of this process, as Linux describes them in Documentation/admin-guide/mm/pagemap.rst:
// 8 bytes each, of which the upper two bits say if the page is in memory or swapped out. A page of
// private memory that is neither was never touched.
class PageMap {
 public:
  PageMap() noexcept : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap() {
    if (file_ >= 0) close(file_);
  }

  // True if a page of a range of at most kPiece bytes was touched, or may have been.
  bool is_touched(uintptr_t begin, uintptr_t end) const noexcept {
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    constexpr uintptr_t kMostPages = kPiece / 4096;
    uint64_t entries[kMostPages];
    const uintptr_t first = begin / page;
    const uintptr_t count = (end - 1) / page - first + 1;
    const auto bytes = static_cast<ssize_t>(count * sizeof(uint64_t));
    if (count > kMostPages || pread(file_, entries, static_cast<size_t>(bytes),
                                    static_cast<off_t>(first * sizeof(uint64_t))) != bytes) {
      return true;
    }
    return std::any_of(entries, entries + count, [](uint64_t entry) { return entry >> 62 != 0; });
  }

 private:
  const int file_;
};

}  // namespace

void clear(void* address, size_t count) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  Block block;
  // Blocks with a number of mapped bytes are private memory; mappings may be shared.
  if (count < kLeastBytes || !find_block(address, count, &block) || block.mapped == 0 ||
      !block.contains(begin, count)) {
    std::memset(address, 0, count);
    return;
  }
  const PageMap pages;
  for (uintptr_t next = begin; next < begin + count;) {
    const uintptr_t end = std::min(next / kPiece * kPiece + kPiece, begin + count);
    if (pages.is_touched(next, end)) std::memset(reinterpret_cast<void*>(next), 0, end - next);
    next = end;
  }
}

}  // namespace aclnn_host
