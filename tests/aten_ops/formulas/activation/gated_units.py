from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formula_helpers.functions import erf, sigmoid
from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.formulas import formula

X = "FLOAT[2,6]:-2.5,0.75,1.5,-0.25,3,-1.125,0.5,-0.625,2.25,1.75,-3.5,0.125"
SMALL = signed("2,6", 2)
DY = "FLOAT[2,3]:0.5,-1.25,2,-0.75,1.5,3"
GELU = "FLOAT[2,3]:1.25,-0.5,0.375,2.5,-0.125,0.875"
GELUS = ('"none"', '"tanh"', "null")


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


# ops-nn: aclnnSwiGlu.md, aclnnSiluMul.md
@formula(
    "aclnnSwiGlu", calls=[f"aclnnSwiGlu x={X} dim={dim} out=FLOAT{out}" for dim, out in ((1, "[2,3]"), (0, "[1,6]"))]
)
def swiglu(x, dim):
    return silu_mul(*np.split(x, 2, dim))


@formula("aclnnSiluMul", calls=[f"aclnnSiluMul x={X} y={signed('2,6', 1)} out=FLOAT[2,6]"])
def silu_mul(x, y):
    return x * sigmoid(x) * y


# ops-nn: experimental/activation/swiglu_clamp/README.md
@formula(
    "aclnnSwigluClamp",
    calls=[f"aclnnSwigluClamp x={X} limit={limit} y=FLOAT[2,3]" for limit in (0.5, 1.25)]
    + ["aclnnSwigluClamp x=FLOAT[0,4] limit=1.0 y=FLOAT[0,2]"],
)
def swiglu_clamp(x, limit):
    gate, up = np.split(x, 2, -1)
    return np.minimum(gate * sigmoid(gate), limit) * np.clip(up, -limit, limit)


# ops-nn: aclnnSituGlu.md
def situ(x, dim, beta, linear_beta, activate_left):
    """The gated half, its derivative, and the other half and its derivative."""
    left, right = np.split(x, 2, dim)
    gate, up = (left, right) if activate_left else (right, left)
    t, s = np.tanh(gate / beta), sigmoid(gate)
    bent = np.tanh(up / linear_beta) if linear_beta > 0 else 0
    return beta * t * s, s * (1 - t**2 + beta * t * (1 - s)), linear_beta * bent if linear_beta > 0 else up, 1 - bent**2


SITU = ["dim=1 beta=2 linearBeta=1.5 activateLeft=false", "dim=-1 beta=1.5 linearBeta=0 activateLeft=true"]


@formula("aclnnSituGlu", calls=[f"aclnnSituGlu x={X} {each} out=FLOAT[2,3]" for each in SITU])
def situ_glu(*arguments):
    gated, _, up, _ = situ(*arguments)
    return gated * up


# ops-nn: aclnnSituGluGrad.md
@formula("aclnnSituGluGrad", calls=[f"aclnnSituGluGrad gradY={DY} x={X} {each} out=FLOAT[2,6]" for each in SITU])
def situ_glu_grad(dy, x, dim, beta, linear_beta, activate_left):
    gated, of_gate, up, of_up = situ(x, dim, beta, linear_beta, activate_left)
    parts = [dy * up * of_gate, dy * gated * of_up]
    return np.concatenate(parts if activate_left else parts[::-1], dim)


# ops-nn: aclnnFatreluMul.md
@formula(
    "aclnnFatreluMul",
    calls=[f"aclnnFatreluMul input={X} threshold=FLOAT[1]:{threshold} out=FLOAT[2,3]" for threshold in (-0.25, 0.5)],
)
def fatrelu_mul(x, threshold):
    left, right = np.split(x, 2, -1)
    return np.where(left < threshold.item(), 0, left) * right


# ops-nn: aclnnGeluMul.md
@formula("aclnnGeluMul", calls=[f"aclnnGeluMul input={X} approximateOptional={mode} out=FLOAT[2,3]" for mode in GELUS])
def gelu_mul(x, approximate):
    left, right = np.split(x, 2, -1)
    return gelu_and_derivative(left, int(approximate == "tanh"))[0] * right


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


# ops-nn: aclnnGeGlu.md
@formula(
    "aclnnGeGlu",
    calls=[
        f"aclnnGeGlu self={SMALL} dim={dim} approximate={mode} out=FLOAT{out} outGelu=FLOAT{out}"
        for dim, mode, out in ((-1, 0, "[2,3]"), (-2, 1, "[1,6]"))
    ]
    + ["aclnnGeGlu self=FLOAT[0] dim=0 approximate=1 out=FLOAT[0] outGelu=FLOAT[0]"],
)
def geglu_v1(x, dim, approximate):
    return geglu(x, dim, approximate, False)


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


# ops-nn: aclnnGeGluBackward.md
@formula(
    "aclnnGeGluBackward",
    calls=[
        f"aclnnGeGluBackward gradOutput={DY} self={SMALL} gelu={GELU} dim=-1 approximate={mode} gradInput=FLOAT[2,6]"
        for mode in (0, 1)
    ],
)
def geglu_backward_v1(dy, x, gelu, dim, approximate):
    return geglu_backward(dy, x, gelu, dim, approximate, False)


def halves(x, dim, interleaved):
    """The two factors, as matrices: the halves or the alternate elements of dim and all dimensions after it."""
    dim %= x.ndim
    matrix = x.reshape(np.prod(x.shape[:dim], dtype=int), np.prod(x.shape[dim:], dtype=int))
    return (matrix[:, ::2], matrix[:, 1::2]) if interleaved else np.split(matrix, 2, 1)


# ops-nn: aclnnClippedSwiglu.md, aclnnClippedSwigluV2.md. Rows after the groups are not written.
@formula(
    "aclnnClippedSwiglu",
    "aclnnClippedSwigluV2",
    calls=[
        f"{name} x={signed('3,4,2', 1)} groupIndexOptional={groups} dim={dim} alpha=1.5 limit={limit} bias=0.625 "
        f"interleaved={interleaved}{mode} out=FLOAT{out}"
        for groups, dim, limit, interleaved, out in (
            ("INT64[3]:1,0,2", -2, 1.25, "false", "[3,2,2]"),
            ("INT64[2]:1,1", 1, 0.75, "true", "[3,2,2]"),
            ("null", -1, 0.75, "false", "[3,4,1]"),
        )
        for name, mode in (
            ("aclnnClippedSwiglu", ""),
            ("aclnnClippedSwigluV2", " clampMode=0"),
            ("aclnnClippedSwigluV2", " clampMode=1"),
        )
    ],
)
def clipped_swiglu(x, group_index, dim, alpha, limit, bias, interleaved, clamp_mode=0, *, outputs):
    a, b = halves(x, dim, interleaved)
    up = np.clip(b, -limit, limit)
    gate = np.minimum(a, limit)
    result = gate * sigmoid(alpha * gate) * (up + bias) if clamp_mode == 0 else np.minimum(a * sigmoid(a), limit) * up
    if group_index is not None:
        rest = np.s_[group_index.sum() :]
        result[rest] = unwritten(outputs["out"]).reshape(result.shape)[rest]
    return result.reshape(*x.shape[: dim % x.ndim], x.shape[dim] // 2, *x.shape[dim % x.ndim + 1 :])


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
    ]
    + [
        "aclnnClippedSwigluGrad gradY=FLOAT[3,2] x=FLOAT[3,4] groupIndexOptional=INT64[2]:1,1 dim=-1 alpha=1.2 "
        "limit=0.6 bias=1.7 interleaved=false gradXOut=FLOAT[3,4]",
        "aclnnClippedSwigluGrad gradY=FLOAT[3,2] x=FLOAT[3,4] groupIndexOptional=INT64[2]:1,1 dim=-1 alpha=1.2 "
        "limit=0.6 bias=1.7 interleaved=true gradXOut=FLOAT[3,4]",
    ],
)
def clipped_swiglu_grad(grad, x, group_index, dim, alpha, limit, bias, interleaved):
    a, b = halves(x, dim, interleaved)
    dy = grad.reshape(a.shape)
    gate, up = np.minimum(a, limit), np.clip(b, -limit, limit)
    s = sigmoid(alpha * gate)
    of_gate = dy * (up + bias) * s * (1 + alpha * gate * (1 - s)) * (a <= limit)
    of_up = dy * gate * s * (np.abs(b) <= limit)
    result = np.stack([of_gate, of_up], -1) if interleaved else np.concatenate([of_gate, of_up], 1)
    if group_index is not None:
        result[group_index.sum() :] = 0
    return result.reshape(x.shape)
