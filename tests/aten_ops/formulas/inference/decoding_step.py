"""The documents' formula names no block of a position: CANN's own references of the functions do, in
optim/advance_step/tests/st of ops-nn (aclnnAdvanceStep.md, aclnnAdvanceStepV2.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

STATE = "9,8,7,6,5,4,3,2"


# The first sequence without a query is padding; those after it stay.
@formula(
    "aclnnAdvanceStep",
    calls=[
        f"aclnnAdvanceStep inputTokens=INT64{shape}:{STATE} sampledTokenIds=INT64[4,1]:15,11,12,14 "
        f"inputPositions=INT64{shape}:{STATE} seqLens=INT64{shape}:5,1,12,7,9,8,6,3 slotMapping=INT64{shape}:{STATE} "
        f"blockTables=INT64[8,{blocks}]:30,21,52,43,64,75,36,17 numSeqs=8 numQueries=4 blockSize={size}"
        for shape, blocks, size in (("[8]", 1, 4), ("[8,1]", 3, 2))
    ]
    + [
        "aclnnAdvanceStep inputTokens=INT64[3]:9,8,7 sampledTokenIds=INT64[2,1]:15,11 inputPositions=INT64[3]:6,5,4 "
        "seqLens=INT64[3]:5,1,8 slotMapping=INT64[3]:4,3,2 blockTables=INT64[3,2]:30,21,52,43,64,75 numSeqs=3 "
        "numQueries=2 blockSize=3"
    ],
)
def advance(tokens, sampled, positions, lengths, slots, tables, _sequences, queries, size):
    results = [each.copy() for each in (tokens, positions, lengths, slots)]
    flat = [each.reshape(-1) for each in results]
    for each, pad in zip(flat, (0, 0, lengths.flat[queries], -1), strict=True):
        each[queries] = pad
    for i, length in enumerate(lengths.flat[:queries]):
        block = tables.flat[length // size] + tables.shape[1] * i
        flat[0][i], flat[1][i], flat[2][i] = sampled.flat[i], length, length + 1
        flat[3][i] = block * size + length % size
    return results


# The token of a sequence is the last one before a -1.
@formula(
    "aclnnAdvanceStepV2",
    calls=[
        "aclnnAdvanceStepV2 inputTokens=INT64[6] sampledTokenIds=INT64[3,2]:5,-1,6,7,4,3 inputPositions=INT64[6]:"
        "3,4,0,1,6,7 seqLens=INT64[6] slotMapping=INT64[6] blockTables=INT64[3,4]:10,11,12,13,20,21,22,23,30,31,32,33 "
        "specToken=INT64[3,1]:8,9,2 acceptedNum=INT64[3]:0,1,2 numSeqs=3 numQueries=3 blockSize=4",
        "aclnnAdvanceStepV2 inputTokens=INT64[2] sampledTokenIds=INT64[2,1]:5,7 inputPositions=INT64[2]:3,5 "
        "seqLens=INT64[2] slotMapping=INT64[2] blockTables=INT64[2,3]:10,11,12,20,21,22 specToken=INT64[2,0] "
        "acceptedNum=INT64[2]:0,1 numSeqs=2 numQueries=2 blockSize=3",
    ],
)
def advance_v2(tokens, sampled, positions, lengths, slots, tables, speculated, accepted, sequences, _queries, size):
    moved = positions.reshape(sequences, -1) + accepted[:, None] + 1
    last = [next((row[i - 1] for i, token in enumerate(row) if token == -1), row[-1]) for row in sampled]
    blocks = np.take_along_axis(tables, moved // size, 1)
    results = np.column_stack([last, speculated]), moved, moved + 1, blocks * size + moved % size
    return [each.reshape(old.shape) for each, old in zip(results, (tokens, positions, lengths, slots), strict=True)]
