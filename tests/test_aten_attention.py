"""Attention on ATen against its formulas in float64: selected keys, edge cases, quantisation, and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.aten_ops.limits import line_of, samples_by_function
from tests.aten_ops.sweep import run_call, run_calls
from tests.cabi import PARAM_INVALID, SUCCESS

LARGEST = 2**63 - 1
DTYPES = {
    torch.bfloat16: "BFLOAT16",
    torch.float16: "FLOAT16",
    torch.float32: "FLOAT",
    torch.float8_e4m3fn: "FLOAT8_E4M3FN",
    torch.int32: "INT32",
    torch.int8: "INT8",
    torch.uint8: "UINT8",
}
# The layout, and the lengths of the sequences of queries and of keys.
CASES = {"BSND": ("BSND", (3, 3), (5, 5)), "TND": ("TND", (2, 3), (4, 3))}


def numbers(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).half()


def text(value: Any) -> str:
    if isinstance(value, Tensor):
        values = ",".join(map(str, value.flatten().tolist()))
        return f"{described(value)}:{values}"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value).replace(" ", "")


def described(value: Tensor) -> str:
    return f"{DTYPES[value.dtype]}{list(value.shape)}".replace(" ", "")


def call(name: str, inputs: dict[str, Any], outputs: dict[str, Tensor | None]) -> list[Tensor]:
    """The outputs of a call that must succeed; an output's argument gives only its dtype and shape."""
    stage1, stage2, message, results = run_call(call_line(name, inputs, outputs))
    assert (stage1, stage2, message) == (SUCCESS, SUCCESS, "")
    return [torch.tensor(result, dtype=torch.float64) for result in results]


def call_line(name: str, inputs: dict[str, Any], outputs: dict[str, Tensor | None]) -> str:
    line = " ".join([name, *(f"{key}={text(value)}" for key, value in inputs.items())])
    return line + "".join(
        f" {key}={described(value) if value is not None else 'null'}" for key, value in outputs.items()
    )


def sums(lengths: tuple[int, ...]) -> list[int]:
    return torch.tensor(lengths).cumsum(0).tolist()


def stored(parts: list[Tensor], layout: str) -> Tensor:
    return torch.cat(parts) if layout == "TND" else torch.stack(parts)


def leaf(tensor: Tensor) -> Tensor:
    return tensor.double().requires_grad_()


def hidden(rows: int, columns: int) -> Tensor:
    return torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1)


def assert_close(actual: list[Tensor], expected: list[Tensor], largest: float = 2**-9) -> None:
    for result, value in zip(actual, expected, strict=True):
        torch.testing.assert_close(result, value.detach(), rtol=2**-9, atol=largest * float(value.detach().abs().max()))


def softmax_by_head(parts: list[Tensor], layout: str) -> Tensor:
    """The heads of each token in the functions' layout: one head of keys; the query heads form its group."""
    return torch.cat(parts)[None] if layout == "TND" else torch.stack(parts)[:, None]


@pytest.mark.test_all
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_attention_to_selected_keys(case: str, mode: int, merged: bool) -> None:
    layout, queries, keys = CASES[case]
    shape = {"q": (2, 512), "k": (1, 512), "v": (1, 512), "q_rope": (2, 64), "k_rope": (1, 64), "d": (2, 512)}
    given = {
        name: [
            numbers(length, *each, seed=10 * i + j, scale=0.25)
            for j, length in enumerate(keys if name in {"k", "v", "k_rope"} else queries)
        ]
        for i, (name, each) in enumerate(shape.items())
    }
    lists = [torch.tensor([[[0, 2, -1]], [[1, -1, 0]], [[2, 1, 0]]], dtype=torch.int32)[:length] for length in queries]
    wanted: dict[str, list[Tensor]] = {name: [] for name in ("out", "largest", "sum", *shape)}
    for i, listed in enumerate(lists):
        q, k, q_rope, k_rope = (leaf(given[name][i]) for name in ("q", "k", "q_rope", "k_rope"))
        v = k if merged else leaf(given["v"][i])
        scores = (torch.einsum("shd,td->hst", q, k[:, 0]) + torch.einsum("shd,td->hst", q_rope, k_rope[:, 0])) * 0.25
        unseen = torch.ones(len(q), len(k), dtype=torch.bool)
        for row, places in enumerate(listed[:, 0].tolist()):
            unseen[row, places[: places.index(-1) if -1 in places else 3]] = False
        if mode == 3:
            unseen |= hidden(len(q), len(k))
        scores = scores.masked_fill(unseen, -torch.inf)
        result = torch.einsum("hst,td->shd", scores.softmax(-1).nan_to_num(0.0), v[:, 0])
        result.backward(given["d"][i].double())
        wanted["out"].append(result.detach().half())
        largest = scores.detach().amax(-1)
        wanted["largest"].append(largest.t().float())
        wanted["sum"].append((scores.detach() - largest[..., None]).exp().sum(-1).t().float())
        for name, each in {"q": q, "k": k, "v": v, "q_rope": q_rope, "k_rope": k_rope}.items():
            wanted[name].append(each.grad.nan_to_num(0.0))
    tensors = {name: stored(parts, layout) for name, parts in given.items()}
    got = call(
        "aclnnSparseFlashAttentionGrad",
        {
            "query": tensors["q"],
            "key": tensors["k"],
            "value": None if merged else tensors["v"],
            "sparseIndices": stored(lists, layout),
            "dOut": tensors["d"],
            "out": stored(wanted["out"], layout),
            "softmaxMax": softmax_by_head(wanted["largest"], layout),
            "softmaxSum": softmax_by_head(wanted["sum"], layout),
            "actualSeqLengthsQueryOptional": torch.tensor(sums(queries)).int() if layout == "TND" else None,
            "actualSeqLengthskvOptional": torch.tensor(sums(keys)).int() if layout == "TND" else None,
            "queryRopeOptional": tensors["q_rope"],
            "keyRopeOptional": tensors["k_rope"],
            "scaleValue": 0.25,
            "sparseBlockSize": 1,
            "layoutOptional": f'"{layout}"',
            "sparseMode": mode,
            "preTokens": 2147483647,
            "nextTokens": 2147483647,
            "deterministic": True,
        },
        {
            "dQueryOut": tensors["q"],
            "dKeyOut": tensors["k"],
            "dValueOut": None if merged else tensors["v"],
            "dQueryRopeOutOptional": tensors["q_rope"],
            "dKeyRopeOutOptional": tensors["k_rope"],
        },
    )
    names = ["q", "k", *([] if merged else ["v"]), "q_rope", "k_rope"]
    assert_close(got, [stored(wanted[name], layout) for name in names])


def indexer_scores(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return (torch.relu(torch.einsum("shd,td->sht", q, k[:, 0])) * w[..., None]).sum(1)


def indexer_inputs(case: str, heads: int) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    _, queries, keys = CASES[case]
    return (
        [numbers(length, heads, 128, seed=i, scale=0.25) for i, length in enumerate(queries)],
        [numbers(length, 1, 128, seed=10 + i, scale=0.25) for i, length in enumerate(keys)],
        [numbers(length, heads, seed=20 + i) for i, length in enumerate(queries)],
    )


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_the_indexer(case: str, mode: int) -> None:
    layout, queries, keys = CASES[case]
    q, k, w = indexer_inputs(case, heads=3)
    expected: list[list[Tensor]] = [[], [], []]
    lists, gradients = [], []
    for i, parts in enumerate(zip(q, k, w, strict=True)):
        leaves = [leaf(part) for part in parts]
        scores = indexer_scores(*leaves)
        rows, columns = scores.shape
        seen = scores.masked_fill(hidden(rows, columns), -torch.inf) if mode == 3 else scores
        values, places = seen.sort(descending=True, stable=True)
        values, places = values[:, :3], places[:, :3].masked_fill(values[:, :3] == -torch.inf, -1)
        dy = numbers(rows, 3, seed=30 + i)
        values.masked_fill(places < 0, 0.0).backward(dy.double())
        lists.append(places[:, None].int())
        gradients.append(dy[:, None])
        for wanted, each in zip(expected, leaves, strict=True):
            wanted.append(each.grad.nan_to_num(0.0))
    got = call(
        "aclnnLightningIndexerGrad",
        {
            "query": stored(q, layout),
            "key": stored(k, layout),
            "dy": stored(gradients, layout),
            "spareIndices": stored(lists, layout),
            "weights": stored(w, layout),
            "actualSeqLengthsQuery": torch.tensor(sums(queries)).int() if layout == "TND" else None,
            "actualSeqLengthsKey": torch.tensor(sums(keys)).int() if layout == "TND" else None,
            "headNum": 0,
            "layout": f'"{layout}"',
            "sparseMode": mode,
            "preTokens": LARGEST,
            "nextTokens": LARGEST,
            "deterministic": False,
        },
        {"dQuery": stored(q, layout), "dKey": stored(k, layout), "dWeights": stored(w, layout)},
    )
    assert_close(got, [stored(parts, layout) for parts in expected])


def loss_inputs(case: str, size: int, key_heads: int) -> dict[str, list[Tensor]]:
    """The arguments that the losses have in addition to the indexer."""
    _, queries, keys = CASES[case]
    return {
        "query": [numbers(n, 32, size, seed=40 + i, scale=0.25) for i, n in enumerate(queries)],
        "key": [numbers(n, key_heads, size, seed=50 + i, scale=0.25) for i, n in enumerate(keys)],
        "queryRope": [numbers(n, 32, 64, seed=60 + i, scale=0.25) for i, n in enumerate(queries)],
        "keyRope": [numbers(n, key_heads, 64, seed=70 + i, scale=0.25) for i, n in enumerate(keys)],
    }


def target_scores(given: dict[str, list[Tensor]], i: int, scale: float) -> Tensor:
    """The scores of the attention, heads first."""
    q = torch.cat([given["query"][i], given["queryRope"][i]], -1).double()
    k = torch.cat([given["key"][i], given["keyRope"][i]], -1).double().expand(-1, 32, -1)
    return torch.einsum("shd,thd->hst", q, k) * scale


@pytest.mark.parametrize("case", CASES)
def test_the_dense_loss_of_the_indexer(case: str) -> None:
    layout, queries, keys = CASES[case]
    q, k, w = indexer_inputs(case, heads=8)
    given = loss_inputs(case, 128, 32)
    scale = 0.25
    lengths = [sums(queries), sums(keys)] if layout == "TND" else [None, None]
    of_indexer = call(
        "aclnnDenseLightningIndexerSoftmaxLse",
        {
            "queryIndex": stored(q, layout),
            "keyIndex": stored(k, layout),
            "weight": stored(w, layout),
            "actualSeqLengthsQueryOptional": lengths[0],
            "actualSeqLengthsKeyOptional": lengths[1],
            "layoutOptional": f'"{layout}"',
            "sparseMode": 3,
            "preTokens": LARGEST,
            "nextTokens": LARGEST,
        },
        {
            name: torch.empty(1, sum(queries)) if layout == "TND" else torch.empty(2, 1, 3)
            for name in ("softmaxMaxOut", "softmaxSumOut")
        },
    )
    expected: list[list[Tensor]] = [[], [], []]
    index_softmax: list[list[Tensor]] = [[], []]
    softmax: list[list[Tensor]] = [[], []]
    loss = torch.zeros(1, dtype=torch.float64)
    for i, parts in enumerate(zip(q, k, w, strict=True)):
        leaves = [leaf(part) for part in parts]
        unseen = hidden(len(parts[0]), len(parts[1]))
        scores = indexer_scores(*leaves).masked_fill(unseen, -torch.inf)
        attention = target_scores(given, i, scale).masked_fill(unseen, -torch.inf)
        for maxima_and_sums, each in ((index_softmax, scores.detach()), (softmax, attention)):
            maxima_and_sums[0].append(each.amax(-1))
            maxima_and_sums[1].append((each - each.amax(-1, keepdim=True)).exp().sum(-1))
        target = attention.softmax(-1).mean(0)
        of_sequence = torch.nn.functional.kl_div(
            scores.log_softmax(-1)[~unseen], target[~unseen], reduction="sum", log_target=False
        )
        of_sequence.backward()
        loss += of_sequence.detach()
        for wanted, each in zip(expected, leaves, strict=True):
            wanted.append(each.grad.nan_to_num(0.0))
    for result, wanted in zip(of_indexer, index_softmax, strict=True):
        together = torch.cat(wanted)[None] if layout == "TND" else torch.stack(wanted)[:, None]
        torch.testing.assert_close(result, together, rtol=1e-5, atol=1e-5)
    # Heads of keys first, each with one query head.
    by_head = [
        (torch.cat(parts, 1) if layout == "TND" else torch.stack(parts)).unsqueeze(-1).float() for parts in softmax
    ]
    tensors = {name: stored(parts, layout) for name, parts in given.items()}
    got = call(
        "aclnnDenseLightningIndexerGradKLLoss",
        {
            "query": tensors["query"],
            "key": tensors["key"],
            "queryIndex": stored(q, layout),
            "keyIndex": stored(k, layout),
            "weights": stored(w, layout).float(),
            "softmaxMax": by_head[0],
            "softmaxSum": by_head[1],
            "softmaxMaxIndex": of_indexer[0].float(),
            "softmaxSumIndex": of_indexer[1].float(),
            "queryRope": tensors["queryRope"],
            "keyRope": tensors["keyRope"],
            "actualSeqLengthsQuery": lengths[0],
            "actualSeqLengthsKey": lengths[1],
            "scaleValue": scale,
            "layout": f'"{layout}"',
            "sparseMode": 3,
            "preTokens": LARGEST,
            "nextTokens": LARGEST,
        },
        {
            "dQueryIndex": stored(q, layout),
            "dKeyIndex": stored(k, layout),
            "dWeights": stored(w, layout).float(),
            "loss": torch.empty(1),
        },
    )
    assert_close(got, [*(stored(parts, layout) for parts in expected), loss])


@pytest.mark.parametrize("case", CASES)
def test_the_sparse_loss_of_the_indexer(case: str) -> None:
    layout, queries, keys = CASES[case]
    q, k, w = indexer_inputs(case, heads=8)
    given = loss_inputs(case, 512, 1)
    scale = 0.125
    expected: list[list[Tensor]] = [[], [], []]
    lists: list[Tensor] = []
    softmax: list[list[Tensor]] = [[], []]
    loss = torch.zeros(1, dtype=torch.float64)
    for i, parts in enumerate(zip(q, k, w, strict=True)):
        leaves = [leaf(part) for part in parts]
        rows, columns = len(parts[0]), len(parts[1])
        # Two keys that each query sees, or the only one.
        listed = torch.full((rows, 1, 1024), -1, dtype=torch.int32)
        unseen = torch.ones(rows, columns, dtype=torch.bool)
        for row in range(rows):
            last = columns - rows + row
            places = [last, last // 2] if last > 0 else [0]
            listed[row, 0, : len(places)] = torch.tensor(places)
            unseen[row, places] = False
        lists.append(listed)
        attention = target_scores(given, i, scale).masked_fill(unseen, -torch.inf)
        softmax[0].append(attention.amax(-1).t().float())
        softmax[1].append((attention - attention.amax(-1, keepdim=True)).exp().sum(-1).t().float())
        scores = indexer_scores(*leaves).masked_fill(unseen, -torch.inf)
        target = attention.softmax(-1).mean(0)
        of_sequence = torch.nn.functional.kl_div(scores.log_softmax(-1)[~unseen], target[~unseen], reduction="sum")
        of_sequence.backward()
        loss += of_sequence.detach()
        for wanted, each in zip(expected, leaves, strict=True):
            wanted.append(each.grad.nan_to_num(0.0))
    tensors = {name: stored(parts, layout) for name, parts in given.items()}
    got = call(
        "aclnnSparseLightningIndexerGradKLLoss",
        {
            "query": tensors["query"],
            "key": tensors["key"],
            "queryIndex": stored(q, layout),
            "keyIndex": stored(k, layout),
            "weights": stored(w, layout),
            "sparseIndices": stored(lists, layout),
            "softmaxMax": softmax_by_head(softmax[0], layout),
            "softmaxSum": softmax_by_head(softmax[1], layout),
            "queryRope": tensors["queryRope"],
            "keyRope": tensors["keyRope"],
            "actualSeqLengthsQuery": sums(queries) if layout == "TND" else None,
            "actualSeqLengthsKey": sums(keys) if layout == "TND" else None,
            "scaleValue": scale,
            "layout": f'"{layout}"',
            "sparseMode": 3,
            "pre_tokens": LARGEST,
            "next_tokens": LARGEST,
            "deterministic": True,
        },
        {
            "dQueryIndex": stored(q, layout),
            "dKeyIndex": stored(k, layout),
            "dWeights": stored(w, layout),
            "loss": torch.empty(1),
        },
    )
    assert_close(got, [*(stored(parts, layout) for parts in expected), loss])


# ---- Gradients with the maxima, sums and results of more keys than a call has: ring attention

SCALE = 0.5
RINGS = (
    ("aclnnFlashAttentionScoreGrad", "BNSD", ""),
    ("aclnnFlashAttentionScoreGradV2", "SBH", ""),
    ("aclnnFlashAttentionScoreGradV3", "BSND", ""),
    ("aclnnFlashAttentionScoreGradV4", "BNSD", ""),
    ("aclnnFlashAttentionScoreGradV4", "TND", "same_as_input"),
    ("aclnnFlashAttentionUnpaddingScoreGrad", "TND", ""),
    ("aclnnFlashAttentionUnpaddingScoreGradV2", "TND", ""),
    ("aclnnFlashAttentionUnpaddingScoreGradV3", "TND", ""),
    ("aclnnFlashAttentionUnpaddingScoreGradV4", "TND", "same_as_input"),
    ("aclnnFlashAttentionUnpaddingScoreGradV5", "TND", ""),
)
FORWARD = ("softmaxMaxOptional", "softmaxSumOptional", "attentionInOptional")


class Ring:
    """Sequences with two blocks of keys, each head serving two query heads, as heads, tokens, elements.

    The last query sees no key of the first block, the first query none of the second, the second query none at all.
    """

    def __init__(self, layout: str, with_sink: bool) -> None:
        self.layout = layout
        self.queries = (3, 5) if layout == "TND" else (5, 5)
        self.blocks = ((2, 3), (4, 2)) if layout == "TND" else ((3, 3), (4, 4))  # lengths of the sequences' keys
        self.sink = numbers(4, seed=99).float() if with_sink else None
        self.q, self.dy = (self.parts(4, self.queries, size, seed) for size, seed in ((8, 0), (4, 10)))
        self.k, self.v = (
            [self.parts(2, block, size, seed + i) for i, block in enumerate(self.blocks)]
            for size, seed in ((8, 20), (4, 30))
        )
        self.masks = [torch.arange(5)[:, None] + torch.arange(max(block)) > 6 for block in self.blocks]
        for block, query in ((0, 1), (1, 1), (1, 0)):
            self.masks[block][query] = True
        for query in {length - 1 for length in self.queries}:
            self.masks[0][query] = True

    @staticmethod
    def parts(heads: int, lengths: tuple[int, ...], size: int, seed: int) -> list[Tensor]:
        return [numbers(heads, length, size, seed=seed + 100 * i).float() for i, length in enumerate(lengths)]

    def unseen(self, block: int, sequence: int) -> Tensor:
        return self.masks[block][: self.queries[sequence], : self.blocks[block][sequence]]

    def stored(self, parts: list[Tensor]) -> Tensor:
        if self.layout == "TND":
            return torch.cat(parts, 1).transpose(0, 1)
        whole = torch.stack(parts)
        if self.layout == "BNSD":
            return whole
        by_token = whole.transpose(1, 2)
        return by_token if self.layout == "BSND" else by_token.flatten(2).transpose(0, 1)

    def copies(self, parts: list[Tensor], order: str) -> Tensor:
        """Maxima or sums by heads and queries, repeated eight times; packed sequences keep those of a head together."""
        copies = [part.float()[..., None].expand(-1, -1, 8) for part in parts]
        if self.layout != "TND":
            return torch.stack(copies)
        if order == "same_as_input":
            return torch.cat(copies, 1).transpose(0, 1)
        return torch.cat([each.reshape(-1, 8) for each in copies]).view(-1, 4, 8)

    def call(self, name: str, block: int, order: str, forward: dict[str, Tensor | None]) -> str:
        """The gradients of one block of keys."""
        q, k, v = self.stored(self.q), self.stored(self.k[block]), self.stored(self.v[block])
        arguments = {
            "query": q,
            "keyIn": k,
            "value": v,
            "dy": self.stored(self.dy),
            "pseShiftOptional": None,
            "attenMaskOptional": self.masks[block].to(torch.uint8),
            **forward,
            "sinkInOptional": self.sink,
            "queryRope": None,
            "keyInRope": None,
            "prefixOptional": None,
            "actualSeqQLenOptional": sums(self.queries) if self.layout == "TND" else None,
            "actualSeqKvLenOptional": sums(self.blocks[block]) if self.layout == "TND" else None,
            "scaleValue": SCALE,
            "headNum": 4,
            "inputLayout": f'"{self.layout}"',
            "sparseMode": 1,
            "softmaxInLayout": f'"{order}"',
        }
        outputs = {"dqOut": q, "dkOut": k, "dvOut": v, "dpseOut": None, "dqRopeOut": None, "dkRopeOut": None}
        outputs["dsinkOut"] = self.sink
        sample = samples_by_function()[name]
        # The first version uses other names.
        inputs = {key if key in sample else f"{key}Optional": value for key, value in arguments.items()}
        return line_of(
            call_line(
                name,
                {key: value for key, value in inputs.items() if key in sample},
                {key: value for key, value in outputs.items() if key in sample},
            )
        )


def attention_of(q: Tensor, k: Tensor, v: Tensor, unseen: Tensor, sink: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """For one sequence, the result and the softmax's maxima and sums; 0, -inf and 0 for a query that sees no key."""
    k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
    scores = (q @ k.transpose(1, 2) * SCALE).masked_fill(unseen, -torch.inf)
    if sink is not None:
        scores = torch.cat([scores, sink[:, None, None].expand(-1, q.shape[1], 1)], 2)
    largest = scores.detach().amax(-1)
    powers = (scores - largest.nan_to_num(neginf=0.0)[..., None]).exp()
    total = powers.sum(-1)
    return powers[..., : k.shape[1]] @ v / torch.where(total == 0, 1.0, total)[..., None], largest, total


@pytest.mark.parametrize(("name", "layout", "order"), RINGS, ids=[f"{name[5:]}-{form}" for name, form, _ in RINGS])
def test_gradients_of_blocks_of_keys_add_up(name: str, layout: str, order: str) -> None:
    ring = Ring(layout, with_sink=name.endswith(("GradV3", "GradV5")) and "UnpaddingScoreGradV3" not in name)
    sink = leaf(ring.sink) if ring.sink is not None else None
    leaves: dict[str, list[list[Tensor]]] = {
        "q": [[leaf(part) for part in ring.q]],
        "k": [[leaf(part) for part in block] for block in ring.k],
        "v": [[leaf(part) for part in block] for block in ring.v],
    }
    forward: list[list[Tensor]] = [[], [], []]  # maxima, sums, results
    for i, dy in enumerate(ring.dy):
        result, largest, total = attention_of(
            leaves["q"][0][i],
            torch.cat([block[i] for block in leaves["k"]], 1),
            torch.cat([block[i] for block in leaves["v"]], 1),
            torch.cat([ring.unseen(0, i), ring.unseen(1, i)], 1),
            sink,
        )
        result.backward(dy.double())
        for parts, each in zip(forward, (largest, total, result), strict=True):
            parts.append(each.detach())
    assert (ring.sink is None) == any(bool((part == 0).any()) for part in forward[1])
    given = [ring.copies(forward[0], order), ring.copies(forward[1], order), ring.stored(forward[2]).float()]
    lines = [ring.call(name, block, order, dict(zip(FORWARD, given, strict=True))) for block in (0, 1)]
    gradients = []
    for stage1, stage2, message, results in run_calls(lines):
        assert (stage1, stage2, message) == (SUCCESS, SUCCESS, "")
        gradients.append([torch.tensor(result, dtype=torch.float64) for result in results])
    wanted = {key: [ring.stored([part.grad for part in block]) for block in blocks] for key, blocks in leaves.items()}
    for block, (_, dk, dv, *dsink) in enumerate(gradients):
        torch.testing.assert_close(dk, wanted["k"][block], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(dv, wanted["v"][block], rtol=1e-5, atol=1e-5)
        # The whole attention has one sink; each block gives its gradient.
        for each in dsink:
            torch.testing.assert_close(each, sink.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients[0][0] + gradients[1][0], wanted["q"][0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("layout", ["BNSD", "TND"])
def test_what_a_gradient_is_not_given_is_computed_anew(layout: str, given: tuple[int, ...]) -> None:
    """P = exp(S - maximum) / sum, D = sum(dy * result) or sum(dP * P), dS = P * (dP - D)."""
    ring = Ring(layout, with_sink=False)
    forward: list[list[Tensor]] = [[], [], []]
    wanted: list[list[Tensor]] = [[], [], []]
    for i, (q, k, v, dy) in enumerate(zip(ring.q, ring.k[0], ring.v[0], ring.dy, strict=True)):
        q, k, v, dy = (x.double() for x in (q, k, v, dy))
        many_k, many_v = (x.repeat_interleave(2, 0) for x in (k, v))
        scores = (q @ many_k.transpose(1, 2) * SCALE).masked_fill(ring.unseen(0, i), -torch.inf)
        for parts, shape in zip(forward, (scores.shape[:2], scores.shape[:2], dy.shape), strict=True):
            parts.append(numbers(*shape, seed=50 + len(parts)).double().abs() + 0.5)
        largest, total, result = (parts[i] for parts in forward)
        if 0 not in given:
            largest = scores.amax(-1)
        powers = (scores - largest[..., None]).exp()
        if 1 not in given:
            total = powers.sum(-1)
        p = (powers / total[..., None]).masked_fill((largest == -torch.inf)[..., None] | (total == 0)[..., None], 0.0)
        dp = dy @ many_v.transpose(1, 2)
        row = (dy * result).sum(-1) if 2 in given else (dp * p).sum(-1)
        ds = p * (dp - row[..., None]) * SCALE
        by_group = [x.unflatten(0, (2, 2)).sum(1) for x in (ds.transpose(1, 2) @ q, p.transpose(1, 2) @ dy)]
        for parts, gradient in zip(wanted, (ds @ many_k, *by_group), strict=True):
            parts.append(gradient)
    passed: list[Tensor | None] = [ring.copies(parts, "") for parts in forward[:2]]
    passed.append(ring.stored(forward[2]).float())
    passed = [tensor if i in given else None for i, tensor in enumerate(passed)]
    line = ring.call("aclnnFlashAttentionScoreGradV4", 0, "", dict(zip(FORWARD, passed, strict=True)))
    stage1, stage2, message, results = run_call(line)
    assert (stage1, stage2, message) == (SUCCESS, SUCCESS, "")
    for result, parts in zip(results, wanted, strict=True):
        torch.testing.assert_close(torch.tensor(result).double(), ring.stored(parts), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("argument", FORWARD)
@pytest.mark.parametrize("layout", ["BNSD", "TND"])
def test_refusals_of_what_a_gradient_is_given(layout: str, argument: str) -> None:
    ring = Ring(layout, with_sink=False)
    expected = list(ring.stored(ring.dy).shape)
    if argument != FORWARD[2]:
        expected = [8, 4, 8] if layout == "TND" else [2, 4, 5, 8]
    wrong = [*expected[:-1], 1]
    lines = [
        ring.call(
            "aclnnFlashAttentionScoreGradV4", 0, "", {**dict.fromkeys(FORWARD), argument: torch.zeros(shape).to(dtype)}
        )
        for shape, dtype in ((wrong, torch.float32), (expected, torch.float16))
    ]
    texts = (f"{argument} has shape {wrong}, expected {expected}", f"{argument} has dtype FLOAT16, expected FLOAT")
    for said, (stage1, _, message, _) in zip(texts, run_calls(lines), strict=True):
        assert stage1 == PARAM_INVALID
        assert said in message


def test_gradients_of_blocks_of_keys_add_up_with_selected_keys() -> None:
    lists = (
        torch.tensor([[[0, 2]], [[1, -1]], [[-1, -1]]], dtype=torch.int32),
        torch.tensor([[[0]], [[1]], [[0]]]).int(),
    )
    q, dy = (numbers(3, 2, 512, seed=seed, scale=0.25) for seed in (1, 2))
    k, v = ([numbers(n, 1, 512, seed=seed + n, scale=0.25) for n in (3, 2)] for seed in (10, 20))
    leaves = [leaf(x) for x in (q, *k, *v)]
    unseen = torch.tensor([[0, 1, 0, 0, 1], [1, 0, 1, 1, 0], [1, 1, 1, 0, 1]]).bool()
    result, largest, total = attention_of(
        leaves[0].transpose(0, 1), *(torch.cat(x).transpose(0, 1) for x in (leaves[1:3], leaves[3:])), unseen, None
    )
    result.backward(dy.double().transpose(0, 1))
    gradients = [
        call(
            "aclnnSparseFlashAttentionGrad",
            {
                "query": q[None],
                "key": k[i][None],
                "value": v[i][None],
                "sparseIndices": lists[i][None],
                "dOut": dy[None],
                "out": result.detach().transpose(0, 1)[None].half(),
                "softmaxMax": largest.t().float()[None, None],
                "softmaxSum": total.detach().t().float()[None, None],
                "actualSeqLengthsQueryOptional": None,
                "actualSeqLengthskvOptional": None,
                "queryRopeOptional": None,
                "keyRopeOptional": None,
                "scaleValue": SCALE,
                "sparseBlockSize": 1,
                "layoutOptional": '"BSND"',
                "sparseMode": 0,
                "preTokens": 2147483647,
                "nextTokens": 2147483647,
                "deterministic": True,
            },
            {"dQueryOut": q[None], "dKeyOut": k[i][None], "dValueOut": v[i][None]}
            | {"dQueryRopeOutOptional": None, "dKeyRopeOutOptional": None},
        )
        for i in (0, 1)
    ]
    (dq0, dk0, dv0), (dq1, dk1, dv1) = gradients
    assert_close([dq0 + dq1, dk0, dk1, dv0, dv1], [x.grad[None] for x in leaves], 2**-8)


def test_gradients_of_blocks_of_keys_add_up_with_selected_blocks() -> None:
    q, dy = (numbers(3, 2, size, seed=size).float() for size in (16, 8))
    k, v = ([numbers(16, 1, size, seed=size + i).float() for i in (1, 2)] for size in (16, 8))
    leaves = [leaf(x) for x in (q, *k, *v)]
    result, largest, total = attention_of(
        leaves[0].transpose(0, 1),
        *(torch.cat(x).transpose(0, 1) for x in (leaves[1:3], leaves[3:])),
        torch.zeros(3, 32, dtype=torch.bool),
        None,
    )
    result.backward(dy.double().transpose(0, 1))
    copies = [x.detach().t().float()[..., None].expand(-1, -1, 8) for x in (largest, total)]
    gradients = [
        call(
            "aclnnNsaSelectedAttentionGrad",
            {
                "query": q,
                "key": k[i],
                "value": v[i],
                "attentionOut": result.detach().transpose(0, 1).float(),
                "attentionOutGrad": dy,
                "softmaxMax": copies[0],
                "softmaxSum": copies[1],
                "topkIndices": torch.zeros(3, 1, 1, dtype=torch.int32),
                "actualSeqQLenOptional": [3],
                "actualSeqKvLenOptional": [16],
                "attenMaskOptional": None,
                "scaleValue": SCALE,
                "selectedBlockSize": 16,
                "selectedBlockCount": 1,
                "headNum": 2,
                "inputLayout": '"TND"',
                "sparseMode": 0,
            },
            {"dqOut": q, "dkOut": k[i], "dvOut": v[i]},
        )
        for i in (0, 1)
    ]
    (dq0, dk0, dv0), (dq1, dk1, dv1) = gradients
    for actual, x in zip((dq0 + dq1, dk0, dk1, dv0, dv1), leaves, strict=True):
        torch.testing.assert_close(actual, x.grad, rtol=1e-5, atol=1e-5)


# ---- Floyd attention


def floyd(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor, hidden: Tensor, scale: float) -> list[Tensor]:
    """The result, and the maximum and the sum of the softmax."""
    scores = torch.einsum("bhnmc,bhnkc->bhnmk", q, k1) + torch.einsum("bhnmc,bhkmc->bhnmk", q, k2)
    scores = (scores * scale).masked_fill(hidden, -torch.inf)
    p = scores.softmax(-1)
    largest = scores.amax(-1)
    result = torch.einsum("bhnmk,bhnkc->bhnmc", p, v1) + torch.einsum("bhnmk,bhkmc->bhnmc", p, v2)
    return [result, largest, (scores - largest[..., None]).exp().sum(-1)]


@pytest.mark.test_all
def test_floyd_attention() -> None:
    n, m, k, size, scale = 16, 128, 128, 32, 0.125
    shapes = {"query": (n, m), "key1": (n, k), "value1": (n, k), "key2": (k, m), "value2": (k, m)}
    given = {name: numbers(1, 1, *edges, size, seed=80 + i) for i, (name, edges) in enumerate(shapes.items())}
    mask = (torch.arange(n)[:, None] + torch.arange(k)) % 3 == 0
    leaves = [leaf(tensor) for tensor in given.values()]
    result, largest, total = floyd(*leaves, mask[None, None, :, None], scale)
    dy = numbers(1, 1, n, m, size, seed=90)
    result.backward(dy.double())
    copies = [x.detach()[..., None].expand(-1, -1, -1, -1, 8).float() for x in (largest, total)]
    of_mask = {"attenMaskOptional": mask.to(torch.uint8)[None, None, :, None]}
    got = call(
        "aclnnFusedFloydAttention",
        {**given, **of_mask, "scaleValueOptional": scale},
        {"softmaxMaxOut": copies[0], "softmaxSumOut": copies[1], "attentionOutOut": given["query"]},
    )
    assert_close(got, [copies[0].double(), copies[1].double(), result])
    softmax = {"softmaxMax": copies[0], "softmaxSum": copies[1], "attentionIn": result.detach().half()}
    got = call(
        "aclnnFusedFloydAttentionGrad",
        {**given, "dy": dy, **of_mask, **softmax, "scaleValue": scale},
        {
            "dqOut": given["query"],
            "dk1Out": given["key1"],
            "dv1Out": given["value1"],
            "dk2Out": given["key2"],
            "dv2Out": given["value2"],
        },
    )
    assert_close(got, [x.grad for x in leaves])


@pytest.mark.test_all
def test_gradients_of_blocks_of_nodes_add_up_in_floyd_attention() -> None:
    n, m, k, size, scale = 16, 128, 128, 32, 0.125
    shapes = {"query": (n, m), "key1": (n, 2 * k), "value1": (n, 2 * k), "key2": (2 * k, m), "value2": (2 * k, m)}
    given = {name: numbers(1, 1, *edges, size, seed=80 + i) for i, (name, edges) in enumerate(shapes.items())}
    mask = (torch.arange(n)[:, None] + torch.arange(2 * k)) % 3 == 0
    mask[0, :k] = True
    leaves = {name: leaf(tensor) for name, tensor in given.items()}
    result, largest, total = floyd(*leaves.values(), mask[None, None, :, None], scale)
    dy = numbers(1, 1, n, m, size, seed=90)
    result.backward(dy.double())
    copies = [x.detach()[..., None].expand(-1, -1, -1, -1, 8).float() for x in (largest, total)]
    softmax = {"softmaxMax": copies[0], "softmaxSum": copies[1], "attentionIn": result.detach().half()}

    def block(name: str, whole: Tensor, i: int) -> Tensor:
        axis = {"query": None, "key1": 3, "value1": 3, "key2": 2, "value2": 2}[name]
        return whole if axis is None else whole.narrow(axis, i * k, k)

    dq = torch.zeros_like(leaves["query"].grad)
    for i in (0, 1):
        own = {name: block(name, tensor, i) for name, tensor in given.items()}
        of_mask = {"attenMaskOptional": mask[:, i * k : (i + 1) * k].to(torch.uint8)[None, None, :, None]}
        outputs = dict(zip(("dqOut", "dk1Out", "dv1Out", "dk2Out", "dv2Out"), own.values(), strict=True))
        of_query, *others = call(
            "aclnnFusedFloydAttentionGrad", {**own, "dy": dy, **of_mask, **softmax, "scaleValue": scale}, outputs
        )
        dq += of_query
        assert_close(others, [block(name, leaves[name].grad, i) for name in list(shapes)[1:]])
    assert_close([dq], [leaves["query"].grad], 2**-8)


# ---- inference


@pytest.mark.parametrize("with_decay", [False, True])
def test_the_delta_rule_in_chunks(with_decay: bool) -> None:
    """Each token decays the state and corrects what it gives for the token's key."""
    lengths, key_heads, heads, key_size, size, scale = (3, 0, 4), 2, 4, 8, 6, 0.5
    tokens = sum(lengths)
    q, k = (numbers(tokens, key_heads, key_size, seed=i, scale=0.5).bfloat16() for i in (0, 1))
    v = numbers(tokens, heads, size, seed=2).bfloat16()
    beta = torch.sigmoid(numbers(tokens, heads, seed=3).float()).bfloat16()
    g = -torch.sigmoid(numbers(tokens, heads, seed=4).float())
    state = numbers(len(lengths), heads, size, key_size, seed=5).float()
    results = torch.zeros(tokens, heads, size, dtype=torch.float64)
    states = state.double()
    token = 0
    for i, length in enumerate(lengths):
        for _ in range(length):
            for head in range(heads):
                key, query = (x[token, head * key_heads // heads].double() for x in (k, q))
                decayed = states[i, head] * (g[token, head].double().exp() if with_decay else 1.0)
                wrong = v[token, head].double() - decayed @ key
                states[i, head] = decayed + beta[token, head].double() * torch.outer(wrong, key)
                results[token, head] = states[i, head] @ query * scale
            token += 1
    got = call(
        "aclnnChunkGatedDeltaRule",
        {
            "query": q,
            "key": k,
            "value": v,
            "beta": beta,
            "initialState": state,
            "actualSeqLengths": torch.tensor(lengths).int(),
            "gOptional": g if with_decay else None,
            "scaleValue": scale,
        },
        {"out": v, "finalState": state},
    )
    torch.testing.assert_close(got[0], results, rtol=2**-7, atol=2**-8)
    torch.testing.assert_close(got[1], states, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_the_indexer_of_quantised_keys(dtype: torch.dtype) -> None:
    rows, columns, heads, count = 4, 7, 4, 3
    q, k = ((numbers(2, n, h, 128, seed=n) * 8).round() for n, h in ((rows, heads), (columns, 1)))
    of_q, of_k = numbers(2, rows, heads, seed=1).abs(), numbers(2, columns, 1, seed=2).abs()
    w = numbers(2, rows, heads, seed=3)
    q, k = (x.float().to(dtype) for x in (q, k))
    products = torch.einsum("bshd,btd->bsht", q.double(), k.double()[:, :, 0])
    scaled = products * of_q.double()[..., None] * of_k.double()[:, None, :, 0].unsqueeze(1)
    scores = (torch.relu(scaled) * w.double()[..., None]).sum(2).masked_fill(hidden(rows, columns), -torch.inf)
    expected = scores.argsort(dim=-1, descending=True)[..., :count].unsqueeze(2).double()
    got = call(
        "aclnnQuantLightningIndexer",
        {
            "query": q,
            "key": k,
            "weights": w,
            "queryDequantScale": of_q,
            "keyDequantScale": of_k,
            "actualSeqLengthsQueryOptional": None,
            "actualSeqLengthsKeyOptional": None,
            "blockTableOptional": None,
            "queryQuantMode": 0,
            "keyQuantMode": 0,
            "layoutQueryOptional": '"BSND"',
            "layoutKeyOptional": '"BSND"',
            "sparseCount": count,
            "sparseMode": 3,
            "preTokens": LARGEST,
            "nextTokens": LARGEST,
        },
        {"out": torch.empty(2, rows, 1, count, dtype=torch.int32)},
    )
    assert torch.equal(got[0], expected)


@pytest.mark.parametrize("paged", [False, True])
def test_attention_to_selected_keys_of_int8(paged: bool) -> None:
    """After the elements of a key come its rotary part and a scale for each 128 of them, in the same bytes."""
    columns, heads, scale, block = (16 if paged else 5), 2, 0.0625, 2
    q = numbers(1, 2, heads, 576, scale=0.25, seed=1)
    elements = (numbers(1, columns, 1, 512, seed=2) * 32).round().clamp(-128, 127).to(torch.int8)
    rope = numbers(1, columns, 1, 64, scale=0.25, seed=3)
    scales = numbers(1, columns, 1, 4, seed=4).float().abs() / 64
    key = torch.cat([elements, rope.contiguous().view(torch.int8), scales.contiguous().view(torch.int8)], -1)
    indices = torch.tensor([[[[0, 1]], [[2, -1]]]], dtype=torch.int32)
    seen = torch.tensor([[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]], dtype=torch.bool)
    dequantised = elements.double() * scales.double().repeat_interleave(128, -1)
    whole = torch.cat([dequantised, rope.double()], -1)[0, :5, 0]
    scores = torch.einsum("shd,td->hst", q[0].double(), whole) * scale
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    expected = torch.einsum("hst,td->shd", weights, dequantised[0, :5, 0])[None]
    got = call(
        "aclnnKvQuantSparseFlashAttention",
        {
            "query": q,
            "key": key,
            "value": key,
            "sparseIndices": indices,
            "keyDequantScaleOptional": None,
            "valueDequantScaleOptional": None,
            "blockTableOptional": torch.zeros(1, 1, dtype=torch.int32) if paged else None,
            "actualSeqLengthsQueryOptional": None,
            "actualSeqLengthsKvOptional": torch.tensor([5], dtype=torch.int32),
            "scaleValue": scale,
            "keyQuantMode": 2,
            "valueQuantMode": 2,
            "sparseBlockSize": block,
            "layoutQueryOptional": '"BSND"',
            "layoutKvOptional": '"PA_BSND"' if paged else '"BSND"',
            "sparseMode": 0,
            "preTokens": LARGEST,
            "nextTokens": LARGEST,
            "attentionMode": 2,
            "quantScaleRepoMode": 1,
            "tileSize": 128,
            "ropeHeadDim": 64,
        },
        {"attentionOut": q[..., :512]},
    )
    assert_close(got, [expected])
