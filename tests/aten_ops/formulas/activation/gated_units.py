from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,6]:-2.5,0.75,1.5,-0.25,3,-1.125,0.5,-0.625,2.25,1.75,-3.5,0.125"
DY = "FLOAT[2,3]:0.5,-1.25,2,-0.75,1.5,3"
GELU = "FLOAT[2,3]:1.25,-0.5,0.375,2.5,-0.125,0.875"
erf = np.vectorize(math.erf, [float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_and_derivative(x, approximate):
    """GELU and its derivative: of the normal distribution (0), or of its approximation by tanh (1)."""
    if approximate == 0:
        share = (1 + erf(x / math.sqrt(2))) / 2
        return x * share, share + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2) * (1 - t**2)
    return x * (1 + t) / 2, (1 + t) / 2 + x * slope / 2


@formula("aclnnGlu", calls=[f"aclnnGlu self={X} dim=-1 out=FLOAT[2,3]", f"aclnnGlu self={X} dim=0 out=FLOAT[1,6]"])
def glu(self, dim):
    a, b = np.split(self, 2, dim)
    return a * sigmoid(b)


@formula("aclnnGluBackward", calls=[f"aclnnGluBackward gradOut={DY} self={X} dim=1 out=FLOAT[2,6]"])
def glu_backward(grad, self, dim):
    a, b = np.split(self, 2, dim)
    s = sigmoid(b)
    return np.concatenate([grad * s, grad * a * s * (1 - s)], dim)


@formula("aclnnSwiGluGrad", calls=[f"aclnnSwiGluGrad yGrad={DY} x={X} dim=-1 out=FLOAT[2,6]"])
def swiglu_grad(grad, x, dim):
    a, b = np.split(x, 2, dim)
    s = sigmoid(a)
    return np.concatenate([grad * b * (s + a * s * (1 - s)), grad * a * s], dim)


@formula(
    "aclnnGeGluV3",
    calls=[
        f"aclnnGeGluV3 x={X} dim=-1 approximate=0 activateLeft=false out=FLOAT[2,3] outGelu=FLOAT[2,3]",
        f"aclnnGeGluV3 x={X} dim=-1 approximate=1 activateLeft=true out=FLOAT[2,3] outGelu=FLOAT[2,3]",
    ],
)
def geglu(x, dim, approximate, activate_left):
    left, right = np.split(x, 2, dim)
    gate, up = (left, right) if activate_left else (right, left)
    gelu, _ = gelu_and_derivative(gate, approximate)
    return gelu * up, gelu


@formula(
    "aclnnGeGluV3Backward",
    calls=[
        f"aclnnGeGluV3Backward dy={DY} x={X} gelu={GELU} dim=-1 approximate=0 activateLeft=false dx=FLOAT[2,6]",
        f"aclnnGeGluV3Backward dy={DY} x={X} gelu={GELU} dim=-1 approximate=1 activateLeft=true dx=FLOAT[2,6]",
    ],
)
def geglu_backward(dy, x, gelu, dim, approximate, activate_left):
    left, right = np.split(x, 2, dim)
    gate, up = (left, right) if activate_left else (right, left)
    _, derivative = gelu_and_derivative(gate, approximate)
    of_gate, of_up = dy * up * derivative, dy * gelu
    return np.concatenate([of_gate, of_up] if activate_left else [of_up, of_gate], dim)
