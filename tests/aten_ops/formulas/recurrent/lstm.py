from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formula_helpers.recurrent import cells_of, lists, parameters, stacked
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


def run_cell(x, cell, h, c, sizes, backwards):
    """The values of a cell at each step, by their names; `sizes` are the numbers of sequences that have each step."""
    w_input, w_hidden, *biases = cell
    traces = {name: np.zeros((len(x), *h.shape)) for name in ("i", "j", "f", "o", "h", "c", "tanh_c", "y")}
    for t in range(len(x))[:: -1 if backwards else 1]:
        i, f, j, o = np.split(x[t] @ w_input.T + h @ w_hidden.T + sum(biases), 4, -1)
        i, f, o, j = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(j)
        here = np.arange(len(h))[:, None] < (len(h) if sizes is None else sizes[t])
        c = np.where(here, f * c + i * j, c)
        h = np.where(here, o * np.tanh(c), h)
        step = {"i": i, "j": j, "f": f, "o": o, "h": h, "c": c, "tanh_c": np.tanh(c), "y": np.where(here, h, 0)}
        for name, values in step.items():
            traces[name][t] = values
    return traces, h, c


def run_layers(x, cells, h, c, sizes, directions):
    """The output of the last layer, the last states, and the values of all cells."""
    return stacked(x, len(cells), directions, lambda x, k: run_cell(x, cells[k], h[k], c[k], sizes, k % directions))


GATES_OUT = "iOut jOut fOut oOut hOut cOut tanhCOut"


# ops-nn: aclnnLSTM.md. The gates are in the order of torch, and a step that a sequence does not have is 0.
@formula(
    "aclnnLSTM",
    calls=[
        f"aclnnLSTM input={signed('3,2,2', 1)} params={parameters(1, 2, 4, 2, 1, True)} "
        f"hx={{{signed('2,2,1', 2)} {signed('2,2,1', 3)}}} batchSizes=null hasBias=true numLayers=1 dropout=0.5 "
        "train=true bidirectional=true batchFirst=false output=FLOAT[3,2,2] hy=FLOAT[2,2,1] cy=FLOAT[2,2,1] "
        f"{lists(GATES_OUT, 2, '3,2,1')}",
        f"aclnnLSTM input={signed('2,3,2', 1)} params={parameters(2, 2, 4, 2, 2, False)} hx=null batchSizes=null "
        "hasBias=false numLayers=2 dropout=0 train=false bidirectional=true batchFirst=true output=FLOAT[2,3,4] "
        f"hy=FLOAT[4,2,2] cy=FLOAT[4,2,2] {lists(GATES_OUT, 0, '')}",
        f"aclnnLSTM input={signed('6,2', 1)} params={parameters(1, 2, 4, 2, 1, False)} "
        f"hx={{{signed('2,2,1', 2)} {signed('2,2,1', 3)}}} batchSizes=INT64[3]:2,1,1 hasBias=false numLayers=1 "
        "dropout=0 train=false bidirectional=true batchFirst=false output=FLOAT[3,2,2] hy=FLOAT[2,2,1] cy=FLOAT[2,2,1] "
        f"{lists(GATES_OUT, 0, '')}",
    ],
)
def lstm(x, params, hx, sizes, has_bias, layers, _dropout, train, bidirectional, batch_first):
    directions, cells = 1 + bidirectional, cells_of(params, has_bias)
    if sizes is not None:
        x = x.reshape(len(sizes), -1, x.shape[-1])
    elif batch_first:
        x = np.swapaxes(x, 0, 1)
    h, c = hx or [np.zeros((layers * directions, x.shape[1], cells[0][1].shape[1]))] * 2
    y, traces, *last = run_layers(x, cells, h, c, sizes, directions)
    gates = [trace[name] for name in ("i", "j", "f", "o", "h", "c", "tanh_c") for trace in traces] if train else []
    return [np.swapaxes(y, 0, 1) if batch_first and sizes is None else y, *map(np.array, last), *gates]


WEIGHTS = (
    f"wIh={signed('4,2', 4)} wHh={signed('4,1', 5)} {{}} wIhReverseOptional={signed('4,2', 8)} "
    f"wHhReverseOptional={signed('4,1', 9)} {{}}"
)
BIASED = WEIGHTS.format(
    f"bIhOptional={signed('4', 6)} bHhOptional={signed('4', 7)}",
    f"bIhReverseOptional={signed('4', 10)} bHhReverseOptional={signed('4', 11)}",
)
# Without isbias the biases are not read.
UNBIASED = WEIGHTS.format(
    f"bIhOptional={signed('4', 6)} bHhOptional={signed('4', 7)}", "bIhReverseOptional=null bHhReverseOptional=null"
)
ONE_WAY = (
    f"wIh={signed('4,2', 4)} wHh={signed('4,1', 5)} bIhOptional=null bHhOptional=null wIhReverseOptional=null "
    "wHhReverseOptional=null bIhReverseOptional=null bHhReverseOptional=null"
)
STATES = f"initH={signed('2,2,1', 2)} initC={signed('2,2,1', 3)}"
STATES_OUT = "outputHOut=FLOAT[2,2,1] outputCOut=FLOAT[2,2,1]"


# ops-nn: aclnnBidirectionLSTMV2.md. With packed there are rows only for the steps that the sequences have.
@formula(
    "aclnnBidirectionLSTMV2",
    calls=[
        f"aclnnBidirectionLSTMV2 x={signed('3,2,2', 1)} {STATES} {BIASED} batchSizeOptional=null numLayers=1 "
        f"isbias=true batchFirst=false bidirection=true packed=true yOut=FLOAT[3,2,2] {STATES_OUT}",
        f"aclnnBidirectionLSTMV2 x={signed('3,2,2', 1)} {STATES} {UNBIASED} batchSizeOptional=INT32[3]:2,2,1 "
        f"numLayers=1 isbias=false batchFirst=false bidirection=true packed=false yOut=FLOAT[3,2,2] {STATES_OUT}",
        f"aclnnBidirectionLSTMV2 x={signed('5,2', 1)} {STATES} {UNBIASED} batchSizeOptional=INT32[3]:2,2,1 "
        f"numLayers=1 isbias=false batchFirst=false bidirection=true packed=true yOut=FLOAT[5,2] {STATES_OUT}",
    ],
)
def bidirection_lstm_v2(
    x, h, c, w_ih, w_hh, b_ih, b_hh, w_ih_reverse, w_hh_reverse, b_ih_reverse, b_hh_reverse, sizes, _layers, is_bias,
    _batch_first, bidirection, packed,
):  # fmt: skip
    cells = [[w_ih, w_hh, b_ih, b_hh], [w_ih_reverse, w_hh_reverse, b_ih_reverse, b_hh_reverse]][: 1 + bidirection]
    if packed and sizes is not None:
        has_step = np.arange(h.shape[1]) < sizes[:, None]
        rows, x = x, np.zeros((*has_step.shape, x.shape[-1]))
        x[has_step] = rows
    y, _, *last = run_layers(x, [cell if is_bias else cell[:2] for cell in cells], h, c, sizes, 1 + bidirection)
    return y[has_step] if packed and sizes is not None else y, *map(np.array, last)


@formula(
    "aclnnBidirectionLSTM",
    calls=[
        f"aclnnBidirectionLSTM x={signed('3,2,2', 1)} {STATES} {BIASED} numLayers=1 isbias=true batchFirst=false "
        f"bidirection=true yOut=FLOAT[3,2,2] {STATES_OUT}",
        f"aclnnBidirectionLSTM x={signed('3,2,2', 1)} initH={signed('1,2,1', 2)} initC={signed('1,2,1', 3)} {ONE_WAY} "
        "numLayers=1 isbias=false batchFirst=false bidirection=false yOut=FLOAT[3,2,1] outputHOut=FLOAT[1,2,1] "
        "outputCOut=FLOAT[1,2,1]",
    ],
)
def bidirection_lstm(*arguments):
    *tensors, layers, is_bias, batch_first, bidirection = arguments
    return bidirection_lstm_v2(*tensors, None, layers, is_bias, batch_first, bidirection, False)


# ops-nn: aclnnThnnFusedLstmCellBackward.md. storage has the gates i, f, g, o; a gradient that is not given is 0.
@formula(
    "aclnnThnnFusedLstmCellBackward",
    calls=[
        f"aclnnThnnFusedLstmCellBackward gradHyOptional={of_h} gradCOptional={of_c} cx={signed('3,2', 3)} "
        f"cy={signed('3,2', 4)} storage={positive('3,8', 5)} hasBias=true gradGatesOut=FLOAT[3,8] gradCxOut=FLOAT[3,2] "
        "gradBiasOut=FLOAT[8]"
        for of_h, of_c in (
            (signed("3,2", 1), signed("3,2", 2)),
            ("null", signed("3,2", 2)),
            (signed("3,2", 1), "null"),
        )
    ],
)
def lstm_cell_backward(of_h, of_c, cx, cy, storage, _has_bias):
    i, f, g, o = np.split(storage, 4, -1)
    of_h = 0 * cx if of_h is None else of_h
    of_c = of_h * o * (1 - np.tanh(cy) ** 2) + (0 if of_c is None else of_c)
    of_gates = np.concatenate(
        [of_c * g * i * (1 - i), of_c * cx * f * (1 - f), of_c * i * (1 - g**2), of_h * np.tanh(cy) * o * (1 - o)], -1
    )
    return of_gates, of_c * f, of_gates.sum(0)


# ops-nn: aclnnThnnFusedLstmCell.md, with the gates in the order of aclnnThnnFusedLstmCellBackward.md and of CANN's
# kernel: input, forget, candidate, output.
@formula(
    "aclnnThnnFusedLstmCell",
    calls=[
        f"aclnnThnnFusedLstmCell inputGates={signed('3,8', 1)} hiddenGates={signed('3,8', 2)} cx={signed('3,2', 3)} "
        f"inputBiasOptional={bias} hiddenBiasOptional={bias} hyOut=FLOAT[3,2] cyOut=FLOAT[3,2] storageOut=FLOAT[3,8]"
        for bias in ("null", signed("8", 4))
    ],
)
def thnn_fused_lstm_cell(gates, hidden, cx, bias, hidden_bias):
    sums = gates + hidden + (0 if bias is None else bias + hidden_bias)
    i, f, g, o = np.split(sums, 4, 1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * cx + i * g
    return o * np.tanh(c), c, np.concatenate([i, f, g, o], 1)
