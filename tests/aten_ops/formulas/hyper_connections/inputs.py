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
    residual = None if outputs["hRes"] is None else np.zeros(outputs["hRes"].shape)
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


_ITERATIONS = 20


def _iterated(matrix, eps):
    """The matrices after each half of an iteration, and the sums by which it divided."""
    powers = np.exp(matrix - matrix.max(-1, keepdims=True))
    sums = [powers.sum(-1)]
    norms = [powers / sums[0][..., None] + eps]
    for step in range(1, 2 * _ITERATIONS):
        dim = -2 if step % 2 else -1
        sums.append(norms[-1].sum(dim) + eps)
        norms.append(norms[-1] / np.expand_dims(sums[-1], dim))
    return np.stack(norms), np.stack(sums)


# ops-transformer: aclnnMhcPreSinkhorn.md; the first sums, which the document leaves open, are the softmax's.
@formula(
    "aclnnMhcPreSinkhorn",
    calls=[
        f"aclnnMhcPreSinkhorn x=FLOAT16[2,1,4,128]:{_X} phi=FLOAT[24,512]:{_PHI} alpha=FLOAT[3]:0.5,-1,0.25 "
        f"bias=FLOAT[24]:{_BIAS} hcMult=4 numIters=20 hcEps=0.125 normEps=0.25 needBackward={saved} "
        f"hin=FLOAT16[2,1,128] hPost=FLOAT[2,1,4] hRes=FLOAT[2,1,16] {outputs}"
        for saved, outputs in (
            (
                "true",
                "hPre=FLOAT[2,1,4] hcBeforeNorm=FLOAT[2,1,24] invRms=FLOAT[2,1,1] sumOut=FLOAT[40,2,1,4] "
                "normOut=FLOAT[40,2,1,4,4]",
            ),
            ("false", "hPre=null hcBeforeNorm=null invRms=null sumOut=null normOut=null"),
        )
    ]
    + [
        "aclnnMhcPreSinkhorn x=FLOAT16[0,1,4,128] phi=FLOAT[24,512] alpha=FLOAT[3] bias=FLOAT[24] hcMult=4 numIters=20 "
        "hcEps=0.125 normEps=0.25 needBackward=false hin=FLOAT16[0,1,128] hPost=FLOAT[0,1,4] hRes=FLOAT[0,1,16] "
        "hPre=null hcBeforeNorm=null invRms=null sumOut=null normOut=null"
    ],
)
def pre_sinkhorn(x, phi, alpha, bias, n, _iterations, eps, norm_eps, is_saved):
    flat = x.reshape(*x.shape[:-2], n * x.shape[-1])
    inverse = ((flat**2).mean(-1, keepdims=True) + norm_eps) ** -0.5
    before = flat @ phi.T
    of_pre, of_post, of_residual = np.split(before * inverse, [n, 2 * n], -1)
    h_pre = sigmoid(of_pre * alpha[0] + bias[:n]) + eps
    h_post = 2 * sigmoid(of_post * alpha[1] + bias[n : 2 * n])
    matrix = (of_residual * alpha[2] + bias[2 * n :]).reshape(*x.shape[:-2], n, n)
    norms, sums = _iterated(matrix, eps)
    results = (h_pre[..., None] * x).sum(-2), h_post, norms[-1].reshape(*x.shape[:-2], n * n)
    return (*results, h_pre, before, inverse, sums, norms) if is_saved else results


# ops-transformer: aclnnMhcPreSinkhornBackward.md
@formula(
    "aclnnMhcPreSinkhornBackward",
    calls=[
        f"aclnnMhcPreSinkhornBackward gradHin=FLOAT16[2,1,128]:{_GAMMA} gradHPost=FLOAT[2,1,4]:{_BIAS} "
        f"gradHRes=FLOAT[2,1,{matrix}]:3,-5,2,-7,6,-1,4 x=FLOAT16[2,1,4,128]:{_X} phi=FLOAT[24,512]:{_PHI} "
        f"alpha=FLOAT[3]:0.5,-1,0.25 bias=FLOAT[24]:{_BIAS} hPre=FLOAT[2,1,4] "
        "hcBeforeNorm=FLOAT[2,1,24]:0.5,-1.25,0.75,-0.5,1.5,0.25,-0.75 invRms=FLOAT[2,1,1]:0.75,1.25 "
        "sumOut=FLOAT[40,2,1,4]:1,1.0625,1.125 normOut=FLOAT[40,2,1,4,4]:0.25,0.1875,0.3125,0.28125,0.21875 "
        "hcEps=0.125 gradX=FLOAT16[2,1,4,128] gradPhi=FLOAT[24,512] gradAlpha=FLOAT[3] gradBias=FLOAT[24]"
        for matrix in ("16", "4,4")
    ],
)
def pre_sinkhorn_gradient(of_in, of_post, of_residual, x, phi, alpha, bias, pre, before, inverse, sums, norms, eps):
    n = x.shape[-2]
    current = of_residual.reshape(*x.shape[:2], n, n)
    for step in range(2 * _ITERATIONS - 1, 0, -1):
        dim = -2 if step % 2 else -1
        along = (current * norms[step]).sum(dim, keepdims=True)
        current = (current - along) / np.expand_dims(sums[step], dim)
    of_matrix = (current - (current * norms[0]).sum(-1, keepdims=True)) * norms[0]
    flat, parts = x.reshape(*x.shape[:2], -1), np.split(before * inverse, [n, 2 * n], -1)
    post = 2 * sigmoid(parts[1] * alpha[1] + bias[n : 2 * n])
    s = pre - eps
    of_pre = (of_in[..., None, :] * x).sum(-1) * s * (1 - s)
    of_sums = of_pre, of_post * post * (1 - post / 2), of_matrix.reshape(*x.shape[:2], n * n)
    of_alpha = np.array([(of_sum * part).sum() for of_sum, part in zip(of_sums, parts, strict=True)])
    of_normal = np.concatenate([of_sum * scale for of_sum, scale in zip(of_sums, alpha, strict=True)], -1)
    of_before, of_inverse = of_normal * inverse, (of_normal * before).sum(-1, keepdims=True)
    of_flat = of_before @ phi - of_inverse * inverse**3 / flat.shape[-1] * flat
    of_x = of_flat.reshape(x.shape) + of_in[..., None, :] * pre[..., None]
    of_phi = np.einsum("bsp,bse->pe", of_before, flat)
    return of_x, of_phi, of_alpha, np.concatenate(of_sums, -1).sum((0, 1))
