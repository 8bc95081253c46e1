from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# ops-transformer: aclnnMhcPost.md
@formula(
    "aclnnMhcPost",
    calls=[
        "aclnnMhcPost x=FLOAT16[1,2,4,3]:1.875,0.125,-3,-1.75,2,0.5,-0.25 h_res=FLOAT[1,2,4,4]:-2,1.125,0.5,1.5,-0.75 "
        "h_out=FLOAT16[1,2,3]:1.25,-1.125,-0.75,-0.25,4,3 h_post=FLOAT[1,2,4]:-0.625,1,-0.125,-1.125,2,0.75,3,0.25 "
        "output=FLOAT16[1,2,4,3]",
        "aclnnMhcPost x=FLOAT16[2,4,3]:1,2,3,4,5,7,11 h_res=null h_out=FLOAT16[2,3]:5,6,-9,8,13,17 "
        "h_post=FLOAT[2,4]:1,-1,2,3,0.5,4,-3,7 output=FLOAT16[2,4,3]",
    ],
)
def post(x, residual, h_out, h_post):
    mixed = x if residual is None else np.swapaxes(residual, -1, -2) @ x
    return mixed + h_post[..., None] * h_out[..., None, :]


# ops-transformer: aclnnMhcPostBackward.md
@formula(
    "aclnnMhcPostBackward",
    calls=[
        f"aclnnMhcPostBackward gradY=FLOAT16[2,4,3]:1,2,-3,4,5,7,-11 x=FLOAT16[2,4,3]:1.5,0.25,-2,3,0.75 "
        f"hRes={residual} hOut=FLOAT16[2,3]:5,6,-9,8,13,17 hPost=FLOAT[2,4]:1,-1,2,3,0.5,4,-3,7 gradX=FLOAT16[2,4,3] "
        "gradHRes=FLOAT[2,4,4] gradHOut=FLOAT16[2,3] gradHPost=FLOAT[2,4]"
        for residual in ("FLOAT[2,4,4]:-2,1.125,0.5,1.5,-0.75,3,0.25", "null")
    ],
)
def post_gradient(gradient, x, residual, h_out, h_post):
    of_x = gradient if residual is None else residual @ gradient
    of_residual = x @ np.swapaxes(gradient, -1, -2)
    return of_x, of_residual, (gradient * h_post[..., None]).sum(-2), (gradient * h_out[..., None, :]).sum(-1)


# ops-transformer: aclnnMhcSinkhorn.md. The order of the saved numbers is that of the row: (step, matrix, row, 8) and
# (step, matrix, 8), with zeros after n; the first sums, which the document leaves open, are those of the rows.
@formula(
    "aclnnMhcSinkhorn",
    calls=[
        "aclnnMhcSinkhorn x=FLOAT[2,4,4]:-0.875,-0.625,-1.25,0.875,0.5,2,-3,1.5,0.25,-0.125,0.75 eps=0.125 numIters=2 "
        "output=FLOAT[2,4,4] normOut=FLOAT[256] sumOut=FLOAT[64]",
        "aclnnMhcSinkhorn x=FLOAT[1,4,4]:-0.875,-0.625,-1.25,0.875,0.5,2,-3,1.5,0.25 eps=0.125 numIters=2 "
        "output=FLOAT[1,4,4] normOut=null sumOut=null",
    ]
    + [
        f"aclnnMhcSinkhorn x=FLOAT[1,2,{n},{n}] eps=0.25 numIters=1 output=FLOAT[1,2,{n},{n}] normOut=FLOAT[{32 * n}] "
        "sumOut=FLOAT[32]"
        for n in (6, 8)
    ],
)
def sinkhorn(x, eps, iterations, outputs):
    powers = np.exp(x - x.max(-1, keepdims=True))
    norms = [powers / powers.sum(-1, keepdims=True) + eps]
    sums = [norms[0].sum(-1)]
    for step in range(1, 2 * iterations):
        dim = -2 if step % 2 else -1
        sums.append(norms[-1].sum(dim) + eps)
        norms.append(norms[-1] / np.expand_dims(sums[-1], dim))
    kept = (np.pad(each := np.stack(of), [(0, 0)] * (each.ndim - 1) + [(0, 8 - x.shape[-1])]) for of in (norms, sums))
    results = norms[-1], *(each.flatten() for each in kept)
    return [result for result, output in zip(results, outputs.values(), strict=True) if output is not None]


# ops-transformer: aclnnMhcSinkhornBackward.md. Odd steps divided columns, even ones rows; the first was softmax + eps.
@formula(
    "aclnnMhcSinkhornBackward",
    calls=[
        "aclnnMhcSinkhornBackward gradY=FLOAT[2,4,4]:3,-5,2,-7,6,-1,4 norm=FLOAT[256] "
        "sum=FLOAT[64]:0.5,1.25,2,0.75,1 out=FLOAT[2,4,4]",
        "aclnnMhcSinkhornBackward gradY=FLOAT[1,1,6,6]:3,-5,2,-7,6,-1,4 norm=FLOAT[192] "
        "sum=FLOAT[32]:0.5,1.25,2 out=FLOAT[1,1,6,6]",
    ],
    error=5e-6,  # differences of gradients cancel
)
def mhc_sinkhorn_backward(grad, norm, total):
    n = grad.shape[-1]
    current = grad.reshape(-1, n, n)
    steps = total.size // (len(current) * 8)
    norms = norm.reshape(steps, len(current), n, 8)[..., :n]
    totals = total.reshape(steps, len(current), 8)[..., :n]
    for step in range(steps - 1, 0, -1):
        axis = -2 if step % 2 else -1
        along = (current * norms[step]).sum(axis, keepdims=True)
        current = (current - along) / np.expand_dims(totals[step], axis)
    along = (current * norms[0]).sum(-1, keepdims=True)
    return ((current - along) * norms[0]).reshape(grad.shape)
