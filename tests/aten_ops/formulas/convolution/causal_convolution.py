"""From the documents of ops-transformer that have the functions' names, such as aclnnMaskedCausalConv1d.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VALUES = "1.5,-2,0.25,3,-0.5,0.75,4,-1.25,2,0.5"


def convolved(tokens, weight, length):
    """The weighted sums of the last `length` tokens and the two tokens before each of them."""
    start = len(tokens) - length
    return sum(weight[k] * tokens[start - 2 + k : len(tokens) - 2 + k] for k in range(3))


def masked(x, mask):
    return x if mask is None else x * mask.T[..., None]


def with_zeros(x):
    return np.concatenate([np.zeros((2, *x.shape[1:])), x])


@formula(
    "aclnnMaskedCausalConv1d",
    calls=[
        f"aclnnMaskedCausalConv1d x=FLOAT16[4,2,384]:{VALUES} weight=FLOAT16[3,384]:0.5,-1,2,1.5,-0.25"
        " maskOptional=null out=FLOAT16[4,2,384]"
    ],
)
def masked_convolution(x, weight, mask):
    return masked(convolved(with_zeros(x), weight, len(x)), mask)


@formula("aclnnMaskedCausalConv1dBackward")
def masked_convolution_backward(grad, x, weight, mask):
    of_result = masked(grad, mask)
    of_x, of_weight = np.zeros(x.shape), np.zeros(weight.shape)
    for t in range(len(x)):
        for k in range(3):
            source = t - 2 + k
            if source >= 0:
                of_x[source] += weight[k] * of_result[t]
                of_weight[k] += np.sum(of_result[t] * x[source], 0)
    return of_x, of_weight


def fused(
    x, weight, states, starts, lines, accepted, computed, first, last, initial, skipped, residual, block, mode, y
):
    """Convolves each sequence with the tokens of its state before it, and updates the states."""
    tokens, result, states = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1]).copy(), states.copy()
    if starts is None:
        starts = np.arange(len(x) + 1) * x.shape[1]
    for i in range(len(starts) - 1):
        line = np.atleast_1d(i if lines is None else lines[i])
        place = slice(starts[i], starts[i + 1])
        read = line[0 if initial is None else initial[i]]
        if read == skipped and lines is not None:
            continue
        own = tokens[place]
        # Of the state, the tokens that were accepted come before the sequence.
        is_first = computed is not None and computed[i] == 0
        before = 2 if is_first else states.shape[1] if accepted is None else accepted[i] + 1
        history = np.concatenate([states[read][:before] * (0 if is_first else 1), own])
        kept = min(states.shape[1], len(history))
        states[line[0 if last is None else last[i]], states.shape[1] - kept :] = history[len(history) - kept :]
        if first is not None:
            # The blocks that the sequence fills: the last two tokens up to the end of each of them.
            ends = [t for t in range(1, len(own) + 1) if (computed[i] + t) % block == 0 and t < len(own)]
            for chunk, end in enumerate(ends[len(ends) - (last[i] - first[i]) :]):
                stop = len(history) - len(own) + end
                states[line[first[i] + chunk], states.shape[1] - 2 :] = history[stop - 2 : stop]
        sums = convolved(history, weight, len(own))
        if mode == 1:
            sums[: max(2 - computed[i], 0)] = 0
        result[place] = sums + own * residual
    return result.reshape(x.shape), states


@formula("aclnnFusedCausalConv1d")
def fused_convolution(
    x, weight, states, starts, lines, _initial_mode, _bias, accepted, computed, first, last, initial,
    _activation, skipped, _run_mode, _longest, residual, block, mode,
):  # fmt: skip
    y, states = fused(
        x, weight, states, starts, lines, accepted, computed, first, last, initial, skipped, residual, block, mode,
        np.zeros(x.shape),
    )  # fmt: skip
    return states, y


@formula(
    "aclnnInplaceFusedCausalConv1d",
    calls=[
        f"aclnnInplaceFusedCausalConv1d x=FLOAT16[5,64]:{VALUES} weight=FLOAT16[3,64]:0.5,-1,2,1.5,-0.25"
        " convStates=FLOAT16[4,4,64] queryStartLoc=INT32[4]:0,2,3,5 cacheIndices=INT32[3]:2,-1,0 initialStateMode=null"
        " bias=null numAcceptedTokens=INT32[3]:2,1,1 numComputedTokens=INT32[3]:3,1,0"
        " blockIdxFirstScheduledToken=null blockIdxLastScheduledToken=null initialStateIdx=null activationMode=0"
        f" padSlotId=-1 runMode=0 maxQueryLen=2 residualConnection={residual} blockSize=128 convMode={residual}"
        for residual in (0, 1)
    ],
)
def inplace_fused_convolution(
    x, weight, states, starts, lines, _initial_mode, _bias, accepted, computed, first, last, initial,
    _activation, skipped, _run_mode, _longest, residual, block, mode,
):  # fmt: skip
    return fused(
        x, weight, states, starts, lines, accepted, computed, first, last, initial, skipped, residual, block, mode, x
    )  # fmt: skip
