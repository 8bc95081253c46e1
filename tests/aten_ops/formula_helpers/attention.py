"""Attention for the formulas in formulas/attention: arguments by name, calls, layouts, and the attention of training.

The versions of a function share a formula, which gets the arguments by their names (`by_name`). The attention of
training is that of ops-transformer: aclnnFlashAttentionScoreV3.md and aclnnFlashAttentionVarLenScoreV5.md, with the
gradient of aclnnFlashAttentionUnpaddingScoreGradV5.md and the modes of docs/zh/context/sparse_mode_introduction.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.aten_ops.sweep import LIBRARY, is_output
from tests.published import rows

# Small numbers of both signs for queries, keys, values and the gradient of the result, in orders that do not fit the
# size of a head. Products and sums of more terms stay small, too.
QUERY = "0.25,-0.375,0.125,0.5,-0.1875,-0.5,0.3125,0.0625,-0.4375,0.375,-0.125"
KEY = "-0.25,1,-0.5,0.75,0.375,-1,-0.625,0.875,0.25,-0.125,0.5,-0.875,0.625"
VALUE = "0.5,-1,0.75,-0.375,0.25,-0.5,1,-0.75,0.875,-0.125,-0.625,0.375,0.125,-0.25,0.625,-0.875,1.25"
GRADIENT = (
    "-0.21875,0.125,0.0625,-0.25,0.25,-0.15625,0.03125,0.09375,-0.0625,0.21875,0.1875,-0.125,0.15625,-0.09375,"
    "-0.1875,0.28125,-0.03125,0.015625,0.3125"
)
LARGEST = 2**31 - 1


def eight(*numbers: float) -> str:
    """The values of a tensor of maxima or sums, which has eight copies of each."""
    return ",".join(str(number) for number in numbers for _ in range(8))


class Arguments(SimpleNamespace):
    """The arguments of a call by their names; None for those that its version does not have."""

    def __getattr__(self, name: str) -> None:
        return None


def name_of(parameter: str) -> str:
    """A parameter's name in Python, without what differs between versions: key for keyInOptional."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", parameter.removesuffix("Optional")).lower()
    return {"key_in": "key", "key_in_rope": "key_rope", "real_shift": "shift", "pse_shift": "shift"}.get(words, words)


def by_name(*names: str, calls: Sequence[str] = (), error: float = 1e-6) -> Callable[[Any], Any]:
    """Declares the formula of functions, which gets one object with all arguments."""
    from tests.aten_ops.formulas import formula  # which imports the users of this module

    assert {call.partition(" ")[0] for call in calls} <= {*names}

    def declare(function: Callable[[Arguments], Any]) -> Callable[[Arguments], Any]:
        def of(name: str) -> Callable[..., Any]:
            def call(*values: Any, outputs: dict[str, Any]) -> Any:
                inputs = [name_of(argument) for kind, argument in rows(LIBRARY)[name] if not is_output(kind)]
                return function(Arguments(**dict(zip(inputs, values, strict=True)), outputs=outputs))

            call.__module__ = function.__module__
            return call

        for name in names:
            formula(name, calls=[call for call in calls if call.partition(" ")[0] == name], error=error)(of(name))
        return function

    return declare


DEFAULTS = {
    **{"scale_value": 0.5, "keep_prob": 1, "pre_tokens": LARGEST, "next_tokens": LARGEST, "pse_type": 1},
    **{"input_layout": '"BNSD"', "softmax_out_layout": '""', "softmax_in_layout": '""'},
}


def call_of(name: str, **given: Any) -> str:
    """A call in the syntax of samples.txt. Arguments that are not given have a default, or are 0 or null."""
    parts = []
    for kind, argument in rows(LIBRARY)[name]:
        nothing = {"int64_t": 0, "bool": "false"}.get(kind, "null")
        value = given.pop(name_of(argument), DEFAULTS.get(name_of(argument), nothing))
        parts.append(f"{argument}={value}")
    assert not given, (name, given)
    return " ".join([name, *parts])


# ---- Layouts of sequences of one length


def to_heads(tensor: Any, layout: str, heads: int) -> Any:
    """A tensor as (batch, heads, sequence, elements)."""
    if len(layout) == 3:  # BSH or SBH
        tensor = tensor.reshape(*tensor.shape[:2], heads, tensor.shape[2] // heads)
    order = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3)}
    return tensor.transpose(order[layout])


def from_heads(tensor: Any, layout: str) -> Any:
    """The inverse of to_heads."""
    order = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}
    result = tensor.transpose(order[layout])
    return result.reshape(*result.shape[:2], result.shape[2] * result.shape[3]) if len(layout) == 3 else result


# ---- The attention of training


def hidden_scores(a: Arguments, mode: int, mask: Any, prefix: int, queries: int, keys: int) -> Any:
    """The scores that a mode leaves out; without a mask none."""
    if a.atten_mask is None:
        return np.zeros((queries, keys), bool)
    key = np.arange(keys)
    ahead = key - np.arange(queries)[:, None]
    last = keys - queries  # of a key ahead of a query, if both sequences end together
    after_prefix = (ahead > last) & (key >= prefix)
    hidden = {
        0: lambda: mask | (ahead > a.next_tokens) | (ahead < -a.pre_tokens),
        1: lambda: mask,
        2: lambda: ahead > 0,
        3: lambda: ahead > last,
        4: lambda: (ahead > last + a.next_tokens) | (ahead < last - a.pre_tokens),
        5: lambda: mask | after_prefix,
        6: lambda: after_prefix,
    }
    return hidden[mode]()


def made_shift(a: Arguments, slopes: Any, queries: int, keys: int, query_start: int, key_start: int) -> Any:
    """The shift of pseType 2, or 3 with roots: slopes of heads, times the distance of a query and a key."""
    distance = abs(np.arange(keys) + key_start - (np.arange(queries)[:, None] + query_start))
    return -slopes[:, None, None] * (np.sqrt(distance) if a.pse_type == 3 else distance)


class Attention:
    """The attention of one sequence. Queries, keys and values are (heads, sequence, elements)."""

    def __init__(self, a, query, key, value, shift, hidden, kept, largest, total):
        self.groups = len(key), len(query) // len(key)
        self.scale, self.kept = a.scale_value, kept
        self.adds_first = a.pse_type in (None, 1)
        self.query, self.key, self.value = query, *(np.repeat(each, self.groups[1], 0) for each in (key, value))
        scores = query @ self.key.swapaxes(1, 2)
        scores = (scores + shift) * a.scale_value if self.adds_first else scores * a.scale_value + shift
        scores = np.where(hidden, -np.inf, scores)
        sink = a.sink if a.sink is not None else a.sink_in
        if sink is not None:
            scores = np.concatenate([scores, np.broadcast_to(sink[:, None, None], (*scores.shape[:2], 1))], -1)
        self.largest = scores.max(-1, keepdims=True, initial=-np.inf) if largest is None else largest
        powers = np.exp(scores - self.largest)
        self.total = np.nan_to_num(powers).sum(-1, keepdims=True) if total is None else total
        # A query that sees no key has no probabilities.
        sees_none = np.isneginf(self.largest) | (self.total == 0)
        every = np.where(sees_none, 0, powers / self.total)
        self.p, self.of_sink = np.split(every, [key.shape[1]], -1)

    def result(self):
        return (self.p * self.kept) @ self.value

    def gradients(self, dy, result):
        """Of queries, keys, values, the shift and the sink."""
        dp = dy @ self.value.swapaxes(1, 2) * self.kept
        of_result = np.sum(dp * self.p if result is None else dy * result, -1, keepdims=True)
        ds = self.p * (dp - of_result)
        of_shift = ds * self.scale if self.adds_first else ds
        by_key = ds.swapaxes(1, 2) @ self.query * self.scale, (self.p * self.kept).swapaxes(1, 2) @ dy
        of_key, of_value = (each.reshape(*self.groups, *each.shape[1:]).sum(1) for each in by_key)
        of_sink = -np.sum(self.of_sink * of_result, (1, 2)) if self.of_sink.size else np.zeros(len(self.query))
        return ds @ self.key * self.scale, of_key, of_value, of_shift, of_sink


def kept_scores(a: Arguments, before: int, shape: Iterable[int]) -> Any:
    """The factors of dropout, of the scores after the first ones: a bit each, the lowest of a byte first."""
    if a.drop_mask is None:
        return 1
    bits = np.unpackbits(a.drop_mask.reshape(-1).astype(np.uint8), bitorder="little")
    return bits[before : before + int(np.prod(shape))].reshape(shape) / a.keep_prob


def batched(a: Arguments) -> tuple[list[Attention], Any, Any]:
    """The attention of each sequence, all of one length; the gradient of the result and the result, if given."""
    query = to_heads(a.query, a.input_layout, a.head_num)
    elements = query.shape[3]
    of_key = {"BNSD": 1, "BSND": 2}.get(a.input_layout)
    heads = a.key.shape[of_key] if of_key else a.key.shape[2] // elements
    key, value = (to_heads(each, a.input_layout, heads) for each in (a.key, a.value))
    if a.query_rope is not None:
        query = np.concatenate([query, to_heads(a.query_rope, a.input_layout, a.head_num)], -1)
        key = np.concatenate([key, to_heads(a.key_rope, a.input_layout, heads)], -1)
    dy, result = (
        None if each is None else to_heads(each, a.input_layout, a.head_num) for each in (a.dy, a.attention_in)
    )
    queries, keys = query.shape[2], key.shape[2]
    starts = [each[0] if each else 0 for each in (a.q_start_idx, a.kv_start_idx)]
    found = []
    for b in range(len(query)):

        def own(tensor, dims, b=b):
            return tensor[b if len(tensor) > 1 else 0] if tensor.ndim == dims else tensor

        shift: Any = 0
        if a.shift is not None:
            made = a.pse_type in (2, 3)
            shift = made_shift(a, own(a.shift, 2), queries, keys, *starts) if made else own(a.shift, 4)
        mask = None if a.atten_mask is None else own(a.atten_mask, 4) != 0
        prefix = a.prefix[b] if a.prefix and a.sparse_mode in (5, 6) else 0
        hidden = hidden_scores(a, a.sparse_mode, mask, prefix, queries, keys)
        shape = a.head_num, queries, keys
        kept = kept_scores(a, b * a.head_num * queries * keys, shape)
        given = [None if each is None else each[b, :, :, :1] for each in (a.softmax_max, a.softmax_sum)]
        found.append(Attention(a, query[b], key[b], value[b], shift, hidden, kept, *given))
    return found, dy, result


def until_zeros(ends: Sequence[int]) -> Any:
    """The ends of sequences; zeros after them stand for empty ones."""
    used = len(np.trim_zeros(ends, "b"))
    return [*ends[:used], *[ends[used - 1] if used else 0] * (len(ends) - used)]


class Packed:
    """The attention of packed sequences; queries, keys and values are (tokens, heads, elements)."""

    def __init__(self, a: Arguments) -> None:
        self.a = a
        self.queries, self.keys = (
            [slice(*each) for each in pairwise([0, *until_zeros(ends)])]
            for ends in (a.actual_seq_qlen, a.actual_seq_kv_len)
        )
        sizes = [(q.stop - q.start, k.stop - k.start) for q, k in zip(self.queries, self.keys, strict=True)]
        longest = tuple(max(each) for each in zip(*sizes, strict=True))
        filled = [i for i, (q, k) in enumerate(sizes) if q * k]
        # Modes 7 and 8 have another mode in the last or the first sequence.
        modes = [{7: 3, 8: 2}.get(a.sparse_mode, a.sparse_mode)] * len(sizes)
        if filled and a.sparse_mode in (7, 8):
            modes[filled[-1 if a.sparse_mode == 7 else 0]] = 4
        query, key = (
            part if rope is None else np.concatenate([part, rope], -1)
            for part, rope in ((a.query, a.query_rope), (a.key, a.key_rope))
        )
        heads, before = query.shape[1], 0
        self.found = []
        for i, (q, k) in enumerate(sizes):
            own = query[self.queries[i]], key[self.keys[i]], a.value[self.keys[i]]
            by_head = [each.swapaxes(0, 1) for each in own]
            shift = self._shift(i, q, k, before, longest)
            mask = self._mask(i, q, k, longest)
            prefix = a.prefix[i] if a.prefix and a.sparse_mode == 6 else 0
            hidden = hidden_scores(a, modes[i], mask, prefix, q, k)
            kept = kept_scores(a, before * heads, (heads, q, k))
            given = [None if x is None else self._read(x, i) for x in (a.softmax_max, a.softmax_sum)]
            self.found.append(Attention(a, *by_head, shift, hidden, kept, *given))
            before += q * k

    def _shift(self, i, q, k, before, longest):
        a, shift = self.a, self.a.shift
        if shift is None:
            return 0
        if a.pse_type in (2, 3):
            of_this = a.sparse_mode != 8 or i == 0  # those of mode 8 belong to a sequence that was cut
            starts = [each[0] if each and of_this else 0 for each in (a.q_start_idx, a.kv_start_idx)]
            return made_shift(a, shift[i] if shift.ndim == 2 else shift, q, k, *starts)
        if shift.ndim == 1:
            heads = a.query.shape[1]
            if shift.size == self.keys[-1].stop * heads:  # for each key
                return shift[self.keys[i].start * heads : self.keys[i].stop * heads].reshape(heads, 1, k)
            return shift[before * heads : (before + q * k) * heads].reshape(heads, q, k)
        own = shift[i if len(shift) > 1 else 0, :, :, :k]
        return own[:, :q] if shift.shape[2] == longest[0] else own

    def _mask(self, i, q, k, longest):
        """Of the longest sequences, or of all tokens."""
        mask = self.a.atten_mask
        if mask is None or self.a.sparse_mode not in (0, 1):
            return None
        if mask.shape != longest and mask.shape == (self.queries[-1].stop, self.keys[-1].stop):
            return mask[self.queries[i], self.keys[i]] != 0
        own = mask[i if len(mask) > 1 else 0] if mask.ndim == 4 else mask
        return own[..., :q, :k] != 0

    def _as_input(self):
        return "same_as_input" in (self.a.softmax_out_layout, self.a.softmax_in_layout)

    def _read(self, softmax, i):
        tokens, heads = self.a.query.shape[:2]
        own = softmax.reshape(tokens, heads, 8)[self.queries[i]]
        by_head = own.swapaxes(0, 1) if self._as_input() else own.reshape(heads, len(own), 8)
        return by_head[..., :1]

    def softmax(self, parts):
        """Maxima or sums: those of a head are together in each sequence, unless they have the layout of the inputs."""
        result = np.zeros((*self.a.query.shape[:2], 8))
        for where, part in zip(self.queries, parts, strict=True):
            own = part.swapaxes(0, 1) if self._as_input() else part.reshape(part.shape[1], part.shape[0], 1)
            result[where] = own
        return result

    def by_token(self, places, parts, shape):
        """(heads, sequence, elements) of the sequences as packed tokens; those outside of them are 0."""
        result = np.zeros(shape)
        for where, part in zip(places, parts, strict=True):
            result[where] = part.swapaxes(0, 1)
        return result

    def forward(self):
        shape = (*self.a.query.shape[:2], self.a.value.shape[2])
        largest, total = (self.softmax([getattr(x, name) for x in self.found]) for name in ("largest", "total"))
        return largest, total, self.by_token(self.queries, [x.result() for x in self.found], shape)

    def gradients(self):
        """Of queries and keys with their rotary parts, of values, and of the sink."""
        a = self.a
        found = []
        for i, attention in enumerate(self.found):
            dy, result = (
                None if each is None else each[self.queries[i]].swapaxes(0, 1) for each in (a.dy, a.attention_in)
            )
            found.append(attention.gradients(dy, result))
        of_query, of_key, of_value, _, of_sink = zip(*found, strict=True)
        extra = 0 if a.query_rope is None else a.query_rope.shape[2]
        with_rope = [(*each.shape[:2], each.shape[2] + extra) for each in (a.query, a.key)]
        return (
            self.by_token(self.queries, of_query, with_rope[0]),
            self.by_token(self.keys, of_key, with_rope[1]),
            self.by_token(self.keys, of_value, a.value.shape),
            np.sum(of_sink, 0),
        )


# ---- Sequences of tokens whose lengths are in a tensor


class Tokens:
    """The sequences of a tensor of tokens: "BSND", "TND" with the ends of sequences, or "PA_BSND" in blocks."""

    def __init__(self, tensor: Any, layout: str, lengths: Any, table: Any = None) -> None:
        self.table, self.block = (table, tensor.shape[1]) if layout == "PA_BSND" else (None, 0)
        self.packed = layout == "TND"
        if lengths is None:
            lengths = [tensor.shape[1]] * len(tensor)
        if self.packed:
            self.spans = [slice(int(start), int(stop)) for start, stop in pairwise([0, *lengths])]
        else:
            self.spans = [slice(i * tensor.shape[1], i * tensor.shape[1] + int(n)) for i, n in enumerate(lengths)]
        self.lengths = [span.stop - span.start for span in self.spans]

    def flat(self, tensor: Any) -> Any:
        """The tokens of all sequences."""
        return tensor if self.packed else tensor.reshape(-1, *tensor.shape[2:])

    def read(self, tensor: Any, i: int) -> Any:
        """The tokens of a sequence."""
        if self.table is None:
            return self.flat(tensor)[self.spans[i]]
        blocks = [tensor[j] for j in self.table[i, : -(-self.lengths[i] // self.block)]]
        return np.concatenate([tensor[0][:0], *blocks])[: self.lengths[i]]


def tokens_used(tensor: Any, layout: str, ends: Any, used: Any, table: Any = None) -> Tokens:
    """As Tokens, where the ends of packed sequences follow a 0, and only the first `used` tokens of each one count."""
    packed = layout == "TND"
    found = Tokens(tensor, layout.replace("BB", "BS"), ends[1:] if packed else used, table)
    if packed and used is not None:
        found.spans = [slice(span.start, span.start + int(n)) for span, n in zip(found.spans, used, strict=True)]
        found.lengths = [int(n) for n in used]
    return found


def seen_keys(row: int, rows: int, keys: int, ratio: int = 1, rest: int = 0) -> int:
    """How many keys a query sees, which stand for `ratio` tokens each, with `rest` tokens after the last one."""
    return min(max(keys * ratio + rest - rows + row + 1, 0) // ratio, keys)
