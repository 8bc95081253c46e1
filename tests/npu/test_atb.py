"""torch_npu's operators of ATB (`torch_npu._npu_*`, `torch_npu.atb`), on the host CANN's libatb.so.

Formulas: the API pages of ATB's operations (ReshapeAndCache, Rope, PagedAttention, SelfAttention, GroupTopk, Linear,
Elewise, RmsNorm), here in float64 on the CPU, of the values that the 16-bit tensors have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch_npu

DTYPES = (torch.float16, torch.bfloat16)
# The result is rounded once to the tensor's dtype; the rest is the difference of float32 and float64.
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
BLOCK = 16


def random(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * 2 - 1).to(dtype)


def integers(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def assert_rounded(got: torch.Tensor, expected: torch.Tensor) -> None:
    """The float64 values, rounded once to the dtype, after a computation in float32."""
    step = ROUNDING.get(got.dtype, 2.0**-22)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=step, atol=2.0**-18)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """softmax(scale * Q K^T + bias) V for one sequence, (tokens, heads, size); key heads are shared by groups."""
    group = query.size(1) // key.size(1)
    q, k, v = (x.double().transpose(0, 1) for x in (query, key, value))
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    scores = scale * q @ k.transpose(1, 2)
    if bias is not None:
        scores = scores + bias.double()
    return (scores.softmax(-1) @ v).transpose(0, 1)


def causal(queries: int, keys: int) -> torch.Tensor:
    """-inf for keys after the query's position; queries and keys end together."""
    return torch.full((queries, keys), -torch.inf).triu(keys - queries + 1)


class Paged:
    """Two sequences, of which the first continues in its second block, and their caches in blocks."""

    def __init__(self, dtype: torch.dtype, lengths: tuple[int, ...] = (21, 9), value_size: int = 32) -> None:
        self.lengths = lengths
        self.keys = random(6, BLOCK, 2, 32, dtype=dtype, seed=1)
        self.values = random(6, BLOCK, 2, value_size, dtype=dtype, seed=2)
        self.table = torch.tensor([[4, 1], [2, 0]], dtype=torch.int32)

    def sequence(self, cache: torch.Tensor, i: int) -> torch.Tensor:
        return cache[self.table[i].long()].flatten(0, 1)[: self.lengths[i]]

    def key_value(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.sequence(self.keys, i), self.sequence(self.values, i)


def assert_continued(
    out: torch.Tensor,
    query: torch.Tensor,
    paged: Paged,
    queries: Sequence[int],
    bias: Callable[[int, int], torch.Tensor] = causal,
) -> None:
    """The results of so many queries at the end of each sequence; ``bias`` is of their number and the keys'."""
    for i, part in enumerate(torch.arange(len(query)).split(list(queries))):
        added = bias(len(part), paged.lengths[i])
        assert_rounded(out.cpu()[part], attend(query[part], *paged.key_value(i), 0.25, added))


def replayed(call: Callable[[], Any], *changed: torch.Tensor) -> None:
    """Captures the call in a graph, after one without it, undoes its effect, and replays it."""
    before = [x.clone() for x in changed]
    call()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        call()
    for x, value in zip(changed, before, strict=True):
        x.copy_(value)
    graph.replay()
    torch.npu.synchronize()


def run(call: Callable[[], Any], *changed: torch.Tensor) -> None:
    call()


captures = pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures with 0 and 1 alone"
)
in_both_ways = pytest.mark.parametrize(
    "way", [pytest.param(run, id="eager"), pytest.param(replayed, id="captured", marks=captures)]
)


@in_both_ways
@pytest.mark.parametrize("dtype", (*DTYPES, torch.int8))
def test_reshape_and_cache(dtype: torch.dtype, way: Callable[..., None]) -> None:
    """Token i goes to slot i; one with a negative slot is padding."""
    keys = (random(5, 2, 32) * 100).to(dtype)
    values = (random(5, 2, 48, seed=1) * 100).to(dtype)
    key_cache, value_cache = torch.zeros(3, 4, 2, 32, dtype=dtype), torch.zeros(3, 4, 2, 48, dtype=dtype)
    slots = integers(9, 0, -1, 5, 6)
    k, v = key_cache.npu(), value_cache.npu()
    arguments = (keys.npu(), values.npu(), k, v, slots.npu())
    way(lambda: torch_npu._npu_reshape_and_cache(*arguments), k, v)
    for cache, tokens in ((key_cache, keys), (value_cache, values)):
        for i, slot in enumerate(slots.tolist()):
            if slot >= 0:
                cache[slot // 4, slot % 4] = tokens[i]
    assert torch.equal(k.cpu(), key_cache)
    assert torch.equal(v.cpu(), value_cache)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reshape_and_cache_of_keys_alone(dtype: torch.dtype) -> None:
    keys = random(3, 1, 64, dtype=dtype)
    cache = torch.zeros(2, 4, 1, 64, dtype=dtype)
    on_device = cache.npu()
    torch_npu._npu_reshape_and_cache_siso(keys.npu(), on_device, integers(7, 1, 2).npu())
    cache.view(8, 1, 64)[[7, 1, 2]] = keys
    assert torch.equal(on_device.cpu(), cache)


@in_both_ways
@pytest.mark.parametrize("dtype", (*DTYPES, torch.int8))
@pytest.mark.parametrize("cumsum", (False, True))
def test_paged_cache_load(cumsum: bool, dtype: torch.dtype, way: Callable[..., None]) -> None:
    """Tokens of sequence i, from its block seq_starts[i] // block on, one sequence after another."""
    paged = Paged(dtype, value_size=48)
    paged.keys, paged.values = (random(6, BLOCK, 2, n, seed=n) * 100 for n in (32, 48))
    caches = [x.to(dtype) for x in (paged.keys, paged.values)]
    lengths, starts = (21, 0, 9), (0, 5, BLOCK)
    table = torch.tensor([[4, 1], [3, 3], [2, 5]], dtype=torch.int32)
    got = [torch.full((32, 2, n), 7, dtype=dtype).npu() for n in (32, 48)]
    given = [x.npu() for x in (*caches, table, integers(0, 21, 21, 30) if cumsum else integers(*lengths))]
    start = integers(*starts).npu()
    way(
        lambda: torch_npu.atb.npu_paged_cache_load(*given, seq_starts=start, cumsum=cumsum, key=got[0], value=got[1]),
        *got,
    )
    for cache, tokens in zip(caches, got, strict=True):
        parts = [cache[[4, 1]].flatten(0, 1)[:21], cache[5, :9], torch.full_like(cache[0, :2], 7)]
        assert torch.equal(tokens.cpu(), torch.cat(parts))


@pytest.mark.parametrize("dtype", DTYPES)
def test_paged_cache_load_makes_its_results(dtype: torch.dtype) -> None:
    """As long as the lengths together; without seq_starts, sequences begin in their first block."""
    paged = Paged(dtype, value_size=48)
    given = [x.npu() for x in (paged.keys, paged.values, paged.table, integers(*paged.lengths))]
    for got, cache in zip(torch_npu.atb.npu_paged_cache_load(*given), (paged.keys, paged.values), strict=True):
        assert torch.equal(got.cpu(), torch.cat([paged.sequence(cache, i) for i in range(2)]))


# torch_npu keeps the first table of cos and sin that a process gives it, so all calls have the same.
@in_both_ways
@pytest.mark.parametrize("is_neox", (True, False))
def test_rotary_embedding(is_neox: bool, way: Callable[..., None]) -> None:
    """A pair (a, b) turns by the angle of its position: the halves of a head, or neighbours."""
    dtype = torch.float16
    size, heads, key_heads, positions = 32, 4, 2, torch.tensor([5, 0, 11])
    angles = torch.arange(16.0).unsqueeze(1) * 10000.0 ** (-torch.arange(0, size, 2) / size)
    cos_sin = torch.cat((angles.cos(), angles.sin()), -1).to(dtype)
    query, key = random(3, heads * size, dtype=dtype), random(3, key_heads * size, dtype=dtype, seed=1)
    q, k, table, at = query.npu(), key.npu(), cos_sin.npu(), positions.npu()
    way(lambda: torch_npu._npu_rotary_embedding(at, q, k, size, table, is_neox), q, k)
    cos, sin = cos_sin.double()[positions].unsqueeze(1).chunk(2, -1)
    for got, x in ((q, query), (k, key)):
        y = x.double().view(3, -1, size)
        a, b = y.chunk(2, -1) if is_neox else (y[..., ::2], y[..., 1::2])
        pair = (a * cos - b * sin, b * cos + a * sin)
        expected = torch.cat(pair, -1) if is_neox else torch.stack(pair, -1).flatten(-2)
        assert_rounded(got, expected.view_as(x))


@in_both_ways
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value_size", (32, 48))
def test_paged_attention(dtype: torch.dtype, value_size: int, way: Callable[..., None]) -> None:
    """One query for each sequence; pairs of heads share keys. The lengths are on the CPU."""
    paged = Paged(dtype, value_size=value_size)
    query = random(2, 4, 32, dtype=dtype)
    out = torch.zeros(2, 4, value_size, dtype=dtype).npu()
    given = (query.npu(), paged.keys.npu(), paged.values.npu(), 2, 4, 0.25, paged.table.npu())
    lengths = integers(*paged.lengths)
    way(lambda: torch_npu._npu_paged_attention(*given, lengths, out), out)
    for i in range(2):
        assert_rounded(out[i : i + 1], attend(query[i : i + 1], *paged.key_value(i), 0.25))


def test_paged_attention_with_a_workspace() -> None:
    paged = Paged(torch.float16)
    query, out = random(2, 4, 32).npu(), torch.zeros(2, 4, 32, dtype=torch.float16).npu()
    given = (query, paged.keys.npu(), paged.values.npu(), 2, 4, 0.25, paged.table.npu(), integers(*paged.lengths), out)
    workspace = torch_npu._npu_paged_attention_get_workspace(*given)
    assert workspace.dtype == torch.uint8
    torch_npu._npu_paged_attention(*given, workspace=workspace)
    assert_rounded(out[:1], attend(query[:1].cpu(), *paged.key_value(0), 0.25))


@captures
def test_a_captured_call_gets_other_lengths() -> None:
    """As vllm-ascend updates its graphs: lengths are on the CPU, and belong to the captured call."""
    paged = Paged(torch.float16)
    query, out = random(2, 4, 32), torch.zeros(2, 4, 32, dtype=torch.float16).npu()
    given = (query.npu(), paged.keys.npu(), paged.values.npu(), 2, 4, 0.25, paged.table.npu())
    workspace = torch_npu._npu_paged_attention_get_workspace(*given, integers(*paged.lengths), out)
    graph, stream, updating = torch.npu.NPUGraph(), torch.npu.Stream(), torch.npu.Stream()
    with torch.npu.graph(graph, stream=stream):
        torch.npu.graph_task_group_begin(stream)
        torch_npu._npu_paged_attention(*given, integers(*paged.lengths), out, workspace=workspace)
        group = torch.npu.graph_task_group_end(stream)
    paged.lengths = (32, 3)
    with torch.npu.stream(updating):
        torch.npu.graph_task_update_begin(updating, group)
        torch_npu._npu_paged_attention(*given, integers(*paged.lengths), out, workspace=workspace)
        torch.npu.graph_task_update_end(updating)
    torch.npu.synchronize()
    graph.replay()
    for i in range(2):
        assert_rounded(out[i : i + 1], attend(query[i : i + 1], *paged.key_value(i), 0.25))


def test_a_sequence_without_keys_leaves_its_output() -> None:
    paged = Paged(torch.float16, (21, 0))
    query, out = random(2, 4, 32), torch.full((2, 4, 32), 7.0, dtype=torch.float16).npu()
    torch_npu._npu_paged_attention(
        query.npu(), paged.keys.npu(), paged.values.npu(), 2, 4, 0.25, paged.table.npu(), integers(21, 0), out
    )
    assert_rounded(out[:1], attend(query[:1], *paged.key_value(0), 0.25))
    assert torch.equal(out[1].cpu(), torch.full((4, 32), 7.0, dtype=torch.float16))


@pytest.mark.parametrize("dtype", DTYPES)
def test_paged_attention_with_an_alibi_mask(dtype: torch.dtype) -> None:
    """The mask is added: one row of biases for each head of each sequence."""
    paged = Paged(dtype)
    query, mask = random(2, 4, 32, dtype=dtype), random(2, 4, 1, 24, dtype=dtype, seed=5)
    out = torch.zeros(2, 4, 32, dtype=dtype).npu()
    torch_npu.atb._npu_paged_attention_v2(
        query.npu(), paged.keys.npu(), paged.table.npu(), list(paged.lengths), value_cache=paged.values.npu(),
        mask=mask.npu(), num_kv_heads=2, num_heads=4, scale_value=0.25, mask_type=2, out=out,
    )  # fmt: skip
    for i, length in enumerate(paged.lengths):
        bias = mask[i, :, :, :length]
        assert_rounded(out[i : i + 1], attend(query[i : i + 1], *paged.key_value(i), 0.25, bias))


@pytest.mark.parametrize("dtype", DTYPES)
def test_paged_attention_of_several_queries(dtype: torch.dtype) -> None:
    """The mask has a row for each token, and is added."""
    paged, queries = Paged(dtype), (3, 1)
    query = random(4, 4, 32, dtype=dtype)
    mask = torch.full((4, 21), -10000.0, dtype=dtype)
    start = 0
    for count, length in zip(queries, paged.lengths, strict=True):
        mask[start : start + count, :length] = causal(count, length).clamp(min=-10000)
        start += count
    out = torch.zeros(4, 4, 32, dtype=dtype).npu()
    torch_npu._npu_paged_attention_splitfuse(
        query.npu(), paged.keys.npu(), paged.values.npu(), paged.table.npu(), integers(*paged.lengths), mask.npu(),
        integers(*queries), 2, 4, 0.25, out,
    )  # fmt: skip
    assert_continued(out, query, paged, queries)


@pytest.mark.parametrize("dtype", DTYPES)
def test_paged_attention_of_latent_keys(dtype: torch.dtype) -> None:
    """The values are the first elements of the keys."""
    keys = random(3, BLOCK, 1, 64, dtype=dtype, seed=1)
    query, out = random(1, 4, 64, dtype=dtype), torch.zeros(1, 4, 48, dtype=dtype).npu()
    table = integers(2, 0).unsqueeze(0)
    torch_npu._npu_paged_attention_mla(query.npu(), keys.npu(), 1, 4, 0.125, table.npu(), integers(20), 48, out)
    sequence = keys[[2, 0]].flatten(0, 1)[:20]
    assert_rounded(out, attend(query, sequence, sequence[..., :48], 0.125))


LENGTHS = (5, 3)


def packed(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    tensors = (random(8, heads, 32, dtype=dtype, seed=i) for i, heads in enumerate((4, 2, 2)))
    return (*tensors, torch.zeros(8, 4, 32, dtype=dtype).npu())


def assert_packed(
    out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias_of: Callable[[int, int], torch.Tensor | None],
) -> None:
    start = 0
    for i, length in enumerate(LENGTHS):
        part = slice(start, start + length)
        assert_rounded(out[part], attend(query[part], key[part], value[part], 0.25, bias_of(i, length)))
        start += length


@in_both_ways
@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_unpad(dtype: torch.dtype, way: Callable[..., None]) -> None:
    """Sequences one after the other, each query sees all keys of its own."""
    query, key, value, out = packed(dtype)
    given = (query.npu(), key.npu(), value.npu(), integers(*LENGTHS), 0.25, 4, 2, out)
    way(lambda: torch_npu._npu_flash_attention_unpad(*given), out)
    assert_packed(out, query, key, value, lambda i, length: None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention(dtype: torch.dtype) -> None:
    """A float16 mask is added; one of bfloat16 has ones for hidden keys."""
    query, key, value, out = packed(dtype)
    hidden = torch.ones(6, 6).triu(1)
    mask = (hidden * -10000.0 if dtype == torch.float16 else hidden).to(dtype)
    torch_npu._npu_flash_attention(query.npu(), key.npu(), value.npu(), mask.npu(), integers(*LENGTHS), 0.25, 4, 2, out)
    assert_packed(out, query, key, value, lambda i, length: causal(length, length))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask_type", (4, 5, 6))
def test_flash_attention_with_slopes(dtype: torch.dtype, mask_type: int) -> None:
    """The bias of a head is slope * (query - key), its root, or slope * key; later keys are hidden."""
    query, key, value, out = packed(dtype)
    slopes = -torch.tensor([0.5, 0.25, 0.125, 1.0])
    torch_npu.atb._npu_flash_attention_v2(
        query.npu(), key.npu(), value.npu(), list(LENGTHS), mask=torch.zeros(256, 256, dtype=dtype).npu(),
        slopes=slopes.npu(), kernel_type=1, mask_type=mask_type, scale_value=0.25, num_heads=4, num_kv_heads=2, out=out,
    )  # fmt: skip

    def bias_of(i: int, length: int) -> torch.Tensor:
        places = torch.arange(length).double()
        distance = (places.unsqueeze(1) - places).clamp(min=0)
        if mask_type == 5:
            distance = distance.sqrt()
        elif mask_type == 6:
            distance = places.expand(length, length)
        return slopes.view(4, 1, 1).double() * distance + causal(length, length)

    assert_packed(out, query, key, value, bias_of)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_with_an_alibi_mask(dtype: torch.dtype) -> None:
    """The mask is added as it is, one for each head."""
    query, key, value, out = packed(dtype)
    mask = random(4, 6, 6, dtype=dtype, seed=5)
    torch_npu.atb._npu_flash_attention_v2(
        query.npu(), key.npu(), value.npu(), list(LENGTHS), mask=mask.npu(), kernel_type=1, mask_type=2,
        scale_value=0.25, num_heads=4, num_kv_heads=2, out=out,
    )  # fmt: skip
    assert_packed(out, query, key, value, lambda i, length: mask[:, :length, :length])


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_with_a_compressed_mask(dtype: torch.dtype) -> None:
    """A corner of the causal mask stands for all of it."""
    query, key, value, out = packed(dtype)
    corner = torch.ones(128, 128, dtype=dtype).triu(1)
    torch_npu._npu_flash_attention_v3(
        query.npu(), key.npu(), value.npu(), corner.npu(), integers(*LENGTHS), 0.25, 4, 2, out=out
    )
    assert_packed(out, query, key, value, lambda i, length: causal(length, length))


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_of_continued_sequences(dtype: torch.dtype) -> None:
    """Queries are the last tokens of sequences whose keys are in blocks, and see no later key."""
    paged, queries = Paged(dtype), (3, 2)
    query, out = random(5, 4, 32, dtype=dtype), torch.zeros(5, 4, 32, dtype=dtype).npu()
    mask = torch.ones(128, 128, dtype=dtype).triu(1)
    torch_npu._npu_flash_attention_qlens(
        query.npu(), paged.keys.npu(), paged.values.npu(), paged.table.npu(), mask.npu(), integers(*queries),
        integers(*paged.lengths), 2, 4, 0.25, out,
    )  # fmt: skip
    assert_continued(out, query, paged, queries)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_of_continued_sequences_with_slopes(dtype: torch.dtype) -> None:
    """As above, with the bias slope * (query - key)."""
    paged, queries, slopes = Paged(dtype), (3, 2), -torch.tensor([0.5, 0.25, 0.125, 1.0])
    query, out = random(5, 4, 32, dtype=dtype), torch.zeros(5, 4, 32, dtype=dtype).npu()
    torch_npu.atb._npu_flash_attention_prefix_v2(
        query.npu(), paged.keys.npu(), paged.values.npu(), paged.table.npu(),
        torch.zeros(256, 256, dtype=dtype).npu(), list(queries), list(paged.lengths), slopes=slopes.npu(),
        kernel_type=1, mask_type=4, num_kv_heads=2, num_heads=4, scale_value=0.25, out=out,
    )  # fmt: skip

    def bias(count: int, length: int) -> torch.Tensor:
        distance = (torch.arange(count) + length - count).unsqueeze(1) - torch.arange(length).double()
        return slopes.view(4, 1, 1).double() * distance + causal(count, length)

    assert_continued(out, query, paged, queries, bias)


@in_both_ways
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("k", "n"), ((2, 1), (1, 2), (3, 3)))
def test_group_topk(dtype: torch.dtype, k: int, n: int, way: Callable[..., None]) -> None:
    """The k groups with the largest sum of their n best values keep them; the others become 0."""
    x = random(5, 12, dtype=dtype)
    got = x.npu()
    way(lambda: torch_npu._npu_group_topk(got, k=k, group_num=4, n=n), got)
    groups = x.double().view(5, 4, 3)
    score = groups.topk(n).values.sum(-1)
    kept = torch.zeros(5, 4).scatter_(1, score.argsort(dim=1, descending=True, stable=True)[:, :k], 1.0)
    assert torch.equal(got.cpu().double(), (groups * kept.unsqueeze(-1)).view(5, 12))


@in_both_ways
@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_add(dtype: torch.dtype, way: Callable[..., None]) -> None:
    """C += x^T weight, in float32."""
    x, weight, c = random(6, 4, dtype=dtype), random(6, 5, dtype=dtype, seed=1), torch.rand(4, 5)
    given, got = (x.npu(), weight.npu()), c.npu()
    way(lambda: torch_npu._npu_matmul_add_fp32(*given, got), got)
    torch.testing.assert_close(got.cpu().double(), x.double().t() @ weight.double() + c.double(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantize_per_tensor(dtype: torch.dtype) -> None:
    """round(x / scale) + zero_point within INT8, ties to even."""
    x = (torch.arange(-400, 400).view(25, 32) * 0.25).to(dtype)
    scale, zero = torch.full((32,), 0.5, dtype=dtype), torch.arange(-16, 16, dtype=torch.int8)
    got = torch.zeros(25, 32, dtype=torch.int8).npu()
    torch_npu._npu_quantize_per_tensor(x.npu(), scale.npu(), zero.npu(), got)
    expected = ((x.double() / 0.5).round() + zero).clamp(-128, 127)
    assert torch.equal(got.cpu().double(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quant_rms_norm(dtype: torch.dtype) -> None:
    """round((x / rms(x) * gamma + beta) / scale + offset) within INT8."""
    x, gamma, beta = (random(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((3, 64), (64,), (64,))))
    got = torch.zeros(3, 64, dtype=torch.int8).npu()
    scale, offset = torch.tensor([0.0625], dtype=dtype), torch.tensor([3], dtype=torch.int8)
    torch_npu._npu_quant_rms_norm(x.npu(), gamma.npu(), beta.npu(), scale.npu(), offset.npu(), got, 1e-5)
    y = x.double()
    normal = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * gamma.double() + beta.double()
    expected = normal / 0.0625 + 3
    far = ((expected - expected.floor()) - 0.5).abs() > 1e-4  # from the middle between two integers
    assert torch.equal(got.cpu().double()[far], expected.round().clamp(-128, 127)[far])


# Refused in the call, because CreateOperation raises the text of what the host CANN does not compute.
def test_parameters_that_are_not_computed_are_named() -> None:
    paged = Paged(torch.float16)
    keys = torch.zeros(6, BLOCK, 2, 32, dtype=torch.int8).npu()
    scales = torch.ones(64).npu()
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"^PagedAttentionOperation: quantType is 1, which the host CANN does not compute; "
        ):
            torch_npu._npu_paged_attention_quant(
                random(2, 4, 32).npu(), keys, keys, 2, 4, 0.25, paged.table.npu(), integers(*paged.lengths), 1, -1,
                scales, scales, torch.zeros(2, 4, 32, dtype=torch.float16).npu(),
            )  # fmt: skip
    torch.npu.synchronize()


def test_an_operator_that_is_found_by_name_is_named() -> None:
    x = torch.zeros(4, 16, dtype=torch.float16).npu()
    with pytest.raises(RuntimeError, match="AtbFusedAddTopkDiv"):
        torch_npu.atb.npu_fused_add_topk_div(x, x[0])
    torch.npu.synchronize()
    assert torch.equal((x + 1).cpu(), torch.ones(4, 16, dtype=torch.float16))


def test_the_stream_keeps_the_order() -> None:
    """Of ATB's calls and CANN's, 50 times."""
    cache = torch.zeros(1, 4, 1, 64, dtype=torch.float16).npu()
    slots = integers(2).npu()
    for i in range(50):
        torch_npu._npu_reshape_and_cache_siso(torch.full((1, 1, 64), i, dtype=torch.float16).npu(), cache, slots)
        cache += 1
    assert torch.equal(cache.cpu()[0, :, 0, 0], torch.tensor([50, 50, 50, 50], dtype=torch.float16))
