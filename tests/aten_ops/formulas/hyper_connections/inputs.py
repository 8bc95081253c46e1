from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formulas import formula

# Sums over 64 elements of both signs, and their products.
_X = "1.625,-0.875,1.25,2,0.5,1.875,-0.375,-1.75,-1.25,0.125,-0.5,0.75,-2"
_PHI = "-0.09375,0.0625,-0.0625,-0.109375,0.03125,0.078125,0.015625,-0.125,0.140625,0.046875,-0.15625"
_BIAS = "-1,0.625,0.75,0.25,-0.5,0.375,-0.25"
_GAMMA = "-1.625,0.5,1.125,-1,0.75,1.25,-0.375"


# ops-transformer: aclnnMhcPre.md, aclnnMhcPreV2.md
@formula(
    "aclnnMhcPre",
    "aclnnMhcPreV2",
    calls=[
        f"aclnnMhcPre{version} x=FLOAT16[3,4,16]:{_X} phi=FLOAT[24,64]:{_PHI} alpha=FLOAT[3]:0.5,-1,0.25 "
        f"bias=FLOAT[24]:{_BIAS} gammaOptional={gamma} normEps=0.25 hcEps=0.125{precise} hIn=FLOAT16[3,16] "
        "hPost=FLOAT[3,4] hRes=FLOAT[3,4,4] invRmsOptional=FLOAT[3] hMixOptional=FLOAT[3,24] hPreOptional=FLOAT[3,4]"
        for version, precise in (("", ""), ("V2", " innerPrecise=0"))
        for gamma in ("null", f"FLOAT[4,16]:{_GAMMA}")
    ]
    + [
        f"aclnnMhcPreV2 x=FLOAT16[1,4,16]:{_X} phi=FLOAT[8,64]:{_PHI} alpha=FLOAT[2]:0.5,-1 bias=FLOAT[8]:{_BIAS} "
        "gammaOptional=null normEps=0.25 hcEps=0.125 innerPrecise=0 hIn=FLOAT16[1,16] hPost=FLOAT[1,4] hRes=FLOAT[1] "
        "invRmsOptional=null hMixOptional=null hPreOptional=null"
    ],
    error=2e-6,  # sums in FLOAT
)
def pre(x, phi, alpha, bias, gamma, norm_eps, eps, *_precise, outputs):
    n, leading = x.shape[-2], x.shape[:-2]
    flat = x.reshape(*leading, -1)
    inverse = ((flat**2).mean(-1) + norm_eps) ** -0.5
    mix = (flat if gamma is None else flat * gamma.reshape(-1)) @ phi.T
    w = mix * inverse[..., None]
    of_pre = sigmoid(w[..., :n] * alpha[0] + bias[:n]) + eps
    of_post = 2 * sigmoid(w[..., n : 2 * n] * alpha[1] + bias[n : 2 * n])
    of_in = (of_pre[..., None] * x).sum(-2)
    residual = np.zeros(1)
    if len(alpha) == 3:
        residual = (w[..., 2 * n :] * alpha[2] + bias[2 * n :]).reshape(*leading, n, n)
    results = of_in, of_post, residual, inverse, mix, of_pre
    return [result for result, output in zip(results, outputs.values(), strict=True) if output is not None]


# ops-transformer: aclnnMhcPreBackward.md; the row does not scale x by gamma once more, as the document does in the
# gradient of the mean square, which is of x.
@formula(
    "aclnnMhcPreBackward",
    calls=[
        f"aclnnMhcPreBackward x=FLOAT16[3,4,16]:{_X} phi=FLOAT[24,64]:{_PHI} alpha=FLOAT[3]:0.5,-1,0.25 "
        f"gradHIn=FLOAT16[3,16]:{_GAMMA} gradHPost=FLOAT[3,4]:{_BIAS} gradHRes=FLOAT[3,4,4]:0.75,-1,2,0.5,-0.25 "
        "invRms=FLOAT[3]:0.75,1.25,0.875 hMix=FLOAT[3,24]:0.5,-1.25,0.75,-0.5,1.5,0.25,-0.75 hPre=FLOAT[3,4] "
        f"hPost=FLOAT[3,4] gamma={gamma} gradXPostOptional={old} hcEps=0.125 gradX=FLOAT16[3,4,16] "
        f"gradPhi=FLOAT[24,64] gradAlpha=FLOAT[3] gradBias=FLOAT[24] gradGamma={of_gamma}"
        for gamma, of_gamma in ((f"FLOAT[4,16]:{_GAMMA}", "FLOAT[4,16]"), ("null", "null"))
        for old in ("null", "FLOAT16[3,4,16]:1.5,-0.75,-0.25,1.25,0.5")
    ],
    error=2e-6,  # sums in FLOAT
)
def pre_gradient(x, phi, alpha, of_in, of_post, of_residual, inverse, mix, pre, post, gamma, of_x_post, eps):
    n, size = x.shape[-2:]
    flat, of_in = x.reshape(-1, n * size), of_in.reshape(-1, 1, size)
    inverse, mix = inverse.reshape(-1, 1), mix.reshape(-1, mix.shape[-1])
    pre, post, of_post, of_residual = (each.reshape(len(flat), -1) for each in (pre, post, of_post, of_residual))
    scale = np.ones(n * size) if gamma is None else gamma.reshape(-1)
    s = pre - eps
    of_pre = (of_in * x.reshape(-1, n, size)).sum(-1)
    sums = of_pre * s * (1 - s), of_post * post * (1 - post / 2), of_residual
    parts = np.split(mix * inverse, [n, 2 * n], -1)
    of_w = np.concatenate([of_sum * alpha[i] for i, of_sum in enumerate(sums)], -1)
    of_scaled = of_w * inverse @ phi
    of_inverse = (of_w * mix).sum(-1, keepdims=True)
    of_x = of_scaled * scale - of_inverse * inverse**3 / (n * size) * flat
    of_x = of_x.reshape(x.shape) + (pre[..., None] * of_in).reshape(x.shape) + (0 if of_x_post is None else of_x_post)
    of_alpha = np.array([(of_sum * part).sum() for of_sum, part in zip(sums, parts, strict=True)])
    of_bias = np.concatenate(sums, -1).sum(0)
    results = of_x, (of_w * inverse).T @ (flat * scale), of_alpha, of_bias
    return results if gamma is None else (*results, (flat * of_scaled).sum(0).reshape(n, size))
