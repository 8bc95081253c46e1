from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

STATE = "FLOAT[1,2,2]:0.5,-0.75,0.25,-0.125"
GATES = " ".join(
    f"{name}={{FLOAT[3,2,2]:{values}}}"
    for name, values in {
        "i": "0.5,0.25,0.75,0.125,0.625,0.375,0.875",
        "g": "-0.5,0.25,-0.75,0.125,0.625,-0.375,0.875",
        "f": "0.25,0.5,0.125,0.75,0.375,0.875,0.625,0.9375",
        "o": "0.875,0.75,0.125,0.5,0.375,0.25,0.625,0.3125,0.4375",
        "h": "-0.25,0.5,0.125,-0.75,0.375,0.875,-0.625",
        "c": "0.75,-1.25,0.5,1.5,-0.25",
        "tanhc": "0.625,-0.875,0.375,0.75,-0.25",
    }.items()
)


# The gates are in the order of torch, i, f, g, o, and the gradient is the true one: row of aclnnLstmBackward.
@formula(
    "aclnnLstmBackward",
    calls=[
        f"aclnnLstmBackward input=FLOAT[3,2,3]:1.5,-0.5,0.75,2,-1.25,0.25,-2.5 hx={{{STATE} {STATE}}} "
        "params={FLOAT[8,3]:0.5,-0.25,1.5,-0.75,0.125,2,-1.25 FLOAT[8,2]:-0.5,1.25,0.75,-1.5,0.375 FLOAT[8] FLOAT[8]} "
        "dy=FLOAT[3,2,2]:1,-0.5,2,0.75,-1.5,0.25,3 dh=FLOAT[1,2,2]:0.5,-1,1.5,0.25 dc=FLOAT[1,2,2]:-0.75,0.5,2,-0.125 "
        f"{GATES} batchSizesOptional=null hasBias=true numLayers=1 dropout=0 train=true bidirectional=false "
        "batchFirst=false outputMask=[true,true,true,true] dxOut=FLOAT[3,2,3] dhPrevOut=FLOAT[1,2,2] "
        "dcPrevOut=FLOAT[1,2,2] dparamsOut={FLOAT[8,3] FLOAT[8,2] FLOAT[8] FLOAT[8]}"
    ],
    error=2e-6,  # sums of products
)
def lstm_backward(
    x, hx, params, dy, dh, dc, i, g, f, o, h, c, tanh_c, _batch_sizes, has_bias, layers, _dropout, _train,
    bidirectional, batch_first, _mask,
):  # fmt: skip
    directions, each = 1 + bidirectional, 4 if has_bias else 2
    x, upper = (np.swapaxes(array, 0, 1) if batch_first else array for array in (x, dy))
    of_params, of_h, of_c = [None] * len(params), np.array(dh), np.array(dc)
    for layer in reversed(range(layers)):
        parts = range(layer * directions, (layer + 1) * directions)
        below = x if layer == 0 else np.concatenate([h[k - directions] for k in parts], -1)
        of_below = np.zeros(below.shape)
        for k, of_output in zip(parts, np.split(upper, directions, -1), strict=True):
            w_input, w_hidden = params[each * k : each * k + 2]
            sums = np.zeros(w_input.shape), np.zeros(w_hidden.shape), np.zeros(len(w_input))
            steps = list(range(len(x)))[:: -1 if k % directions else 1]
            for place in reversed(range(len(steps))):
                t, last = steps[place], steps[place - 1]
                h_before, c_before = (h[k][last], c[k][last]) if place else (hx[0][k], hx[1][k])
                d_h = of_output[t] + of_h[k]
                d_c = d_h * o[k][t] * (1 - tanh_c[k][t] ** 2) + of_c[k]
                of_gates = (
                    d_c * g[k][t] * i[k][t] * (1 - i[k][t]),
                    d_c * c_before * f[k][t] * (1 - f[k][t]),
                    d_c * i[k][t] * (1 - g[k][t] ** 2),
                    d_h * tanh_c[k][t] * o[k][t] * (1 - o[k][t]),
                )
                joined = np.concatenate(of_gates, -1)
                for total, part in zip(sums, (joined.T @ below[t], joined.T @ h_before, joined.sum(0)), strict=True):
                    total += part
                of_below[t] += joined @ w_input
                of_h[k], of_c[k] = joined @ w_hidden, d_c * f[k][t]
            of_params[each * k : each * (k + 1)] = [*sums, sums[2]][:each]
        upper = of_below
    return [np.swapaxes(upper, 0, 1) if batch_first else upper, of_h, of_c, *of_params]
