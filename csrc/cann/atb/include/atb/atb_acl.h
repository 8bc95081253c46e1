// Operations of ATB as functions with two stages, in the style of CANN's: the first prepares `*op`,
// and makes it if it is null; the second executes it on the stream of the context.
#pragma once

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "atb/context.h"
#include "atb/operation.h"
#include "atb/types.h"

#pragma GCC visibility push(default)
extern "C" {

// Collects the keys and values of sequences from caches in blocks (PagedCacheLoadParam). `key` and
// `value` are written; seqStarts may be null.
atb::Status AtbPagedCacheLoadGetWorkspaceSize(
    const aclTensor* keyCache, const aclTensor* valueCache, const aclTensor* blockTables,
    const aclTensor* contextLens, const aclTensor* key, const aclTensor* value,
    const aclTensor* seqStarts, int8_t kvCacheCfg, bool isSeqLensCumsumType, bool hasSeqStarts,
    uint64_t* workspaceSize, atb::Operation** op, atb::Context* context);
atb::Status AtbPagedCacheLoad(void* workspace, uint64_t workspaceSize, atb::Operation* op,
                              atb::Context* context);

}  // extern "C"
#pragma GCC visibility pop
