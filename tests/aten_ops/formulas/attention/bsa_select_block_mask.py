"""The mask of the blocks with the largest attention (ops-transformer: aclnnBSASelectBlockMask.md)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of

# Numbers of both signs, few of which are repeated, so that no two blocks have the same attention.
QUERY = ",".join(f"{math.sin(7 * i + i * i) * 2:.3f}" for i in range(1009))
KEY = ",".join(f"{math.cos(5 * i + i * i) * 2:.3f}" for i in range(1013))


def call(layout, queries, keys, mask, **given):
    inputs = {"query": f"FLOAT16[{queries}]:{QUERY}", "key": f"FLOAT16[{keys}]:{KEY}"}
    layouts = {"q_input_layout": f'"{layout}"', "kv_input_layout": f'"{layout}"'}
    others = {"block_shape": "[64,64]", "block_sparse_mask_out": f"INT8[{mask}]", "num_key_value_heads": 2}
    return call_of("aclnnBSASelectBlockMask", **inputs | layouts | others | given)


@by_name(
    "aclnnBSASelectBlockMask",
    calls=[
        call("BNSD", "1,2,130,128", "1,2,200,128", "1,2,3,4", sparsity=0.4),
        call("BNSD", "1,2,130,128", "1,2,200,128", "1,2,3,4", sparsity=0.8, actual_block_len_key="[64,5,0,8]"),
        call("BNSD", "1,2,130,128", "1,2,200,128", "1,2,2,2", sparsity=0.1, block_shape="null"),
        call(
            "TND",
            "200,2,128",
            "160,2,128",
            "2,2,3,2",
            sparsity=0.5,
            actual_seq_lengths="[70,130]",
            actual_seq_lengths_kv="[100,60]",
            actual_block_len_query="[64,3,0,20,2]",
        ),
    ],
)
def select_block_mask(a):
    def means(tensor, lengths, block, counted):
        """Of each sequence: the means of its blocks, and which of them have no tokens that count."""
        if a.q_input_layout == "TND":
            own = [tensor[i:j].swapaxes(0, 1) for i, j in pairwise(np.cumsum([0, *lengths]))]
        else:
            own = list(tensor)
        found, position = [], 0
        for part in own:
            blocks = [part[:, i : i + block] for i in range(0, part.shape[1], block)]
            if counted is not None:
                blocks = [each[:, : counted[position + i]] for i, each in enumerate(blocks)]
                position += len(blocks)
            sums = [each.sum(1) / max(each.shape[1], 1) for each in blocks]
            found.append((np.stack(sums, 1), np.array([each.shape[1] == 0 for each in blocks])))
        return found

    x, y = a.block_shape or (128, 128)
    of_queries = means(a.query, a.actual_seq_lengths, x, a.actual_block_len_query)
    of_keys = means(a.key, a.actual_seq_lengths_kv, y, a.actual_block_len_key)
    mask = np.zeros(a.outputs["blockSparseMaskOut"].shape)
    for i, ((query, no_query), (key, no_key)) in enumerate(zip(of_queries, of_keys, strict=True)):
        scores = query @ key.swapaxes(1, 2) * (a.scale_value or 128**-0.5)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        p = powers / powers.sum(-1, keepdims=True)
        empty = no_query[:, None] | no_key
        share = np.float32(a.sparsity)
        if empty.size == 1:
            count = 1
        elif share > 0.5:  # the kernel counts the others
            count = empty.size - max(math.floor((1 - share) * empty.size + 0.5), 1)
        else:
            count = max(math.floor(share * empty.size + 0.5), 1)
        for head, own in enumerate(p):
            best = np.argsort(-np.where(empty, -1, own).reshape(-1), kind="stable")[:count]
            flags = np.zeros(empty.size)
            flags[best] = 1
            mask[i, head, : empty.shape[0], : empty.shape[1]] = np.where(empty, 0, flags.reshape(empty.shape))
    return mask
