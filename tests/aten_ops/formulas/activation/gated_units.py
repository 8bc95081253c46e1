from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas.activation.sigmoid import sigmoid

X = "FLOAT[2,6]:-2.5,0.75,1.5,-0.25,3,-1.125,0.5,-0.625,2.25,1.75,-3.5,0.125"
DY = "FLOAT[2,3]:0.5,-1.25,2,-0.75,1.5,3"
GELU = "FLOAT[2,3]:1.25,-0.5,0.375,2.5,-0.125,0.875"
erf = np.vectorize(math.erf, [float])


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


# Rows after the groups have the gradient 0 (ops-nn: aclnnClippedSwigluGrad.md).
@formula(
    "aclnnClippedSwigluGrad",
    calls=[
        f"aclnnClippedSwigluGrad gradY={DY} x={X} groupIndexOptional=null dim=-1 alpha=1.5 limit=1.75 bias=0.5 "
        f"interleaved={interleaved} gradXOut=FLOAT[2,6]"
        for interleaved in ("false", "true")
    ]
    + [
        "aclnnClippedSwigluGrad gradY=FLOAT[4,1]:0.5,-1.25,2,-0.75 x=FLOAT[4,2]:-2.5,0.75,1.5,-0.25,3,-1.125,0.5,2 "
        "groupIndexOptional=INT64[2]:1,2 dim=1 alpha=1.5 limit=1.75 bias=0.5 interleaved=false gradXOut=FLOAT[4,2]"
    ],
)
def clipped_swiglu_grad(grad, x, group_index, dim, alpha, limit, bias, interleaved):
    matrix, dy = (
        each.reshape(np.prod(each.shape[: dim % x.ndim], dtype=int), np.prod(each.shape[dim % x.ndim :], dtype=int))
        for each in (x, grad)
    )
    a, b = (matrix[:, ::2], matrix[:, 1::2]) if interleaved else np.split(matrix, 2, 1)
    gate, up = np.minimum(a, limit), np.clip(b, -limit, limit)
    s = sigmoid(alpha * gate)
    of_gate = dy * (up + bias) * s * (1 + alpha * gate * (1 - s)) * (a <= limit)
    of_up = dy * gate * s * (np.abs(b) <= limit)
    result = np.stack([of_gate, of_up], -1) if interleaved else np.concatenate([of_gate, of_up], 1)
    if group_index is not None:
        result[group_index.sum() :] = 0
    return result.reshape(x.shape)
