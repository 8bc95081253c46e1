#include "cann/hccl/rank_parts.h"

#include <algorithm>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {

std::vector<uint64_t> values_of(const char* argument, const void* values, size_t count) {
  if (values == nullptr) throw Failure(HCCL_E_PTR, c10::str(argument, " is a null pointer"));
  const auto* const first = static_cast<const uint64_t*>(values);
  return {first, first + count};
}

std::vector<uint64_t> in_a_row(const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> displacements(counts.size());
  for (size_t i = 1; i < counts.size(); ++i) {
    displacements[i] = displacements[i - 1] + counts[i - 1];
  }
  return displacements;
}

uint64_t end_of(const char* argument, const std::vector<uint64_t>& counts,
                const std::vector<uint64_t>& displacements) {
  constexpr uint64_t kMost = uint64_t{1} << 60;
  uint64_t end = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > kMost || displacements[i] > kMost) {
      throw Failure(HCCL_E_PARA, c10::str(argument, " has ", counts[i], " for rank ", i,
                                          ", which no memory has"));
    }
    if (counts[i] > 0) end = std::max(end, displacements[i] + counts[i]);
  }
  return end;
}

}  // namespace aclnn_host::hccl
