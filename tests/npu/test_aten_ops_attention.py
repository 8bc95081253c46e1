"""Attention under torch_npu; csrc/cann/rows/attention."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu

from .aten_ops import Case, cases_of, check, numbers, on_product, operators_of, with_gradients

Q, K, V = (numbers(2, 3, 5, 8, seed=i) for i in range(3))
LONG_K, LONG_V = (numbers(2, 3, 7, 8, seed=i) for i in (3, 4))
MASK = numbers(2, 3, 5, 5, seed=5) < 0.5
MASK[..., 0] = True
FLOAT = {"relative": 2**-19, "absolute": 2**-19}
# Rounded once here, and also between the products in ATen.
HALF = {"relative": 2**-8, "absolute": 2**-8}
VERSIONS = (
    ("FlashAttentionScore FlashAttentionScoreGrad", "910"),
    ("FlashAttentionScoreV4 FlashAttentionScoreGradV4", "950"),
)
LAYOUTS = {
    "BNSD": lambda x: x,
    "BSND": lambda x: x.transpose(1, 2),
    "BSH": lambda x: x.transpose(1, 2).flatten(2),
    "SBH": lambda x: x.permute(2, 0, 1, 3).flatten(2),
}


def attend(*tensors: torch.Tensor, **keywords: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(*tensors, **keywords)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def fused(q, k, v, layout: str, **keywords: Any):  # type: ignore[no-untyped-def]
    """torch_npu's own attention on tensors in BNSD."""
    turn = LAYOUTS[layout]
    out = torch_npu.npu_fusion_attention(
        *(turn(x).contiguous() for x in (q, k, v)), q.size(1), layout, scale=8**-0.5, **keywords
    )[0]
    if layout in ("BSH", "SBH"):
        out = out.unflatten(2, (q.size(1), -1))
    return {"BNSD": out, "BSND": out.transpose(1, 2), "BSH": out.transpose(1, 2), "SBH": out.permute(1, 2, 0, 3)}[
        layout
    ]


CASES = [
    *(
        Case(functions, with_gradients(call), arguments, **tolerance, product=product)
        for functions, product in VERSIONS
        for call, arguments, tolerance in [
            (attend, (Q, K, V), FLOAT),
            (attend, (Q, LONG_K, LONG_V), FLOAT),
            (partial(attend, is_causal=True), (Q, K, V), FLOAT),
            (attend, (Q.half(), K.half(), V.half()), HALF),
        ]
    ),
    Case("", with_gradients(masked), (Q, K, V, MASK), **FLOAT),
    Case("", with_gradients(masked), (Q, K, V, numbers(5, 5)), **FLOAT),
]


@cases_of(CASES)
def test_attention(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    expected = with_gradients(attend)(Q, K, V)
    got = with_gradients(partial(fused, layout=layout))(Q.npu(), K.npu(), V.npu())
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-19, atol=2**-19)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_sparse_modes(mode: int) -> None:
    hidden = {
        0: ~MASK,
        1: ~MASK,
        2: torch.ones(5, 7, dtype=torch.bool).triu(1),
        3: torch.ones(5, 7, dtype=torch.bool).triu(3),
    }[mode]
    k, v = (K, V) if mode < 2 else (LONG_K, LONG_V)
    mask = hidden.npu() if mode < 2 else torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
    got = fused(Q.npu(), k.npu(), v.npu(), "BNSD", atten_mask=mask, sparse_mode=mode)
    torch.testing.assert_close(got.cpu(), attend(Q, k, v, attn_mask=~hidden), rtol=2**-19, atol=2**-19)


def test_grouped_heads() -> None:
    got = with_gradients(partial(fused, layout="BNSD"))(Q.npu(), K[:, :1].npu(), V[:, :1].npu())
    expected = with_gradients(lambda q, k, v: attend(q, k.expand_as(q), v.expand_as(q)))(Q, K[:, :1], V[:, :1])
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-19, atol=2**-19)


def test_dropout_is_the_same_with_gradients() -> None:
    """Attention is linear in the values, so its gradient with respect to them follows from the result."""
    torch.manual_seed(3)
    v = V.npu().requires_grad_()
    out = attend(Q.npu(), K.npu(), v, dropout_p=0.5)
    weights = numbers(*out.shape, seed=9).npu()
    (gradient,) = torch.autograd.grad(out, v, weights)
    assert (out * weights).sum().item() == pytest.approx((gradient * V.npu()).sum().item(), rel=1e-4)
    assert not torch.allclose(out.detach().cpu(), attend(Q, K, V))


def test_a_prefix_of_the_keys_is_seen_by_all() -> None:
    prefix = (2, 4)
    key, query = torch.arange(5), torch.arange(5).unsqueeze(1)
    hidden = torch.stack([(key > query) & (key >= count) for count in prefix]).unsqueeze(1)
    ours = with_gradients(lambda q, k, v: fused(q, k, v, "BNSD", prefix=prefix, sparse_mode=5, atten_mask=hidden.npu()))
    theirs = with_gradients(lambda q, k, v: masked(q, k, v, ~hidden))
    for got, expected in zip(ours(Q.npu(), K.npu(), V.npu()), theirs(Q, K, V), strict=True):
        torch.testing.assert_close(got.cpu(), expected, rtol=2**-19, atol=2**-19)


DISTANCE = (torch.arange(5) - torch.arange(5).unsqueeze(1)).float()
SLOPES = torch.tensor([0.5, 0.25, 0.125])


@pytest.mark.parametrize(
    ("keywords", "shift", "expected"),
    [
        ({"pse_type": 0}, numbers(2, 3, 5, 5), numbers(2, 3, 5, 5)),
        ({"pse_type": 1}, numbers(2, 3, 5, 5), numbers(2, 3, 5, 5) * 8**-0.5),
        ({"pse_type": 2}, SLOPES, -DISTANCE.abs() * SLOPES.view(3, 1, 1)),
        ({"pse_type": 3}, SLOPES, -DISTANCE.abs().sqrt() * SLOPES.view(3, 1, 1)),
        (
            {"pse_type": 2, "q_start_idx": [3], "kv_start_idx": [1]},
            SLOPES,
            -(DISTANCE - 2).abs() * SLOPES.view(3, 1, 1),
        ),
    ],
)
def test_shifts_of_later_versions(keywords: dict[str, Any], shift: torch.Tensor, expected: torch.Tensor) -> None:
    if not on_product("950"):
        pytest.skip("torch_npu hands them to FlashAttentionScoreV4, on Ascend950 alone")
    tensors = [x.npu() for x in (Q, K, V)]
    out = torch_npu.npu_fusion_attention_v2(*tensors, 3, "BNSD", pse=shift.npu(), scale=8**-0.5, **keywords)[0]
    torch.testing.assert_close(out.cpu(), attend(Q, K, V, attn_mask=expected), rtol=2**-19, atol=2**-19)


def packed(q, k, v, **keywords: Any):  # type: ignore[no-untyped-def]
    """torch_npu's attention on two packed sequences, of 2 and 3 queries and of 4 and 3 keys."""
    lengths = {"actual_seq_qlen": [2, 5], "actual_seq_kvlen": [4, 7]}
    return torch_npu.npu_fusion_attention(q, k, v, 3, "TND", scale=8**-0.5, **lengths, **keywords)[0]


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(causal: bool) -> None:
    """FlashAttentionScoreV4 on Ascend950, FlashAttentionVarLenScore elsewhere. Causal masks end at the last key."""
    tensors = [x[0].transpose(0, 1).contiguous() for x in (Q, LONG_K, LONG_V)]
    mask = {"atten_mask": torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu(), "sparse_mode": 3} if causal else {}

    def one_by_one(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        results = []
        for queries, keys in ((slice(0, 2), slice(0, 4)), (slice(2, 5), slice(4, 7))):
            rows = [x.transpose(0, 1) for x in (q[queries], k[keys], v[keys])]
            seen = torch.ones(rows[0].size(1), rows[1].size(1), dtype=torch.bool)
            results.append(masked(*rows, seen.tril(seen.size(1) - seen.size(0)) if causal else seen).transpose(0, 1))
        return torch.cat(results)

    got = with_gradients(partial(packed, **mask))(*(x.npu() for x in tensors))
    for ours, theirs in zip(got, with_gradients(one_by_one)(*tensors), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-19, atol=2**-19)


def test_ring_attention() -> None:
    """As in MindSpeed's context parallelism: a block's gradients from the combined results of all blocks of keys."""
    blocks = [[x.npu() for x in pair] for pair in zip(LONG_K.split([3, 4], 2), LONG_V.split([3, 4], 2), strict=True)]
    q, dy = Q.npu(), numbers(2, 3, 5, 8, seed=9)
    parts = [torch_npu.npu_fusion_attention(q, k, v, 3, "BNSD", scale=8**-0.5)[:3] for k, v in blocks]
    largest = torch.maximum(parts[0][1], parts[1][1])
    sums = [total * (each - largest).exp() for _, each, total in parts]
    total = sums[0] + sums[1]
    out = sum(part[0] * (own / total)[..., :1] for part, own in zip(parts, sums, strict=True))
    forward = {"softmax_max": largest, "softmax_sum": total, "attention_in": out, "scale_value": 8**-0.5}
    gradients = [torch_npu.npu_fusion_attention_grad(q, k, v, dy.npu(), 3, "BNSD", **forward)[:3] for k, v in blocks]
    got = [gradients[0][0] + gradients[1][0], *(torch.cat([x[i] for x in gradients], 2) for i in (1, 2))]
    tensors = [x.clone().requires_grad_() for x in (Q, LONG_K, LONG_V)]
    for ours, theirs in zip(got, torch.autograd.grad(attend(*tensors), tensors, dy), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-18, atol=2**-18)


def test_dropout_of_packed_sequences_is_the_same_with_gradients() -> None:
    torch.manual_seed(3)
    q, k, v = (x[0].transpose(0, 1).contiguous().npu() for x in (Q, LONG_K, LONG_V))
    out = packed(q, k, v.requires_grad_(), keep_prob=0.5)
    weights = numbers(*out.shape, seed=9).npu()
    (gradient,) = torch.autograd.grad(out, v, weights)
    assert (out * weights).sum().item() == pytest.approx((gradient * v).sum().item(), rel=1e-4)
    assert not torch.allclose(out, packed(q, k, v))


def test_lengths_count_with_packed_sequences_only() -> None:
    if not on_product("950"):
        pytest.skip("torch_npu hands them to FlashAttentionScoreV4, on Ascend950 alone")
    lengths = {"actual_seq_qlen": [5, 5], "actual_seq_kvlen": [5, 5]}
    tensors = [x.npu() for x in (Q, K, V)]
    got, expected = (torch_npu.npu_fusion_attention_v2(*tensors, 3, "BNSD", **given)[0] for given in (lengths, {}))
    assert got.equal(expected)


def test_a_shift_is_added_before_scaling() -> None:
    shift = numbers(2, 3, 5, 5, seed=6)
    got = with_gradients(lambda q, k, v, pse: fused(q, k, v, "BNSD", pse=pse))(*(x.npu() for x in (Q, K, V, shift)))
    expected = with_gradients(lambda q, k, v, pse: attend(q, k, v, attn_mask=pse * 8**-0.5))(Q, K, V, shift)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-19, atol=2**-19)


def with_sink(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor, hidden: torch.Tensor | None = None
) -> torch.Tensor:
    """Attention with an additional score for each query of a head, without a value."""
    scores = q @ k.transpose(-2, -1) * 8**-0.5
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    all_scores = torch.cat((scores, sink.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)), -1)
    return all_scores.softmax(-1)[..., :-1] @ v


SINK = torch.tensor([-0.5, 1.25, 3.0])
ONLY_BEFORE_950 = pytest.mark.skipif(on_product("950"), reason="Ascend950 has no sinks")


@ONLY_BEFORE_950
@pytest.mark.parametrize("mode", [0, 3])
def test_sinks(mode: int) -> None:
    hidden = torch.ones(5, 7, dtype=torch.bool).triu(3) if mode else None
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu() if mode else None

    def ours(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        return fused(q, k, v, "BSND", sink=sink, atten_mask=mask, sparse_mode=mode)

    tensors = (Q, LONG_K, LONG_V, SINK)
    got, ran = operators_of(lambda: with_gradients(ours)(*(x.npu() for x in tensors)))
    assert {"FlashAttentionScoreV3", "FlashAttentionScoreGradV3"} <= set(ran)
    expected = with_gradients(partial(with_sink, hidden=hidden))(*tensors)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=2**-18, atol=2**-18)


@ONLY_BEFORE_950
def test_sinks_of_packed_sequences() -> None:
    ends = [2, 2, 5]
    q, k, v = (numbers(5, 3, 8, seed=i) for i in range(3))

    def ours(*tensors: torch.Tensor) -> torch.Tensor:
        *parts, sink = tensors
        return torch_npu.npu_fusion_attention(
            *parts, 3, "TND", scale=8**-0.5, sink=sink, actual_seq_qlen=ends, actual_seq_kvlen=ends
        )[0]

    def theirs(*tensors: torch.Tensor) -> torch.Tensor:
        *parts, sink = tensors
        rows = [slice(0, 2), slice(2, 5)]
        results = [with_sink(*(x[row].transpose(0, 1)[None] for x in parts), sink)[0].transpose(0, 1) for row in rows]
        return torch.cat(results)

    got, ran = operators_of(lambda: with_gradients(ours)(*(x.npu() for x in (q, k, v, SINK))))
    assert {"FlashAttentionVarLenScoreV5", "FlashAttentionUnpaddingScoreGradV5"} <= set(ran)
    for mine, expected in zip(got, with_gradients(theirs)(q, k, v, SINK), strict=True):
        torch.testing.assert_close(mine.cpu(), expected, rtol=2**-18, atol=2**-18)


def visible(rows: int, columns: int, mode: int) -> torch.Tensor:
    """The keys that each query may see: all, or, with mode 3, those up to its own position from the end."""
    seen = torch.ones(rows, columns, dtype=torch.bool)
    return seen.tril(columns - rows) if mode == 3 else seen


def of_sequences(x: torch.Tensor, layout: str, lengths: torch.Tensor, table: torch.Tensor | None) -> list[torch.Tensor]:
    """The tokens of each sequence of a tensor in a layout."""
    if layout == "TND":
        ends = [0, *lengths.tolist()]
        return [x[a:b] for a, b in itertools.pairwise(ends)]
    if layout == "PA_BSND":
        assert table is not None
        return [x[row.long()].flatten(0, 1)[:n] for row, n in zip(table, lengths.tolist(), strict=True)]
    return [part[:n] for part, n in zip(x, lengths.tolist(), strict=True)]


LAYOUTS_OF_SEQUENCES = [
    # The layouts of queries and keys, their shapes without heads, and the lengths.
    ("BSND", "BSND", (2, 3), (2, 7), [3, 2], [7, 5]),
    ("TND", "TND", (5,), (12,), [2, 5], [5, 12]),
    ("TND", "PA_BSND", (5,), (4, 16), [2, 5], [20, 9]),
]
TABLE = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32)


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("case", LAYOUTS_OF_SEQUENCES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_indexer(case: Any, mode: int) -> None:
    of_queries, of_keys, queries, keys, query_lengths, key_lengths = case
    q, k = numbers(*queries, 4, 128).half(), numbers(*keys, 1, 128, seed=1).half()
    w = numbers(*queries, 4, seed=2)
    lengths = [torch.tensor(x, dtype=torch.int32) for x in (query_lengths, key_lengths)]
    table = TABLE if of_keys == "PA_BSND" else None
    count = 6
    got, ran = operators_of(
        lambda: torch_npu.npu_lightning_indexer(
            q.npu(), k.npu(), w.npu(), actual_seq_lengths_query=lengths[0].npu(), sparse_count=count,
            actual_seq_lengths_key=lengths[1].npu(), block_table=None if table is None else table.npu(),
            layout_query=of_queries, layout_key=of_keys, sparse_mode=mode, return_value=table is None,
        )
    )  # fmt: skip
    assert "LightningIndexer" in ran
    parts = [of_sequences(x, of_queries, lengths[0], None) for x in (got[0].cpu(), q, w)]
    values = of_sequences(got[1].cpu(), of_queries, lengths[0], None) if table is None else parts[0]
    for index, query, weight, key, value in zip(
        *parts, of_sequences(k, of_keys, lengths[1], table), values, strict=True
    ):
        scores = (torch.relu(query.float() @ key[:, 0].float().t()) * weight[..., None]).sum(1)
        scores = scores.masked_fill(~visible(*scores.shape, mode), -torch.inf)
        order = scores.argsort(dim=-1, descending=True)[:, :count]
        best = scores.gather(1, order)
        expected = torch.full(index.shape, -1, dtype=torch.int32)
        expected[:, 0, : order.size(1)] = order.masked_fill(best == -torch.inf, -1)
        assert torch.equal(index, expected)
        if table is None:
            torch.testing.assert_close(value[:, 0, : best.size(1)], best.half(), rtol=2**-9, atol=2**-9)


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("case", LAYOUTS_OF_SEQUENCES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_attention_to_selected_keys(case: Any, mode: int) -> None:
    of_queries, of_keys, queries, keys, query_lengths, key_lengths = case
    block = 2
    q, k, v = (
        numbers(*shape, 512, seed=i).half() / 8 for i, shape in enumerate(((*queries, 4), (*keys, 1), (*keys, 1)))
    )
    q_rope, k_rope = numbers(*queries, 4, 64, seed=3).half() / 8, numbers(*keys, 1, 64, seed=4).half() / 8
    lists = torch.tensor([[1, 0, -1, 9], [2, -1, 0, 0], [0, 1, 2, -1], [1, 2, -1, -1], [0, -1, -1, -1]]).int()
    indices = (lists.repeat(2, 1)[: q.numel() // 2048]).view(*queries, 1, 4).contiguous()
    lengths = [torch.tensor(x, dtype=torch.int32) for x in (query_lengths, key_lengths)]
    table = TABLE if of_keys == "PA_BSND" else None
    got, ran = operators_of(
        lambda: torch_npu.npu_sparse_flash_attention(
            *(x.npu() for x in (q, k, v, indices)), 0.5, block_table=None if table is None else table.npu(),
            actual_seq_lengths_query=lengths[0].npu(), actual_seq_lengths_kv=lengths[1].npu(), query_rope=q_rope.npu(),
            key_rope=k_rope.npu(), sparse_block_size=block, layout_query=of_queries, layout_kv=of_keys,
            sparse_mode=mode, attention_mode=2, return_softmax_lse=False,
        )
    )  # fmt: skip
    assert {"SparseFlashAttention", "SparseFlashAttentionV2"} & set(ran)
    query_parts = [of_sequences(x, of_queries, lengths[0], None) for x in (got[0].cpu(), q, q_rope, indices)]
    key_parts = [of_sequences(x, of_keys, lengths[1], table) for x in (k, k_rope, v)]
    for result, query, rope, listed, key, of_key, value in zip(*query_parts, *key_parts, strict=True):
        scores = torch.einsum("shd,td->sht", query.float(), key[:, 0].float())
        scores = (scores + torch.einsum("shd,td->sht", rope.float(), of_key[:, 0].float())) * 0.5
        seen = visible(len(query), len(key), mode)
        for row, numbers_of_blocks in enumerate(listed[:, 0].tolist()):
            valid = itertools.takewhile(lambda number: number >= 0, numbers_of_blocks)
            selected = {token for number in valid for token in range(number * block, number * block + block)}
            seen[row] &= torch.tensor([token in selected for token in range(len(key))])
        weights = scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1).nan_to_num(0.0)
        torch.testing.assert_close(result, (weights @ value[:, 0].float()).half(), rtol=2**-9, atol=2**-9)


def test_inference_on_ascend950() -> None:
    """The only version that torch_npu calls on Ascend950."""
    if not on_product("950"):
        pytest.skip("torch_npu calls FusedInferAttentionScoreV5 on Ascend950 alone")
    q, k, v = (x.half() for x in (Q, LONG_K, LONG_V))
    (got, _), ran = operators_of(
        lambda: torch_npu.npu_fused_infer_attention_score(
            *(x.npu() for x in (q, k, v)), num_heads=3, scale=8**-0.5, input_layout="BNSD", actual_seq_lengths_kv=[7, 4]
        )
    )
    assert "FusedInferAttentionScoreV5" in ran
    seen = torch.arange(7) < torch.tensor([7, 4]).view(2, 1, 1, 1)
    expected = attend(*(x.float() for x in (q, k, v)), attn_mask=seen)
    torch.testing.assert_close(got.cpu().float(), expected, rtol=2**-9, atol=2**-9)


def are_close(got: Any, expected: Any) -> None:
    for mine, other in zip(got, expected, strict=True):
        other = other.detach().float()
        torch.testing.assert_close(mine.cpu().float(), other, rtol=2**-8, atol=2**-8 * float(other.abs().max()))


def leaves_of(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [x.float().requires_grad_() for x in tensors]


def scores_of_indexer(q: torch.Tensor, k: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (torch.relu(torch.einsum("bshd,btd->bsht", q, k[:, :, 0])) * w[..., None].float()).sum(2)


def test_gradients_of_attention_to_selected_keys() -> None:
    q, k, q_rope, k_rope, dout = (
        numbers(1, *shape, seed=i).half() / 8
        for i, shape in enumerate(((3, 4, 512), (7, 1, 512), (3, 4, 64), (7, 1, 64), (3, 4, 512)))
    )
    indices = torch.tensor([[[[2, 0]], [[1, -1]], [[6, 3]]]], dtype=torch.int32)
    seen = torch.zeros(3, 7, dtype=torch.bool)
    for row, place in ((0, 2), (0, 0), (1, 1), (2, 6), (2, 3)):
        seen[row, place] = True
    leaves = leaves_of(q, k, k, q_rope, k_rope)
    query, key = torch.cat([leaves[0], leaves[3]], -1), torch.cat([leaves[1], leaves[4]], -1)
    scores = (torch.einsum("bshd,btd->bhst", query, key[:, :, 0]) * 0.5).masked_fill(~seen, -torch.inf)
    out = torch.einsum("bhst,btd->bshd", scores.softmax(-1), leaves[2][:, :, 0])
    out.backward(dout.float())
    largest = scores.detach().amax(-1).permute(0, 2, 1)[:, None]
    total = (scores.detach() - scores.detach().amax(-1, keepdim=True)).exp().sum(-1).permute(0, 2, 1)[:, None]
    got, ran = operators_of(
        lambda: torch_npu.npu_sparse_flash_attention_grad(
            *(x.npu() for x in (q, k, k, indices, dout, out.detach().half(), largest, total)), 0.5, 1,
            query_rope=q_rope.npu(), key_rope=k_rope.npu(),
        )
    )  # fmt: skip
    assert "SparseFlashAttentionGrad" in ran
    are_close(got, [x.grad for x in leaves])


def test_gradients_of_the_indexer() -> None:
    q, k, w = (
        numbers(2, 3, 4, 128).half() / 4,
        numbers(2, 7, 1, 128, seed=1).half() / 4,
        numbers(2, 3, 4, seed=2).half(),
    )
    dy = numbers(2, 3, 2, seed=3).half()
    leaves = leaves_of(q, k, w)
    values, places = scores_of_indexer(*leaves).masked_fill(~visible(3, 7, 3), -torch.inf).topk(2, dim=-1)
    values.backward(dy.float())
    got, ran = operators_of(
        lambda: torch_npu.npu_lightning_indexer_grad(*(x.npu() for x in (q, k, dy, places.int(), w)))
    )
    assert "LightningIndexerGrad" in ran
    are_close(got, [x.grad for x in leaves])


@pytest.mark.parametrize("selected", [False, True])
def test_the_loss_of_the_indexer(selected: bool) -> None:
    """The indexer learns the mean over heads of the attention's probabilities, for all keys or the selected ones."""
    size, key_heads = (512, 1) if selected else (128, 32)
    q, k, q_rope, k_rope = (
        numbers(1, *shape, seed=i).half() / 8
        for i, shape in enumerate(((3, 32, size), (7, key_heads, size), (3, 32, 64), (7, key_heads, 64)))
    )
    q_index, k_index = numbers(1, 3, 8, 128, seed=4).half() / 8, numbers(1, 7, 1, 128, seed=5).half() / 8
    w = numbers(1, 3, 8, seed=6).half()
    seen = visible(3, 7, 3)
    indices = torch.full((1, 3, 1, 1024), -1, dtype=torch.int32)
    if selected:
        indices[..., :2] = torch.tensor([[4, 0], [1, 5], [6, 2]])[:, None]
        seen = torch.zeros(3, 7, dtype=torch.bool).scatter(1, indices[0, :, 0, :2].long(), True)
    query, key = torch.cat([q, q_rope], -1).float(), torch.cat([k, k_rope], -1).float().expand(-1, -1, 32, -1)
    scores = (torch.einsum("bshd,bthd->bhst", query, key) * 0.25).masked_fill(~seen, -torch.inf)
    largest = scores.amax(-1)
    total = (scores - largest[..., None]).exp().sum(-1)
    leaves = leaves_of(q_index, k_index, w)
    of_index = scores_of_indexer(*leaves).masked_fill(~seen, -torch.inf)
    target = scores.softmax(-1).mean(1)
    loss = F.kl_div(of_index.log_softmax(-1)[:, seen], target[:, seen], reduction="sum")
    loss.backward()
    lengths = {"actual_seq_qlen": [3], "actual_seq_klen": [7]}
    if selected:
        softmax = [x.permute(0, 2, 1)[:, None].contiguous() for x in (largest, total)]
        inputs = [x.npu() for x in (q, k, q_index, k_index, w, indices, *softmax)]
        function, names = torch_npu.npu_sparse_lightning_indexer_grad_kl_loss, {"SparseLightningIndexerGradKLLoss"}
    else:
        softmax, ran = operators_of(
            lambda: torch_npu.npu_dense_lightning_indexer_softmax_lse(q_index.npu(), k_index.npu(), w.npu(), **lengths)
        )
        assert "DenseLightningIndexerSoftmaxLse" in ran
        torch.testing.assert_close(softmax[0].cpu()[:, 0], of_index.detach().amax(-1), rtol=1e-5, atol=1e-5)
        inputs = [x.npu() for x in (q, k, q_index, k_index, w, largest[..., None], total[..., None], *softmax)]
        function, names = torch_npu.npu_dense_lightning_indexer_grad_kl_loss, {"DenseLightningIndexerGradKLLoss"}
    got, ran = operators_of(lambda: function(*inputs, 0.25, query_rope=q_rope.npu(), key_rope=k_rope.npu(), **lengths))
    assert names <= set(ran)
    are_close(got, [*(x.grad for x in leaves), loss[None]])


def test_floyd_attention() -> None:
    """From the edges (n, m) of a graph through k, to pairs of edges (n, k) and (k, m)."""
    n, m, k, size, scale = 16, 128, 128, 32, 0.125
    shapes = ((n, m), (n, k), (n, k), (k, m), (k, m))
    given = [numbers(1, 2, *edges, size, seed=i).half() for i, edges in enumerate(shapes)]
    hidden = (torch.arange(n)[:, None] + torch.arange(k)) % 3 == 0

    def theirs(q, k1, v1, k2, v2):  # type: ignore[no-untyped-def]
        scores = torch.einsum("bhnmc,bhnkc->bhnmk", q, k1) + torch.einsum("bhnmc,bhkmc->bhnmk", q, k2)
        p = (scores * scale).masked_fill(hidden[None, None, :, None], -torch.inf).softmax(-1)
        return torch.einsum("bhnmk,bhnkc->bhnmc", p, v1) + torch.einsum("bhnmk,bhkmc->bhnmc", p, v2)

    def ours(*tensors):  # type: ignore[no-untyped-def]
        mask = hidden[None, None, :, None].npu()
        return torch_npu.npu_fused_floyd_attention(*tensors, atten_mask=mask, scale_value=scale)[2]

    got, ran = operators_of(lambda: with_gradients(ours)(*(x.npu() for x in given)))
    assert {"FusedFloydAttention", "FusedFloydAttentionGrad"} <= set(ran)
    are_close(got, with_gradients(theirs)(*(x.float() for x in given)))


@pytest.mark.skipif(not hasattr(torch_npu, "npu_chunk_gated_delta_rule"), reason="torch_npu 2.8 has no such function")
def test_the_delta_rule_in_chunks() -> None:
    lengths, heads, size = [2, 3], 2, 8
    q, k, v = (numbers(5, heads, size, seed=i).bfloat16() / 4 for i in range(3))
    beta, g = numbers(5, heads, seed=3).sigmoid().bfloat16(), -numbers(5, heads, seed=4).sigmoid()
    state = numbers(2, heads, size, size, seed=5)
    (out, last), ran = operators_of(
        lambda: torch_npu.npu_chunk_gated_delta_rule(
            q.npu(), k.npu(), v.npu(), beta=beta.npu(), initial_state=state.npu(), scale=0.5, g=g.npu(),
            actual_seq_lengths=torch.tensor(lengths, dtype=torch.int32).npu(),
        )
    )  # fmt: skip
    assert "ChunkGatedDeltaRule" in ran
    token = 0
    for i, length in enumerate(lengths):
        for _ in range(length):
            decayed = state[i] * g[token].exp()[:, None, None]
            wrong = v[token].float() - torch.einsum("hvk,hk->hv", decayed, k[token].float())
            state[i] = decayed + beta[token].float()[:, None, None] * wrong[..., None] * k[token].float()[:, None]
            expected = torch.einsum("hvk,hk->hv", state[i], q[token].float()) * 0.5
            torch.testing.assert_close(out[token].cpu().float(), expected, rtol=2**-7, atol=2**-8)
            token += 1
    torch.testing.assert_close(last.cpu(), state, rtol=1e-5, atol=1e-5)


def test_the_indexer_of_int8() -> None:
    q, k = ((numbers(1, n, h, 128, seed=n) * 8).round().to(torch.int8) for n, h in ((3, 4), (7, 1)))
    of_q, of_k = numbers(1, 3, 4, seed=1).abs().half(), numbers(1, 7, 1, seed=2).abs().half()
    w = numbers(1, 3, 4, seed=3).half()
    got, ran = operators_of(
        lambda: torch_npu.npu_quant_lightning_indexer(*(x.npu() for x in (q, k, w, of_q, of_k)), 0, 0, sparse_count=2)
    )
    assert "QuantLightningIndexer" in ran
    products = torch.einsum("bshd,btd->bsht", q.float(), k.float()[:, :, 0])
    scaled = products * of_q.float()[..., None] * of_k.float()[..., 0][:, None, None]
    scores = (torch.relu(scaled) * w.float()[..., None]).sum(2).masked_fill(~visible(3, 7, 3), -torch.inf)
    assert torch.equal(got.cpu()[:, :, 0], scores.topk(2, dim=-1).indices.int())


def test_attention_to_selected_keys_of_int8() -> None:
    q = numbers(1, 2, 4, 576).half() / 8
    elements = (numbers(1, 5, 1, 512, seed=1) * 32).round().clamp(-128, 127).to(torch.int8)
    rope, scales = numbers(1, 5, 1, 64, seed=2).half() / 4, numbers(1, 5, 1, 4, seed=3).abs() / 64
    key = torch.cat([elements, rope.view(torch.int8), scales.view(torch.int8)], -1)
    indices = torch.tensor([[[[0, 3]], [[4, -1]]]], dtype=torch.int32)
    got, ran = operators_of(
        lambda: torch_npu.npu_kv_quant_sparse_flash_attention(
            q.npu(), key.npu(), key.npu(), indices.npu(), 0.0625, 2, 2, sparse_mode=0, attention_mode=2
        )
    )
    assert "KvQuantSparseFlashAttention" in ran
    v = elements.float() * scales.repeat_interleave(128, -1)
    seen = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 0, 0, 1]], dtype=torch.bool)
    scores = torch.einsum("bshd,btd->bhst", q.float(), torch.cat([v, rope.float()], -1)[:, :, 0]) * 0.0625
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    are_close([got], [torch.einsum("bhst,btd->bshd", weights, v[:, :, 0])])
