"""The valid statuses of a generated call: the conformance tables' rules, applied to any arguments.

The tables name conditions, each with a change that causes it; here a condition is a predicate. Handwritten operators of
CANN return 161002 for everything after the null pointers, so their order is not visible in the status; generated ones
return 561003, 161002 and 561002 in that order, and the host's own check of the memory comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

from tests.cabi import (
    AICORE_EXCEPTION,
    FIND_KERNEL_ERROR,
    INNER_NULLPTR,
    PARAM_INVALID,
    PARAM_NULLPTR,
    RUNTIME_ERROR,
    SUCCESS,
    TILING_ERROR,
    Dtype,
    Format,
    round_to,
)
from tests.conformance import (
    convolution_table,
    cross_entropy_loss_table,
    gelu_table,
    layer_norm_table,
    linear_cross_entropy_table,
    rms_norm_table,
)
from tests.conformance.machinery import WITH_BF16, Scalar, Table, all_tables

CREATE_EXECUTOR = 561101
F32, F16 = Dtype.FLOAT, Dtype.FLOAT16
# A workspace larger than this may not be allocatable.
MOST_MEMORY = 2**40
LIMIT = 2**59


class Expected(NamedTuple):
    """The valid statuses of a call. Those of stage 2 and of the stream are checked if these ran."""

    stage1: set[int]
    stage2: int = SUCCESS
    stream: set[int] = frozenset({SUCCESS})  # type: ignore[assignment]


class Call:
    """A case as described by tests/cpp/fuzz, with its arguments by name."""

    def __init__(self, table: Table, case: dict[str, Any]):
        self.table, self.operator = table, table.operator
        self.product: str = case["product"]
        self.case = case
        self.arguments = dict(zip(self.operator.arguments, case["arguments"], strict=True))

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self[name]["shape"])

    def dtype(self, name: str) -> Dtype | None:
        """None for an invalid dtype number."""
        number = self[name]["dtype"]
        return Dtype(number) if number in list(Dtype) else None

    @property
    def tensors(self) -> list[str]:
        """Names of the present tensors."""
        return [name for name in self.operator.places if self[name] is not None]

    def dtypes(self, names: Sequence[str]) -> tuple[Dtype | None, ...]:
        return tuple(self.dtype(name) for name in names)


# ---- memory: the host's own checks, documented in docs/emulation/operators.md


def count(sizes: Sequence[int]) -> int | None:
    """The number of elements, if no size is negative and the product fits into 63 bits."""
    if any(size < 0 for size in sizes):
        return None
    return prod(sizes) if prod(sizes) < 2**63 else None


def addressable(tensor: dict[str, Any]) -> bool:
    """Sizes >= 0 with a product below 2^59, an offset likewise, and a view inside its storage and the first 2^59
    elements."""
    elements, storage = count(tensor["shape"]), count(tensor["storage"])
    if elements is None or elements >= LIMIT or not 0 <= tensor["offset"] < LIMIT:
        return False
    if elements == 0:
        return True
    strides = tensor["strides"]
    if strides is None:
        strides = [prod(tensor["shape"][i + 1 :]) for i in range(len(tensor["shape"]))]
    reach = [(size - 1) * stride for size, stride in zip(tensor["shape"], strides, strict=True)]
    first = tensor["offset"] + sum(value for value in reach if value < 0)
    last = tensor["offset"] + sum(value for value in reach if value > 0)
    return storage is not None and first >= 0 and last < min(storage, LIMIT)


# ---- elementwise operators


def castable_scalars(call: Call) -> bool:
    complex_dtypes = (Dtype.COMPLEX64, Dtype.COMPLEX128)
    names = [name for name, value in call.operator.arguments.items() if isinstance(value, Scalar)]
    return all(call[name]["dtype"] not in complex_dtypes for name in names)


def shapes_good(call: Call) -> bool:
    """One shape, or shapes that are broadcast to the output's; of some 8 dimensions at most."""
    *inputs, out = shapes = [call.shape(name) for name in call.tensors]
    if not call.operator.any_rank and max(map(len, shapes)) > 8:
        return False
    if not call.operator.broadcasts:
        return len(set(shapes)) == 1
    sizes = [{size for size in each if size != 1} for each in zip_longest(*map(reversed, inputs), fillvalue=1)]
    return all(len(distinct) <= 1 for distinct in sizes) and out == tuple(max(each, default=1) for each in sizes[::-1])


def elementwise(call: Call) -> int:
    """Shapes that fit and accepted dtypes; for some one format; scalars convertible to FLOAT; ELU: no negative alpha
    for a result; GELU: a known formula."""
    dtypes = call.dtypes(call.tensors)
    good = None not in dtypes and call.table.accepts_dtypes(dtypes, call.product)  # type: ignore[arg-type]
    good = good and shapes_good(call) and castable_scalars(call)
    if call.operator.one_format:
        good = good and len({call[name]["format"] for name in call.tensors}) == 1
    if call.arguments.get("isResult"):
        good = good and not call["alpha"]["value"] < 0
    good = good and call.arguments.get("approximate", 0) in (0, 1, "none", "tanh")
    return SUCCESS if good else PARAM_INVALID


def gelu_by_tanh(call: Call) -> int:
    """As an elementwise operator, but without private formats."""
    good = not any(call[name]["format"] in gelu_table.PRIVATE for name in call.tensors)
    return elementwise(call) if good else PARAM_INVALID


def same_if_there(call: Call, name: str, shape: Sequence[int]) -> bool:
    """An argument is absent, or has a shape."""
    return call[name] is None or call.shape(name) == tuple(shape)


def layer_norm_dtypes_good(call: Call, sets: dict[Dtype, frozenset[str]], of_input: Sequence[str]) -> bool:
    """All are supported by the product; the named ones have input's; a weight has input's or FLOAT."""
    accepted = {dtype for dtype, products in sets.items() if call.product in products}
    good = all(call.dtype(name) in accepted for name in call.tensors)
    good = good and all(call.dtype(name) == call.dtype("input") for name in of_input)
    return good and (call["weightOptional"] is None or call.dtype("weightOptional") in (F32, call.dtype("input")))


def layer_norm_shapes_good(call: Call) -> bool:
    """The requirements of both functions on input, normalizedShape, weight and bias."""
    inner, shape = tuple(call["normalizedShape"]), call.shape("input")
    good = 1 <= len(inner) <= 8 and len(inner) <= len(shape) <= 8 and shape[len(shape) - len(inner) :] == inner
    return good and same_if_there(call, "weightOptional", inner) and same_if_there(call, "biasOptional", inner)


def layer_norm_forward(call: Call) -> int:
    """Statistics with one number per row, in any shape of at most 8 dimensions; on Ascend950 in input's, with 1 for
    normalised sizes, unless empty, and with equal shapes."""
    bias, weight = call["biasOptional"], call["weightOptional"]
    good = layer_norm_dtypes_good(call, layer_norm_table.SETS, ()) and layer_norm_shapes_good(call)
    good = good and (bias is None or call.dtype("biasOptional") in (F32, call.dtype("input")))
    good = good and (bias is None or weight is None or bias["dtype"] == weight["dtype"])
    good = good and call.shape("out") == call.shape("input")
    rows = count(call.shape("input")[: len(call.shape("input")) - len(call["normalizedShape"])])
    for name in ("meanOutOptional", "rstdOutOptional"):
        if call[name] is not None:
            numbers = count(call.shape(name))
            good = good and len(call.shape(name)) <= 8 and numbers == rows
            if good and call.product == "Ascend950" and numbers:
                inner = len(call["normalizedShape"])
                good = call.shape(name) == (*call.shape("input")[:-inner], *(1,) * inner)
    if call.product == "Ascend950" and call["meanOutOptional"] is not None and call["rstdOutOptional"] is not None:
        good = good and call.shape("meanOutOptional") == call.shape("rstdOutOptional")
    return SUCCESS if good else PARAM_INVALID


def layer_norm_backward(call: Call) -> int:
    """The same; of the gradients only those that outputMask selects are checked, except for their dtypes."""
    mask = call["outputMask"]
    if len(mask) != 3:
        return PARAM_INVALID
    asked = [name for name, on in zip(layer_norm_table.GRADIENTS, mask, strict=True) if on]
    if any(call[name] is None for name in asked):
        return PARAM_NULLPTR
    good = layer_norm_dtypes_good(call, layer_norm_table.BACKWARD_SETS, ("gradOut",)) and layer_norm_shapes_good(call)
    good = good and call.shape("gradOut") == call.shape("input") and call.shape("mean") == call.shape("rstd")
    good = good and len(call.shape("mean")) <= 8 and all(len(call.shape(name)) <= 8 for name in asked)
    inner = tuple(call["normalizedShape"])
    good = good and count(call.shape("mean")) == count(call.shape("input")[: len(call.shape("input")) - len(inner)])
    for name in asked:
        if name == "gradInputOut":
            good = good and call.shape(name) == call.shape("input")
        else:
            good = good and count(call.shape(name)) == count(inner)
    return SUCCESS if good else PARAM_INVALID


# ---- Operators whose checks CANN generates from a description

LIKE_ND = {Format.ND, Format.NCHW, Format.NHWC, Format.NCDHW, Format.NCL}


def formats_good(call: Call) -> bool:
    return all(call[name]["format"] in LIKE_ND for name in call.tensors)


def launches_nothing(call: Call) -> bool:
    """If all outputs are empty, the tiling, which checks shapes and attributes, is not called."""
    return all(count(call.shape(name)) == 0 for name in call.operator.outputs)


def rms_norm_backward(call: Call) -> int:
    """The description of RmsNormGrad, then its tiling."""
    row = call.dtypes(call.operator.tensors)
    if None in row or not call.table.accepts_dtypes(row, call.product) or not formats_good(call):  # type: ignore[arg-type]
        return PARAM_INVALID
    if launches_nothing(call):
        return SUCCESS
    x, gamma, rstd = call.shape("x"), call.shape("gamma"), call.shape("rstd")
    if not (1 <= len(gamma) <= len(x) <= 8):
        return TILING_ERROR
    outer = x[: len(x) - len(gamma)]
    same = call.shape("dy") == x == call.shape("dxOut") and call.shape("dgammaOut") == gamma == x[len(outer) :]
    leading = rstd[: len(outer)] + (1,) * (len(outer) - len(rstd))
    good = same and x[-1] != 0 and leading == outer and prod(rstd) == prod(outer)
    good = good and (call.product != "Ascend910" or multiple_of_64(gamma))
    good = good and (count(x) != 0 or call.product in rms_norm_table.WITH_EMPTY)
    return SUCCESS if good else TILING_ERROR


def rms_norm_forward(call: Call) -> int:
    """The description of RmsNorm, then its tiling."""
    row = call.dtypes(call.operator.tensors)
    if None in row or not call.table.accepts_dtypes(row, call.product) or not formats_good(call):  # type: ignore[arg-type]
        return PARAM_INVALID
    if launches_nothing(call):
        return SUCCESS
    x, gamma, rstd = call.shape("x"), call.shape("gamma"), call.shape("rstdOut")
    if not (1 <= len(gamma) <= len(x) <= 8):
        return TILING_ERROR
    outer = x[: len(x) - len(gamma)]
    good = call.shape("yOut") == x and gamma == x[len(outer) :] and not round_to(F32, call["epsilon"]) < 0
    good = good and len(rstd) <= len(x) and prod(rstd) == prod(outer)
    good = good and all(size in (1, of_x) for size, of_x in zip(rstd, x, strict=False))
    good = good and (count(x) != 0 or call.product == "host")
    return SUCCESS if good else TILING_ERROR


def multiple_of_64(shape: tuple[int, ...]) -> bool:
    elements = count(shape)
    return elements is not None and elements % 64 == 0


def attributes_good(call: Call) -> bool:
    return call["reductionOptional"] in (None, "none", "mean", "sum") and 0 <= call["labelSmoothing"] <= 1


def cross_entropy(call: Call, matrix: str, wanted: bool) -> int:
    """The descriptions and the tilings: the combinations of dtypes, for present tensors; the shapes that both
    directions share; and smoothing and z-loss on the newest products only."""
    rows = [
        dict(zip(call.operator.tensors, row.dtypes, strict=True))
        for row in call.table.dtypes
        if call.product in row.accepted
    ]
    for row in rows:
        row.update({name: row[matrix] for name in call.operator.places if name not in row})
    if not any(all(call.dtype(name) == row[name] for name in call.tensors) for row in rows) or not formats_good(call):
        return PARAM_INVALID
    if launches_nothing(call):
        return SUCCESS
    shape = call.shape(matrix)
    good = len(shape) == 2 and shape[1] > 0 and attributes_good(call)
    good = good and call.shape("target") == shape[:1]
    good = good and (call["weightOptional"] is None or call.shape("weightOptional") == shape[1:])
    plain = not wanted and call["labelSmoothing"] == 0 and call["lseSquareScaleForZloss"] == 0
    return SUCCESS if good and (plain or call.product in cross_entropy_loss_table.NEWEST) else TILING_ERROR


def cross_entropy_forward(call: Call) -> int:
    status = cross_entropy(call, "input", call["returnZloss"])
    if status != SUCCESS or launches_nothing(call):
        return status
    shape = call.shape("input")
    results = shape[:1] if call["reductionOptional"] == "none" else (1,)
    wanted_lse = call["lseSquareScaleForZloss"] != 0
    good = call.shape("lossOut") == results and call.shape("logProbOut") == shape
    for name, wanted, expected in (
        ("zlossOut", call["returnZloss"], results),
        ("lseForZlossOut", wanted_lse, shape[:1]),
    ):
        left_out = not wanted and count(call.shape(name)) == 0
        good = good and (left_out or call.shape(name) == expected)
    return SUCCESS if good else TILING_ERROR


def cross_entropy_backward(call: Call) -> int:
    lse = call["lseForZlossOptional"]
    scale = call["lseSquareScaleForZloss"]
    left_out = lse is None or (scale == 0 and count(lse["shape"]) == 0)
    status = cross_entropy(call, "logProb", call["gradZlossOptional"] is not None or not left_out)
    if status != SUCCESS or launches_nothing(call):
        return status
    shape = call.shape("logProb")
    results = [shape[:1]] if call["reductionOptional"] == "none" else [(1,), ()]
    good = call.shape("out") == shape and call.shape("gradLoss") in results
    if call["gradZlossOptional"] is not None:
        good = good and call.shape("gradZlossOptional") in results and not (left_out and scale != 0)
    return SUCCESS if good and (left_out or tuple(lse["shape"]) == shape[:1]) else TILING_ERROR


def bad_labels(call: Call) -> set[int]:
    """Errors of the stream: an invalid label. Without gradients it is not read."""
    matrix = call.shape("input" if "input" in call.arguments else "logProb")
    target = call["target"]
    if not prod(matrix) or launches_nothing(call):
        return {SUCCESS}
    if not target["labels"]:
        return {SUCCESS, AICORE_EXCEPTION}
    good = all(label == call["ignoreIndex"] or 0 <= label < matrix[1] for label in target["labels"])
    return {SUCCESS} if good else {AICORE_EXCEPTION}


# ---- Linear cross entropy: missing operators and tiling limits are found after the arguments' checks


def linear_dtypes_good(call: Call) -> bool:
    """One of the table's rows, for present tensors; softmax has the dtype of sums, the mask may be BOOL."""
    for row in call.table.dtypes:
        dtypes = dict(zip(call.operator.tensors, row.dtypes, strict=True))
        sums = dtypes.get("grad", dtypes.get("lossOut"))
        dtypes |= {"softmaxOptional": sums, "lseOptional": sums}  # type: ignore[dict-item]
        good = call.product in row.accepted and all(
            call.dtype(name) == dtypes[name] or (name == "targetMask" and call.dtype(name) == Dtype.BOOL)
            for name in looked_at(call)
        )
        if good:
            return True
    return False


def linear_shapes_good(call: Call, shapes: dict[str, tuple[int, ...]]) -> bool:
    return all(call[name] is None or call.shape(name) == shape for name, shape in shapes.items())


def looked_at(call: Call) -> list[str]:
    """The present tensors that are not ignored."""
    skipped: set[str] = set()
    if call.operator is linear_cross_entropy_table.LOSS:
        skipped = {"inputOptional", "weightOptional"}
        skipped |= {"softMaxOutOptional"} if call["vocabParallelLogitsOptional"] is None else set()
    if call.operator is linear_cross_entropy_table.GRADIENT and call["softmaxOptional"] is not None:
        skipped = set(linear_cross_entropy_table.SUMS)
    return [name for name in call.tensors if name not in skipped]


def lacking(call: Call) -> int:
    return call.operator.lacks.get(call.product, SUCCESS)


def bytes_of_bits(rows: int) -> int:
    return (rows + 7) // 8


def online_max_sum(call: Call) -> int:
    good = linear_dtypes_good(call) and all(len(call.shape(name)) == 2 for name in ("input", "weight"))
    if not good:
        return PARAM_INVALID
    (rows, depth), classes = call.shape("input"), call.shape("weight")[0]
    per_row = ("target", "logitsMaxLocalOut", "sumExpLogitsLocalOut", "predictedLogitsLocalOut", "maskedTargetOut")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(per_row, (rows,))
    shapes |= {"weight": (classes, depth), "vocabParallelLogitsOutOptional": (rows, classes)}
    good = classes > 0 and linear_shapes_good(call, {**shapes, "targetMaskOut": (bytes_of_bits(rows),)})
    good = good and (depth <= 65534 or call.product == "host")
    good = good and 0 <= call["vocabStartIndex"] <= call["vocabEndIndex"]
    if not good:
        return PARAM_INVALID
    return lacking(call) if rows > 0 else SUCCESS


def loss_with_max_sum(call: Call) -> int:
    logits = call["vocabParallelLogitsOptional"]
    if logits is not None and call["softMaxOutOptional"] is None:
        return PARAM_NULLPTR
    shape = call.shape("logitsMax")
    good = linear_dtypes_good(call) and len(shape) == 1
    good = good and linear_shapes_good(call, dict.fromkeys(("sumExpLogits", "predictedLogits", "lossOut"), shape))
    if logits is not None:
        matrix = call.shape("vocabParallelLogitsOptional")
        good = good and len(matrix) == 2 and call.shape("softMaxOutOptional") == matrix
    if not good or round_to(F32, call["labelSmoothing"]) != 0:
        return PARAM_INVALID
    if lacking(call) != SUCCESS:
        return lacking(call)
    other_rows = logits is not None and matrix[0] != shape[0]
    empty = shape[0] <= 0 or (logits is not None and matrix[1] <= 0)
    return INNER_NULLPTR if other_rows or (empty and call.product == "Ascend950") else SUCCESS


def linear_loss_grad(call: Call) -> int:
    softmax = call["softmaxOptional"] is not None
    if not softmax and any(call[name] is None for name in linear_cross_entropy_table.SUMS):
        return PARAM_NULLPTR
    formats = [call[name]["format"] for name in looked_at(call)]
    if call.product == "host":
        good = not any(format in gelu_table.PRIVATE for format in formats)
    else:
        good = all(format == Format.ND for format in formats)
    good = good and linear_dtypes_good(call) and round_to(F32, call["labelSmoothing"]) == 0
    good = good and len(call.shape("grad")) == 1 and all(len(call.shape(name)) == 2 for name in ("input", "weight"))
    if not good:
        return PARAM_INVALID
    (rows,), depth, classes = call.shape("grad"), call.shape("input")[1], call.shape("weight")[0]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("input", "inputGradOut"), (rows, depth))
    shapes |= dict.fromkeys(("weight", "weightGradOut"), (classes, depth)) | {"maskedTarget": (rows,)}
    shapes |= (
        {"softmaxOptional": (rows, classes)} if softmax else dict.fromkeys(linear_cross_entropy_table.SUMS, (rows,))
    )
    good = linear_shapes_good(call, shapes) and len(call.shape("targetMask")) == 1
    (bits,) = call.shape("targetMask") if good else (0,)
    good = good and (bits == rows if call.dtype("targetMask") == Dtype.BOOL else bits >= bytes_of_bits(rows))
    if not good or (softmax and classes < 128 and call.product != "host"):
        return PARAM_INVALID
    if 0 in (rows, classes, depth):
        return SUCCESS
    if lacking(call) != SUCCESS:
        return lacking(call)
    fits = depth <= 65535 and (not softmax or (rows <= 65536 and classes <= 24560))
    return SUCCESS if fits or call.product == "host" else INNER_NULLPTR


def host_linear_loss(call: Call) -> int:
    if call["lseOptional"] is None and any(call[name] is None for name in linear_cross_entropy_table.RESULTS):
        return PARAM_NULLPTR
    good = linear_dtypes_good(call)
    good = good and not any(call[name]["format"] in gelu_table.PRIVATE for name in call.tensors)
    good = good and all(len(call.shape(name)) == 2 for name in ("input", "weight"))
    if not good:
        return PARAM_INVALID
    (rows, depth), classes = call.shape("input"), call.shape("weight")[0]
    shapes: dict[str, tuple[int, ...]] = {"inputGradOutOptional": (rows, depth)}
    shapes |= dict.fromkeys(("weight", "weightGradOutOptional"), (classes, depth))
    shapes |= dict.fromkeys(("target", "factorsOptional", "lseOptional", "lossOut", "lseOut"), (rows,))
    shapes |= dict.fromkeys(("biasOptional", "classWeightsOptional", "biasGradOutOptional"), (classes,))
    good = classes > 0 and linear_shapes_good(call, shapes) and 0 <= call["labelSmoothing"] <= 1
    vocabulary = call["vocabularySize"] or classes
    good = good and 0 <= call["firstClass"] <= vocabulary - classes
    if vocabulary != classes:
        good = good and call["labelSmoothing"] == 0 and call["classWeightsOptional"] is None
    return SUCCESS if good else PARAM_INVALID


def bad_class(call: Call) -> set[int]:
    """Errors of the stream: an invalid label, unless nothing is written."""
    outputs = [name for name in call.operator.outputs if name in written_or_read(call)]
    if all(count(call.shape(name)) == 0 for name in outputs) or not count(call.shape("target")):
        return {SUCCESS}
    if not call["target"]["labels"]:
        return {SUCCESS, AICORE_EXCEPTION}
    classes = call["vocabularySize"] or call.shape("weight")[0]
    good = all(label == call["ignoreIndex"] or 0 <= label < classes for label in call["target"]["labels"])
    return {SUCCESS} if good else {AICORE_EXCEPTION}


def written_or_read(call: Call) -> list[str]:
    """For tensors that are used: if lse is given, the results are not written."""
    given_lse = call.operator is linear_cross_entropy_table.OURS and call["lseOptional"] is not None
    skipped = linear_cross_entropy_table.RESULTS if given_lse else ()
    return [name for name in looked_at(call) if name not in skipped]


def logit_count(call: Call) -> int:
    """For any tensors; there may be none of this size."""
    if (
        call.operator not in {table.operator for table in linear_cross_entropy_table.TABLES}
        or "weight" not in call.arguments
    ):
        return 0
    return max(call.shape("input")[0], 1) * max(call.shape("weight")[0], 1)


# ---- convolution (CANN's checkers, and the project's own rules: docs/emulation/operators.md)

RANK_FORMATS = {3: Format.NCL, 4: Format.NCHW, 5: Format.NCDHW}
NARROW = convolution_table.NARROW


class Geometry:
    """The geometry of a convolution whose arrays have the right lengths."""

    def __init__(self, call: Call, spatial: int):
        self.transposed, self.groups = call["transposed"], call["groups"]
        self.stride, self.dilation = spread(call["stride"], spatial), spread(call["dilation"], spatial)
        padding = call["padding"]
        doubled = len(padding) == 2 * spatial
        pairs = (
            list(zip(padding[::2], padding[1::2], strict=True))
            if doubled
            else [(p, p) for p in spread(padding, spatial)]
        )
        self.before = [before for before, _ in pairs]
        self.widest = [max(pair) for pair in pairs]
        self.around = [before + after for before, after in pairs]
        self.more = spread(call["outputPadding"], spatial)[:spatial] if self.transposed else [0] * spatial

    def reach(self, weight: tuple[int, ...]) -> list[int]:
        return [(size - 1) * d + 1 for size, d in zip(weight[2:], self.dilation, strict=True)]

    def kernel_fits(self, x: tuple[int, ...], weight: tuple[int, ...]) -> bool:
        room = [size + p - r for size, p, r in zip(x[2:], self.around, self.reach(weight), strict=True)]
        return self.transposed or all(value >= 0 for value in room)

    def output(self, x: tuple[int, ...], weight: tuple[int, ...]) -> tuple[int, ...]:
        parts = zip(x[2:], self.stride, self.around, self.reach(weight), self.more, strict=True)
        if self.transposed:
            return tuple((size - 1) * s - p + r + more for size, s, p, r, more in parts)
        # An empty input may be smaller than the kernel; then the quotient is truncated.
        rooms = [(size + p - r, s) for size, s, p, r, _ in parts]
        return tuple((room // s if room >= 0 else -(-room // s)) + 1 for room, s in rooms)

    def output_of_gradient(self, x: tuple[int, ...], weight: tuple[int, ...], g: tuple[int, ...]) -> bool:
        """Transposed: sizes from which x follows, or those of the given outputPadding."""
        bare = [size - more for size, more in zip(self.output(x, weight), self.more, strict=True)]
        given = len(bare) < 3
        return all(
            0 <= size - least < s or (given and size - least == more and 0 <= more < d)
            for size, least, s, d, more in zip(g[2:], bare, self.stride, self.dilation, self.more, strict=True)
        )

    def countable(self, large: tuple[int, ...]) -> bool:
        """The host's own limits."""
        padded = [size + p for size, p in zip(large[2:], self.around, strict=True)]
        limit = 2**31 - 1
        return (
            all(value <= limit for value in (*padded, *self.stride, *self.dilation))
            and prod((*large[:2], *padded)) < LIMIT
        )

    def output_padding_good(self) -> bool:
        parts = zip(self.more, self.stride, self.dilation, strict=True)
        return not self.transposed or all(more < s or more < d for more, s, d in parts)


def spread(values: Sequence[int], count: int) -> list[int]:
    """One value applies to all dimensions."""
    return list(values) * count if len(values) == 1 else list(values)


def lengths_good(call: Call, spatial: int, doubled: bool) -> bool:
    good = all(len(call[name]) in (1, spatial) for name in ("stride", "dilation"))
    return good and len(call["padding"]) in ({1, spatial, 2 * spatial} if doubled else {1, spatial})


def values_good(call: Call) -> bool:
    good = all(value >= 1 for name in ("stride", "dilation") for value in call[name])
    most = 3 if "gradOutput" in call.arguments else 4
    return good and call["groups"] >= 1 and 0 <= call["cubeMathType"] <= most


def mode_good(call: Call, names: Sequence[str]) -> bool:
    """Products without FP32 matrix units compute in FLOAT16 or refuse."""
    dtype = convolution_table.promoted(call.dtypes([name for name in names if call[name] is not None]))  # type: ignore[arg-type]
    return call.product not in NARROW or dtype == F16 or call["cubeMathType"] in (1, 2)


def format_good(call: Call, name: str) -> bool:
    rank = len(call.shape(name))
    return rank in RANK_FORMATS and call[name]["format"] in (Format.ND, RANK_FORMATS[rank])


def supported(call: Call) -> bool:
    known = convolution_table.SUPPORTED
    return all(call.product in known.get(call.dtype(name), frozenset()) for name in call.tensors)  # type: ignore[arg-type]


def channels_good(first: int, second: int, weight: tuple[int, ...], groups: int) -> bool:
    return first == weight[0] and second == weight[1] * groups and weight[0] % groups == 0


def in_three_dims_on_inference(call: Call) -> bool:
    """Ascend310P supports FLOAT16 in the forward."""
    dtypes = call.dtypes(("input", "weight"))
    return call.product == "Ascend310P" and not call["transposed"] and set(dtypes) == {F16}


def convolution(call: Call) -> int:
    """CheckParams of aclnnConvolution, and the refusals of the operators inside."""
    return convolution_inside(call) if convolution_good(call) else PARAM_INVALID


def few_groups(call: Call, inside: bool) -> bool:
    """Unless an operator inside checks them."""
    return inside or call["groups"] <= 65535


def convolution_good(call: Call) -> bool:
    x, weight, output = (call.shape(name) for name in ("input", "weight", "output"))
    if not supported(call) or not all(format_good(call, name) for name in ("input", "weight", "output")):
        return False
    spatial = len(x) - 2
    if not len(x) == len(weight) == len(output) or call["input"]["format"] != call["output"]["format"]:
        return False
    transposed, groups = call["transposed"], call["groups"]
    if not lengths_good(call, spatial, spatial < 3) or not values_good(call):
        return False
    published = call.product == "Ascend950" or (transposed and published_gradients(call, spatial))
    if not few_groups(call, published) or (transposed and len(call["outputPadding"]) not in (1, spatial)):
        return False
    if transposed and any(value < 0 for value in call["outputPadding"]):
        return False
    geometry = Geometry(call, spatial)
    if call["bias"] is not None:
        length = weight[1] * groups if transposed else weight[0]
        formats = (*RANK_FORMATS.values(), Format.ND)
        if call.shape("bias") != (length,) or call["bias"]["format"] not in formats:
            return False
    if any(size < 0 for size in x[2:]) or any(size <= 0 for size in weight[2:]):
        return False
    sides = (output, x) if not transposed else (x, output)
    sizes = geometry.output(x, weight)
    return (
        channels_good(sides[0][1], sides[1][1], weight, groups)
        and geometry.output_padding_good()
        and (0 in x or geometry.kernel_fits(x, weight))
        and output == (x[0], output[1], *sizes)
        and all(size >= 0 for size in sizes)
        and something_good(call, x, weight, output)
        and inverse_padding_good(call, geometry, x, weight, output)
        and mode_good(call, ("input", "weight"))
        and (spatial < 3 or call.product not in NARROW or in_three_dims_on_inference(call))
        and geometry.countable(output if transposed else x)
    )


def something_good(call: Call, x: tuple[int, ...], weight: tuple[int, ...], output: tuple[int, ...]) -> bool:
    """The tensors that may be empty."""
    if call.product == "host" or (0 not in x and 0 not in weight):
        return True
    if not call["transposed"]:
        return 0 in output
    return x[1] != 0 and (call.product != "Ascend950" or 0 not in x[2:])


def inverse_padding_good(
    call: Call, geometry: Geometry, x: tuple[int, ...], weight: tuple[int, ...], output: tuple[int, ...]
) -> bool:
    """For the convolution that computes a transposed one."""
    if not call["transposed"] or call.product in ("Ascend950", "host") or 0 in x or 0 in output:
        return True
    reach = [size - 1 for size in geometry.reach(weight)]
    inverse = [r - p for r, p in zip(reach, spread(call["padding"], len(reach)), strict=False)]
    if len(reach) == 3:
        return all(0 <= value <= 255 for value in inverse[1:])
    return all(value <= 255 for value in inverse)


def published_gradients(call: Call, spatial: int) -> bool:
    """True if their operators make checks that the checkers omit."""
    return call.product == "Ascend950" or (call.product in convolution_table.A2_AND_A3 and spatial == 3)


def products_dtype(call: Call, names: Sequence[str]) -> Dtype:
    """The dtype of the matrix units' products."""
    dtype = convolution_table.promoted(call.dtypes(names))  # type: ignore[arg-type]
    return F16 if call["cubeMathType"] == 2 and dtype != Dtype.DOUBLE else dtype


def convolution_inside(call: Call) -> int:
    """The order of checks with the same status is not visible."""
    transposed = call["transposed"]
    status = RUNTIME_ERROR if transposed else INNER_NULLPTR
    if any(value < 0 for value in call["padding"]):
        return RUNTIME_ERROR
    if call["groups"] > 65535:
        return status
    x, weight, output = (call.shape(name) for name in ("input", "weight", "output"))
    if 0 in x or 0 in weight or 0 in output:
        return SUCCESS
    geometry, dtype = Geometry(call, len(x) - 2), products_dtype(call, ("input", "weight"))
    if transposed:
        line = (
            (len(x), geometry.groups, geometry.around, geometry.more, geometry.dilation) == (3, 1, [0], [0], [1])
            and (x[2], output[2]) == (1, weight[2])
            and (weight[2] == 1 or call["bias"] is None)
        )
        widened = call.dtype("output") == F32 and dtype in (F16, Dtype.BF16) and call["cubeMathType"] != 2
        if widened and call.product in convolution_table.PUBLISHED and not (call.product == "Ascend950" and line):
            return RUNTIME_ERROR
        good = input_gradient_good(call, geometry, output, x, weight, dtype)
    else:
        product = len(x) > 3 and may_be_product(geometry) and x[2:] == weight[2:]
        good = product or forward_good(call, geometry, x, output, weight, dtype)
    return SUCCESS if good else status


def may_be_product(geometry: Geometry) -> bool:
    return geometry.groups == 1 and not any(geometry.around) and set(geometry.dilation) == {1}


MILLION, L1 = 10**6, 2**19


def forward_good(
    call: Call,
    geometry: Geometry,
    x: tuple[int, ...],
    y: tuple[int, ...],
    weight: tuple[int, ...],
    dtype: Dtype,
    volumes: bool = False,
) -> bool:
    """A convolution from x to y within the limits of its operator."""
    spatial = len(x) - 2
    on_950 = call.product == "Ascend950"
    of_axes = list(zip(geometry.stride, geometry.dilation, geometry.widest, weight[2:], strict=True))
    if on_950:
        numbers = [value for axis in of_axes for value in axis]
        small = all(value <= MILLION for value in (*x, *y, *numbers)) and prod(y[2:]) < 2**32
        if not volumes and spatial < 3:
            return small
        if not small or prod(x[2:]) * (4 if dtype == F32 else 2) >= 2**40:
            return False
    elif call.product not in convolution_table.A2_AND_A3 or spatial < 3:
        return True
    plane = of_axes[1:] if spatial == 3 else of_axes
    if any(s > 63 or d > 255 or p > 255 or k > 511 for s, d, p, k in plane):
        return False
    if prod(weight[-2:] if spatial > 1 else weight[-1:]) * (8 if dtype == F32 else 16) > 65535:
        return False
    return on_950 or loadable(call, geometry, x, y, weight, dtype)


def loadable(
    call: Call, geometry: Geometry, x: tuple[int, ...], y: tuple[int, ...], weight: tuple[int, ...], dtype: Dtype
) -> bool:
    """Rows for 16 positions, or the part of them that is read."""
    reach = geometry.reach(weight)
    bias = 16 * (4 if dtype == F32 else 2) if call.arguments.get("bias") else 0
    rows = (16 // y[4] + 1) * geometry.stride[1] + reach[1]
    if min(rows, x[3]) * x[4] * 32 + bias <= L1:
        return True
    pointwise = may_be_product(geometry) and {*weight[2:], *geometry.stride} == {1} and prod(x[2:]) < 65536
    columns = 15 * geometry.stride[2] + reach[2]
    return geometry.groups == 1 and not pointwise and min(reach[1], x[3]) * min(columns, x[4]) * 32 + bias <= L1


def input_gradient_good(
    call: Call,
    geometry: Geometry,
    large: tuple[int, ...],
    small: tuple[int, ...],
    weight: tuple[int, ...],
    dtype: Dtype,
) -> bool:
    """The transposed convolution from small to large within the limits of its operator."""
    if call.product not in convolution_table.A2_AND_A3 or len(large) != 5:
        return True
    kernel, reach = weight[2:], geometry.reach(weight)
    axes = list(zip(geometry.stride, geometry.dilation, geometry.widest, kernel, strict=True))
    if any(p > 255 or (d > 255 and k > 1) for _, d, p, k in axes) or geometry.stride[0] > 255:
        return False
    if any(s > 63 or k > 511 for s, _, _, k in axes[1:]):
        return False
    if dtype != F32 and geometry.groups == 1 and set(geometry.dilation) == {1}:
        return True
    spread_sizes = [size * s for size, s in zip(small[2:], geometry.stride, strict=True)]
    for i in (1, 2):
        behind = large[i + 2] - spread_sizes[i] + geometry.before[i]
        if reach[i] - 1 - geometry.before[i] > 255 or behind > 255:
            return False
    if max(large[4], spread_sizes[2]) > 4096:
        return False
    if dtype == F32:
        return True
    whole = 1 if large[4] > 16 else 16 // large[4] - 1 + (0 if 16 % large[4] == 0 else 2)
    rows = min(reach[1] + whole, spread_sizes[1])
    return rows * spread_sizes[2] * 32 + (kernel[1] * kernel[2] + 1) * 512 <= L1


def convolution_backward_nulls(call: Call) -> bool:
    """Null outputs and biasSizes are refused only if outputMask requests them."""
    mask = call["outputMask"]
    if len(mask) != 3:
        return False
    wanted = zip(mask, ("gradInput", "gradWeight", "gradBias"), strict=True)
    return all(call[name] is not None for on, name in wanted if on) and (not mask[2] or call["biasSizes"] is not None)


def convolution_backward(call: Call) -> int:
    """The checker of aclnnConvolutionBackward."""
    if not convolution_backward_nulls(call):
        return PARAM_NULLPTR
    if not convolution_backward_good(call):
        return PARAM_INVALID
    return SUCCESS if convolution_backward_inside(call) else INNER_NULLPTR


def convolution_backward_inside(call: Call) -> bool:
    """The refusals of the operators inside."""
    g, x, weight = (call.shape(name) for name in ("gradOutput", "input", "weight"))
    if 0 in x or 0 in weight:
        return True
    if call["groups"] > 65535 or weight[0] % call["groups"] != 0 or g[0] != x[0]:
        return False
    geometry = Geometry(call, len(x) - 2)
    dtype = products_dtype(call, ("gradOutput", "input", "weight"))
    large, small = (g, x) if geometry.transposed else (x, g)
    parts = list(zip(large[2:], small[2:], weight[2:], geometry.stride, strict=True))
    product = may_be_product(geometry) and (
        all(size == k and out == 1 for size, out, k, _ in parts)
        or all(k == s and out * k == size for size, out, k, s in parts)
    )
    if product and not geometry.transposed:
        return True
    good = True
    if call["outputMask"][0]:
        if not geometry.transposed:
            good = input_gradient_good(call, geometry, large, small, weight, dtype)
        elif published_gradients(call, len(x) - 2):
            good = forward_good(call, geometry, large, small, weight, dtype, volumes=True)
    if call["outputMask"][1] and call.product in convolution_table.A2_AND_A3 and len(x) == 5:
        good = good and all(value <= 255 for value in (*geometry.dilation[1:], *geometry.widest[1:]))
    return good


def convolution_backward_good(call: Call) -> bool:
    names = ("gradOutput", "input", "weight", "gradInput", "gradWeight")
    present = [name for name in names if call[name] is not None]
    if not supported(call) or not all(format_good(call, name) for name in present):
        return False
    gradients = (("gradInput", "input"), ("gradWeight", "weight"), ("gradBias", "gradOutput"))
    if call.product == "Ascend950" and any(
        call[gradient] is not None and call.dtype(gradient) != call.dtype(of) for gradient, of in gradients
    ):
        return False
    bias_format = call["transposed"] or call.product not in WITH_BF16 - {"host"}
    if call["gradBias"] is not None and not bias_format and call["gradBias"]["format"] != Format.ND:
        return False
    g, x, weight = (call.shape(name) for name in ("gradOutput", "input", "weight"))
    more = call["outputPadding"]
    if not values_good(call) or any(value < 0 for value in call["padding"]) or not mode_good(call, names[:3]):
        return False
    if not few_groups(call, published_gradients(call, len(x) - 2)):
        return False
    if call["transposed"]:
        stride = spread(call["stride"], max(len(more), len(call["stride"])))
        pairs = zip(spread(more, len(stride)), stride, strict=False)
        if any(value < 0 for value in more) or (len(x) == 5 and any(value >= s for value, s in pairs)):
            return False
    elif any(more):
        return False
    empty = 0 in x or 0 in weight
    if (not empty or call.product in NARROW) and not backward_shapes_good(call, g, x, weight):
        return False
    if empty and not backward_empty_good(call, x, weight):
        return False
    if len(x) == 5:
        promoted = convolution_table.promoted(call.dtypes(names[:3]))  # type: ignore[arg-type]
        half = call["cubeMathType"] == 2 or promoted != F32
        to_float = call["gradWeight"] is not None and call.dtype("gradWeight") == F32
        limited = call.product in ("Ascend910B", "Ascend910_93") and call["groups"] > 1
        return call.product not in NARROW and not (limited and half and to_float)
    return True


def backward_shapes_good(call: Call, g: tuple[int, ...], x: tuple[int, ...], weight: tuple[int, ...]) -> bool:
    """Rows 18 to 25."""
    spatial = len(x) - 2
    if not len(g) == len(x) == len(weight) or 0 in g or 0 in weight:
        return False
    expected = {"gradInput": x, "gradWeight": weight, "gradBias": (g[1],)}
    if any(call[name] is not None and call.shape(name) != shape for name, shape in expected.items()):
        return False
    if not lengths_good(call, spatial, spatial == 2) or not output_padding_length_good(call, spatial):
        return False
    geometry = Geometry(call, spatial)
    first, second = (x, g) if geometry.transposed else (g, x)
    published = published_gradients(call, spatial)
    divided_inside = published and (call.product == "Ascend950" or second[1] != geometry.groups)
    return (
        first[1] == weight[0]
        and second[1] == weight[1] * geometry.groups
        and (divided_inside or weight[0] % geometry.groups == 0)
        and geometry.kernel_fits(x, weight)
        and (geometry.output_of_gradient(x, weight, g) if geometry.transposed else g[2:] == geometry.output(x, weight))
        and (g[0] == x[0] or (published and spatial == 3))
        and geometry.countable(g if geometry.transposed else x)
    )


def output_padding_length_good(call: Call, spatial: int) -> bool:
    """A plane may have four values, of which the rest is unused."""
    return len(call["outputPadding"]) in ({1, 2, 4} if spatial == 2 else {1, spatial})


def backward_empty_good(call: Call, x: tuple[int, ...], weight: tuple[int, ...]) -> bool:
    """Row 17."""
    mask, groups, spatial = call["outputMask"], call["groups"], len(x) - 2
    channels = weight[1] * groups if call["transposed"] else weight[0]
    if mask[2] and call["biasSizes"] != [channels]:
        return False
    if mask[0] and x[0] != 0 and x[1] != 0:
        return False
    if call.product in NARROW:
        return True
    lengths = lengths_good(call, spatial, spatial == 2) and output_padding_length_good(call, spatial)
    if not lengths or weight[0] % groups != 0:
        return False
    if call["transposed"]:
        return weight[0] != 0 and x[1] == weight[0]
    if x[1] != weight[1] * groups:
        return False
    return len(weight) != len(x) or Geometry(call, spatial).kernel_fits(x, weight)


# ---- All operators

# The rules of operators that are not elementwise, or differ from the elementwise ones.
RULES: dict[str, Callable[[Call], int]] = {
    "aclnnGelu": gelu_by_tanh,
    "aclnnLayerNorm": layer_norm_forward,
    "aclnnLayerNormBackward": layer_norm_backward,
    "aclnnConvolution": convolution,
    "aclnnConvolutionBackward": convolution_backward,
    "aclnnCrossEntropyLoss": cross_entropy_forward,
    "aclnnCrossEntropyLossGrad": cross_entropy_backward,
    "aclnnFusedLinearOnlineMaxSum": online_max_sum,
    "aclnnFusedCrossEntropyLossWithMaxSum": loss_with_max_sum,
    "aclnnFusedLinearCrossEntropyLossGrad": linear_loss_grad,
    "aclnnHostLinearCrossEntropy": host_linear_loss,
    "aclnnRmsNorm": rms_norm_forward,
    "aclnnRmsNormGrad": rms_norm_backward,
}
TABLES = {table.operator.api: table for table in all_tables()}


def null_pointers(call: Call) -> bool:
    """Required pointers; a convolution's outputPadding is required if it is transposed."""
    required = [
        name
        for name, value in call.operator.arguments.items()
        if not isinstance(value, (bool, int, float)) and name not in call.operator.optional
    ]
    if call.operator is convolution_table.FORWARD and call["transposed"]:
        required.append("outputPadding")
    given = call.case["workspaceSize"] and call.case["executor"]
    return not given or any(call[name] is None for name in required)


def stage1_status(call: Call) -> int:
    """The status of the first failing check."""
    if null_pointers(call):
        return PARAM_NULLPTR
    if call.product in call.operator.missing:
        return FIND_KERNEL_ERROR
    status = RULES.get(call.operator.api, elementwise)(call)
    if status == SUCCESS and not all(addressable(call[name]) for name in looked_at(call)):
        return PARAM_INVALID
    return status


def elements_met(call: Call, name: str) -> int:
    """The relevant elements of a tensor; none if it is broadcast to an empty output."""
    of = [name, *call.tensors[-1:]] if call.operator.broadcasts else [name]
    return min(count(call.shape(each)) for each in of)  # type: ignore[type-var, return-value]


def expected(api: str, case: dict[str, Any]) -> Expected:
    """The valid statuses of a case."""
    call = Call(TABLES[api], case)
    status = stage1_status(call)
    if status != SUCCESS:
        return Expected({status})
    counts = [count(call.shape(name)) for name in looked_at(call)]
    large = max([*counts, logit_count(call)]) * 64 > MOST_MEMORY  # type: ignore[type-var, operator]
    statuses = {SUCCESS, CREATE_EXECUTOR} if large else {SUCCESS}
    addresses = all(call[name]["data"] or not elements_met(call, name) for name in written_or_read(call))
    # The workspace is checked first; the table does not give its size.
    if case["stage2"] in (PARAM_NULLPTR, PARAM_INVALID):
        workspace = {PARAM_NULLPTR: case["null_workspace"], PARAM_INVALID: case["small_workspace"]}
        return Expected(
            statuses, case["stage2"] if workspace[case["stage2"]] else SUCCESS if addresses else PARAM_NULLPTR
        )
    stream = {SUCCESS}
    if "ignoreIndex" in call.arguments:
        stream = bad_class(call) if call.operator is linear_cross_entropy_table.OURS else bad_labels(call)
    return Expected(statuses, SUCCESS if addresses else PARAM_NULLPTR, stream)


def wrong(api: str, case: dict[str, Any]) -> str | None:
    """The error in a case's statuses, if any."""
    want = expected(api, case)
    if case["stage1"] not in want.stage1:
        return f"stage 1 returned {case['stage1']}, expected {sorted(want.stage1)}"
    if case["stage2"] is not None and case["stage2"] != want.stage2:
        return f"stage 2 returned {case['stage2']}, expected {want.stage2}"
    if case["stream"] is not None and case["stream"] not in want.stream:
        return f"the stream returned {case['stream']}, expected {sorted(want.stream)}"
    return None
