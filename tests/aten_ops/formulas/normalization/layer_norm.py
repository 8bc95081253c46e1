"""Layer normalisation: ops-nn: aclnnFastLayerNorm.md, aclnnLayerNorm&aclnnLayerNormWithImplMode.md, and the others
named after their functions."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula


def norm(x, dims, eps):
    """The normal form of x over its last dimensions, the mean and 1 / deviation."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def affine(x, weight, bias):
    return x * (1 if weight is None else weight) + (0 if bias is None else bias)


def gradient(dy, centred, rstd, dims):
    """The gradient of the normalised tensor, of that of its normal form."""
    axes = tuple(range(dy.ndim - dims, dy.ndim))
    dvar = -(dy * centred * rstd**3).mean(axes, keepdims=True)
    dmean = -(dy * rstd).mean(axes, keepdims=True)
    return dy * rstd + dvar * centred + dmean


def sum_of_rows(x, dims):
    return x.sum(tuple(range(x.ndim - dims)))


@formula(
    "aclnnFastLayerNorm",
    calls=[
        f"aclnnFastLayerNorm input={signed('2,3,4', 1, dtype)} normalizedShape=[3,4] "
        f"weightOptional={signed('3,4', 2, dtype)} biasOptional={signed('3,4', 3, dtype)} eps=0.25 out={dtype}[2,3,4] "
        f"meanOutOptional={dtype}[2,1,1] rstdOutOptional={dtype}[2,1,1]"
        for dtype in ("DOUBLE", "FLOAT")
    ],
    error=3e-6,  # ATen computes x * scale + shift, in FLOAT: near 0 the two terms cancel
)
def fast_layer_norm(x, shape, weight, bias, eps):
    normal, mean, rstd = norm(x, len(shape), eps)
    return affine(normal, weight, bias), mean, rstd


# Every mode computes the same. The calls here have a mean without weight and bias, and 1 / deviation with mode 1 only.
@formula(
    "aclnnLayerNormWithImplMode",
    calls=[
        f"aclnnLayerNormWithImplMode input={signed('2,3,4', 4)} normalizedShape=[3,4] weightOptional=null "
        "biasOptional=null eps=0.25 out=FLOAT[2,3,4] meanOutOptional=null rstdOutOptional=FLOAT[2,1,1] implMode=1",
        f"aclnnLayerNormWithImplMode input={signed('2,3,4', 4, 'FLOAT16')} normalizedShape=[4] "
        f"weightOptional={signed('4', 5, 'FLOAT16')} biasOptional={signed('4', 6, 'FLOAT16')} eps=0.25 "
        "out=FLOAT16[2,3,4] meanOutOptional=FLOAT16[2,3,1] rstdOutOptional=null implMode=2",
    ],
)
def layer_norm_with_mode(x, shape, weight, bias, eps, mode):
    normal, mean, rstd = norm(x, len(shape), eps)
    return affine(normal, weight, bias), rstd if mode == 1 else mean


@formula(
    "aclnnAddLayerNorm",
    calls=[
        f"aclnnAddLayerNorm x1={signed('2,3,4', 1, dtype)} x2={signed('2,3,4', 2, dtype)} gamma={signed('4', 3, dtype)}"
        f" beta={signed('4', 4, dtype)} biasOptional={bias} epsilon=0.5 additionalOutput=true yOut={dtype}[2,3,4] "
        f"meanOut=FLOAT[2,3,1] rstdOut=FLOAT[2,3,1] xOut={dtype}[2,3,4]"
        for dtype, bias in (
            ("DOUBLE", signed("2,3,4", 5, "DOUBLE")),
            ("DOUBLE", signed("4", 5, "DOUBLE")),
            ("FLOAT", "null"),
        )
    ],
)
def add_layer_norm(x1, x2, gamma, beta, bias, eps, _additional_output):
    x = x1 + x2 + (0 if bias is None else bias)
    normal, mean, rstd = norm(x, gamma.ndim, eps)
    return affine(normal, gamma, beta), mean, rstd, x


@formula(
    "aclnnAddLayerNormGrad",
    calls=[
        f"aclnnAddLayerNormGrad dy={signed('2,3,4', 1, dtype)} x1={signed('2,3,4', 2, dtype)} "
        f"x2={signed('2,3,4', 3, dtype)} rstd={positive('2,3,1', 4)} mean={signed('2,3,1', 5)} "
        f"gamma={signed('4', 6, dtype)} dsumOptional={total} dxOut={dtype}[2,3,4] dgammaOut={dtype}[4] "
        f"dbetaOut={dtype}[4]"
        for dtype, total in (("DOUBLE", signed("2,3,4", 7, "DOUBLE")), ("FLOAT", "null"))
    ],
)
def add_layer_norm_grad(dy, x1, x2, rstd, mean, gamma, total):
    centred, dims = x1 + x2 - mean, gamma.ndim
    dx = gradient(dy * gamma, centred, rstd, dims) + (0 if total is None else total)
    return dx, sum_of_rows(dy * centred * rstd, dims), sum_of_rows(dy, dims)


@formula(
    "aclnnDeepNorm",
    calls=[
        f"aclnnDeepNorm x={signed('2,3,4', 1)} gx={signed('2,3,4', 2)} beta={signed('3,4', 3)} gamma={signed('3,4', 4)}"
        " alpha=0.5 epsilon=0.25 meanOut=FLOAT[2,1,1] rstdOut=FLOAT[2,1,1] yOut=FLOAT[2,3,4]"
    ],
)
def deep_norm(x, gx, beta, gamma, alpha, eps):
    normal, mean, rstd = norm(alpha * x + gx, gamma.ndim, eps)
    return mean, rstd, affine(normal, gamma, beta)


@formula(
    "aclnnDeepNormGrad",
    calls=[
        f"aclnnDeepNormGrad dy={signed('2,3,4', 1, dtype)} x={signed('2,3,4', 2, dtype)} gx={signed('2,3,4', 3, dtype)}"
        f" gamma={signed('3,4', 4, dtype)} mean={signed('2,1,1', 5)} rstd={positive('2,1,1', 6)} alpha=0.5 "
        f"dxOut={dtype}[2,3,4] dgxOut={dtype}[2,3,4] dbetaOut={dtype}[3,4] dgammaOut={dtype}[3,4]"
        for dtype in ("DOUBLE", "FLOAT")
    ],
)
def deep_norm_grad(dy, x, gx, gamma, mean, rstd, alpha):
    centred, dims = alpha * x + gx - mean, gamma.ndim
    dgx = gradient(dy * gamma, centred, rstd, dims)
    return alpha * dgx, dgx, sum_of_rows(dy, dims), sum_of_rows(dy * rstd * centred, dims)


def of_sequence(factor, x):
    """A factor for each sequence, (..., H) or (..., 1, H), for elements (..., S, H)."""
    return factor if factor.ndim == x.ndim else factor[..., None, :]


def ada_layer_norm_v2(x, scale, shift, weight, bias, eps):
    normal, mean, rstd = norm(x, 1, eps)
    return affine(normal, weight, bias) * (1 + of_sequence(scale, x)) + of_sequence(shift, x), mean, rstd


ADA = f"x={signed('2,3,4', 1)} scale={signed('2,4', 2)} shift={signed('2,1,4', 3)}"
WITH_WEIGHT = f"weightOptional={signed('4', 4)} biasOptional={signed('4', 5)}"


@formula(
    "aclnnAdaLayerNorm",
    calls=[
        f"aclnnAdaLayerNorm {ADA} {weight} epsilon=0.25 out=FLOAT[2,3,4]"
        for weight in (WITH_WEIGHT, "weightOptional=null biasOptional=null")
    ],
)
def ada_layer_norm(*arguments):
    return ada_layer_norm_v2(*arguments)[0]


formula(
    "aclnnAdaLayerNormV2",
    calls=[
        f"aclnnAdaLayerNormV2 {ADA} {WITH_WEIGHT} epsilon=0.25 out=FLOAT[2,3,4] meanOutOptional=FLOAT[2,3,1] "
        "rstdOutOptional=FLOAT[2,3,1]"
    ],
)(ada_layer_norm_v2)


# The calls here have all outputs with a weight, and those for input, shift and weight without one.
@formula(
    "aclnnAdaLayerNormBackward",
    calls=[
        f"aclnnAdaLayerNormBackward gradOut={signed('2,3,4', 1)} input={signed('2,3,4', 2)} normalizedShape=[4] "
        f"rstd={positive('2,3,1', 3)} mean={signed('2,3,1', 4)} scale={signed('2,4', 5)} shift=FLOAT[2,1,4] "
        f"weightOptional={signed('4', 6)} biasOptional={bias} gradInputOut=FLOAT[2,3,4] gradScaleOut=FLOAT[2,4] "
        "gradShiftOut=FLOAT[2,1,4] gradWeightOut=FLOAT[4] gradBiasOut=FLOAT[4]"
        for bias in (signed("4", 7), "null")
    ],
)
def ada_layer_norm_backward(grad, x, _shape, rstd, mean, scale, shift, weight, bias):
    centred = x - mean
    scaled = grad * (1 + of_sequence(scale, x))
    of_input = gradient(affine(scaled, weight, None), centred, rstd, 1)
    of_scale = (grad * affine(centred * rstd, weight, bias)).sum(-2).reshape(scale.shape)
    of_shift = grad.sum(-2).reshape(shift.shape)
    of_weight = sum_of_rows(scaled * centred * rstd, 1)
    if weight is None:
        return of_input, of_shift, of_weight
    return of_input, of_scale, of_shift, of_weight, sum_of_rows(scaled, 1)


@formula(
    "aclnnModulate",
    calls=[
        f"aclnnModulate self={signed('2,3,4', 1)} scaleOptional={scale} shiftOptional={shift} out=FLOAT[2,3,4]"
        for scale, shift in (
            (signed("2,4", 2), signed("2,1,4", 3)),
            ("null", signed("2,1,4", 3)),
            (signed("2,1,4", 2), "null"),
        )
    ],
)
def modulate(x, scale, shift):
    return x * (1 if scale is None else 1 + of_sequence(scale, x)) + (0 if shift is None else of_sequence(shift, x))


# The factor of the gradient is scale, as documented, though the forward function has 1 + scale.
@formula(
    "aclnnModulateBackward",
    calls=[
        f"aclnnModulateBackward grad_output={signed('2,3,4', 1)} input={signed('2,3,4', 2)} scale={signed('2,4', 3)} "
        "shift=FLOAT[2,4] grad_input=FLOAT[2,3,4] grad_scale=FLOAT[2,4] grad_shift=FLOAT[2,4]"
    ],
)
def modulate_backward(grad, x, scale, _shift):
    return grad * of_sequence(scale, x), (grad * x).sum(1), grad.sum(1)
