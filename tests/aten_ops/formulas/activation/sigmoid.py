from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers import functions
from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.formulas import formula

X = "FLOAT[2,3]:-2.5,0.75,-0.5,1.5,-4,3"
INTEGERS = "INT32[4]:-2,1,0,3"
GRAD = "FLOAT[2,3]:0.5,-1.25,2,0.75,-1.5,3"
SAVED = "FLOAT[2,3]:-0.75,0.125,0.625,-0.25,0.875,0.375"


@formula(
    "aclnnSigmoid",
    "aclnnInplaceSigmoid",
    calls=[
        f"aclnnSigmoid self={X} out=FLOAT[2,3]",
        f"aclnnSigmoid self={INTEGERS} out=FLOAT[4]",
        f"aclnnInplaceSigmoid selfRef={X}",
    ],
)
def sigmoid(self):
    return functions.sigmoid(self)


@formula("aclnnSigmoidBackward", calls=[f"aclnnSigmoidBackward gradOutput={GRAD} output={SAVED} gradInput=FLOAT[2,3]"])
def sigmoid_backward(grad, output):
    return grad * output * (1 - output)


@formula(
    "aclnnTanh",
    "aclnnInplaceTanh",
    calls=[
        f"aclnnTanh self={X} out=FLOAT[2,3]",
        f"aclnnTanh self={INTEGERS} out=FLOAT[4]",
        f"aclnnInplaceTanh selfRef={X}",
    ],
)
def tanh(self):
    return (np.exp(2 * self) - 1) / (np.exp(2 * self) + 1)


@formula("aclnnTanhBackward", calls=[f"aclnnTanhBackward gradOutput={GRAD} output={SAVED} gradInput=FLOAT[2,3]"])
def tanh_backward(grad, output):
    return grad * (1 - output**2)


@formula("aclnnLogSigmoid", calls=[f"aclnnLogSigmoid self={X} out=FLOAT[2,3]"])
def log_sigmoid(self):
    return np.log(sigmoid(self))


# The buffer is not written.
@formula("aclnnLogSigmoidForward", calls=[f"aclnnLogSigmoidForward self={X} out=FLOAT[2,3] buffer=FLOAT[0]"])
def log_sigmoid_forward(self, outputs):
    return log_sigmoid(self), unwritten(outputs["buffer"])


@formula(
    "aclnnLogSigmoidBackward",
    calls=[f"aclnnLogSigmoidBackward gradOutput={GRAD} self={X} buffer=FLOAT[0] gradInput=FLOAT[2,3]"],
)
def log_sigmoid_backward(grad, self, _buffer):
    return grad * (1 - sigmoid(self))


@formula(
    "aclnnSoftsign",
    calls=[
        f"aclnnSoftsign self={X} out=FLOAT[2,3]",
        "aclnnSoftsign self=FLOAT[3]:1,-3,0 out=FLOAT[3]",
    ],
)
def softsign(self):
    return self / (1 + np.abs(self))


@formula(
    "aclnnTanhGrad",
    calls=[
        f"aclnnTanhGrad y={SAVED} dy={GRAD} dx=FLOAT[2,3]",
        "aclnnTanhGrad y=FLOAT[2]:0.5,-1 dy=FLOAT[2]:4,3 dx=FLOAT[2]",
    ],
)
def tanh_grad(y, dy):
    return tanh_backward(dy, y)


# ops-nn: aclnnSoftsignBackward.md
@formula("aclnnSoftsignBackward", calls=[f"aclnnSoftsignBackward gradients={GRAD} features={X} out=FLOAT[2,3]"])
def softsign_backward(grad, x):
    return grad / (1 + np.abs(x)) ** 2


# ops-nn: aclnnHardsigmoidV2&aclnnInplaceHardsigmoidV2.md
@formula(
    "aclnnHardsigmoidV2",
    "aclnnInplaceHardsigmoidV2",
    calls=[
        "aclnnHardsigmoidV2 self=FLOAT[2,3]:-4,-2.75,0.5,1.5,3,-3 out=FLOAT[2,3]",
        "aclnnHardsigmoidV2 self=INT32[6]:-4,0,2,3,4,2147483647 out=INT32[6]",
        "aclnnInplaceHardsigmoidV2 self=FLOAT[2,3]:-4,-2.75,0.5,1.5,3,1.25",
        "aclnnInplaceHardsigmoidV2 self=INT32[6]:4,0,2,3,-4,2",
    ],
)
def hardsigmoid_v2(x):
    return np.clip(x - 2, 0, 1) if x.dtype == np.int64 else np.clip(x / 6 + 0.5, 0, 1)
