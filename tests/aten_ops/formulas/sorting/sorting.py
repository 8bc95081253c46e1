from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,3,-4,0.25,1"
WITH_NAN = "FLOAT[2,4]:-2.5,nan,-0.5,1.5,3,-4,nan,1"
# Values that differ along all dimensions, of made-up sizes too: the order of equal elements is open.
DISTINCT = "-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-6,7,2.25,-8,5"
INTEGERS = "INT32[2,4]:-3,2,-7,5,0,-1,4,-6"


def ordered(self, dim):
    """The elements in ascending order, NaN last, and their indices."""
    order = np.argsort(self, dim, kind="stable")
    return np.take_along_axis(self, order, dim), order


def of_sorted(self, k, dim, keep):
    """The element at place k (from 0) and its index."""
    places = np.expand_dims(np.broadcast_to(k, np.delete(self.shape, dim)), dim)
    results = [np.take_along_axis(each, places, dim) for each in ordered(self, dim)]
    return tuple(each if keep else each.squeeze(dim) for each in results)


@formula(
    "aclnnSort",
    calls=[
        f"aclnnSort self={values} stable={stable} dim={dim} descending={descending} "
        f"valuesOut={dtype}[2,4] indicesOut=INT64[2,4]"
        for values, dtype in ((X, "FLOAT"), (INTEGERS, "INT32"))
        for stable, dim, descending in (("false", -1, "false"), ("true", 1, "true"), ("true", 0, "false"))
    ],
)
def sort(self, _stable, dim, descending):
    values, order = ordered(self, dim)
    return (np.flip(values, dim), np.flip(order, dim)) if descending else (values, order)


# ops-math: aclnnArgsort.md. The order of equal elements is open.
@formula(
    "aclnnArgsort",
    calls=[
        f"aclnnArgsort self=FLOAT[2,4]:{DISTINCT} dim={dim} descending={descending} out=INT64[2,4]"
        for dim, descending in ((-1, "false"), (1, "true"), (0, "true"))
    ]
    + ["aclnnArgsort self=UINT16[3]:1,65535,2,300,40,7,5,60,9,8,1000,11 dim=0 descending=true out=INT64[3]"],
)
def argsort(self, dim, descending):
    return sort(self, True, dim, descending)[1]


# ops-math: aclnnSortWithIndex.md. NaN is first in both orders, and equal elements keep their order.
@formula(
    "aclnnSortWithIndex",
    calls=[
        f"aclnnSortWithIndex x={x} index=INT32[{shape}]:9,8,7,6,5,4,3,2 axis={axis} descending={descending} "
        f"stable=true valuesOut={x[: x.find('[')]}[{shape}] indicesOut=INT32[{shape}]"
        for x, shape, axis, descending in (
            ("FLOAT[5]:3,1,4,1.5,2", "5", -1, "false"),
            ("FLOAT[5]:2,nan,1,nan,-inf", "5", 0, "false"),
            ("FLOAT[4]:2,nan,1,nan", "4", 0, "true"),
            ("INT32[2,3]:3,1,3,5,6,4", "2,3", 1, "true"),
            ("FLOAT[2,4]:3,1,3,5,6,4,2.5,4", "2,4", -1, "false"),
            ("FLOAT[2,0]", "2,0", 1, "true"),
        )
    ]
    + [
        "aclnnSortWithIndex x=FLOAT[]:2 index=INT32[]:7 axis=-1 descending=true stable=true valuesOut=FLOAT[] "
        "indicesOut=INT32[]"
    ],
)
def sort_with_index(x, index, axis, descending, _stable):
    if x.ndim == 0:
        return x, index
    keys = np.where(np.isnan(x), -np.inf, -x if descending else x)
    order = np.lexsort((keys, ~np.isnan(x)), axis)
    return np.take_along_axis(x, order, axis), np.take_along_axis(index, order, axis)


@formula(
    "aclnnKthvalue",
    calls=[
        f"aclnnKthvalue self={X} k=3 dim=1 keepdim=true valuesOut=FLOAT[2,1] indicesOut=INT64[2,1]",
        f"aclnnKthvalue self={X} k=1 dim=0 keepdim=false valuesOut=FLOAT[4] indicesOut=INT64[4]",
        f"aclnnKthvalue self={INTEGERS} k=2 dim=-1 keepdim=false valuesOut=INT32[2] indicesOut=INT64[2]",
    ],
)
def kthvalue(self, k, dim, keep):
    return of_sorted(self, k - 1, dim, keep)


@formula(
    "aclnnMedian",
    calls=[
        f"aclnnMedian self={X} valuesOut=FLOAT[]",
        f"aclnnMedian self={WITH_NAN} valuesOut=FLOAT[]",
        f"aclnnMedian self={INTEGERS} valuesOut=INT32[]",
    ],
)
def median(self):
    """The lower one of two medians."""
    return np.nan if self.size == 0 or np.isnan(self).any() else np.sort(self.ravel())[(self.size - 1) // 2]


@formula(
    "aclnnMedianDim",
    calls=[
        f"aclnnMedianDim self={X} dim=-1 keepDim=true valuesOut=FLOAT[2,1] indicesOut=INT64[2,1]",
        f"aclnnMedianDim self={X} dim=0 keepDim=false valuesOut=FLOAT[4] indicesOut=INT64[4]",
        f"aclnnMedianDim self={INTEGERS} dim=1 keepDim=false valuesOut=INT32[2] indicesOut=INT64[2]",
    ],
)
def median_dim(self, dim, keep):
    return of_sorted(self, (self.shape[dim] - 1) // 2, dim, keep)


@formula(
    "aclnnNanMedian",
    calls=[f"aclnnNanMedian self={WITH_NAN} out=FLOAT[]", f"aclnnNanMedian self={INTEGERS} out=INT32[]"],
)
def nan_median(self):
    return median(self[~np.isnan(self)])


@formula(
    "aclnnNanMedianDim",
    calls=[
        f"aclnnNanMedianDim self={WITH_NAN} dim=-1 keepDim=true valuesOut=FLOAT[2,1] indicesOut=INT64[2,1]",
        f"aclnnNanMedianDim self={WITH_NAN} dim=0 keepDim=false valuesOut=FLOAT[4] indicesOut=INT64[4]",
        f"aclnnNanMedianDim self={INTEGERS} dim=1 keepDim=false valuesOut=INT32[2] indicesOut=INT64[2]",
    ],
)
def nan_median_dim(self, dim, keep):
    return of_sorted(self, ((~np.isnan(self)).sum(dim) - 1) // 2, dim, keep)


@formula(
    *("aclnnTopk", "aclnnTopkV2"),
    calls=[
        f"aclnn{name} self=FLOAT[{shape}]:{DISTINCT} k=2 dim={dim} largest={largest} sorted=true {policy}"
        f"valuesOut=FLOAT[{out}] indicesOut=INT64[{out}]"
        for name, policy in (("Topk", ""), ("TopkV2", "sortPolicy=1 "))
        for shape, dim, largest, out in (("2,5", -1, "true", "2,2"), ("4,3", 0, "false", "2,3"))
    ]
    + [
        f"aclnn{name} self=INT32[1,4]:3,1,4,2,9,-5,8,7,0 k=2 dim=1 largest=true sorted=true "
        f"{policy}valuesOut=INT32[1,2] indicesOut=INT64[1,2]"
        for name, policy in (("Topk", ""), ("TopkV2", "sortPolicy=1 "))
    ],
)
def topk(self, k, dim, largest, _sorted, _policy=None):
    values, order = sort(self, True, dim, largest)
    return np.take(values, np.arange(k), dim), np.take(order, np.arange(k), dim)
