from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of, seen_keys, tokens_used
from tests.aten_ops.formulas import formula

# Sums of 128 products, and exponentials of them, in FLOAT.
SUMS = 2e-6


def seen(query, key, query_ends, key_ends):
    """For each query, as numbers of rows of all tokens: the query, and the keys that it sees."""
    if query_ends is None:
        query_ends = [(i + 1) * query.shape[1] for i in range(len(query))]
        key_ends = [(i + 1) * key.shape[1] for i in range(len(key))]
    for i in range(len(query_ends)):
        start = key_ends[i - 1] if i else 0
        for row in range(query_ends[i - 1] if i else 0, query_ends[i]):
            # Queries and keys end together.
            yield row, slice(start, key_ends[i] - (query_ends[i] - row) + 1)


def rows_of(tensor, dims):
    return tensor.reshape(-1, *tensor.shape[tensor.ndim - dims :])


def heads_of_tokens(softmax):
    """(heads, tokens, group) or (batch, heads, tokens, group), as tokens and heads."""
    swapped = np.swapaxes(softmax, -3, -2)
    return swapped.reshape(-1, swapped.shape[-2] * swapped.shape[-1])


def products(query, key, row, keys):
    return rows_of(query, 2)[row] @ rows_of(key, 2)[keys, 0].T


# Small numbers of both signs, in orders that do not fit the size of a head.
VALUES = "0.125,-0.25,0.1875,-0.0625,0.21875,0.15625,-0.125"
OTHERS = "0.25,-0.1875,0.09375,0.28125,-0.125,0.0625,0.15625,-0.21875,0.1875,0.125,-0.03125"


@formula(
    "aclnnDenseLightningIndexerSoftmaxLse",
    calls=[
        f"aclnnDenseLightningIndexerSoftmaxLse queryIndex=FLOAT16[5,8,128]:{VALUES} keyIndex=FLOAT16[7,1,128]:{OTHERS}"
        " weight=FLOAT[5,8]:0.5,-0.75,1.25,2,0.625,0.875,1.5 actualSeqLengthsQueryOptional=[2,5]"
        ' actualSeqLengthsKeyOptional=[3,7] layoutOptional="TND" sparseMode=3 preTokens=9223372036854775807'
        " nextTokens=9223372036854775807 softmaxMaxOut=FLOAT[1,5] softmaxSumOut=FLOAT[1,5]",
        "aclnnDenseLightningIndexerSoftmaxLse queryIndex=FLOAT16[1,2,8,128]:0 keyIndex=FLOAT16[1,3,1,128] "
        "weight=FLOAT[1,2,8] actualSeqLengthsQueryOptional=null actualSeqLengthsKeyOptional=null "
        'layoutOptional="BSND" sparseMode=3 preTokens=9223372036854775807 nextTokens=9223372036854775807 '
        "softmaxMaxOut=FLOAT[1,1,2] softmaxSumOut=FLOAT[1,1,2]",
    ],
    error=SUMS,
)
def softmax_lse(query, key, weight, query_ends, key_ends, layout, sparse_mode, before, after):
    tokens = rows_of(query, 2)
    largest, total = np.zeros(len(tokens)), np.zeros(len(tokens))
    for row, keys in seen(query, key, query_ends, key_ends):
        scores = rows_of(weight, 1)[row] @ np.maximum(products(query, key, row, keys), 0)
        largest[row] = scores.max()
        total[row] = np.sum(np.exp(scores - largest[row]))
    shape = (1, len(tokens)) if layout == "TND" else (len(query), 1, query.shape[1])
    return largest.reshape(shape), total.reshape(shape)


def in_float(powers):
    """Exponentials that overflow in FLOAT do here, too."""
    return np.float32(powers).astype(np.float64)


@formula(
    "aclnnDenseLightningIndexerGradKLLoss",
    calls=[
        f"aclnnDenseLightningIndexerGradKLLoss query=FLOAT16[3,32,128]:{VALUES} key=FLOAT16[5,32,128]:{OTHERS}"
        f" queryIndex=FLOAT16[3,8,128]:{OTHERS} keyIndex=FLOAT16[5,1,128]:{VALUES}"
        " weights=FLOAT[3,8]:0.5,-0.75,1.25,2,0.625,0.875,1.5 softmaxMax=FLOAT[32,3,1]:0.25,0.5,-0.125,0.75,1"
        " softmaxSum=FLOAT[32,3,1]:2,3.5,2.5,3,1.75,4,2.25 softmaxMaxIndex=FLOAT[1,3]:1.5,2,1"
        " softmaxSumIndex=FLOAT[1,3]:3,2.5,3.5 queryRope=null keyRope=null actualSeqLengthsQuery=[1,3]"
        ' actualSeqLengthsKey=[2,5] scaleValue=0.125 layout="TND" sparseMode=3 preTokens=65536 nextTokens=65536'
        " dQueryIndex=FLOAT16[3,8,128] dKeyIndex=FLOAT16[5,1,128] dWeights=FLOAT[3,8] loss=FLOAT[1]"
    ],
    error=SUMS,
)
def dense_kl_loss(
    query, key, query_index, key_index, weights, largest, total, largest_index, total_index, query_rope, key_rope,
    query_ends, key_ends, scale, layout, sparse_mode, before, after,
):  # fmt: skip
    def learnt(scores, row):
        return in_float(np.exp(scores - largest_index.reshape(-1)[row])) / total_index.reshape(-1)[row]

    return kl_loss(
        (query, key, query_rope, key_rope, largest, total, scale),
        (query_index, key_index, weights),
        seen(query_index, key_index, query_ends, key_ends),
        learnt,
    )


def kl_loss(attention, indexer, seen_keys, learnt_of):
    """The gradients of the indexer's queries, keys and weights, and the loss."""
    query, key, query_rope, key_rope, largest, total, scale = attention
    query_index, key_index, weights = indexer
    if query_rope is not None:
        query, key = np.concatenate([query, query_rope], -1), np.concatenate([key, key_rope], -1)
    of_query, of_key = (np.zeros(rows_of(each, 2).shape) for each in (query_index, key_index))
    of_weights = np.zeros(rows_of(weights, 1).shape)
    loss = 0
    for row, keys in seen_keys:
        own = rows_of(weights, 1)[row]
        dots = products(query_index, key_index, row, keys)
        learnt = learnt_of(own @ np.maximum(dots, 0), row)
        of_heads = np.broadcast_to(rows_of(key, 2)[keys], (dots.shape[1], *query.shape[-2:]))
        scores = np.einsum("he,khe->hk", rows_of(query, 2)[row], of_heads) * scale
        most, sums = heads_of_tokens(largest)[row], heads_of_tokens(total)[row]
        target = np.mean(in_float(np.exp(scores - most[:, None])) / sums[:, None], 0)
        loss += np.sum(target * (np.log(target) - np.log(learnt)))
        of_scores = learnt - target
        of_dots = np.outer(own, of_scores) * (dots > 0)
        of_query[row] = of_dots @ rows_of(key_index, 2)[keys, 0]
        of_key[keys, 0] += of_dots.T @ rows_of(query_index, 2)[row]
        of_weights[row] = np.maximum(dots, 0) @ of_scores
    shapes = query_index.shape, key_index.shape, weights.shape
    results = [each.reshape(shape) for each, shape in zip((of_query, of_key, of_weights), shapes, strict=True)]
    return (*results, np.array([loss]))


def listed(lists, seen_keys):
    """The queries and the keys in their lists, which end with a negative number or after as many as the query sees."""
    for row, keys in seen_keys:
        numbers = rows_of(lists, 1)[row][: keys.stop - keys.start]
        yield row, keys.start + numbers[np.cumsum(numbers < 0) == 0]


def call_of_sparse(dtype, of_weights, layout, sizes, ends, softmax, *lists):
    queries, keys = sizes
    of_query, of_key = ends
    lists = ",".join(map(str, (number for each in lists for number in [*each, *[-1] * (1024 - len(each))])))
    return (
        f"aclnnSparseLightningIndexerGradKLLoss query={dtype}[{queries},32,512]:{VALUES}"
        f" key={dtype}[{keys},1,512]:{OTHERS}"
        f" queryIndex={dtype}[{queries},8,128]:{OTHERS} keyIndex={dtype}[{keys},1,128]:{VALUES}"
        f" weights={of_weights}[{queries},8]:0.5,-0.75,1.25,2,0.625,0.875,1.5"
        f" sparseIndices=INT32[{queries},1,1024]:{lists} softmaxMax=FLOAT[{softmax},32]:0.25,0.5,-0.125,0.75,1"
        f" softmaxSum=FLOAT[{softmax},32]:2,3.5,2.5,3,1.75,4,2.25 queryRope={dtype}[{queries},32,64]:{OTHERS}"
        f" keyRope={dtype}[{keys},1,64]:{VALUES} actualSeqLengthsQuery={of_query} actualSeqLengthsKey={of_key}"
        f' scaleValue=0.125 layout="{layout}" sparseMode=3 pre_tokens=9223372036854775807'
        f" next_tokens=9223372036854775807 deterministic=true"
        f" dQueryIndex={dtype}[{queries},8,128] dKeyIndex={dtype}[{keys},1,128]"
        f" dWeights={of_weights}[{queries},8] loss=FLOAT[1]"
    )


# ops-transformer: aclnnSparseLightningIndexerGradKLLoss.md. The probabilities of a head have the sum 1, so that the
# norm of their sum over heads is the number of heads.
@formula(
    "aclnnSparseLightningIndexerGradKLLoss",
    calls=[
        call_of_sparse(
            *("FLOAT16", "FLOAT", "BSND", ("2,2", "2,4"), ("null", "null"), "2,1,2"),
            (2, 0, 1, 3),
            (3, 1, 0),
            (0, 1),
            (2, 3),
        ),
        call_of_sparse(
            *("BFLOAT16", "BFLOAT16", "TND", ("3", "7"), ("[1,3]", "[3,7]"), "1,3"), (1, 0, 2), (2, 1), (0, 3, 1, 2)
        ),
    ],
    error=SUMS,
)
def sparse_kl_loss(
    query, key, query_index, key_index, weights, lists, largest, total, query_rope, key_rope, query_ends, key_ends,
    scale, layout, sparse_mode, before, after, deterministic,
):  # fmt: skip
    def learnt(scores, row):
        powers = np.exp(scores - scores.max(initial=-np.inf))
        return powers / powers.sum()

    return kl_loss(
        (query, key, query_rope, key_rope, largest, total, scale),
        (query_index, key_index, weights),
        listed(lists, seen(query_index, key_index, query_ends, key_ends)),
        learnt,
    )


GIVEN = "aclnnSparseLightningIndexerKLLossGrad"


def call_of_given(dtype, layouts, queries, keys, lists, **others):
    """`queries` and `keys` are the sizes of the tokens, such as "2,3"; a number of listed keys comes before these."""
    count = lists.partition("]")[0]
    return call_of(
        GIVEN,
        q=f"{dtype}[{queries},3,128]:{VALUES}",
        k=f"{dtype}[{keys},1,128]:{OTHERS}",
        w=f"FLOAT[{queries},3]:0.5,-0.75,1.25,2,0.625",
        sparse_indices=f"INT32[{queries},1,{lists}",
        attn_softmax_l1_norm=f"FLOAT[{queries},1,{count}]:0.25,0.5,0.125,0.375,0.0625",
        layout_q=f'"{layouts[0]}"',
        layout_k=f'"{layouts[1]}"',
        dq=f"{dtype}[{queries},3,128]",
        dk=f"{dtype}[{keys},1,128]",
        dw=f"FLOAT[{queries},3]",
        softmax_out=f"FLOAT[{queries},1,{count}]",
        **{"cmp_ratio": 1} | others,
    )


# ops-transformer: aclnnSparseLightningIndexerKLLossGrad.md. The target need not have the sum 1: its tests multiply the
# softmax by this sum.
@by_name(
    GIVEN,
    calls=[
        call_of_given("FLOAT16", ("BSND", "BSND"), "2,2", "2,4", "3]:2,0,3,1,3,-1,0,1,-1,1,0,2", mask_mode=3),
        call_of_given("BFLOAT16", ("BSND", "BSND"), "2,2", "2,4", "2]:3,0,-1,1,2,1,0,-1"),
        call_of_given(
            *("FLOAT16", ("TND", "TND"), "5", "4", "2]:0,1,1,0,0,1,-1,0,0,1"),
            cu_seq_lens_q="INT32[3]:0,2,5",
            cu_seq_lens_k="INT32[3]:0,2,4",
            seq_used_q="INT32[2]:2,2",
            seq_used_k="INT32[2]:2,1",
            mask_mode=3,
            cmp_ratio=4,
            cmp_residual_k="INT32[2]:1,3",
        ),
        call_of_given(
            *("BFLOAT16", ("TND", "BSND"), "5", "2,3", "3]:0,1,2,2,-1,0,1,0,2,0,2,1,2,1,0"),
            cu_seq_lens_q="INT32[3]:0,2,5",
            mask_mode=3,
        ),
    ],
)
def sparse_kl_loss_of_given_target(a):
    queries = tokens_used(a.q, a.layout_q, a.cu_seq_lens_q, a.seq_used_q)
    keys = tokens_used(a.k, a.layout_k, a.cu_seq_lens_k, a.seq_used_k)
    of_query, of_key, of_weights = (np.zeros(rows_of(each, n).shape) for each, n in ((a.q, 2), (a.k, 2), (a.w, 1)))
    lists, target = (rows_of(each, 1) for each in (a.sparse_indices, a.attn_softmax_l1_norm))
    softmax = np.zeros(target.shape)
    for i, (rows, columns) in enumerate(zip(queries.lengths, keys.lengths, strict=True)):
        rest = 0 if a.cmp_residual_k is None else a.cmp_residual_k[i]
        for row in range(rows):
            where = queries.spans[i].start + row
            seen = seen_keys(row, rows, columns, a.cmp_ratio, rest) if a.mask_mode == 3 else columns
            numbers = lists[where][:seen]
            numbers = numbers[np.cumsum(numbers < 0) == 0]
            if not numbers.size:
                continue
            key, own = keys.read(a.k, i)[numbers, 0], rows_of(a.w, 1)[where]
            dots = rows_of(a.q, 2)[where] @ key.T
            scores = own @ np.maximum(dots, 0)
            powers = np.exp(scores - scores.max())
            softmax[where, : len(numbers)] = powers / powers.sum()
            ds = softmax[where, : len(numbers)] * target[where].sum() - target[where, : len(numbers)]
            of_dots = np.outer(own, ds) * (dots > 0)
            of_query[where], of_weights[where] = of_dots @ key, np.maximum(dots, 0) @ ds
            np.add.at(of_key[:, 0], keys.spans[i].start + numbers, of_dots.T @ rows_of(a.q, 2)[where])
    results = (of_query, a.q), (of_key, a.k), (of_weights, a.w), (softmax, a.sparse_indices)
    return tuple(result.reshape(given.shape) for result, given in results)
