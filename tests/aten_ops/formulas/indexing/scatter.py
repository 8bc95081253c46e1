from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import wrapped
from tests.aten_ops.formulas import formula

REPLACE, ADD, MULTIPLY = 0, 1, 2
INTEGERS = "5,-4,3,-2,1,9"


@formula(
    *("aclnnScatter", "aclnnInplaceScatter", "aclnnScatterValue", "aclnnInplaceScatterValue"),
    calls=[
        f"aclnnScatter self=FLOAT[4,5] dim={dim} index=INT64[2,3]:{index} src=FLOAT[3,3]:1.5,-2,3.25,-4,5,6.75,7,8,9"
        f" reduce={reduce} out=FLOAT[4,5]"
        for dim, index, reduce in (
            (0, "3,1,0,2,0,3", REPLACE),
            (-1, "4,0,2,3,2,0", REPLACE),
            (0, "3,1,0,3,0,0", ADD),
            (1, "4,4,2,3,2,3", MULTIPLY),
        )
    ]
    + [
        f"aclnnScatter self=INT32[2,3]:{INTEGERS} dim=1 index=INT64[2,2]:2,0,0,1 src=INT32[2,2]:-7,8,10,-11 reduce=0"
        " out=INT32[2,3]",
        f"aclnnScatterValue self=INT32[2,3]:{INTEGERS} dim=0 index=INT64[1,2]:1,0 value=INT64(-7) reduce=0"
        " out=INT32[2,3]",
        "aclnnScatterValue self=FLOAT[4,5] dim=0 index=INT64[2,3]:3,1,0,3,0,2 value=DOUBLE(-2.5) reduce=1"
        " out=FLOAT[4,5]",
        "aclnnInplaceScatterValue selfRef=FLOAT[4,5] dim=0 index=INT64[2,3]:3,1,0,3,0,2 value=DOUBLE(-2.5) reduce=2",
    ]
    # Few of many elements: the row looks at these only.
    + [
        f"aclnnInplaceScatter{name} reduce={reduce}"
        for reduce in (REPLACE, ADD, MULTIPLY)
        for name in (
            "Value selfRef=FLOAT16[40,30] dim=0 index=INT64[2,3]:3,1,0,3,39,2 value=DOUBLE(-2.5)",
            " selfRef=BFLOAT16[40,30] dim=-1 index=INT64[2,3]:3,1,0,3,3,29 src=BFLOAT16[3,3]:2,-1,4,0.5",
        )
        if (name[0], reduce) != (" ", REPLACE)  # of several sources of one element, any may win
    ],
)
def scatter(self, dim, index, src, reduce):
    result = self.copy()
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = index[place]
        value = src[place] if isinstance(src, np.ndarray) else src
        old = result[tuple(target)]
        result[tuple(target)] = (value, old + value, old * value)[reduce]
    return result


@formula(
    "aclnnScatterAdd",
    calls=[
        f"aclnnScatterAdd self=INT32[2,3]:{INTEGERS} dim=1 index=INT64[2,2]:2,2,0,1 src=INT32[2,2]:-7,8,10,-11"
        " out=INT32[2,3]",
    ],
)
def scatter_add(self, dim, index, src):
    return scatter(self, dim, index, src, ADD)


@formula(
    "aclnnScatterMul",
    calls=[
        "aclnnScatterMul varRef=FLOAT[3,2] indices=INT64[2,2]:2,0,2,0 updates=FLOAT[2,2,2]:1.5,-2,3.25,-4,5,6.75,7,8"
        " useLocking=false",
        f"aclnnScatterMul varRef=INT32[3,2]:{INTEGERS} indices=INT64[2]:2,0 updates=INT32[2,2]:-7,8,10,-11"
        " useLocking=false",
        "aclnnScatterMul varRef=UINT8[3]:1,2,3 indices=INT64[2]:2,2 updates=UINT8[2]:3,2 useLocking=false",
        "aclnnScatterMul varRef=BFLOAT16[40,30] indices=INT64[3]:39,2,39 updates=BFLOAT16[3,30]:3,2 useLocking=false",
    ],
)
def scatter_multiply(var, indices, updates, use_locking):
    result = var.copy()
    for place in np.ndindex(indices.shape):
        result[indices[place]] *= updates[place]
    return result


def combined(var, indices, updates, function):
    result = var.copy()
    for place in np.ndindex(indices.shape):
        result[indices[place]] = function(result[indices[place]], updates[place])
    return result


EXTREMES = (
    "varRef=FLOAT[3,2]:1.5,-2,3.25,-4,5,-1 indices=INT64[2,2]:2,0,2,0 updates=FLOAT[2,2,2]:6.5,-3,0.25,7,-8,9,1,-7.5 "
    "useLocking=false"
)


# ops-nn: aclnnScatterDiv.md. Quotients of integers are truncated, and wrap around.
@formula(
    "aclnnScatterDiv",
    calls=[
        "aclnnScatterDiv varRef=FLOAT[3,2]:1,2,3,-4,7,5 indices=INT32[2,2]:1,1,2,0 "
        "updates=FLOAT[2,2,2]:3,2,-2,4,5,-0.5,0.75,9 useLocking=false",
        "aclnnScatterDiv varRef=INT32[4]:-99,-7,3,13 indices=INT64[4]:0,1,1,3 updates=INT32[4]:4,2,-1,-5 "
        "useLocking=false",
        "aclnnScatterDiv varRef=INT32[3]:-2147483648,-7,3 indices=INT64[3]:0,1,1 updates=INT32[3]:-1,2,-1 "
        "useLocking=false",
        "aclnnScatterDiv varRef=FLOAT[2]:1,2 indices=INT64[0] updates=FLOAT[0] useLocking=false",
        "aclnnScatterDiv varRef=FLOAT16[40,30] indices=INT64[3]:39,2,39 updates=FLOAT16[3,30]:3,2 useLocking=false",
    ],
)
def scatter_divide(var, indices, updates, use_locking, outputs):
    quotients = combined(var, indices, updates, lambda x, y: x / y if var.dtype == float else np.trunc(x / y))
    return wrapped(quotients, outputs["varRef"])


# ops-nn: aclnnTfScatterAdd.md. The updates are for indices of the first dimension, or else for coordinates.
@formula(
    "aclnnTfScatterAdd",
    calls=[
        "aclnnTfScatterAdd varRef=FLOAT[3,2]:1.5,-2,3,-4,5,9 indices=INT64[2,2]:2,0,2,1 "
        "updates=FLOAT[2,2,2]:0.5,-3,7,8,-9,10,0.25,1",
        "aclnnTfScatterAdd varRef=FLOAT[3,2]:1,-2,3,4,5,9 indices=INT32[4,2]:0,1,1,0,2,1,2,1 updates=FLOAT[4]:5,6,7,8",
        "aclnnTfScatterAdd varRef=FLOAT[3,2]:1.5,-2,3,-4,5,9 indices=INT32[2,1]:0,2 updates=FLOAT[2,2]:5,6,7,8.5",
        f"aclnnTfScatterAdd varRef=INT32[3,2]:{INTEGERS} indices=INT64[3]:0,2,2 updates=INT32[3,2]:7,-8,10,12,4,5",
        "aclnnTfScatterAdd varRef=FLOAT[0] indices=INT64[0] updates=FLOAT[0]",
        # Few of many elements: the row looks at these only.
        *(
            f"aclnnTfScatterAdd varRef={dtype}[40,6,5] indices=INT64[4,{depth}]:{indices} updates={dtype}{updates}"
            for dtype in ("FLOAT", "FLOAT16")
            for depth, indices, updates in ((1, "0,39,7,7", "[4,6,5]:2,-1,4"), (2, "0,1,7,2,7,2,39,5", "[4,5]:2,-1,4"))
        ),
    ],
)
def tf_scatter_add(var, indices, updates):
    if updates.shape == (*indices.shape, *var.shape[1:]):
        return combined(var, indices, updates, np.add)
    return at_coordinates(var, indices, updates, np.add)


def at_coordinates(var, indices, updates, function=lambda old, new: new):
    """The last dimension of indices has coordinates. Those out of range are skipped."""
    result = var.copy()
    for place in np.ndindex(indices.shape[:-1]):
        at = tuple(indices[place])
        if all(0 <= i < size for i, size in zip(at, var.shape[: len(at)], strict=True)):
            result[at] = function(result[at], updates[place])
    return result


# ops-nn: aclnnScatterNd.md, aclnnScatterNdUpdate.md and the row's note on indices out of range
@formula(
    "aclnnScatterNd",
    "aclnnScatterNdUpdate",
    calls=[
        "aclnnScatterNd data=BOOL[2,2]:1,1,0,0 indices=INT64[1]:1 updates=BOOL[2]:1,0 out=BOOL[2,2]",
        "aclnnScatterNd data=FLOAT[4,2] indices=INT64[3,1]:2,0,3 updates=FLOAT[3,2]:-7,8,9,-4,5,6 out=FLOAT[4,2]",
        "aclnnScatterNd data=FLOAT[2,3] indices=INT32[2,2,2]:1,0,0,2,0,1,1,2 updates=FLOAT[2,2]:7,8,9,4 out=FLOAT[2,3]",
        "aclnnScatterNdUpdate varRef=FLOAT[3,2,2] indices=INT32[2,2]:0,1,2,1 updates=FLOAT[2,2]:8,9,-7,5",
        "aclnnScatterNdUpdate varRef=FLOAT[3,2] indices=INT32[4,2]:0,1,2,2,-1,0,2,1 updates=FLOAT[4]:8,9,-7,5",
        "aclnnScatterNdUpdate varRef=INT8[3,2]:1,2,3,4,5,6 indices=INT64[2,1]:2,0 updates=INT8[2,2]:9,8,7,-6",
    ],
)
def scatter_nd(var, indices, updates):
    return at_coordinates(var, indices, updates)


# ops-nn: aclnnInplaceScatterUpdate.md. An index is the start of updates[i] in data[i]; a pair is the number in data and
# the start.
@formula(
    "aclnnInplaceScatterUpdate",
    calls=[
        f"aclnnInplaceScatterUpdate data=FLOAT[{data}]:1,2,3,4,5,6,7,8,9,10,11,12 indices=INT64{indices} "
        f"updates=FLOAT[{updates}]:8.5,-9,20,-21,0.5,0.25,-7,13 axis={axis}"
        for data, indices, updates, axis in (
            *(("2,1,4", "[2]:3,0", "2,1,1", -1), ("2,3,2", "[2]:1,0", "2,2,2", 1), ("2,3,2", "[1]:1", "1,2,2", -2)),
            *(("3,4", "[2,2]:2,1,0,2", "2,2", 1), ("2,3,2", "[]:1", "1,2,2", -2)),
        )
    ],
)
def scatter_update(data, indices, updates, axis):
    result, axis = data.copy(), axis % data.ndim - 1
    for i, index in enumerate(np.atleast_1d(indices)):
        number, start = index if indices.ndim == 2 else (i, index)
        part = np.moveaxis(updates[i], axis, 0)
        np.moveaxis(result[number], axis, 0)[start : start + len(part)] = part
    return result


@formula(
    "aclnnScatterMax",
    calls=[
        f"aclnnScatterMax {EXTREMES}",
        "aclnnScatterMax varRef=FLOAT[3,2]:1,2,3,4,5,6 indices=INT64[2]:0,0 updates=FLOAT[2,2]:3,1,2,7 "
        "useLocking=false",
    ],
)
def scatter_max(var, indices, updates, use_locking):
    return combined(var, indices, updates, np.maximum)


@formula(
    "aclnnScatterMin",
    calls=[
        f"aclnnScatterMin {EXTREMES}",
        "aclnnScatterMin varRef=INT32[3]:1,2,3 indices=INT64[2,1]:2,2 updates=INT32[2,1]:-3,1 useLocking=true",
    ],
)
def scatter_min(var, indices, updates, use_locking):
    return combined(var, indices, updates, np.minimum)


# Without includeSelf an element starts with the first value that reaches it; one that no value reaches stays (ops-nn:
# aclnnScatterReduce&aclnnInplaceScatterReduce.md).
@formula(
    "aclnnScatterReduce",
    "aclnnInplaceScatterReduce",
    calls=[
        f"{name}=FLOAT[3,4]:1.5,-2,3.25,-4,5,-1,0.5,8,-9.5,2.25,7,-6 dim={dim} index=INT64[3,3]:2,0,2,0,1,2,0,0,1 "
        f"src=FLOAT[3,3]:-3.5,2,6.75,-7,8.25,9,10,0.25,-12 reduce={reduce} includeSelf={flag}{out}"
        for name, out in (("aclnnScatterReduce self", " out=FLOAT[3,4]"), ("aclnnInplaceScatterReduce selfRef", ""))
        for dim, reduce, flag in (
            *((0, reduce, "true") for reduce in (1, 2, 3, 4, 5)),
            *((-1, reduce, "false") for reduce in (1, 2, 3, 4, 5)),
        )
    ]
    + [
        "aclnnInplaceScatterReduce selfRef=FLOAT[3,4] dim=1 index=INT64[3,2]:3,0,0,1,2,3 src=FLOAT[3,2]:-3,2,6,-7,8,9 "
        "reduce=0 includeSelf=true"
    ]
    + [
        "aclnnInplaceScatterReduce selfRef=INT32[2,2]:1,2,3,4 dim=1 index=INT64[2,2]:0,0,1,0 "
        "src=INT32[2,2]:5,6,7,8 reduce=1 includeSelf=true",
    ]
    + [
        f"aclnnInplaceScatterReduce selfRef={dtype}[40,30] dim=0 index=INT64[3,2]:3,0,39,1,3,3 "
        f"src={dtype}[3,2]:-3,2,6,-7,8,9 reduce={reduce} includeSelf={flag}"
        for dtype in ("FLOAT", "BFLOAT16")
        for reduce in (1, 2, 3, 4, 5)
        for flag in ("true", "false")
    ],
)
def scatter_reduce(self, dim, index, src, reduce, include_self):
    result, counts = self.copy(), np.full(self.shape, int(include_self))
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = index[place]
        at, value = tuple(target), src[place]
        old = result[at]
        combinations = value, old + value, old * value, max(old, value), min(old, value), old + value
        result[at] = combinations[reduce] if counts[at] else value
        counts[at] += 1
    return result / np.maximum(counts, 1) if reduce == 5 else result
