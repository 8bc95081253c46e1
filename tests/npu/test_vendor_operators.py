"""vllm-ascend's own operators, `torch.ops._C_ascend`, as the prefix's plugin `aclnn_vllm` computes them.

Formulas in float64 on the CPU, of the values that the tensors have. Each names its document: CANN's document of a
function, or in vllm-ascend 0.23.0 a README under csrc or a reference in Python under tests/e2e/nightly/single_node/ops.
"""

from __future__ import annotations

import math
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import aclnn_vllm
import pytest
import torch
from torch import Tensor

STEPS = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-20, torch.int8: 0}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)
HALVES = FLOATS[:2]
QUEUE = os.environ.get("TASK_QUEUE_ENABLE", "1")  # torch_npu's default


@pytest.fixture(scope="module")
def ops() -> Any:
    """The operators, defined by the import that vllm-ascend makes."""
    package = ModuleType("vllm_ascend")
    package.__path__ = []
    sys.modules["vllm_ascend"] = package
    aclnn_vllm.register()
    import vllm_ascend.vllm_ascend_C  # type: ignore[import-not-found] # noqa: F401

    yield torch.ops._C_ascend
    del sys.modules["vllm_ascend"], sys.modules["vllm_ascend.vllm_ascend_C"]


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Numbers from -1 to 1 on an NPU, the same in every call."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1).to(dtype).npu()


def integers(*values: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.tensor(values, dtype=dtype).npu()


def wide(tensor: Tensor) -> Tensor:
    return tensor.cpu().double()


def assert_close(got: Tensor, expected: Tensor) -> None:
    """The values, computed in FLOAT and rounded to the dtype; INT8 may be the neighbour."""
    step = STEPS[got.dtype]
    torch.testing.assert_close(wide(got), expected, rtol=step, atol=1.01 if step == 0 else 2.0**-17)


def assert_equal(got: Tensor, expected: Tensor) -> None:
    assert torch.equal(got.cpu(), expected.to(got.dtype))


# ---- experts


def gating(x: Tensor, bias: Tensor | None, k: int, groups: int, chosen: int, sums: bool, sigmoid: bool, renorm: bool):
    """test_npu_moe_gating_top_k.py: the bias chooses, the scores without it are the weights."""
    scores = torch.sigmoid(wide(x)) if sigmoid else wide(x).softmax(-1)
    ranked = (scores if bias is None else scores + wide(bias)).unflatten(-1, (groups, -1))
    best = ranked.topk(2 if sums else 1, -1).values.sum(-1).topk(chosen, -1).indices
    hidden = torch.ones(ranked.shape[:2], dtype=torch.bool).scatter(1, best, False)
    experts = ranked.masked_fill(hidden.unsqueeze(-1), -math.inf).flatten(1).topk(k, -1).indices
    weights = scores.gather(1, experts)
    return weights / weights.sum(-1, keepdim=True) if sigmoid or renorm else weights, experts, scores


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("sigmoid", "renorm", "groups"), [(False, True, 1), (False, False, 1), (True, False, 4)])
def test_gating(ops: Any, dtype: torch.dtype, sigmoid: bool, renorm: bool, groups: int) -> None:
    x, bias = random(5, 16, dtype=dtype) * 3, random(16, dtype=dtype, seed=1) if groups > 1 else None
    chosen = max(groups // 2, 1)
    got = ops.moe_gating_top_k(
        x, 3, chosen, groups, int(groups > 1), int(renorm), int(sigmoid), out_flag=True, routed_scaling_factor=2.0,
        eps=1e-20, bias_opt=bias,
    )  # fmt: skip
    weights, experts, scores = gating(x, bias, 3, groups, chosen, groups > 1, sigmoid, renorm)
    assert_equal(got[1], experts)
    assert_close(got[0], 2 * weights)
    assert_close(got[2], scores)


def test_gating_by_a_table(ops: Any) -> None:
    """The binding's argument tid2eid: the experts of each token's number. Norm 2 is the root of softplus."""
    x, table = random(3, 8), torch.tensor([[0, 7], [3, 4], [5, 6]], dtype=torch.int32)
    got = ops.moe_gating_top_k_hash(x, 2, None, integers(2, 0, 2, dtype=torch.int64), table.npu(), norm_type=2)
    experts = table[[2, 0, 2]].long()
    scores = torch.nn.functional.softplus(wide(x)).sqrt().gather(1, experts)
    assert_equal(got[1], experts)
    assert_close(got[0], scores / scores.sum(-1, keepdim=True))


@pytest.mark.parametrize(("quant_mode", "active"), [(-1, 4), (1, 8)])
def test_initial_routing(ops: Any, quant_mode: int, active: int) -> None:
    """test_moe_init_routing_custom.py: stable order by expert, experts 2 to 5 of 6; one row of factors for all.

    The result has up to `active` rows.
    """
    x, experts = random(4, 6, dtype=torch.float16), torch.tensor([[2, 0], [4, 3], [1, 2], [3, 4]], dtype=torch.int32)
    factors = random(1, 6, seed=1).abs() if quant_mode == 1 else None
    rows, index, counts, scale = ops.npu_moe_init_routing_custom(
        x, experts.npu(), scale=factors, active_num=active, expert_num=6, expert_tokens_num_type=1,
        expert_tokens_num_flag=True, quant_mode=quant_mode, active_expert_range=[2, 6],
    )  # fmt: skip
    pairs = [0, 5, 3, 6, 2, 7][:active]  # of experts 2, 2, 3, 3, 4, 4
    expected = wide(x)[[pair // 2 for pair in pairs]] * (1 if factors is None else wide(factors))
    assert_equal(counts, torch.tensor([2, 2, 2, 0]))
    assert_equal(index, torch.tensor([0, -1, 4, 2, -1, 1, 3, 5]))
    if quant_mode == 1:
        scales = expected.abs().amax(1) / 127
        assert_close(scale[: len(pairs)], scales)
        expected = expected / scales.unsqueeze(1)
    assert rows.size(0) == active
    assert_close(rows[: len(pairs)], expected)


# ---- norms and rotary embeddings


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_add_rms_norm_bias(ops: Any, dtype: torch.dtype, has_bias: bool) -> None:
    """test_add_rms_norm_bias.py: the sum is rounded first."""
    x1, x2 = (random(3, 5, 64, dtype=dtype, seed=i) for i in range(2))
    gamma, beta = (random(64, dtype=dtype, seed=i) for i in (2, 3))
    y, rstd, x = ops.npu_add_rms_norm_bias(x1, x2, gamma, beta if has_bias else None, 1e-5)
    total = (wide(x1) + wide(x2)).to(dtype).double()
    inverse = 1 / (total.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    assert_equal(x, total)
    assert_close(rstd, inverse)
    assert_close(y, total * inverse * wide(gamma) + (wide(beta) if has_bias else 0))


def test_other_norms(ops: Any) -> None:
    """aclnnGemmaRmsNorm.md, aclnnRmsNormDynamicQuant.md."""
    x, gamma = random(3, 64, dtype=torch.bfloat16), random(64, dtype=torch.bfloat16, seed=1)
    inverse = 1 / (wide(x).square().mean(-1, keepdim=True) + 1e-6).sqrt()
    y, rstd = ops.npu_gemma_rms_norm(x, gamma)
    assert_close(rstd, inverse)
    assert_close(y, wide(x) * inverse * (1 + wide(gamma)))
    quantized, scale = ops.npu_rms_norm_dynamic_quant(x, gamma)
    normed = wide(x) * inverse * wide(gamma)
    scales = normed.abs().amax(-1) / 127
    assert scale.shape == (3,)
    torch.testing.assert_close(wide(scale), scales, rtol=2.0**-7, atol=0)
    assert_close(quantized, normed / scales.unsqueeze(-1))


def test_a_part_is_turned_in_place(ops: Any) -> None:
    """aclnnInplacePartialRotaryMul.md, mode interleave: pairs of neighbours; x may be a view."""
    memory = random(2, 2, 3, 10)
    x, cos, sin = memory[:, :1], random(2, 1, 1, 4, seed=1), random(2, 1, 1, 4, seed=2)
    before, part = wide(memory), wide(x)[..., 4:8]
    ops.inplace_partial_rotary_mul(x, cos, sin, "interleave", [4, 8])
    turned = torch.stack([-part[..., 1::2], part[..., ::2]], -1).flatten(-2)
    before[:, :1, :, 4:8] = part * wide(cos) + turned * wide(sin)
    assert_close(memory, before)


# ---- caches and the vocabulary


def test_scatter_to_strided_caches(ops: Any) -> None:
    """aclnnScatterNdUpdate.md; an index out of range is skipped. Slots are blocks and places in them."""
    memory = torch.zeros(4, 4, 3, dtype=torch.int8).npu()
    cache = memory[:, :2].unsqueeze(2)  # (4, 2, 1, 3)
    update = torch.arange(1, 10, dtype=torch.int8).view(3, 3)
    ops.npu_scatter_nd_update_v2(cache, torch.tensor([[3, 1], [-1, 0], [0, 0]]).npu(), update.npu())
    expected = torch.zeros(4, 4, 3)
    expected[3, 1], expected[0, 0] = update[0], update[2]
    assert_equal(memory, expected)


def test_part_of_the_vocabulary(ops: Any) -> None:
    """test_vocabparallelembedding.py: 2 to 4 are here from 0, 7 to 8 from 3 + 1, which is padding."""
    rows, mask = ops.get_masked_input_and_mask(torch.arange(10, dtype=torch.int32).npu(), 2, 5, 1, 7, 9)
    assert_equal(rows, torch.tensor([0, 0, 0, 1, 2, 0, 0, 4, 5, 0]))
    assert_equal(mask, torch.tensor([1, 1, 0, 0, 0, 1, 1, 0, 0, 1], dtype=torch.bool))


def test_keys_by_head(ops: Any) -> None:
    """test_reshape_and_cache_bnsd.py: rows of (head, token) go to (block, head, place); a negative slot is none."""
    rows, cache = torch.arange(12.0).view(6, 2), torch.full((2, 2, 4, 2), -1.0)
    got = ops.npu_reshape_and_cache_bnsd(rows.npu(), cache.npu(), integers(5, -1, 0), integers(3), cache.npu())
    expected = cache.clone()
    expected[1, :, 1], expected[0, :, 0] = rows.view(2, 3, 2)[:, 0], rows.view(2, 3, 2)[:, 2]
    assert_equal(got, expected)


def test_blocks_of_parts_become_blocks_of_heads(ops: Any) -> None:
    """test_transpose_kv_cache_by_block.py: parts of the heads, as several devices had them, become neighbours."""
    caches = [random(5, 4, 6, 2, seed=i) for i in range(4)]
    expected = [cache.cpu() for cache in caches]
    for cache in expected:
        for block in (3, 0):
            cache[block] = cache[block].view(3, 4, 4).transpose(0, 1).reshape(4, 6, 2)
    ops.transpose_kv_cache_by_block(caches[:2], caches[2:], integers(3, 0, dtype=torch.int64), 4, 6, 2, 3, 2)
    for cache, values in zip(caches, expected, strict=True):
        assert_equal(cache, values)


def test_keys_by_groups(ops: Any) -> None:
    """test_store_kv_block.py: each key goes to its slot; a negative slot or a missing one is none."""
    keys, cache = torch.arange(1, 11, dtype=torch.int8).view(5, 2), torch.zeros(3, 4, 1, 2, dtype=torch.int8)
    groups = [torch.full((6,), 7, dtype=torch.int32).npu() for _ in range(3)]
    there = cache.npu()
    ops.store_kv_block_metadata(integers(9, 2, -1, 3), *groups, 4)
    ops.store_kv_block(keys.npu(), there, *groups, 4)
    cache.view(12, 2)[[9, 2, 3]] = keys[[0, 1, 3]]
    assert_equal(there, cache)


def test_blocks_between_host_and_device(ops: Any) -> None:
    """The binding: rows of z are the numbers of blocks; sizes are bytes, directions 0 to the device, 1 to the host."""
    host, device = torch.arange(12.0).view(4, 3).pin_memory(), torch.zeros(4, 3).npu()
    ops.swap_blocks(host, device, torch.tensor([[1, 3], [2, 0]]))
    expected = torch.zeros(4, 3)
    expected[3], expected[0] = host[1], host[2]
    assert_equal(device, expected)
    back = torch.zeros(4, 3).pin_memory()
    addresses = [
        torch.tensor([tensor[row].data_ptr() for row in rows]) for tensor, rows in ((device, (3, 0)), (back, (0, 1)))
    ]
    ops.swap_blocks_batch(*addresses, torch.tensor([12, 12]), 1)
    torch.npu.synchronize()
    assert_equal(back[:2], host[1:3])
    with pytest.raises(ValueError, match="swap_blocks_batch: direction is 3, expected 0, 1 or 2"):
        ops.swap_blocks_batch(*addresses, torch.tensor([12, 12]), 3)


def test_bits_of_signs(ops: Any) -> None:
    """aclnnSignBitsPack.md: the first number is the lowest bit; 1 for 0 or more."""
    assert_equal(
        ops.npu_sign_bits_pack(torch.tensor([1.0, -1, 0, 2, -3, -1, -1, 5]).npu(), 1), torch.tensor([[0b10001101]])
    )


# ---- adapters


def adapted(x: Tensor, weight: Tensor, adapters: list[int]) -> Tensor:
    """test_bgmv_shrink.py, test_bgmv_expand.py: each row times the matrix of its adapter."""
    matrices = wide(weight).flatten(0, -3)
    return torch.stack([matrices[max(adapter, 0)] @ row for row, adapter in zip(wide(x), adapters, strict=True)])


@pytest.mark.parametrize("by_sequence", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_adapters(ops: Any, dtype: torch.dtype, by_sequence: bool) -> None:
    """The kernels leave rows without an adapter as they are; the first overwrites others, the second adds."""
    adapters = [2, 2, -1, 0, -1] if by_sequence else [2, 0, -1, 1, -1]
    x, down, up = (
        random(5, 16, dtype=dtype),
        random(3, 1, 4, 16, dtype=dtype, seed=1),
        random(3, 6, 4, dtype=dtype, seed=2),
    )
    low, y = torch.full((5, 4), 9.0).npu(), random(5, 10, dtype=dtype, seed=3)
    before, has_one = wide(y), torch.tensor(adapters).unsqueeze(1) >= 0
    kind, where = "bgmv", [integers(*adapters, dtype=torch.int64)]
    if by_sequence:  # the last token belongs to none
        kind, where = "sgmv", [integers(2, -1, 0, dtype=torch.int64), integers(2, 1, 1, dtype=torch.int64)]
    getattr(ops, f"{kind}_shrink")(x, down, *where, low, 0.5)
    shrunk = torch.where(has_one, 0.5 * adapted(x, down, adapters), 9)
    assert_close(low, shrunk)
    got = getattr(ops, f"{kind}_expand")(low, up, *where, y, 3, 6)
    before[:, 3:9] += torch.where(has_one, adapted(low, up, adapters), 0)
    assert got.data_ptr() == y.data_ptr()
    assert_close(y, before)


def test_adapters_that_do_not_fit_are_refused(ops: Any) -> None:
    x, weight, where = random(2, 4), random(1, 8, 4), integers(0, 0, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"x has dtype torch.float32, expected torch.float16 or torch.bfloat16"):
        ops.bgmv_shrink(x, weight, where, x, 1.0)
    with pytest.raises(
        ValueError, match="slice_offset is 3 and slice_size 8, expected 4 or more columns within the 10"
    ):
        ops.bgmv_expand(x, weight, where, random(2, 10, dtype=torch.float16), 3, 8)
    with pytest.raises(ValueError, match="x has 4 columns, expected more than y, which has 4"):
        ops.bgmv_shrink(x.half(), weight, where, x, 1.0)


# ---- linear attention


def test_decay_and_rate(ops: Any) -> None:
    """test_fused_gdn_gating.py: above the threshold softplus is its argument."""
    a, b = (random(4, 3, dtype=torch.bfloat16, seed=i) * 6 for i in range(2))
    log, bias = (random(3, seed=i) for i in (2, 3))
    g, rate = ops.npu_fused_gdn_gating(log, a, b, bias, 0.5, 1.5)
    x = wide(a) + wide(bias)
    softplus = torch.where(0.5 * x > 1.5, x, torch.log1p(torch.exp(0.5 * x)) / 0.5)
    assert (g.shape, rate.shape) == ((1, 4, 3), (1, 4, 3))
    assert_close(g, (-torch.exp(wide(log)) * softplus).unsqueeze(0))
    assert_close(rate, torch.sigmoid(wide(b)).unsqueeze(0))


@pytest.mark.parametrize("of_310p", [False, True])
def test_recurrent_delta_rule(ops: Any, of_310p: bool) -> None:
    """test_recurrent_gated_delta_rule.py: S = exp(g) S, S += beta (v - S k) k^T, out = scale S q, in its place."""
    dtype = torch.float16 if of_310p else torch.bfloat16
    query, key = (random(4, 1, 8, dtype=dtype, seed=i) for i in range(2))
    value, beta, g = random(4, 2, 6, dtype=dtype, seed=2), random(4, 2, dtype=dtype, seed=3).abs(), random(4, 2, seed=4)
    state, lengths, places = random(5, 2, 6, 8, seed=5), (2, 1), (3, 1, 0, -1)  # the last token is padding
    states, expected = wide(state), torch.zeros(4, 2, 6, dtype=torch.float64)
    token = 0
    for length, accepted in zip(lengths, (2, 1), strict=True):
        s = states[places[token + accepted - 1]].clone()
        for _ in range(length):
            k, q = wide(key)[token, 0], wide(query)[token, 0]
            s = s * torch.exp(wide(g)[token])[:, None, None]
            correction = wide(beta)[token][:, None] * (wide(value)[token] - s @ k)
            s = s + correction[:, :, None] * k
            states[places[token]], expected[token] = s, 0.25 * s @ q
            token += 1
    accepted_tokens = integers(2, 1)
    if of_310p:
        out = ops.npu_recurrent_gated_delta_rule_310(
            query, key, value, beta, state, integers(*lengths), integers(*places), g, None, accepted_tokens, 0.25
        )
    else:
        out = ops.npu_recurrent_gated_delta_rule(
            query, key, value, state, beta=beta, scale=0.25, actual_seq_lengths=integers(0, *lengths),
            ssm_state_indices=integers(*places), num_accepted_tokens=accepted_tokens, g=g,
        )  # fmt: skip
    assert_close(out[:3], expected[:3])
    assert_close(state, states)


def silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def test_causal_convolution(ops: Any) -> None:
    """aclnnCausalConv1dFn.md, aclnnCausalConv1dUpdate.md: the last row of the weight is the token's own."""
    x, weight = random(5, 64, dtype=torch.bfloat16), random(3, 64, dtype=torch.bfloat16, seed=1)
    states, bias = random(4, 2, 64, dtype=torch.bfloat16, seed=2), random(64, dtype=torch.bfloat16, seed=3)
    before, tokens, w = wide(states), wide(x), wide(weight)

    def convolved(sequence: Tensor) -> Tensor:
        rows = range(len(sequence) - 2)
        return torch.stack([silu((sequence[i : i + 3] * w).sum(0) + wide(bias)) for i in rows])

    out = torch.empty_like(x)
    starts, lines, initial = integers(0, 3, 5), integers(2, 0), torch.tensor([True, False]).npu()
    got = ops.npu_causal_conv1d_custom(out, x, weight, states, bias, starts, lines, initial, None, 1, -1, 0)
    first, second = torch.cat([before[2], tokens[:3]]), torch.cat([torch.zeros(2, 64), tokens[3:]])
    assert got.data_ptr() == out.data_ptr()
    assert_close(out, torch.cat([convolved(first), convolved(second)]))
    before[2], before[0] = first[-2:], second[-2:]
    assert_equal(states, before)

    # One more token of each sequence; the second one is padding. On Ascend310P results are new tensors.
    x2 = random(2, 64, dtype=torch.bfloat16, seed=4)
    more = ops.npu_causal_conv1d_310(x2, weight, bias, states, None, integers(1, -1), None, None, 1, -1, 1)
    sequence = torch.cat([before[1], wide(x2)[:1]])
    assert_close(more[:1], convolved(sequence))
    before[1] = sequence[-2:]
    assert_equal(states, before)


@pytest.mark.parametrize("starts", [None, (0, 70, 130)])
def test_delta_rule_by_chunks(ops: Any, starts: tuple[int, ...] | None) -> None:
    """310p/.../test_chunk_gated_delta_rule_fwd_h_aclnn.py and test_chunk_fwd_o_310.py; g is the sum within a chunk."""
    tokens, size, batch = 130, 8, 2 if starts is None else 1
    k, w, q = (random(batch, 1, tokens, size, dtype=torch.bfloat16, seed=i) / 4 for i in range(3))
    u, init = random(batch, 2, tokens, 4, dtype=torch.bfloat16, seed=3), random(2, 2, size, 4, seed=4)
    g = -random(batch, 2, tokens, seed=5).abs() / 8
    chunks = [(0, i, min(i + 64, tokens)) for i in range(0, tokens, 64)]  # sequence, and its tokens
    if starts is not None:
        chunks = [(0, 0, 64), (0, 64, 70), (1, 70, 130)]
    sums = torch.cat([g[..., start:stop].cumsum(-1) for _, start, stop in chunks], -1)
    h, corrected, final = ops.chunk_gated_delta_rule_fwd_h(
        k, w, u, sums, initial_state=init, output_final_state=True, chunk_size=64, cu_seqlens=starts
    )
    out = ops.chunk_fwd_o(q, k, corrected, h, 0.5, g=sums, cu_seqlens=starts, chunk_size=64)
    kd, wd, qd, gd = (wide(x).expand(-1, 2, -1, *x.shape[3:]) for x in (k, w, q, sums))
    state = wide(init).clone() if starts is None else wide(init)[:1]
    ends, sequence = [], 0
    for i, (number, start, stop) in enumerate(chunks):
        if number != sequence:
            ends.append(state)
            state, sequence = wide(init)[number : number + 1], number
        part = slice(start, stop)
        assert_close(h[:, :, i], state)
        new = wide(u)[:, :, part] - wd[:, :, part] @ state
        assert_close(corrected[:, :, part], new)
        decay = gd[:, :, part]
        gate = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).exp().tril()
        scores = (qd[:, :, part] @ kd[:, :, part].transpose(2, 3)) * gate
        earlier = decay.exp().unsqueeze(-1) * (qd[:, :, part] @ wide(h)[:, :, i])
        assert_close(out[:, :, part], 0.5 * (earlier + scores @ wide(corrected)[:, :, part]))
        weighed = (decay[:, :, -1:] - decay).exp().unsqueeze(-1) * new
        state = decay[:, :, -1:].exp().unsqueeze(-1) * state + kd[:, :, part].transpose(2, 3) @ weighed
    assert_close(final, torch.cat([*ends, state]))
    # Later tokens do not count, even where their weights would be infinite.
    assert ops.chunk_fwd_o(q, k, corrected, h, 0.5, g=sums * 100, cu_seqlens=starts).isfinite().all()
    with pytest.raises(NotImplementedError, match="fwd_h with gk, use_exp2 or transpose_state_layout is not computed"):
        ops.chunk_gated_delta_rule_fwd_h(k, w, u, sums, use_exp2=True)


# ---- quantised layers


def quantized_swiglu(x: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    """test_dequant_swiglu_quant.py: the gate is the left half; no bounds if the limit is 0."""
    gate, up = x.chunk(2, -1)
    if limit > 0:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    result = silu(gate) * up
    scale = result.abs().amax(-1) / 127
    return result / scale.unsqueeze(-1), scale


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_dequantised_swiglu(ops: Any, limit: float) -> None:
    x = torch.randint(-99, 99, (3, 16), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    scales, of_rows = random(16, seed=1) / 50, random(3, 1, seed=2)
    y, scale = ops.npu_dequant_swiglu_quant(
        x.npu(), weight_scale=scales, activation_scale=of_rows, quant_mode=1, swiglu_mode=1, clamp_limit=limit
    )
    values, expected = quantized_swiglu(x * wide(scales) * wide(of_rows), limit)
    assert_close(scale, expected)
    assert_close(y, values)


@pytest.mark.parametrize("limit", [0.0, 0.5])
@pytest.mark.parametrize(
    "form", ["grouped_matmul_swiglu_quant", "grouped_matmul_swiglu_quant_weight_nz", "_tensor_list"]
)
def test_swiglu_of_grouped_products(ops: Any, form: str, limit: float) -> None:
    """test_gmm_swiglu_quant_weight_nz_tensor_list.py: the numbers of group_list are the ends of the groups."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randint(-9, 9, shape, generator=generator, dtype=torch.int8) for shape in ((7, 32), (4, 32, 64)))
    scales, of_rows, ends = random(4, 64, seed=1).abs() / 40, random(7, seed=2).abs(), (2, 2, 6, 7)
    place = [0, 0, 2, 2, 2, 2, 3]
    products = torch.einsum("rk,rkn->rn", x.double(), weight.double()[place])
    values, expected = quantized_swiglu(products * wide(scales)[place] * wide(of_rows).unsqueeze(1), limit)
    groups = integers(*ends, dtype=torch.int64)
    if form == "_tensor_list":
        name, matrices, factors = f"grouped_matmul_swiglu_quant_weight_nz{form}", list(weight.npu()), list(scales)
    else:
        name, matrices, factors = form, weight.npu(), scales
    y, scale, _ = getattr(ops, name)(x.npu(), matrices, factors, of_rows, groups, swiglu_limit=limit)
    assert_close(scale, expected)
    assert_close(y, values)
    with pytest.raises(NotImplementedError, match="with bias is not computed on simulated NPUs; pass None"):
        getattr(ops, name)(x.npu(), matrices, factors, of_rows, groups, bias=scales)


# ---- attention


def test_products_of_heads(ops: Any) -> None:
    """test_batch_matmul_transpose.py."""
    a, b, out = (
        random(3, 2, 8, dtype=torch.float16),
        random(2, 8, 4, dtype=torch.float16, seed=1),
        torch.zeros(3, 8).half(),
    )
    out = out.npu()
    ops.batch_matmul_transpose(a, b, out)
    assert_close(out, torch.einsum("thk,hkn->thn", wide(a), wide(b)).flatten(1))


@pytest.mark.parametrize("quantized", [False, True])
def test_indexer(ops: Any, quantized: bool) -> None:
    """csrc/attention/lightning_indexer/docs/aclnnLightningIndexer.md: the best sums of weights times relu(q k)."""
    query, key, weights = random(2, 2, 128), random(1, 16, 1, 128, seed=1), random(2, 2, dtype=torch.float16, seed=2)
    lengths = {"actual_seq_lengths_query": integers(2), "actual_seq_lengths_key": integers(12)}
    lengths |= {"block_table": integers(0).view(1, 1), "layout_query": "TND", "layout_key": "PA_BSND"}
    if quantized:
        query, key = (query * 100).to(torch.int8), (key * 100).to(torch.int8)
        scales = random(2, 2, seed=3).abs().half(), random(1, 16, 1, seed=4).abs().half()
        got = ops.npu_lightning_indexer_quant(query, key, weights, *scales, **lengths, sparse_count=4)
        of_keys = wide(scales[1])[0, :, 0]
        products = torch.einsum("the,ke->tkh", wide(query), wide(key)[0, :, 0]).relu() * of_keys[:, None]
        scores = torch.einsum("tkh,th->tk", products, wide(scales[0]) * wide(weights))
    else:
        query, key = query.half(), key.half()
        got, values = ops.npu_lightning_indexer(query, key, weights, **lengths, sparse_count=4)
        assert values.numel() == 0
        products = torch.einsum("the,ke->tkh", wide(query), wide(key)[0, :, 0]).relu()
        scores = torch.einsum("tkh,th->tk", products, wide(weights))
    best = torch.stack([scores[token, : 11 + token].topk(4).indices for token in range(2)])  # causal, 12 keys
    assert_equal(got[:, 0].sort(-1).values, best.sort(-1).values)


@pytest.mark.parametrize("quantized", [False, True])
def test_attention_to_selected_keys(ops: Any, quantized: bool) -> None:
    """csrc/attention/sparse_flash_attention/docs/aclnnSparseFlashAttention.md; its kv_quant_sparse_... has a README."""
    query, key = random(1, 2, 1, 512, dtype=torch.float16), random(1, 3, 1, 512, dtype=torch.float16, seed=1)
    selected = integers(1, 0, 0, 2).view(1, 2, 1, 2)
    if quantized:
        numbers = (key * 100).to(torch.int8)
        bytes_of_scales = torch.full((1, 3, 1, 4), 0.01).npu().view(torch.int8)
        packed = torch.cat([numbers, torch.zeros(1, 3, 1, 128, dtype=torch.int8).npu(), bytes_of_scales], -1)
        wider = torch.cat([query, torch.zeros(1, 2, 1, 64, dtype=torch.float16).npu()], -1)
        arguments = {"key_quant_mode": 2, "value_quant_mode": 2, "sparse_mode": 0}
        out, *_ = ops.npu_kv_quant_sparse_flash_attention(wider, packed, numbers, selected, 0.5, **arguments)
        keys = wide(numbers) * wide(torch.tensor(0.01))
    else:
        rope = torch.zeros(1, 3, 1, 64, dtype=torch.float16).npu()
        out, largest, total = ops.npu_sparse_flash_attention(
            query,
            key,
            key,
            selected,
            0.5,
            query_rope=rope[:, :2],
            key_rope=rope,
            sparse_mode=0,
            return_softmax_lse=True,
        )
        keys = wide(key)
        assert largest.shape == total.shape == (1, 1, 2, 1)
    for token, places in enumerate(((1, 0), (0, 2))):
        chosen = keys[0, list(places), 0]
        weights = (0.5 * chosen @ wide(query)[0, token, 0]).softmax(0)
        assert_close(out[0, token, 0], weights @ chosen)


# ---- compressed keys and residual streams


@pytest.mark.parametrize("form", [1, 2])
def test_compressed_tokens(ops: Any, form: int) -> None:
    """test_compressor_metadata.py: of 3 new tokens from place 2, one completes 4; of 9 from 8, two do.

    A request without a place has none, and a token without a block has no slot.
    """
    cos, sin = (random(32, 6, dtype=torch.bfloat16, seed=i) for i in range(2))
    table = torch.tensor([[5, 6], [9, 9], [7, 8], [-1, 9]], dtype=torch.int32).npu()
    starts, places = integers(0, 3, 11, 20, 24), integers(2, -1, 8, 0)
    arguments = (cos, sin, starts, places, table, 3, form, 4)
    got = ops.compressor_metadata(*arguments, 5, 4)
    # Compressed token 0 of the first request; 2 and 3 of the third, the latter being the first of its second block.
    slots, tokens = [(5, 0), (7, 2), (8, 0)], [0, 8, 12]
    assert got[0].shape == (5, 1, 1, 6)
    assert_equal(got[0].view(5, 6), torch.cat([wide(cos)[tokens], torch.ones(2, 6)]))
    assert_equal(got[1].view(5, 6), torch.cat([wide(sin)[tokens], torch.zeros(2, 6)]))
    assert_equal(got[2], torch.tensor([*slots, (-1, 2), (-1, 2)] if form == 2 else [15, 23, 24, -1, -1]))
    outputs = [torch.empty_like(each) for each in got]
    for mine, theirs in zip(ops.compressor_metadata_out(*arguments, 4, *outputs), got, strict=True):
        assert_equal(mine, theirs.cpu())


@pytest.mark.parametrize("name", ["npu_hc_pre", "npu_hc_pre_v2"])
def test_residual_streams(ops: Any, name: str) -> None:
    """vllm_ascend/ops/mhc.py, and aclnnMhcPost.md for the streams after the layer."""
    x, fn = random(3, 4, 16, dtype=torch.bfloat16), random(24, 64, seed=1) / 8
    scale, base, eps = random(3, seed=2), random(24, seed=3), 1e-6
    y, post, comb = getattr(ops, name)(x, fn, scale, base, 4, 20, 1e-6, eps)
    flat = wide(x).flatten(1)
    mixes = flat @ wide(fn).t() / (flat.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    parts = [
        m * s + b
        for m, s, b in zip(mixes.split([4, 4, 16], -1), wide(scale), wide(base).split([4, 4, 16]), strict=True)
    ]
    matrices = parts[2].view(3, 4, 4).softmax(-1) + eps
    for _ in range(20):
        matrices = matrices / (matrices.sum(-1, keepdim=True) + eps)
        matrices = matrices / (matrices.sum(-2, keepdim=True) + eps)
    assert_close(y, ((parts[0].sigmoid() + eps).unsqueeze(-1) * wide(x)).sum(1))
    larger = getattr(ops, name)(x, fn, scale, base, 4, 20, 1e-6, 0.25)[0]
    assert_close(larger, ((parts[0].sigmoid() + 0.25).unsqueeze(-1) * wide(x)).sum(1))
    assert_close(post, 2 * parts[1].sigmoid())
    torch.testing.assert_close(wide(comb), matrices, rtol=1e-5, atol=1e-5)
    result = random(1, 3, 16, dtype=torch.bfloat16, seed=4)
    streams = ops.npu_hc_post(result, x.unsqueeze(0), post.unsqueeze(0), comb.unsqueeze(0))
    mixed = wide(comb).transpose(1, 2) @ wide(x)
    assert_close(streams[0], mixed + wide(post).unsqueeze(-1) * wide(result)[0].unsqueeze(1))


# ---- speculative decoding


def test_drafts_of_earlier_tokens(ops: Any) -> None:
    """test_ngram_spec_decode.py: the shortest n-gram that occurs earlier, its first place, and what followed it.

    Of 1 2 3, 2 3 is first at 0; 5 5 is followed by one token; 8 5 is new; the last request is discarded.
    """
    before = [[2, 3, 7, 1, 2, 3, 8, 1, 2], [5, 5], [4, 5, 6, 7], [1, 1, 1]]
    after = [[2, 3, 7, 1, 2, 3, 8, 1, 2, 3], [5, 5, 5], [4, 5, 6, 7, 8, 5], [1, 1, 1]]
    tokens, expected = (
        torch.tensor([row + [0] * (12 - len(row)) for row in rows], dtype=torch.int32) for rows in (before, after)
    )
    tokens, sampled = tokens.npu(), torch.tensor([[3, -1], [5, 9], [8, 5], [1, 1]], dtype=torch.int32).npu()
    discarded = torch.tensor([False, False, False, True]).npu()
    got, following, drafts, count = ops.npu_ngram_spec_decode(
        tokens, integers(9, 2, 4, 3), sampled, discarded, 9, 2, 3, 3
    )
    assert got.data_ptr() == tokens.data_ptr()
    assert_equal(tokens, expected)
    assert_equal(sampled, torch.tensor([[3, -1], [5, -1], [8, 5], [-1, -1]]))
    assert_equal(following, torch.tensor([3, 5, 5, 1]))
    assert_equal(drafts, torch.tensor([[7, 1, 2], [5, -1, -1], [-1, -1, -1], [-1, -1, -1]]))
    assert_equal(count, torch.tensor([3, 1, 0, 0]))


@pytest.mark.parametrize("shift", [False, True])
def test_inputs_of_a_drafting_model(ops: Any, shift: bool) -> None:
    """test_copy_and_expand_eagle_inputs.py: two requests of 3 and 2 tokens; one token of the first is rejected."""
    tokens, positions = integers(10, 11, 12, 20, 21), integers(5, 6, 7, 0, 1)
    got = ops.npu_copy_and_expand_eagle_inputs(
        tokens, positions, integers(13, 22), integers(0, 3, 5), integers(1, 4), 0, 100, 2, shift, 7 if shift else 9
    )
    ids = [11, 13, 100, 0, 21, 22, 100] if shift else [10, 11, 13, 100, 0, 20, 21, 22, 100]
    where = [5, 6, 7, 0, 0, 1, 2] if shift else [5, 6, 7, 8, 0, 0, 1, 2, 3]
    rejected = [0, 0, 0, 1, 0, 0, 0] if shift else [0, 0, 0, 0, 1, 0, 0, 0, 0]
    masked = [int(token == 100) for token in ids]
    new = [1, 2, 5, 6] if shift else [2, 3, 7, 8]
    mapping = [0, 1, 2, 4, 5] if shift else [0] * 5
    for mine, expected in zip(got, (ids, where, rejected, masked, new, mapping), strict=True):
        assert_equal(mine, torch.tensor(expected))


# ---- graphs, compilers, errors


def layer(ops: Any, x: Tensor, router: Tensor, gamma: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    """A few operators after one another, one of them in place."""
    y, _, residual = ops.npu_add_rms_norm_bias(x, x, gamma, None, 1e-6)
    weights, experts, _ = ops.moe_gating_top_k(y @ router, 2, 1, 1, 0, 1, 0, False, 1.0, 1e-20)
    rows, index, _, _ = ops.npu_moe_init_routing_custom(
        y, experts, active_num=8, expert_num=4, expert_tokens_num_type=1, expert_tokens_num_flag=True, quant_mode=-1,
        active_expert_range=[0, 4],
    )  # fmt: skip
    ops.npu_scatter_nd_update_v2(cache, slots, residual)
    return (rows[index.long()].view(4, 2, -1) * weights.unsqueeze(-1)).sum(1)


def inputs() -> SimpleNamespace:
    return SimpleNamespace(
        x=random(4, 32), router=random(32, 4, seed=1), gamma=random(32, seed=2), cache=torch.zeros(8, 32).npu(),
        slots=integers(6, 1, 3, 0).view(4, 1),
    )  # fmt: skip


@pytest.mark.skipif(QUEUE == "2", reason="torch_npu captures nothing then")
def test_a_graph_computes_them_again(ops: Any) -> None:
    given, graph = inputs(), torch.npu.NPUGraph()
    layer(ops, **vars(given))
    with torch.npu.graph(graph):
        result = layer(ops, **vars(given))
    given.x.copy_(random(4, 32, seed=9))
    given.cache.zero_()
    graph.replay()
    again = inputs()
    again.x = given.x
    assert torch.equal(result, layer(ops, **vars(again)))
    assert torch.equal(given.cache, again.cache) and given.cache[6].abs().sum() > 0


@pytest.mark.skipif(QUEUE != "1", reason="traces do not depend on the queue")
def test_a_compiler_traces_them_whole(ops: Any) -> None:
    """With sizes that change; the cache is changed in place."""

    def function(x: Tensor, router: Tensor, gamma: Tensor, cache: Tensor) -> Tensor:
        y, _, residual = ops.npu_add_rms_norm_bias(x, x, gamma, None, 1e-6)
        weights, _, _ = ops.moe_gating_top_k(y @ router, 2, 1, 1, 0, 1, 0, False, 1.0, 1e-20)
        ops.npu_scatter_nd_update_v2(cache, torch.zeros(x.size(0), 1, dtype=torch.int32, device=x.device), residual)
        return weights * 2

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (4, 6):
        given = inputs()
        x, cache = random(rows, 32, seed=rows), torch.zeros_like(given.cache)
        assert torch.equal(
            compiled(x, given.router, given.gamma, given.cache), function(x, given.router, given.gamma, cache)
        )
        assert torch.equal(given.cache, cache)


def test_errors_have_the_text_of_the_function(ops: Any) -> None:
    text = r"aclnnMoeGatingTopKV2: status 161002: .*k is 9, expected 1 to 8"
    with pytest.raises(RuntimeError, match=text):
        ops.moe_gating_top_k(random(2, 8), 9, 1, 1, 0, 0, 0, False, 1.0, 1e-20)
    with pytest.raises(ValueError, match="aclnnMoeGatingTopKV2: tensors are on cpu and npu:0, expected one NPU"):
        ops.moe_gating_top_k(random(2, 8), 2, 1, 1, 0, 0, 0, False, 1.0, 1e-20, torch.zeros(8))
    with pytest.raises(ValueError, match=r"aclnnMoeGatingTopKV2: a tensor has dtype torch.complex64, expected one of "):
        ops.moe_gating_top_k(random(2, 8).to(torch.complex64), 2, 1, 1, 0, 0, 0, False, 1.0, 1e-20)
    with pytest.raises(ValueError, match=r"rotary_mode is 'third', expected one of \['half', 'interleave', 'quarter'"):
        ops.inplace_partial_rotary_mul(random(1, 1, 1, 4), random(1, 1, 1, 4), random(1, 1, 1, 4), "third", [0, 4])
    with pytest.raises(
        NotImplementedError, match="dispatch_ffn_combine is not computed on simulated NPUs: it communic"
    ):
        one = random(2, 2)
        ops.dispatch_ffn_combine(one, [one], [one], one, [one], [one], [one], [one], one, "group", 1, one, one)
    with pytest.raises(NotImplementedError, match="npu_sparse_attn_sharedkv_metadata is not computed"):
        ops.npu_sparse_attn_sharedkv_metadata(1, 1, 1)
