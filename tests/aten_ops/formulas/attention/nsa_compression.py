from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, VALUE, by_name, call_of
from tests.aten_ops.formulas import formula


def windows(lengths, size, stride):
    """The starts of the windows in all sequences, whose lengths are added up, with or without a 0 before them."""
    ends = [0, *(lengths[1:] if lengths[:1] == [0] else lengths)]
    return [start for a, b in itertools.pairwise(ends) for start in range(a, b - size + 1, stride)]


# A window's sum has a weight for each position and head (ops-transformer: aclnnNsaCompress.md).
@formula(
    "aclnnNsaCompress",
    calls=[
        f"aclnnNsaCompress input=FLOAT[112,2,16]:{VALUE} weight=FLOAT[32,2]:{KEY} actSeqLenOptional={lengths} "
        f'layoutOptional="TND" compressBlockSize=32 compressStride={stride} actSeqLenType=0 output=FLOAT[{count},2,16]'
        # The sequence of 20 tokens has no window, and the last tokens of another are in none.
        for lengths, stride, count in (("[0,20,80,112]", 16, 3), ("[65,112]", 32, 3))
    ],
)
def nsa_compress(x, weight, lengths, _layout, size, stride, _type):
    sums = [(x[start : start + size] * weight[:, :, None]).sum(0) for start in windows(lengths, size, stride)]
    return np.reshape(sums, (-1, *x.shape[1:]))


@formula(
    "aclnnNsaCompressGrad",
    calls=[
        "aclnnNsaCompressGrad "
        "outputGrad=FLOAT[2,1,16]:0.75,0.125,0.125,0.75,0,-0.25,1,0.25,-0.875,-0.5,-0.25,0.875,0.75,-0.5,-0.25,0,"
        "0.75,1,0.25,-0.125,0.875,0.5,-0.5 "
        "input=FLOAT[80,1,16]:0.125,-0.5,0.5,-0.625,-1,-1,0,-0.75,0.875,0.75,-1,-1,0.25,-0.375,-0.375,-0.125,"
        "-0.375,-1,0.875,0.125,0.5,0.625,-0.75 "
        "weight=FLOAT[32,1]:-0.5,-0.75,-0.625,-0.625,0,0.25,-0.375,0.375,0,-0.25,-0.875,0.5,0.375,-0.5,-0.25,"
        "-0.125,0,0.875,1,-0.375,-0.25,1,-0.625 actSeqLenOptionalOptional=[0,20,80] compressBlockSize=32 "
        'compressStride=16 actSeqLenType=0 layoutOptionalOptional="TND" inputGradOut=FLOAT[80,1,16] '
        "weightGradOut=FLOAT[32,1]",
    ],
)
def nsa_compress_grad(grad, x, weight, lengths, size, stride, _type, _layout):
    of_x, of_weight = np.zeros(x.shape), np.zeros(weight.shape)
    for dy, start in zip(grad, windows(lengths, size, stride), strict=True):
        of_x[start : start + size] += weight[:, :, None] * dy
        of_weight += (x[start : start + size] * dy).sum(-1)
    return of_x, of_weight


CACHED = {
    "weight": f"FLOAT[32,2]:{KEY}",
    "compress_block_size": 32,
    "compress_stride": 16,
    "act_seq_len_type": 1,
    "page_block_size": 64,
    "output_cache": f"FLOAT[5,2,16]:{VALUE}",
}


# The newest token of a sequence may complete a window (ops-transformer: aclnnNsaCompressWithCache.md).
@by_name(
    "aclnnNsaCompressWithCache",
    calls=[
        call_of("aclnnNsaCompressWithCache", **CACHED | given)
        for given in (
            {"input": f"FLOAT[3,64,2,16]:{VALUE}", "act_seq_len": "[96,33,48]", "layout": '"TND"'}
            | {"slot_mapping": "INT32[3]:3,0,1", "block_table": "INT32[3,2]:2,0,1,2,0,1"},
            {"input": f"FLOAT[3,64,2,16]:{VALUE}", "act_seq_len": "[64,128]", "compress_stride": 32}
            | {"slot_mapping": "INT32[2]:4,2", "block_table": "INT32[2,2]:1,2,0,1"},
            {"input": f"FLOAT[120,2,16]:{VALUE}", "act_seq_len": "[32,40,48]", "layout": '"TND"'}
            | {"slot_mapping": "INT32[3]:1,0,4"},
        )
    ],
)
def nsa_compress_with_cache(a):
    cache, first, size = a.output_cache.copy(), 0, a.compress_block_size
    for b, length in enumerate(a.act_seq_len):
        if a.block_table is None:
            tokens, first = a.input[first : first + length], first + length
        else:
            tokens = np.concatenate([a.input[page] for page in a.block_table[b]])[:length]
        if length >= size and (length - size) % a.compress_stride == 0:
            cache[a.slot_mapping[b]] = (tokens[length - size :] * a.weight[:, :, None]).sum(0)
    return cache
