// Sizes chosen by measurement (Intel Xeon of family 6, model 167, 2 cores with 2 MiB of L2 cache
// each, torch's 2 threads), each with the measurements. No bit of a result depends on these; sizes
// that divide a sum are defined next to the sum.
#pragma once

#include <cstdint>

namespace aclnn_host {

// Minimum number of elements per thread. elu of float on one thread and on two: 7.5 and 8.5 us at
// 2^14 elements, 18 and 9 at 2^15. Kernels without an exponential take half of elu's time, so they
// gain from another thread at twice the size.
constexpr int64_t kGrain = 32768;

// Bytes read and written above which results bypass the caches. Reading two tensors and writing
// one, followed by a pass that reads the result, plain against streaming stores in GB/s: 38 and 32
// at 6 MiB, 31 and 30 at 12, 33 and 36 at 24, 22 and 28 at 96; without that pass, streaming stores
// are faster from 6 MiB.
constexpr int64_t kStreamingBytes = 10 << 20;

// Prefetch distance of a loop over memory. As a fraction of a streaming copy's speed, on another
// Xeon with AVX512-FP16, where a core copies 14 GB/s: elu of BFLOAT16, 1024: 0.79, 2048: 0.88,
// 4096: 0.91, 8192: 0.90; elu of float on one thread, 1024: 0.75, 4096: 1.04.
constexpr int64_t kPrefetchBytes = 4096;

}  // namespace aclnn_host
