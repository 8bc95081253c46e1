"""Attention to a window of keys and to compressed keys (ops-transformer: aclnnSparseFlashMla.md, ...Grad.md,
aclnnMixedQuantSparseFlashMla.md; for what these leave open, the golden code of their tests)."""

from __future__ import annotations

import random

import numpy as np

from tests.aten_ops.formula_helpers.attention import (
    GRADIENT,
    KEY,
    QUERY,
    VALUE,
    by_name,
    call_of,
    seen_keys,
    tokens_used,
)
from tests.aten_ops.formula_helpers.types import bfloat16

NAME = "aclnnSparseFlashMla"


def given(dtype, layouts, queries, original, compressed, **others):
    """The arguments of a call; sizes of tokens are such as "2,3". Queries have two heads."""
    layout_q, layout_kv = layouts
    arguments = {
        "q": f"{dtype}[{queries},2,512]:{QUERY}",
        "ori_kv": f"{dtype}[{original},1,512]:{KEY}",
        "sinks": "FLOAT[2]:0.5,-0.25",
        "metadata": "INT32[1024]",
        "softmax_scale": 0.125,
        "cmp_ratio": 4,
        "ori_mask_mode": 4,
        "cmp_mask_mode": 3,
        "ori_win_left": 1,
        "layout_q": f'"{layout_q}"',
        "layout_kv": f'"{layout_kv}"',
        "topk_value_mode": 1,
        "return_softmax_lse": "true",
        "attn_out_out": f"{dtype}[{queries},2,512]",
        "softmax_lse_out": f"FLOAT[{'1,' + queries if layout_q == 'TND' else queries.replace(',', ',1,')},2]",
    }
    if compressed:
        arguments["cmp_kv"] = f"{dtype}[{compressed},1,512]:{VALUE}"
    return arguments | others


PACKED = {"cu_seqlens_q": "INT32[3]:0,2,5", "cu_seqlens_ori_kv": "INT32[3]:0,9,13"}
PAGES = {
    "cu_seqlens_q": "INT32[3]:0,2,5",
    "seqused_ori_kv": "INT32[2]:7,2",
    "ori_block_table": "INT32[2,2]:2,0,1",
    "cmp_block_table": "INT32[2,1]:1,0",
}


class Seen:
    """The keys that each query sees."""

    def __init__(self, a, query, original, compressed):
        self.queries = tokens_used(query, a.layout_q, a.cu_seqlens_q, a.seqused_q)
        self.original = tokens_used(original, a.layout_kv, a.cu_seqlens_ori_kv, a.seqused_ori_kv, a.ori_block_table)
        self.compressed = None
        if compressed is not None:
            used = a.seqused_cmp_kv
            if used is None and a.layout_kv == "PA_BBND":
                pages = a.cmp_block_table
                used = [pages.shape[1] * compressed.shape[1]] * len(pages)
            self.compressed = tokens_used(compressed, a.layout_kv, a.cu_seqlens_cmp_kv, used, a.cmp_block_table)
        self.a = a

    def __iter__(self):
        """The sequence, the query among all, its row, and the numbers in the sequence of the keys of both kinds."""
        for i, (rows, columns) in enumerate(zip(self.queries.lengths, self.original.lengths, strict=True)):
            for row in range(rows):
                end = columns - rows + row + 1
                if columns and (end > 0 or self.a.ori_mask_mode == 0):
                    yield i, self.queries.spans[i].start + row, row, self._window(end, columns), self._listed(i, row)

    def _window(self, end, columns):
        a = self.a
        is_limited = a.ori_mask_mode != 0 and a.ori_win_right != -1
        last = min(end + a.ori_win_right, columns) if is_limited else columns
        first = max(end - a.ori_win_left - 1, 0) if a.ori_mask_mode == 4 and a.ori_win_left != -1 else 0
        return np.arange(first, last)

    def _listed(self, i, row):
        """The compressed keys, and where they are in the list."""
        a, none = self.a, np.arange(0)
        if self.compressed is None:
            return none, none
        count = self.compressed.lengths[i]
        rest = 0 if a.cmp_residual_kv is None else a.cmp_residual_kv[i]
        if a.cmp_mask_mode == 3:
            count = seen_keys(row, self.queries.lengths[i], count, a.cmp_ratio, rest)
        if a.cmp_sparse_indices is None:
            return np.arange(count), none
        where = self.queries.spans[i].start + row
        most = count if a.cmp_topk_length is None else min(count, a.cmp_topk_length.reshape(-1)[where])
        numbers = self.queries.flat(a.cmp_sparse_indices)[where, 0]
        places = []
        for place in range(min(most, len(numbers))):
            if numbers[place] < 0:
                break
            if numbers[place] < count:
                places.append(place)
        return numbers[places], np.array(places, int)


def attend(a, original, compressed):
    """The result and the logarithm of the sum of exponents, 0 for a query that sees no key."""
    seen = Seen(a, a.q, original, compressed)
    heads = a.q.shape[-2]
    result, lse = np.zeros(seen.queries.flat(a.q).shape), np.zeros((len(seen.queries.flat(a.q)), heads))
    for i, where, row, window, (listed, _) in seen:
        keys = seen.original.read(original, i)[window, 0]
        if compressed is not None:
            keys = np.concatenate([keys, seen.compressed.read(compressed, i)[listed, 0]])
        scores = seen.queries.read(a.q, i)[row] @ keys.T * a.softmax_scale
        most = np.maximum(scores.max(1), a.sinks)
        total = np.exp(scores - most[:, None]).sum(1) + np.exp(a.sinks - most)
        lse[where] = most + np.log(total)
        result[where] = np.exp(scores - lse[where][:, None]) @ keys
    shape = (1, *lse.shape) if seen.queries.packed else (len(a.q), 1, a.q.shape[1], heads)
    result = result.reshape(a.q.shape)
    return (result, lse.reshape(shape)) if a.return_softmax_lse else result


# The error is that of sums of 512 products, in FLOAT.
@by_name(
    NAME,
    calls=[
        call_of(NAME, **arguments)
        for arguments in (
            given("FLOAT16", ("BSND", "BSND"), "2,3", "2,5", ""),
            given("BFLOAT16", ("BSND", "BSND"), "2,3", "2,2", "", ori_win_left=-1),
            given("FLOAT16", ("BSND", "BSND"), "1,3", "1,5", "", ori_mask_mode=3, ori_win_right=1),
            given("FLOAT16", ("BSND", "BSND"), "1,3", "1,5", "", ori_mask_mode=0),
            given("FLOAT16", ("BSND", "BSND"), "1,3", "1,5", "", ori_mask_mode=3, ori_win_right=2**63 - 1),
            given("FLOAT16", ("BSND", "BSND"), "1,3", "1,5", "", ori_win_left=2**63 - 1, cmp_ratio=-5),
            # There are more compressed keys than the ratio says.
            given("FLOAT16", ("BSND", "BSND"), "1,3", "1,5", "1,4", cmp_residual_kv="INT32[1]:1"),
            given(
                *("FLOAT16", ("BSND", "BSND"), "2,3", "2,10", "2,3"),
                cmp_residual_kv="INT32[2]:2,1",
                cmp_sparse_indices="INT32[2,3,1,3]:1,0,2,0,0,1,2,1,0,1,-1,0,0,1,1,-1,0,1",
                seqused_ori_kv="INT32[2]:10,5",
            ),
            given(
                *("BFLOAT16", ("TND", "TND"), "5", "13", "4"),
                **PACKED,
                cu_seqlens_cmp_kv="INT32[3]:0,2,4",
                cmp_residual_kv="INT32[2]:1,0",
                seqused_cmp_kv="INT32[2]:2,1",
            ),
            given(
                *("FLOAT16", ("TND", "PA_BBND"), "5", "3,5", "2,3"),
                **PAGES,
                cmp_residual_kv="INT32[2]:3,2",
                return_softmax_lse="false",
                softmax_lse_out="null",
            ),
            given(
                *("FLOAT16", ("TND", "PA_BBND"), "5", "3,5", "3,3"),
                **PAGES | {"cmp_block_table": "INT32[2,2]:1,0,2,2"},
                cmp_mask_mode=0,
            ),
            given(
                *("FLOAT16", ("TND", "PA_BBND"), "5", "3,5", "2,3"),
                **PAGES,
                cmp_mask_mode=0,
                seqused_cmp_kv="INT32[2]:3,2",
                cmp_sparse_indices="INT32[5,1,2]:1,0,2,2,0,1,1,-1,0,5",
            ),
        )
    ],
)
def sparse_flash_mla(a):
    """A list of compressed keys ends with a negative number; a query sees no more elements of it than such keys."""
    return attend(a, a.ori_kv, a.cmp_kv)


GRAD = NAME + "Grad"


def given_grad(dtype, layout, queries, original, compressed, lists="", **others):
    softmax = f"1,{queries},3" if layout == "TND" else f"{queries.replace(',', ',1,')},3"
    arguments = {
        "query": f"{dtype}[{queries},3,512]:{QUERY}",
        "d_out": f"{dtype}[{queries},3,512]:{GRADIENT}",
        "out": f"{dtype}[{queries},3,512]:{VALUE}",
        "lse": f"FLOAT[{softmax}]:6.5,7.25,5.75,8",
        "ori_kv": f"{dtype}[{original},1,512]:{KEY}",
        "sinks": "FLOAT[3]:0.5,-0.25,2",
        "scale_value": 0.125,
        "cmp_ratio": 4,
        "ori_mask_mode": 4,
        "cmp_mask_mode": 3,
        "ori_win_left": 127,
        "layout_q": f'"{layout}"',
        "layout_kv": f'"{layout}"',
        "d_query_out": f"{dtype}[{queries},3,512]",
        "d_ori_kv_out": f"{dtype}[{original},1,512]",
        "d_sinks_out": "FLOAT[3]",
    }
    if compressed:
        arguments |= {
            "cmp_kv": f"{dtype}[{compressed},1,512]:{VALUE}",
            "d_cmp_kv_out": f"{dtype}[{compressed},1,512]",
        }
    if lists:
        size = lists.partition("]")[0]
        arguments |= {
            "cmp_sparse_indices": f"INT32[{queries},1,{lists}",
            "cmp_softmax_l1_norm": f"FLOAT[{queries},1,{size}]",
        }
    return arguments | others


@by_name(
    GRAD,
    calls=[
        call_of(GRAD, **arguments)
        for arguments in (
            given_grad("FLOAT16", "BSND", "2,2", "2,3", ""),
            given_grad("FLOAT16", "BSND", "1,2", "1,3", "", ori_mask_mode=0, sinks="null", d_sinks_out="null"),
            given_grad(
                *("BFLOAT16", "BSND", "2,2", "2,10", "2,3", "3]:1,0,2,0,0,-1,2,1,0,1,-1,0"),
                cmp_residual_kv="INT32[2]:2,1",
                seqused_q="INT32[2]:2,1",
                seqused_ori_kv="INT32[2]:10,9",
            ),
            given_grad(
                *("FLOAT16", "TND", "5", "13", "4"),
                **PACKED,
                cu_seqlens_cmp_kv="INT32[3]:0,2,4",
                cmp_residual_kv="INT32[2]:1,0",
                ori_mask_mode=3,
            ),
            given_grad(
                *("FLOAT16", "TND", "5", "13", "4", "2]:1,0,0,0,1,1,-1,0,0,1"),
                **PACKED,
                cu_seqlens_cmp_kv="INT32[3]:0,2,4",
                cmp_topk_length="INT32[5,1]:2,1,2,2,1",
                cmp_mask_mode=0,
                lse="FLOAT[1,5,3]:0.5,1.25,-0.25,2",
            ),
        )
    ],
)
def sparse_flash_mla_grad(a):
    """The gradients of the query, both kinds of keys and the sinks, and the mean probabilities of listed keys."""
    if a.query.size == 0:
        return tuple(np.zeros(output.shape) for output in a.outputs.values() if output is not None)
    seen = Seen(a, a.query, a.ori_kv, a.cmp_kv)
    heads = a.query.shape[-2]
    of_query = np.zeros(seen.queries.flat(a.query).shape)
    of_keys = [None if each is None else np.zeros(each.size).reshape(-1, 512) for each in (a.ori_kv, a.cmp_kv)]
    of_sinks = np.zeros(heads)
    lists = a.cmp_sparse_indices
    norms = None if lists is None else np.zeros((len(of_query), lists.shape[-1]))
    lse = a.lse.reshape(-1, heads)
    for i, where, _, window, (listed, places) in seen:
        parts = [seen.original.read(a.ori_kv, i)[window, 0]]
        numbers = [seen.original.spans[i].start + window]
        if a.cmp_kv is not None:
            parts.append(seen.compressed.read(a.cmp_kv, i)[listed, 0])
            numbers.append(seen.compressed.spans[i].start + listed)
        keys = np.concatenate(parts)
        query, dy, y = (seen.queries.flat(each)[where] for each in (a.query, a.d_out, a.out))
        p = np.exp(query @ keys.T * a.scale_value - lse[where][:, None])
        dp = dy @ keys.T
        ds = p * (dp - np.sum(dy * y, 1, keepdims=True)) * a.scale_value
        of_query[where] = ds @ keys
        split = np.split(ds.T @ query + p.T @ dy, [len(window)])
        for total, own, each in zip(of_keys, numbers, split, strict=False):
            np.add.at(total, own, each)
        if a.sinks is not None:
            of_sinks -= np.sum(p * dp, 1) * np.exp(a.sinks - lse[where])
        if norms is not None:
            norms[where, places] = p[:, len(window) :].mean(0)
    results = [(of_query, a.query), (of_keys[0], a.ori_kv), (of_keys[1], a.cmp_kv), (of_sinks, a.sinks), (norms, lists)]
    return tuple(result.reshape(own.shape) for result, own in results if own is not None)


MIXED = "aclnnMixedQuantSparseFlashMla"


def number_of(code):
    """The number of a code of FLOAT8_E4M3FN."""
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -magnitude if code & 128 else magnitude


MAGNITUDES = np.array([number_of(code) for code in range(127)])


def codes_of(numbers):
    """The bytes of a tensor of FLOAT8_E4M3FN; the last code of a sign is NaN."""
    magnitude = np.where(np.isnan(numbers), 127, np.searchsorted(MAGNITUDES, np.nan_to_num(np.abs(numbers))))
    return magnitude + 128 * np.signbit(numbers)


def bfloat16_of(codes):
    """The numbers whose lower and upper byte are neighbours."""
    bits = codes[..., ::2].astype(np.uint32) << 16 | codes[..., 1::2].astype(np.uint32) << 24
    return bits.view(np.float32).astype(np.float64)


def text_of(code):
    return {127: "nan", 255: "-nan"}.get(code, str(number_of(code)))


def quantised_keys(pages, tokens, mode, seed):
    """A tensor of keys, written as the numbers of its bytes: (pages, tokens, 1, bytes of a token)."""
    draw = random.Random(seed)

    def of_bfloat16(count, upper):
        return [code for _ in range(count) for code in (draw.randrange(256), draw.choice(upper))]

    numbers = []
    for _ in range(pages):
        elements, scales = [], []
        for _ in range(tokens):
            rope = of_bfloat16(64, (0x3D, 0x3E, 0xBE, 0xBD))
            rest = [draw.choice((0, 128)) + draw.randrange(0x20, 0x34) for _ in range(448)]
            if mode == 1:
                elements.append(rope + rest + of_bfloat16(7, (0x3E, 0x3F)) + [0] * 18)
            else:
                elements.append(rest + rope)
                scales.append([draw.choice((0x7D, 0x7E, 0x80)) for _ in range(7)] + [0])
        numbers += [text_of(code) for token in elements + scales for code in token]
    size = 608 if mode == 1 else 584
    return f"FLOAT8_E4M3FN[{pages},{tokens},1,{size}]:{','.join(numbers)}"


def dequantised(keys, mode):
    """The other elements and then the rotary part, in BFLOAT16."""
    codes = codes_of(keys)
    if mode == 1:
        rope, rest, scales = np.split(codes[..., :590], [128, 576], -1)
        scales = bfloat16_of(scales)
    else:  # the scales of a page follow the elements of all its tokens
        flat = codes.reshape(len(codes), -1)
        tokens = codes.shape[1]
        elements, scales = np.split(flat, [tokens * 576], 1)
        rest, rope = np.split(elements.reshape(*codes.shape[:3], 576), [448], -1)
        scales = 2.0 ** (scales.reshape(*codes.shape[:3], 8)[..., :7] - 127.0)
    numbers = np.where(rest & 128, -1, 1) * np.append(MAGNITUDES, np.nan)[rest & 127]
    return np.concatenate([bfloat16(numbers * np.repeat(scales, 64, -1)), bfloat16_of(rope)], -1)


MIXED_INPUTS = {"rope_head_dim": 64, "ori_win_left": 127}


@by_name(
    MIXED,
    calls=[
        call_of(MIXED, **arguments)
        for arguments in (
            given("BFLOAT16", ("BSND", "BSND"), "1,3", "1,5", "", **MIXED_INPUTS)
            | {"ori_kv": quantised_keys(1, 5, 1, 1), "quant_mode": 1, "cmp_ratio": 1},
            given("BFLOAT16", ("TND", "PA_BBND"), "5", "3,5", "", **PAGES | MIXED_INPUTS)
            | {"ori_kv": quantised_keys(3, 5, 2, 2), "cmp_kv": quantised_keys(2, 3, 2, 3), "quant_mode": 2}
            | {"cmp_residual_kv": "INT32[2]:3,2"},
            given("BFLOAT16", ("TND", "PA_BBND"), "5", "3,5", "", **PAGES | MIXED_INPUTS)
            | {"ori_kv": quantised_keys(3, 5, 1, 4), "cmp_kv": quantised_keys(2, 3, 1, 5), "quant_mode": 1}
            | {"cmp_residual_kv": "INT32[2]:3,2", "cmp_sparse_indices": "INT32[5,1,2]:0,0,1,0,-1,0,0,1,0,-1"},
        )
    ],
)
def mixed_quant_sparse_flash_mla(a):
    """As sparse_flash_mla, with keys whose bytes hold their scales."""
    compressed = None if a.cmp_kv is None else dequantised(a.cmp_kv, a.quant_mode)
    return attend(a, dequantised(a.ori_kv, a.quant_mode), compressed)
