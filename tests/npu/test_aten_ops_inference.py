"""Caches, experts and causal convolutions of language models under torch_npu.

Their rows are in csrc/cann/rows: attention/normalized_cache.cpp and rotary*.cpp, experts, inference and
convolution/causal_convolution.cpp. The references follow CANN's documents.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
import torch_npu

from .aten_ops import Case, cases_of, check, numbers, on_npu, operators_of

HALF = {"relative": 2**-9, "absolute": 2**-9}
FLOAT = {"relative": 2**-18, "absolute": 2**-18}


def half(*shape: int, seed: int = 0) -> torch.Tensor:
    return numbers(*shape, seed=seed).half()


def rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * gamma.float()


def turned(a: torch.Tensor, b: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The first and second elements of all pairs, rotated by their angles."""
    return torch.cat((a, b), -1) * cos.float() + torch.cat((-b, a), -1) * sin.float()


def turned_pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return turned(x[..., ::2], x[..., 1::2], cos, sin)


# ---- caches of keys and values


def put(cache: torch.Tensor, tokens: torch.Tensor, index: torch.Tensor, mode: str) -> None:
    """Writes tokens (batch, sequence, heads, elements) to the positions in the index."""
    batch, sequence, heads, size = tokens.shape
    page = cache.size(1)
    width = 32 // cache.element_size()
    for b in range(batch):
        for s in range(sequence):
            if mode == "Norm":
                place = int(index[b, s])
                if place >= 0:
                    cache[b, :, place] = tokens[b, s]
                continue
            if "BLK" in mode:
                start = int(index[b * -(-sequence // page) + s // page])
                place = start + s % page if start >= 0 else -1
            else:
                place = int(index[b * sequence + s])
            if place < 0:
                continue
            if mode.endswith("NZ"):
                blocks = cache.view(cache.size(0), heads, size // width, page, width)
                blocks[place // page, :, :, place % page] = tokens[b, s].view(heads, -1, width)
            else:
                cache[place // page, place % page] = tokens[b, s]


def stored(tokens: torch.Tensor, scale: torch.Tensor | None, offset: torch.Tensor | None) -> torch.Tensor:
    if scale is None:
        return tokens.half()
    tokens = tokens * scale
    return torch.round(tokens if offset is None else tokens + offset).clamp(-128, 127).to(torch.int8)


def kv_cache(kv: torch.Tensor, *rest: Any, mode: str, epsilon: float = 1e-5) -> list[torch.Tensor]:
    gamma, cos, sin, index, k_cache, v_cache, k_scale, v_scale, k_offset, v_offset, v = rest
    if kv.device.type == "npu":
        scales = {
            "k_rope_scale": k_scale,
            "c_kv_scale": v_scale,
            "k_rope_offset": k_offset,
            "c_kv_offset": v_offset,
        }
        return list(
            torch_npu.npu_kv_rmsnorm_rope_cache(
                kv, gamma, cos, sin, index, k_cache, v_cache, **scales, v=v, epsilon=epsilon, cache_mode=mode,
                is_output_kv=True,
            )
        )  # fmt: skip
    x = kv.float()
    if v is None:
        values = rms_norm(x[..., : gamma.numel()], gamma, epsilon)
        keys = turned_pairs(x[..., gamma.numel() :], cos, sin)
    else:
        values, x = v.float(), rms_norm(x, gamma, epsilon)
        size = cos.size(-1)
        keys = torch.cat((turned_pairs(x[..., :size], cos, sin), x[..., size:]), -1)
    put(k_cache, stored(keys.transpose(1, 2), k_scale, k_offset), index, mode)
    put(v_cache, stored(values.transpose(1, 2), v_scale, v_offset), index, mode)
    return [k_cache, v_cache, keys.half(), values.half()]


KV, GAMMA = half(2, 1, 20, 48), half(32, seed=1)
COS, SIN = half(2, 1, 20, 16, seed=2), half(2, 1, 20, 16, seed=3)
PLACES = torch.randperm(64, generator=torch.Generator().manual_seed(4))[:40]
PLACES[5] = -1
PAGES = torch.tensor([16, 48, -1, 0])
K_CACHE, V_CACHE = half(4, 16, 1, 16, seed=5), half(4, 16, 1, 32, seed=6)
NO_SCALES = (None,) * 5
K_BYTES, V_BYTES = torch.ones(2, 32, 1, 32, dtype=torch.int8), torch.ones(2, 32, 1, 32, dtype=torch.int8)
WIDE_KV, WIDE_COS, WIDE_SIN = half(2, 1, 20, 64), half(2, 1, 20, 32, seed=2), half(2, 1, 20, 32, seed=3)
SCALE = numbers(32, seed=7).abs() * 20 + 1
# torch_npu supports separate values only with these sizes.
OWN_KV, OWN_GAMMA, OWN_VALUES = half(2, 4, 3, 192), half(192, seed=1), half(2, 4, 3, 128, seed=2)
OWN_COS, OWN_SIN = half(2, 4, 3, 64, seed=3), half(2, 4, 3, 64, seed=4)
OWN_INDEX = torch.tensor([[4, 0, -1], [1, 2, 3]])
OWN_SCALES = (numbers(4, 192, seed=5) * 9, numbers(4, 128, seed=6) * 9, numbers(4, 192, seed=7), None)

KV_CACHES = [
    *(
        Case(
            "KvRmsNormRopeCache",
            partial(kv_cache, mode=mode),
            (KV, GAMMA, COS, SIN, PAGES if "BLK" in mode else PLACES, K_CACHE, V_CACHE, *NO_SCALES),
            **HALF,
        )
        for mode in ("PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ")
    ),
    Case(
        "KvRmsNormRopeCache",
        partial(kv_cache, mode="PA_NZ"),
        (WIDE_KV, GAMMA, WIDE_COS, WIDE_SIN, PLACES, K_BYTES, V_BYTES, SCALE, SCALE[:1], None, SCALE, None),
        absolute=1,
    ),
    *(
        Case(
            "KvRmsNormRopeCacheV2",
            partial(kv_cache, mode="Norm"),
            (OWN_KV, OWN_GAMMA, OWN_COS, OWN_SIN, OWN_INDEX, *caches, *scales, OWN_VALUES),
            **tolerance,
        )
        for caches, scales, tolerance in [
            ((half(2, 4, 5, 192, seed=8), half(2, 4, 5, 128, seed=9)), (None,) * 4, HALF),
            (
                (torch.zeros(2, 4, 5, 192, dtype=torch.int8), torch.zeros(2, 4, 5, 128, dtype=torch.int8)),
                OWN_SCALES,
                {"absolute": 1},
            ),
        ]
    ),
]


def qkv_cache(qkv: torch.Tensor, *rest: Any, heads: list[int]) -> list[torch.Tensor]:
    q_gamma, k_gamma, cos, sin, index, q_out, k_cache, v_cache, k_scale, v_scale, k_offset, v_offset = rest
    tokens, size = qkv.size(0), 128
    if qkv.device.type == "npu":
        return list(
            torch_npu.npu_qkv_rms_norm_rope_cache(
                qkv, q_gamma, k_gamma, cos, sin, index, q_out, k_cache, v_cache, [1, tokens, sum(heads), size], heads,
                k_scale=k_scale, v_scale=v_scale, k_offset=k_offset, v_offset=v_offset, is_output_qkv=True,
            )
        )  # fmt: skip
    q, k, v = qkv.float().view(tokens, -1, size).split(heads, 1)

    def embedded(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        x = rms_norm(x, gamma, 1e-6)
        return turned(x[..., : size // 2], x[..., size // 2 :], cos[:, None], sin[:, None])

    q, k = embedded(q, q_gamma), embedded(k, k_gamma)
    q_out.copy_(q.flatten(1))
    for part, cache, scale, offset in ((k, k_cache, k_scale, k_offset), (v, v_cache, v_scale, v_offset)):
        pages = cache.view(cache.size(0), cache.size(2), heads[1], size)  # the same memory, in put's layout
        put(pages, stored(part[None], None if scale is None else 1 / scale, offset), index, "PA_NZ")
    return [q.flatten(1).half(), k.flatten(1).half(), v.flatten(1).half()]


QKV = half(3, 5 * 128)
QKV_REST = (half(128, seed=1), half(128, seed=2), half(3, 128, seed=3), half(3, 128, seed=4), torch.tensor([40, -1, 7]))
QKV_CACHES = [
    Case(
        "QkvRmsNormRopeCache",
        partial(qkv_cache, heads=[3, 1, 1]),
        (QKV, *QKV_REST, half(3, 384), *caches, *scales),
        **tolerance,
    )
    for caches, scales, tolerance in [
        ((half(2, 8, 32, 16, seed=5), half(2, 8, 32, 16, seed=6)), (None,) * 4, HALF),
        (
            (torch.zeros(2, 4, 32, 32, dtype=torch.int8), half(2, 8, 32, 16, seed=6)),
            (numbers(1, 128, seed=7).abs() + 0.125, None, numbers(1, 128, seed=8), None),
            {"absolute": 1, "relative": 2**-9},
        ),
    ]
]

# ---- positions


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, matrix: torch.Tensor | None) -> torch.Tensor:
    if x.device.type == "npu":
        return torch_npu.npu_rotary_mul(x, cos, sin, "interleave", matrix)
    other = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + other * sin


def turning(size: int) -> torch.Tensor:
    """The matrix that maps neighbouring pairs (a, b) to (-b, a)."""
    matrix = torch.zeros(size, size)
    even = torch.arange(0, size, 2)
    matrix[even, even + 1] = 1
    matrix[even + 1, even] = -1
    return matrix


def mrope(positions: torch.Tensor, *rest: torch.Tensor) -> Any:
    query, key, cache = rest
    sections = [16, 24, 24]
    if query.device.type == "npu":
        return torch_npu.npu_mrope(
            positions, query, key, cache, 128, mrope_section=sections, rotary_mode="half", cache_mode="interleave"
        )
    row = [place % 3 if place < 3 * sections[1] else 0 for place in range(64)]
    cos, sin = (
        torch.stack([part[row[i], :, None, i] for i in range(64)], -1) for part in cache[positions].chunk(2, -1)
    )
    heads = [x.unflatten(1, (-1, 128)) for x in (query, key)]
    return [
        torch.cat((a * cos - b * sin, b * cos + a * sin), -1).flatten(1) for a, b in (x.chunk(2, -1) for x in heads)
    ]


ROTARY = (numbers(2, 3, 4, 8), numbers(1, 3, 1, 8, seed=1), numbers(1, 3, 1, 8, seed=2))
POSITIONS = [
    Case("RotaryPositionEmbeddingV2", rotary, (*ROTARY, None), **FLOAT),
    Case("RotaryPositionEmbeddingV2", rotary, (*ROTARY, turning(8)), **FLOAT, product="910"),
    Case(
        "RopeWithSinCosCacheV2",
        mrope,
        (
            torch.tensor([[0, 4, 2], [1, 1, 3], [4, 0, 2]]),
            numbers(3, 256),
            numbers(3, 128, seed=1),
            numbers(5, 128, seed=2),
        ),
        **FLOAT,
    ),
]

# ---- experts


def gates_of_a_table(x: torch.Tensor, ids: torch.Tensor, table: torch.Tensor) -> Any:
    if x.device.type == "npu":
        return torch_npu.npu_moe_gating_top_k(
            x, 2, input_ids=ids, tid2eid=table, norm_type=1, out_flag=True, routed_scaling_factor=2.5
        )
    scores = torch.sigmoid(x.float())
    experts = table[ids]
    chosen = scores.gather(1, experts.long())
    return (chosen / chosen.sum(1, keepdim=True) * 2.5).to(x.dtype), experts.int(), scores


def gating_gradient(x: torch.Tensor, dy: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    if x.device.type == "npu":
        return torch_npu.npu_moe_gating_top_k_backward(
            torch.sigmoid(x), dy, experts, norm_type=1, routed_scaling_factor=2.5
        )
    x = x.detach().requires_grad_()
    chosen = torch.sigmoid(x).gather(1, experts.long())
    (gradient,) = torch.autograd.grad(chosen / chosen.sum(1, keepdim=True) * 2.5, x, dy)
    return gradient


def re_routed(tokens: torch.Tensor, counts: torch.Tensor, scales: torch.Tensor) -> Any:
    if tokens.device.type == "npu":
        return torch_npu.npu_moe_re_routing(tokens, counts, per_token_scales=scales)
    ranks, experts = counts.shape
    owner = torch.cat([torch.full((int(counts[r, e]),), e) for r in range(ranks) for e in range(experts)])
    source = torch.sort(owner, stable=True).indices
    return tokens[source], scales[source], source.int(), counts.sum(0).to(counts.dtype)


def finalized(rows: torch.Tensor, places: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    if rows.device.type == "npu":
        return torch_npu.npu_moe_finalize_routing(rows, None, None, None, scales, places, None, drop_pad_mode=2, k=2)
    return (rows[places.long()].unflatten(0, (-1, 2)) * scales[..., None]).sum(1)


EXPERTS = [
    *(
        Case(
            "MoeGatingTopKV2",
            gates_of_a_table,
            (x, torch.tensor([2, 0, 2]), torch.tensor([[3, 1], [0, 2], [5, 4]], dtype=torch.int32)),
            **tolerance,
        )
        for x, tolerance in ((numbers(3, 6), FLOAT), (half(3, 6), HALF))
    ),
    Case(
        "MoeGatingTopKBackward",
        gating_gradient,
        (numbers(3, 6), numbers(3, 2, seed=1), torch.tensor([[5, 0], [1, 2], [3, 4]], dtype=torch.int32)),
        **FLOAT,
    ),
    *(
        Case("MoeReRouting", re_routed, (tokens, torch.tensor([[2, 0, 3], [1, 4, 0]]), numbers(10)))
        for tokens in (half(10, 5), torch.arange(50).view(10, 5).to(torch.int8))
    ),
    Case(
        "MoeFinalizeRoutingV4",
        finalized,
        (numbers(6, 5), torch.tensor([5, 0, 2, 1, 4, 3], dtype=torch.int32), numbers(3, 2, seed=1)),
        **FLOAT,
    ),
]

# ---- causal convolutions


def masked_convolution(x: torch.Tensor, weight: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """In FLOAT, of sequence, batch, channels."""
    y = F.conv1d(F.pad(x.permute(1, 2, 0), (2, 0)), weight.t().unsqueeze(1), groups=x.size(2)).permute(2, 0, 1)
    return y if mask is None else y * mask.t().unsqueeze(-1)


def masked_gradients(dy: torch.Tensor, *rest: Any) -> Any:
    x, weight, mask = rest
    if dy.device.type == "npu":
        return torch_npu.npu_masked_causal_conv1d_backward(dy, x, weight, mask=mask)
    leaves = [tensor.float().requires_grad_() for tensor in (x, weight)]
    gradients = torch.autograd.grad(masked_convolution(*leaves, mask), leaves, dy.float())
    return [gradient.half() for gradient in gradients]


def with_states(x: torch.Tensor, *rest: Any, **options: Any) -> torch.Tensor | None:
    """Sequences preceded by their states, one after the other."""
    weight, states, starts, lines, accepted, computed, blocks = rest
    first, last, initial = blocks or (None, None, None)
    if x.device.type == "npu":
        call = torch_npu.npu_fused_causal_conv1d_v2 if options["inplace"] else torch_npu.npu_fused_causal_conv1d
        longest = -1 if starts is None else int(starts.cpu().diff().max())
        return call(
            x, weight, states, query_start_loc=starts, cache_indices=lines, num_accepted_tokens=accepted,
            num_computed_tokens=computed, residual_connection=int(options["residual"]), block_size=options["block"],
            block_idx_first_scheduled_token=first, block_idx_last_scheduled_token=last, initial_state_idx=initial,
            conv_mode=options["mode"], max_query_len=longest,
        )  # fmt: skip
    flat = x.flatten(0, -2)
    batch = lines.size(0)
    ends = starts.tolist() if starts is not None else [i * x.size(1) for i in range(batch + 1)]
    y = torch.zeros_like(flat)
    room = states.size(1)
    for i in range(batch):
        tokens = flat[ends[i] : ends[i + 1]].clone()
        read = write = lines[i]
        if blocks is not None:
            read, write = lines[i, initial[i]], lines[i, last[i]]
        if int(read) == -1:
            y[ends[i] : ends[i + 1]] = flat[ends[i] : ends[i + 1]] if options["inplace"] else 0
            continue
        offset = room - 2 if accepted is None else int(accepted[i]) - 1
        before = states[read, : offset + 2].clone()
        if computed is not None and int(computed[i]) == 0:
            offset, before = 0, torch.zeros(2, x.size(-1), dtype=x.dtype)
        both = torch.cat((before, tokens))
        kept = min(room, both.size(0))
        states[write, room - kept :] = both[-kept:]
        counted = both[offset:]
        if blocks is not None:
            # A state at the end of each full block, except for the last, which is the sequence's own.
            end = (int(computed[i]) // options["block"] + 1) * options["block"] - int(computed[i])
            for block in range(int(first[i]), int(last[i])):
                states[lines[i, block], room - 2 :] = counted[end : end + 2]
                end += options["block"]
        result = sum(weight[k].float() * counted[k : k + tokens.size(0)].float() for k in range(3))
        if options["mode"] == "pangu":
            result[: max(2 - int(computed[i]), 0)] = 0
        y[ends[i] : ends[i + 1]] = (result + tokens.float() if options["residual"] else result).half()
    if options["inplace"]:
        flat.copy_(y)
        return None
    return y.view_as(x)


def int32(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


SEQUENCES = [
    # Packed sequences; one starts without a state and one is skipped.
    ((9, 64), (5, 2, 64), int32(0, 4, 5, 9), int32(3, -1, 1), None, int32(0, 0, 7), None),
    # Drafts, some of which were accepted.
    ((2, 3, 64), (4, 4, 64), None, int32(2, 0), int32(1, 3), None, None),
    # States of blocks of four tokens.
    (
        (10, 64),
        (8, 2, 64),
        int32(0, 7, 10),
        int32([0, 1, 2, 3], [4, 5, 6, 7]),
        None,
        int32(2, 5),
        (int32(0, 1), int32(2, 1), int32(0, 1)),
    ),
]
CONVOLUTIONS = [
    *(
        Case(
            "MaskedCausalConv1d",
            on_npu(
                lambda x, weight, mask: torch_npu.npu_masked_causal_conv1d(x, weight, mask=mask),
                lambda x, weight, mask: masked_convolution(x.float(), weight.float(), mask).half(),
            ),
            (half(5, 2, 384), half(3, 384, seed=1), mask),
            **HALF,
        )
        for mask in (None, numbers(2, 5) > 0)
    ),
    Case(
        "MaskedCausalConv1dBackward",
        masked_gradients,
        (half(5, 2, 384, seed=2), half(5, 2, 384), half(3, 384, seed=1), numbers(2, 5) > 0),
        relative=2**-9,
        absolute=2**-7,
    ),
    *(
        Case(
            "InplaceFusedCausalConv1d" if inplace else "FusedCausalConv1d",
            partial(with_states, inplace=inplace, residual=residual, mode=mode, block=4),
            (half(*shape), half(3, 64, seed=1), half(*states, seed=2), *rest),
            **HALF,
        )
        for shape, states, *rest in SEQUENCES
        for inplace, residual, mode in ((False, False, "default"), (True, True, "default"), (False, True, "pangu"))
        if mode == "default" or rest[3] is not None
    ),
]


CASES = [*KV_CACHES, *QKV_CACHES, *POSITIONS, *EXPERTS, *CONVOLUTIONS]


@cases_of(CASES)
def test_inference(case: Case) -> None:
    check(case)


# ---- Products of groups of rows


def quantised_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round(), scale


def test_rows_are_quantised_for_experts() -> None:
    x, scale = numbers(5, 32).half(), numbers(2, 16, seed=1).abs() / 64
    w = (numbers(2, 16, 32, seed=2) * 32).round().clamp(-128, 127).to(torch.int8)
    groups = torch.tensor([2, 5])
    got, ran = operators_of(
        lambda: torch_npu.npu_quant_grouped_matmul_dequant(x.npu(), w.npu(), scale.npu(), groups.npu())
    )
    assert "QuantGroupedMatmulDequant" in ran
    q, of_rows = quantised_rows(x.float())
    parts = [q[a:b] @ w[i].float().t() * scale[i] * of_rows[a:b] for i, (a, b) in enumerate(((0, 2), (2, 5)))]
    torch.testing.assert_close(got.cpu(), torch.cat(parts).half(), rtol=2**-9, atol=2**-9)


def test_products_of_experts_are_activated_and_quantised() -> None:
    x = (numbers(5, 32) * 32).round().clamp(-128, 127).to(torch.int8)
    w = (numbers(2, 32, 64, seed=1) * 32).round().clamp(-128, 127).to(torch.int8)
    scale, of_rows = numbers(2, 64, seed=2).abs() / 4096, numbers(5, seed=3).abs()
    groups = torch.tensor([2, 3])
    (got, got_scale), ran = operators_of(
        lambda: torch_npu.npu_grouped_matmul_swiglu_quant_v2(
            x.npu(), [w.npu()], [scale.npu()], of_rows.npu(), groups.npu(), group_list_type=1
        )
    )
    assert "GroupedMatmulSwigluQuantV2" in ran
    products = [x[a:b].float() @ w[i].float() * scale[i] for i, (a, b) in enumerate(((0, 2), (2, 5)))]
    first, second = (torch.cat(products) * of_rows[:, None]).chunk(2, -1)
    expected, expected_scale = quantised_rows(F.silu(first) * second)
    assert (got.cpu().float() - expected).abs().max() <= 1
    torch.testing.assert_close(got_scale.cpu(), expected_scale[:, 0], rtol=1e-5, atol=1e-7)


def test_products_of_experts_come_with_an_offset_that_nothing_writes() -> None:
    x = (numbers(5, 32) * 32).round().clamp(-128, 127).to(torch.int8)
    w = (numbers(2, 32, 64, seed=1) * 32).round().clamp(-128, 127).to(torch.int8)
    scale, of_rows = numbers(2, 64, seed=2).abs() / 4096, numbers(5, seed=3).abs()
    # torch_npu declares the weight's memory as FRACTAL_NZ: columns of blocks of 16 rows by 32 elements.
    blocks = w.view(2, 2, 16, 2, 32).permute(0, 3, 1, 2, 4).reshape(w.shape)
    (got, got_scale, _), ran = operators_of(
        lambda: torch_npu.npu_grouped_matmul_swiglu_quant(
            x.npu(), blocks.npu(), torch.tensor([2, 5]).npu(), scale.npu(), of_rows.npu()
        )
    )
    assert "GroupedMatmulSwigluQuantWeightNZ" in ran
    products = [x[a:b].float() @ w[i].float() * scale[i] for i, (a, b) in enumerate(((0, 2), (2, 5)))]
    first, second = (torch.cat(products) * of_rows[:, None]).chunk(2, -1)
    expected, expected_scale = quantised_rows(F.silu(first) * second)
    assert (got.cpu().float() - expected).abs().max() <= 1
    torch.testing.assert_close(got_scale.cpu(), expected_scale[:, 0], rtol=1e-5, atol=1e-7)


def test_a_padded_token_is_not_written_to_a_cache_in_pieces() -> None:
    key, value = numbers(2, 2, 8).half(), numbers(2, 2, 16, seed=1).half()
    keys, values = torch.zeros(1, 1, 2, 16).half().npu(), torch.zeros(1, 2, 2, 16).half().npu()
    slots = torch.tensor([1, -1], dtype=torch.int32).npu()
    _, ran = operators_of(lambda: torch_npu.npu_scatter_pa_kv_cache(key.npu(), value.npu(), keys, values, slots))
    assert "ScatterPaKvCache" in ran
    expected = torch.zeros(1, 1, 2, 16).half()
    expected[0, 0, 1] = key[0].flatten()
    assert torch.equal(keys.cpu(), expected)
    expected = torch.zeros(1, 2, 2, 16).half()
    expected[0, :, 1] = value[0]
    assert torch.equal(values.cpu(), expected)


def test_a_dropped_token_of_probability_0_is_left_out() -> None:
    indices = torch.tensor([0, -1], dtype=torch.int32).npu()
    got = torch_npu.npu_moe_token_unpermute(torch.ones(2, 4).npu(), indices, torch.tensor([[1.0, 0.0]]).npu())
    assert got.cpu().tolist() == [[1, 1, 1, 1]]
