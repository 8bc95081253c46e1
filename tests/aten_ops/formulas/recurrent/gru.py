"""Gated recurrent units: ops-nn: aclnnGRU.md, aclnnGRUBackward.md. The gates are in the order of torch, r, z, n."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formula_helpers.recurrent import cells_of, lists, parameters, stacked
from tests.aten_ops.formulas import formula

GATES_OUT = "rOut zOut nOut hnOut hOut"


def run_cell(x, cell, h, backwards):
    """The values of a cell at each step, by their names, and the last state."""
    w_input, w_hidden, *biases = cell
    b_input, b_hidden = biases or (0, 0)
    traces = {name: np.zeros((len(x), *h.shape)) for name in ("r", "z", "n", "hn", "y")}
    for t in range(len(x))[:: -1 if backwards else 1]:
        of_input = np.split(x[t] @ w_input.T + b_input, 3, -1)
        of_hidden = np.split(h @ w_hidden.T + b_hidden, 3, -1)
        r, z = (sigmoid(of_input[i] + of_hidden[i]) for i in (0, 1))
        n = np.tanh(of_input[2] + r * of_hidden[2])
        h = (1 - z) * n + z * h
        for name, values in {"r": r, "z": z, "n": n, "hn": of_hidden[2], "y": h}.items():
            traces[name][t] = values
    return traces, h


@formula(
    "aclnnGRU",
    calls=[
        f"aclnnGRU input={signed('2,3,2', 1)} params={parameters(1, 2, 3, 2, 1, True)} hx={signed('2,2,1', 2)} "
        "batchSizes=null hasBias=true numLayers=1 dropout=0.5 train=true bidirection=true batchFirst=true "
        f"output=FLOAT[2,3,2] hy=FLOAT[2,2,1] {lists(GATES_OUT, 2, '3,2,1')}",
        f"aclnnGRU input={signed('3,2,2', 1)} params={parameters(2, 2, 3, 2, 2, False)} hx=null batchSizes=null "
        "hasBias=false numLayers=2 dropout=0 train=false bidirection=true batchFirst=false output=FLOAT[3,2,4] "
        f"hy=FLOAT[4,2,2] {lists(GATES_OUT, 0, '')}",
    ],
)
def gru(x, params, h, _sizes, has_bias, layers, _dropout, train, bidirection, batch_first):
    directions, cells = 1 + bidirection, cells_of(params, has_bias)
    x = np.swapaxes(x, 0, 1) if batch_first else x
    h = np.zeros((layers * directions, x.shape[1], cells[0][1].shape[1])) if h is None else h
    y, traces, last = stacked(x, len(cells), directions, lambda x, k: run_cell(x, cells[k], h[k], k % directions))
    gates = [trace[name] for name in ("r", "z", "n", "hn", "y") for trace in traces] if train else []
    return [np.swapaxes(y, 0, 1) if batch_first else y, np.array(last), *gates]


def gradients(x, cell, of_y, of_h, h0, trace, backwards):
    """The gradients of the input, the first state, and the parameters of a cell."""
    (w_input, w_hidden, *_), (r, z, n, hn, h) = cell, trace
    of_x, of_weights = np.zeros(x.shape), [np.zeros(w_input.shape), np.zeros(w_hidden.shape)]
    of_biases = [np.zeros(len(w_input)), np.zeros(len(w_input))]
    steps = list(range(len(x)))[:: -1 if backwards else 1]
    for place in reversed(range(len(steps))):
        t = steps[place]
        before = h[steps[place - 1]] if place else h0
        d_h = of_y[t] + of_h
        d_n = d_h * (1 - z[t]) * (1 - n[t] ** 2)
        d_z = d_h * (before - n[t]) * z[t] * (1 - z[t])
        d_r = d_n * hn[t] * r[t] * (1 - r[t])
        of_sums = np.concatenate([d_r, d_z, d_n], -1), np.concatenate([d_r, d_z, d_n * r[t]], -1)
        for i, factor in enumerate((x[t], before)):
            of_weights[i] += of_sums[i].T @ factor
            of_biases[i] += of_sums[i].sum(0)
        of_x[t] = of_sums[0] @ w_input
        of_h = of_sums[1] @ w_hidden + d_h * z[t]
    return of_x, of_h, [*of_weights, *of_biases]


# Values that a cell saves at each step.
def traces_of(count, shape):
    return f"{lists('r z n', count, shape, positive)} {lists('hn h', count, shape, signed)}"


@formula(
    "aclnnGRUBackward",
    calls=[
        f"aclnnGRUBackward input={signed('2,3,2', 1)} params={parameters(1, 2, 3, 2, 1, True)} hx={signed('2,2,1', 2)} "
        f"dy={signed('2,3,2', 3)} dh={signed('2,2,1', 4)} {traces_of(2, '3,2,1')} batchSizes=null hasBias=true "
        "numLayers=1 bidirection=true batchFirst=true dxOut=FLOAT[2,3,2] dhPrevOut=FLOAT[2,2,1] "
        f"dparamsOut={{{' '.join(['FLOAT[3,2] FLOAT[3,1] FLOAT[3] FLOAT[3]'] * 2)}}}",
        f"aclnnGRUBackward input={signed('3,2,2', 1)} params={parameters(2, 1, 3, 2, 2, False)} "
        f"hx={signed('2,2,2', 2)} dy={signed('3,2,2', 3)} dh={signed('2,2,2', 4)} {traces_of(2, '3,2,2')} "
        "batchSizes=null hasBias=false numLayers=2 bidirection=false batchFirst=false dxOut=FLOAT[3,2,2] "
        "dhPrevOut=FLOAT[2,2,2] dparamsOut={FLOAT[6,2] FLOAT[6,2] FLOAT[6,2] FLOAT[6,2]}",
    ],
    error=2e-6,  # sums of products
)
def gru_backward(x, params, h0, dy, dh, r, z, n, hn, h, _sizes, has_bias, layers, bidirection, batch_first):
    directions, cells = 1 + bidirection, cells_of(params, has_bias)
    x, upper = (np.swapaxes(array, 0, 1) if batch_first else array for array in (x, dy))
    of_h, of_params = np.zeros(dh.shape), [None] * len(cells)
    for layer in reversed(range(layers)):
        parts = range(layer * directions, (layer + 1) * directions)
        below = x if layer == 0 else np.concatenate([h[k - directions] for k in parts], -1)
        of_below = 0
        for k, of_y in zip(parts, np.split(upper, directions, -1), strict=True):
            trace = r[k], z[k], n[k], hn[k], h[k]
            of_x, of_h[k], of_cell = gradients(below, cells[k], of_y, dh[k], h0[k], trace, k % directions)
            of_below, of_params[k] = of_below + of_x, of_cell[: len(cells[k])]
        upper = of_below
    return [np.swapaxes(upper, 0, 1) if batch_first else upper, of_h, *(each for cell in of_params for each in cell)]
