"""Attention under torch_npu; csrc/host_cann/aten_ops/attention."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu

from .aten_ops import Case, cases_of, check, errors_are_clean, numbers, on_product, with_gradients

Q, K, V = (numbers(2, 3, 5, 8, seed=i) for i in range(3))
LONG_K, LONG_V = (numbers(2, 3, 7, 8, seed=i) for i in (3, 4))
MASK = numbers(2, 3, 5, 5, seed=5) < 0.5
MASK[..., 0] = True
FLOAT = {"relative": 2**-19, "absolute": 2**-19}
# Rounded once here, and between the products in ATen.
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
    """torch_npu's own attention, of tensors in BNSD."""
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
    """Attention is linear in the values, so its gradient by them is told by the result."""
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
    """torch_npu's attention of two sequences, of 2 and 3 queries and of 4 and 3 keys, one behind the other."""
    lengths = {"actual_seq_qlen": [2, 5], "actual_seq_kvlen": [4, 7]}
    return torch_npu.npu_fusion_attention(q, k, v, 3, "TND", scale=8**-0.5, **lengths, **keywords)[0]


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(causal: bool) -> None:
    """FlashAttentionScoreV4 on Ascend950, FlashAttentionVarLenScore elsewhere. A causal one ends with the last key."""
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


def test_dropout_of_packed_sequences_is_the_same_with_gradients() -> None:
    torch.manual_seed(3)
    q, k, v = (x[0].transpose(0, 1).contiguous().npu() for x in (Q, LONG_K, LONG_V))
    out = packed(q, k, v.requires_grad_(), keep_prob=0.5)
    weights = numbers(*out.shape, seed=9).npu()
    (gradient,) = torch.autograd.grad(out, v, weights)
    assert (out * weights).sum().item() == pytest.approx((gradient * v).sum().item(), rel=1e-4)
    assert not torch.allclose(out, packed(q, k, v))


@errors_are_clean
def test_lengths_are_refused() -> None:
    if not on_product("950"):
        pytest.skip("torch_npu hands them to FlashAttentionScoreV4, on Ascend950 alone")
    lengths = {"actual_seq_qlen": [5, 5], "actual_seq_kvlen": [5, 5]}
    with pytest.raises(RuntimeError, match="aclnnFlashAttentionScoreV4: actualSeqQLenOptional is given"):
        torch_npu.npu_fusion_attention_v2(*(x.npu() for x in (Q, K, V)), 3, "BNSD", **lengths)


def test_a_shift_is_added_before_scaling() -> None:
    shift = numbers(2, 3, 5, 5, seed=6)
    got = with_gradients(lambda q, k, v, pse: fused(q, k, v, "BNSD", pse=pse))(*(x.npu() for x in (Q, K, V, shift)))
    expected = with_gradients(lambda q, k, v, pse: attend(q, k, v, attn_mask=pse * 8**-0.5))(Q, K, V, shift)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2**-19, atol=2**-19)
