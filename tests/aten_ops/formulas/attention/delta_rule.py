from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def calls_of(name, *givens):
    return [
        f"{name} query=FLOAT[5,1,2]:0.25,-0.5,-1,0.875,0.75,0.625 key=FLOAT[5,1,2]:0.25,0.5,-0.125,0.75,0.875,-1,0.375 "
        "value=FLOAT[5,2,3]:0.75,-1,0.5,-0.625,0.375,-0.5,-0.25,0.875,0.25,1.25,-0.75 "
        f"beta=FLOAT[5,2]:0.5,0.25,0.875,0.625,0.75 stateRef=FLOAT[6,2,3,2]:0.5,-0.25,-0.75,0.625,-0.5,0.75,-1 {given} "
        "scaleValue=0.5 out=FLOAT[5,2,3]"
        for given in givens
    ]


# A sequence starts with the state of its last accepted token; the state after each token goes to the token's slot.
# Diag(ak) scales the columns of the state (ops-transformer: aclnnRecurrentGatedDeltaRule.md). In FLOAT, small elements
# of a state are off by what rounds its large ones: the sample has a state that grows, as its g and gk are positive.
@formula(
    "aclnnRecurrentGatedDeltaRule",
    calls=calls_of(
        "aclnnRecurrentGatedDeltaRule",
        "actualSeqLengths=INT32[2]:3,2 ssmStateIndices=INT32[5]:2,0,3,5,1 g=FLOAT[5,2]:-0.125,-0.5,-0.25,-0.75,-1 "
        "gk=FLOAT[5,2,2]:-0.25,-0.0625,-0.75,-1,-0.5,-0.125,-0.375 numAcceptedTokens=INT32[2]:2,1",
        "actualSeqLengths=INT32[3]:1,0,3 ssmStateIndices=INT32[5]:4,2,5,0,1 g=null gk=null numAcceptedTokens=null",
        "actualSeqLengths=INT32[2]:2,3 ssmStateIndices=INT32[5]:4,2,5,0,1 g=FLOAT[5,2]:-0.125,-0.5,-0.25 gk=null "
        "numAcceptedTokens=INT32[2]:2,3",
    ),
    error=3e-6,
)
def recurrent_gated_delta_rule(query, key, value, beta, states, lengths, slots, g, gk, accepted, scale):
    states, out, token = states.copy(), np.zeros(value.shape), 0
    query, key = (np.repeat(each, value.shape[1] // key.shape[1], 1) for each in (query, key))
    for i, length in enumerate(lengths):
        if length == 0:
            continue
        state = states[slots[token + (1 if accepted is None else accepted[i]) - 1]].copy()
        for t in range(token, token + length):
            if g is not None:
                state = state * np.exp(g[t])[:, None, None]
            if gk is not None:
                state = state * np.exp(gk[t])[:, None, :]
            k = key[t][:, None, :]
            correction = value[t] - (state * k).sum(-1)
            state = state + (beta[t][:, None] * correction)[..., None] * k
            out[t] = scale * (state * query[t][:, None, :]).sum(-1)
            states[slots[t]] = state
        token += length
    return states, out


CHUNKS = (
    "aclnnChunkGatedDeltaRule query=BFLOAT16[6,1,4]:0.25,-0.5,-1,0.875,0.75,0.625,-0.25 "
    "key=BFLOAT16[6,1,4]:0.25,0.5,-0.125,0.75,0.875,-1,0.375,-0.625,0.125 "
    "value=BFLOAT16[6,2,3]:0.75,-1,0.5,-0.625,0.375,-0.5,-0.25,0.875,0.25,1.25,-0.75 "
    "beta=BFLOAT16[6,2]:0.5,0.25,0.875,0.625,0.75 scaleValue=0.5 out=BFLOAT16[6,2,3] "
)


# A token that belongs to no sequence has the result 0, as the row says.
@formula(
    "aclnnChunkGatedDeltaRule",
    calls=[
        f"{CHUNKS} initialState={dtype}[{shape}]:0.5,-0.25,-0.75,0.625,-0.5,0.75,-1 gOptional={g} "
        f"actualSeqLengths=INT32[{shape[0]}]:{lengths} finalState={dtype}[{shape}]"
        for dtype, shape, g, lengths in (
            ("FLOAT", "2,2,3,4", "FLOAT[6,2]:-0.125,-0.5,-0.25,-0.75,-1", "2,4"),
            ("FLOAT", "3,2,3,4", "null", "3,0,2"),
            ("BFLOAT16", "2,2,3,4", "FLOAT[6,2]:-0.5,-0.25,-1", "1,5"),
        )
    ],
)
def chunk_gated_delta_rule(query, key, value, beta, states, lengths, g, scale):
    """S = a S + beta (v - a S k) k^T, and o = S q scale (ops-transformer: aclnnChunkGatedDeltaRule.md)."""
    states, out, token = states.copy(), np.zeros(value.shape), 0
    query, key = (np.repeat(each, value.shape[1] // key.shape[1], 1) for each in (query, key))
    for i, length in enumerate(lengths):
        for t in range(token, token + length):
            for head in range(value.shape[1]):
                decayed = states[i, head] * (1 if g is None else np.exp(g[t, head]))
                correction = value[t, head] - decayed @ key[t, head]
                states[i, head] = decayed + beta[t, head] * np.outer(correction, key[t, head])
                out[t, head] = states[i, head] @ query[t, head] * scale
        token += length
    return out, states
