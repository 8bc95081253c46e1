// The selection of blocks of keys: see nsa_scores.h.

#include "cann/rows/attention/nsa_scores.h"

#include <tuple>

#include "cann/rows/attention/heads.h"
#include "cann/rows/row.h"

namespace aclnn_host {

void check_blocks(const SparseBlocks& blocks, const char* stride_name) {
  expect_multiple("compressBlockSize", blocks.window, 16, 128);
  expect_multiple(stride_name, blocks.stride, 16, std::min<int64_t>(64, blocks.window));
  expect_multiple("selectBlockSize", blocks.block, 16, 128);
  EXPECT(blocks.block >= blocks.window && blocks.block % blocks.stride == 0, "selectBlockSize is ",
         blocks.block, ", expected a multiple of ", stride_name, " from compressBlockSize on");
  expect_at_least("selectBlockCount", blocks.count, 1);
}

at::Tensor block_scores(const at::Tensor& probabilities, const SparseBlocks& blocks,
                        int64_t block_count) {
  const int64_t m = blocks.windows_in_block();
  const int64_t n = blocks.window / blocks.stride;
  const int64_t windows = std::min(probabilities.size(-1), block_count * m + m);
  // Positions before the first window and after the last one contribute 0.
  std::vector<int64_t> sizes = probabilities.sizes().vec();
  sizes.back() = n + block_count * m + m;
  const at::Tensor padded = at::zeros(sizes, probabilities.options());
  padded.narrow(-1, n, windows).copy_(probabilities.narrow(-1, 0, windows));
  sizes.back() = block_count;
  at::Tensor sum = at::zeros(sizes, probabilities.options());
  for (int64_t i = 0; i < m + n - 1; ++i) {
    const int64_t times = std::min({i + 1, m + n - 1 - i, m, n});
    const int64_t first = n + m - i;
    sum +=
        padded.slice(-1, first, first + (block_count - 1) * m + 1, m) * static_cast<double>(times);
  }
  return sum;
}

at::Tensor most_important(const at::Tensor& scores, int64_t count) {
  return std::get<1>(scores.sort(/*stable=*/true, -1, /*descending=*/true)).narrow(-1, 0, count);
}

}  // namespace aclnn_host
