from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,3,2"
INTEGERS = "INT32[6]:-3,2,5,-1,3,0"
GRAD = "FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"


@formula("aclnnSoftshrink", calls=[f"aclnnSoftshrink self={X} lambd=DOUBLE(0.5) out=FLOAT[2,4]"])
def softshrink(self, lambd):
    return np.where(self > lambd, self - lambd, np.where(self < -lambd, self + lambd, 0))


@formula(
    "aclnnSoftshrinkBackward",
    calls=[f"aclnnSoftshrinkBackward gradOutput={GRAD} self={X} lambd=DOUBLE(0.5) gradInput=FLOAT[2,4]"],
)
def softshrink_backward(grad, self, lambd):
    return np.where(np.abs(self) > lambd, grad, 0)


@formula("aclnnShrink", calls=["aclnnShrink self=FLOAT[5]:-2,-1,0.5,1,3 lambd=FLOAT(1) bias=FLOAT(0.5) out=FLOAT[5]"])
def shrink(self, lambd, bias):
    return np.where(self > lambd, self - bias, np.where(self < -lambd, self + bias, 0))


@formula(
    "aclnnHardtanh",
    "aclnnInplaceHardtanh",
    calls=[
        f"aclnnHardtanh self={X} clipValueMin=DOUBLE(-3.25) clipValueMax=DOUBLE(1.75) out=FLOAT[2,4]",
        f"aclnnHardtanh self={INTEGERS} clipValueMin=INT64(-2) clipValueMax=INT64(3) out=INT32[6]",
        f"aclnnInplaceHardtanh selfRef={X} clipValueMin=DOUBLE(-3.25) clipValueMax=DOUBLE(1.75)",
        f"aclnnInplaceHardtanh selfRef={INTEGERS} clipValueMin=INT64(-2) clipValueMax=INT64(3)",
    ],
)
def hardtanh(self, low, high):
    return np.minimum(np.maximum(self, low), high)


# ops-nn's aclnnHardtanhBackward.md passes the gradient at min and max; its kernel, which the host follows, does not.
@formula(
    "aclnnHardtanhBackward",
    calls=[
        f"aclnnHardtanhBackward gradOutput={GRAD} self={X} min=DOUBLE({low}) max=DOUBLE({high}) out=FLOAT[2,4]"
        for low, high in ((-3, 2.5), (-2.5, 2))
    ],
)
def hardtanh_backward(grad, self, low, high):
    return np.where((self >= high) | (self <= low), 0, grad)


# ops-nn: aclnnHardshrink.md, for aclnnHardShrink
@formula(
    "aclnnHardShrink",
    calls=[
        f"aclnnHardShrink self={X} lambd=FLOAT(0.5) out=FLOAT[2,4]",
        "aclnnHardShrink self=FLOAT[3]:nan,-3,inf lambd=FLOAT(0.5) out=FLOAT[3]",
    ],
)
def hard_shrink(self, lambd):
    return np.where((self > lambd) | (self < -lambd), self, 0)


# ops-nn: aclnnHeaviside.md
@formula(
    "aclnnHeaviside",
    calls=[
        "aclnnHeaviside input=FLOAT[2,1]:0,1 values=FLOAT[2]:5,6 out=FLOAT[2,2]",
        "aclnnHeaviside input=FLOAT[3,2]:-2,0,0,-0.0,3,0 values=FLOAT[3,2]:5,6,-7.25,8,9,0.5 out=FLOAT[3,2]",
    ],
)
def heaviside(x, values):
    return np.where(x < 0, 0, np.where(x > 0, 1, values))


# ops-nn: aclnnHardshrink.md and aclnnHardshrinkBackward.md; a negative lambd acts as 0.
@formula(
    "aclnnHardshrink",
    calls=[f"aclnnHardshrink self={X} lambd=DOUBLE({lambd}) out=FLOAT[2,4]" for lambd in (0.5, -2)],
)
def hardshrink(self, lambd):
    return np.where(np.abs(self) > max(lambd, 0), self, 0)


@formula(
    "aclnnHardshrinkBackward",
    calls=[
        f"aclnnHardshrinkBackward gradOutput={GRAD} self={X} lambd=DOUBLE({lambd}) gradInput=FLOAT[2,4]"
        for lambd in (0.5, -2)
    ],
)
def hardshrink_backward(grad, self, lambd):
    return np.where(np.abs(self) > max(lambd, 0), grad, 0)
