"""From the documents of ops-math that have the functions' names, such as aclnnLinspace.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnLinspace",
    calls=[
        "aclnnLinspace start=DOUBLE(2.5) end=DOUBLE(-7.25) steps=6 out=FLOAT[6]",
        "aclnnLinspace start=INT64(-8) end=INT64(-2) steps=4 out=INT32[4]",
        "aclnnLinspace start=DOUBLE(2.5) end=DOUBLE(7) steps=1 out=FLOAT[1]",
    ],
)
def linspace(start, end, steps):
    return start + (end - start) / max(steps - 1, 1) * np.arange(steps)


@formula(
    "aclnnLogSpace", calls=["aclnnLogSpace start=DOUBLE(1.5) end=DOUBLE(-2) steps=8 base=2.5 out=FLOAT[8]"], error=2e-6
)
def log_space(start, end, steps, base):
    # The exponent, rounded to FLOAT, is multiplied by the logarithm of the base.
    return base ** linspace(start, end, steps)


@formula(
    "aclnnRange",
    calls=[
        "aclnnRange start=INT64(7) end=INT64(-4) step=INT64(-3) out=INT32[4]",
        "aclnnRange start=DOUBLE(-2.5) end=DOUBLE(1) step=DOUBLE(0.75) out=FLOAT[5]",
    ],
)
def inclusive_range(start, end, step):
    return start + step * np.arange(np.floor((end - start) / step) + 1)


@formula(
    "aclnnArange",
    calls=[
        "aclnnArange start=DOUBLE(-2.5) end=DOUBLE(1) step=DOUBLE(0.75) out=FLOAT[5]",
        "aclnnArange start=DOUBLE(3) end=DOUBLE(-1.5) step=DOUBLE(-1.5) out=FLOAT[3]",
        "aclnnArange start=INT64(7) end=INT64(-4) step=INT64(-3) out=INT32[4]",
    ],
)
def exclusive_range(start, end, step):
    return start + step * np.arange(np.ceil((end - start) / step))
