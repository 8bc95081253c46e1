// Sizes that were chosen by measurement (Intel Xeon of family 6, model 167, 2 cores with 2 MiB of
// L2 cache each, torch's 2 threads), each with what it was chosen from. No bit of a result depends
// on these; sizes that divide a sum stand where the sum is.
#pragma once

#include <cstdint>

namespace aclnn_host {

// Elements a thread takes at least. elu of float on one thread and on two: 7.5 and 8.5 us at 2^14
// elements, 18 and 9 at 2^15. The kernels without an exponential take half of elu's time, so they
// gain from another thread at twice the size.
constexpr int64_t kGrain = 32768;

// Bytes read and written from which results bypass the caches. Reading two tensors and writing one,
// with a pass that reads the result, plain stores against streaming ones in GB/s: 38 and 32 at 6
// MiB, 31 and 30 at 12, 33 and 36 at 24, 22 and 28 at 96; without that pass streaming stores win
// from 6 MiB.
constexpr int64_t kStreamingBytes = 10 << 20;

// How far ahead of its loads a loop over memory asks for more. Gradients of elu and of cross
// entropy, float and BFLOAT16, in parts of the memory's speed: 0.99, 0.65, 0.83, 0.68 with
// 256; 1.04, 0.92, 0.92, 0.70 with 1024; 1.03, 0.96, 0.93, 0.66 with 4096.
constexpr int64_t kPrefetchBytes = 1024;

}  // namespace aclnn_host
