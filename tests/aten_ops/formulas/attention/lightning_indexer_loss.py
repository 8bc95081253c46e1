from __future__ import annotations

import numpy as np

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
