from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,5]:-2.5,0.75,-3,1.5,-0.5,1.25,-4,3,2,-1.75"
INTEGERS = "INT32[5]:-3,2,5,-1,4"


def running(function, self, dim):
    """The function of the elements up to each, along a dimension."""
    elements = np.moveaxis(self, dim, 0)
    if self.size == 0:
        return self
    return np.moveaxis(np.stack([function(elements[: i + 1]) for i in range(len(elements))]), 0, dim)


@formula(
    "aclnnCumsum",
    calls=[
        f"aclnnCumsum self={X} dim=0 dtype=0 out=FLOAT[2,5]",
        f"aclnnCumsum self={X} dim=-1 dtype=0 out=FLOAT[2,5]",
        f"aclnnCumsum self={INTEGERS} dim=0 dtype=3 out=INT32[5]",
    ],
)
def cumsum(self, dim, _dtype):
    return running(lambda part: part.sum(0), self, dim)


@formula(
    "aclnnCumprod",
    calls=[
        f"aclnnCumprod input={X} axis=INT64(0) dtype=0 out=FLOAT[2,5]",
        f"aclnnCumprod input={X} axis=INT64(1) dtype=0 out=FLOAT[2,5]",
        f"aclnnCumprod input={INTEGERS} axis=INT64(0) dtype=3 out=INT32[5]",
    ],
)
def cumprod(self, axis, _dtype):
    return running(lambda part: part.prod(0), self, int(axis))


@formula(
    "aclnnCummax",
    calls=[
        f"aclnnCummax self={X} dim=0 valuesOut=FLOAT[2,5] indicesOut=INT64[2,5]",
        f"aclnnCummax self={X} dim=-1 valuesOut=FLOAT[2,5] indicesOut=INT64[2,5]",
        f"aclnnCummax self={INTEGERS} dim=0 valuesOut=INT32[5] indicesOut=INT64[5]",
    ],
)
def cummax(self, dim):
    return running(lambda part: part.max(0), self, dim), running(lambda part: part.argmax(0), self, dim)


@formula(
    "aclnnCummin",
    calls=[
        f"aclnnCummin self={X} dim=0 valuesOut=FLOAT[2,5] indicesOut=INT64[2,5]",
        f"aclnnCummin self={X} dim=-1 valuesOut=FLOAT[2,5] indicesOut=INT64[2,5]",
        "aclnnCummin self=INT32[5]:2,-3,5,-7,4 dim=0 valuesOut=INT32[5] indicesOut=INT64[5]",
    ],
)
def cummin(self, dim):
    return running(lambda part: part.min(0), self, dim), running(lambda part: part.argmin(0), self, dim)
