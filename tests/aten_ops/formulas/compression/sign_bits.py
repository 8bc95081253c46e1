"""Signs as bits, from the lowest bit of a byte on: ops-math: aclnnSignBitsPack.md, aclnnSignBitsUnpack.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


@formula(
    "aclnnSignBitsPack",
    calls=[
        "aclnnSignBitsPack self=FLOAT[14]:5,4,3,2,0,-1,-2,4,3,2,1,0,-1,-2 size=2 out=UINT8[2,1]",
        f"aclnnSignBitsPack self={signed('48', 1)} size=2 out=UINT8[2,3]",
    ],
)
def sign_bits_pack(x, size):
    return np.packbits(x >= 0, bitorder="little").reshape(size, -1)


@formula(
    "aclnnSignBitsUnpack",
    calls=[
        "aclnnSignBitsUnpack self=UINT8[2]:159,15 size=1 dtype=1 out=FLOAT16[1,16]",
        "aclnnSignBitsUnpack self=UINT8[4]:159,15,200,33 size=2 dtype=0 out=FLOAT[2,16]",
    ],
)
def sign_bits_unpack(x, size, _dtype):
    return np.unpackbits(x.astype(np.uint8), bitorder="little").reshape(size, -1) * 2.0 - 1
