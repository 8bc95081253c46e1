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
        f" padSlotId=-1 runMode=0 maxQueryLen=2 residualConnection={residual} blockSize={128 * residual}"
        f" convMode={residual}"
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


def silu(x):
    return x / (1 + np.exp(-x))


def sequences_of(x, states, starts, lines, skipped):
    """The tokens of each sequence that is computed, their place, the sequence's number and that of its state."""
    tokens = x.reshape(-1, x.shape[-1])
    if starts is None:
        starts = np.arange(len(x) + 1) * x.shape[1]
    for i in range(len(starts) - 1):
        line = i if lines is None else lines[i]
        if starts[i] < starts[i + 1] and (lines is None or line != skipped):
            yield tokens[starts[i] : starts[i + 1]], slice(starts[i], starts[i + 1]), i, line


def activated(history, weight, bias, activation):
    """The results of all tokens that have enough tokens before them; the last row of weight is that of the token."""
    width = len(weight)
    sums = sum(weight[k] * history[k : len(history) - width + 1 + k] for k in range(width))
    sums = sums if bias is None else sums + bias
    return sums if activation == "none" else silu(sums)


_FN = (
    "numComputedTokensOptional=null blockIdxFirstScheduledTokenOptional=null blockIdxLastScheduledTokenOptional=null "
    "initialStateIdxOptional=null nullBlockId=-1 blockSizeToAlign=128"
)


@formula(
    "aclnnCausalConv1dFn",
    calls=[
        f"aclnnCausalConv1dFn x=FLOAT16[7,64]:{VALUES} weight=FLOAT16[4,64]:0.5,-1,2,1.5,-0.25 "
        f"convStatesRef=FLOAT16[5,{length},64] biasOptional={bias} queryStartLocOptional=INT32[5]:0,1,1,4,7 "
        "cacheIndicesOptional=INT32[4]:3,0,-1,1 initialStateModeOptional=INT32[4]:1,1,1,0 "
        f'{_FN} activation="{activation}" y=FLOAT16[7,64]'
        for length, bias, activation in ((3, "null", "none"), (5, "FLOAT16[64]:0.75,-2,1.25", ""))
    ]
    + [
        f"aclnnCausalConv1dFn x=FLOAT16[2,2,64]:{VALUES} weight=FLOAT16[2,64]:0.5,-1,2,1.5,-0.25 "
        "convStatesRef=FLOAT16[3,2,64] biasOptional=null queryStartLocOptional=null cacheIndicesOptional=null "
        f'initialStateModeOptional=null {_FN} activation="silu" y=FLOAT16[2,2,64]',
        f"aclnnCausalConv1dFn x=FLOAT16[2,3,64]:{VALUES} weight=FLOAT16[2,64]:0.5,-1,2,1.5,-0.25 "
        "convStatesRef=FLOAT16[3,2,64] biasOptional=null queryStartLocOptional=INT32[3]:0,2,6 "
        "cacheIndicesOptional=INT32[2]:2,1 initialStateModeOptional=INT32[2]:0,1 "
        f'{_FN} activation="silu" y=FLOAT16[2,3,64]',
    ],
)
def first_tokens(
    x, weight, states, bias, starts, lines, modes, _first, _last, _initial, _computed, activation, skipped, _block
):  # fmt: skip
    before, states = states, states.copy()
    y = np.zeros((x.size // x.shape[-1], x.shape[-1]))
    for tokens, place, i, line in sequences_of(x, states, starts, lines, skipped):
        read = before[line, : len(weight) - 1] * (0 if modes is None else modes[i])
        history = np.concatenate([read, tokens])
        y[place] = activated(history, weight, bias, activation)
        saved = history[-states.shape[1] :]
        states[line, states.shape[1] - len(saved) :] = saved
    return states, y.reshape(x.shape)


@formula(
    "aclnnCausalConv1dUpdate",
    calls=[
        f"aclnnCausalConv1dUpdate x=FLOAT16[5,64]:{VALUES} weight=FLOAT16[4,64]:0.5,-1,2,1.5,-0.25 "
        "convStatesRef=FLOAT16[5,6,64] biasOptional=FLOAT16[64]:0.75,-2,1.25 queryStartLocOptional=INT32[5]:0,1,1,2,5 "
        "cacheIndicesOptional=INT32[4]:3,0,-1,1 numAcceptedTokensOptional=INT32[4]:0,1,1,3 "
        "blockIdxLastScheduledTokenOptional=null initialStateIdxOptional=null "
        'activation="silu" nullBlockId=-1 maxQueryLen=-1 y=FLOAT16[5,64]',
        f"aclnnCausalConv1dUpdate x=FLOAT16[3,1,64]:{VALUES} weight=FLOAT16[3,64]:0.5,-1,2,1.5,-0.25 "
        "convStatesRef=FLOAT16[3,4,64] biasOptional=null queryStartLocOptional=null cacheIndicesOptional=null "
        "numAcceptedTokensOptional=null blockIdxLastScheduledTokenOptional=null initialStateIdxOptional=null "
        'activation="none" nullBlockId=-1 maxQueryLen=1 y=FLOAT16[3,1,64]',
        f"aclnnCausalConv1dUpdate x=FLOAT16[3,1,64]:{VALUES} weight=FLOAT16[3,64]:0.5,-1,2,1.5,-0.25 "
        "convStatesRef=FLOAT16[3,4,64] biasOptional=null queryStartLocOptional=INT32[4]:0,1,2,3 "
        "cacheIndicesOptional=null numAcceptedTokensOptional=null blockIdxLastScheduledTokenOptional=null "
        'initialStateIdxOptional=null activation="silu" nullBlockId=-1 maxQueryLen=1 y=FLOAT16[3,1,64]',
    ],
)
def next_tokens(
    x, weight, states, bias, starts, lines, accepted, _last, _initial, activation, skipped, _longest
):  # fmt: skip
    before, states = states, states.copy()
    y = np.zeros((x.size // x.shape[-1], x.shape[-1]))
    for tokens, place, i, line in sequences_of(x, states, starts, lines, skipped):
        offset = 0 if accepted is None else max(accepted[i] - 1, 0)
        history = np.concatenate([before[line, offset : offset + len(weight) - 1], tokens])
        y[place] = activated(history, weight, bias, activation)
        saved = history[1 : 1 + states.shape[1]]
        states[line, : len(saved)] = saved
    return states, y.reshape(x.shape)
