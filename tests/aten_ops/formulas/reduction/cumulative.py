from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formula_helpers.types import wrapped
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


# An exclusive sum leaves out the element itself (ops-math: aclnnCumsumV2.md).
@formula(
    "aclnnCumsumV2",
    calls=[
        f"aclnnCumsumV2 self={X} dim={dim} exclusive={exclusive} reverse={reverse} out=FLOAT[2,5]"
        for dim, exclusive, reverse in ((-1, "false", "false"), (1, "true", "false"), (0, "false", "true"))
    ]
    + [f"aclnnCumsumV2 self={INTEGERS} dim=0 exclusive=true reverse=true out=INT32[5]"]
    + [
        "aclnnCumsumV2 self=INT32[]:7 dim=-1 exclusive=true reverse=false out=INT32[]",
        "aclnnCumsumV2 self=INT32[0,2] dim=0 exclusive=true reverse=true out=INT32[0,2]",
        "aclnnCumsumV2 self=INT32[4]:1,2,3,4 dim=-1 exclusive=false reverse=true out=INT32[4]",
        "aclnnCumsumV2 self=INT32[4]:1,2,3,4 dim=0 exclusive=false reverse=false out=INT32[4]",
        "aclnnCumsumV2 self=INT32[4]:1,2,3,4 dim=0 exclusive=true reverse=false out=INT32[4]",
        "aclnnCumsumV2 self=INT32[4]:1,2,3,4 dim=0 exclusive=true reverse=true out=INT32[4]",
    ],
)
def cumsum_v2(self, dim, exclusive, reverse):
    elements = np.flip(np.atleast_1d(self), dim) if reverse else np.atleast_1d(self)
    sums = running(lambda part: (part[:-1] if exclusive else part).sum(0), elements, dim)
    return (np.flip(sums, dim) if reverse else sums).reshape(self.shape)


@formula(
    "aclnnInplaceCumprod",
    calls=[
        f"aclnnInplaceCumprod input={X} dim=INT32(0)",
        f"aclnnInplaceCumprod input={X} dim=INT64(-1)",
        f"aclnnInplaceCumprod input={INTEGERS} dim=INT64(0)",
        "aclnnInplaceCumprod input=INT32[2,2]:1,2,3,4 dim=INT32(0)",
        "aclnnInplaceCumprod input=UINT16[3]:256,255,2 dim=INT32(-1)",
    ],
)
def inplace_cumprod(self, dim, outputs):
    return wrapped(running(lambda part: part.prod(0), self, int(dim)), outputs["input"])


def filled(matrices, value, *, above_only):
    """A value above the diagonal, or above and on it."""
    return np.where(np.triu(np.ones(matrices.shape[-2:]), int(above_only)) == 1, value, matrices)


# ops-math: aclnnExpSegsum.md, aclnnExpSegsumBackward.md
@formula("aclnnExpSegsum", calls=["aclnnExpSegsum self=FLOAT[2,1,3]:0.5,1,-2,0.25,-0.75,1.5 out=FLOAT[2,1,3,3]"])
def exp_segsum(self):
    rows = np.broadcast_to(self[..., None], (*self.shape, self.shape[-1]))
    return np.exp(filled(np.cumsum(filled(rows, 0, above_only=False), -2), -np.inf, above_only=True))


@formula(
    "aclnnExpSegsumBackward",
    calls=[
        f"aclnnExpSegsumBackward gradOutput={signed('2,1,3,3', 1)} gradSelf={signed('2,1,3,3', 2)} "
        "gradInput=FLOAT[2,1,3]"
    ],
)
def exp_segsum_backward(grad, result):
    products = filled(grad * result, 0, above_only=False)
    sums = np.flip(np.cumsum(np.flip(products, -2), -2), -2)
    return filled(sums, 0, above_only=False).sum(-1)
