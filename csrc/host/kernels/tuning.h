// Sizes that were chosen by measurement (Intel Xeon of family 6, model 167, 2 cores with 2 MiB of
// L2 cache each, torch's 2 threads), each with what it was chosen from. No result depends on them
// but through kRowsPerSum and the like, which stand with the sums they divide.
#pragma once

#include <cstdint>

namespace aclnn_host {

// Elements a thread takes at least. Waking the other thread costs 2 to 4 us: elu on two threads
// against one takes 1.1 times as long at 2^14 elements, 0.7 at 2^15 and 0.55 at 2^17.
constexpr int64_t kGrain = 32768;

// Bytes read and written from which results bypass the caches. Reading two tensors and writing one,
// with a pass that reads the result, plain stores against streaming ones in GB/s: 38 and 32 at 6
// MiB, 31 and 30 at 12, 33 and 36 at 24, 22 and 28 at 96; without that pass streaming stores win
// from 6 MiB.
constexpr int64_t kStreamingBytes = 10 << 20;

// How far ahead of its loads a loop over memory asks for more.
constexpr int64_t kPrefetchBytes = 1024;

}  // namespace aclnn_host
