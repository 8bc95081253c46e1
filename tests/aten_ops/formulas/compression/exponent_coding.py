from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

# Numbers in FLOAT as bytes, of which the highest holds the exponent.
BYTES = np.float32([1.5, -2.25, 0.75, 3, -0.125, 640, 0.0625, -7]).view(np.uint8).reshape(8, 4)
HEADER = 512


def integers(raw):
    """The bytes as the contents of an INT32 tensor."""
    numbers = np.ascontiguousarray(raw).reshape(-1).view(np.int32)
    return f"INT32[1,{len(numbers)}]:{','.join(map(str, numbers))}"


def codes(*exponents):
    return integers(np.concatenate([np.zeros(HEADER, np.uint8), *exponents]))


def bytes_of(tensor):
    return tensor.astype(np.int32 if tensor.dtype == np.int64 else np.float32).reshape(-1).view(np.uint8)


# ops-math: aclnnHansDecode.md. The exponents follow a header of 512 bytes as they are, and var continues fixed.
@formula(
    "aclnnHansDecode",
    calls=[
        f"aclnnHansDecode mantissa={integers(BYTES[:, :3])} fixed={fixed} var={var} pdf=INT32[1,256] reshuff=false "
        "out=FLOAT[1,8]"
        for fixed, var in (
            (codes(BYTES[:4, 3]), integers(np.pad(BYTES[4:, 3], (0, 4)))),
            (codes(BYTES[:, 3]), "INT32[0]"),
        )
    ],
)
def hans_decode(mantissa, fixed, var, _pdf, _reshuff):
    rest = bytes_of(mantissa).reshape(-1, 3)
    exponents = np.concatenate([bytes_of(fixed)[HEADER:], bytes_of(var)])[: len(rest)]
    return np.ascontiguousarray(np.concatenate([rest, exponents[:, None]], 1)).view(np.float32).reshape(1, -1)
