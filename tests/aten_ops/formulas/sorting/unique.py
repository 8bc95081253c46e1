from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:3,-1,2,3,0.5,-1,3,7"
ROWS = "FLOAT[4,2]:3,-1,2,0.5,3,-1,-4,6"
OUT = "valueOut=FLOAT[8] inverseOut=INT64[2,4]"


@formula("aclnnUnique", calls=[f"aclnnUnique self={X} sorted=true returnInverse=true {OUT}"])
def unique(self, _sorted, _return_inverse):
    values, inverse = np.unique(self, return_inverse=True)
    return values, inverse.reshape(self.shape)


@formula(
    "aclnnUnique2",
    calls=[f"aclnnUnique2 self={X} sorted=true returnInverse=true returnCounts=true {OUT} countsOut=INT64[8]"],
)
def unique_2(self, _sorted, _return_inverse, _return_counts):
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    return values, inverse.reshape(self.shape), counts


@formula(
    "aclnnUniqueDim",
    calls=[
        f"aclnnUniqueDim self={ROWS} sorted=true returnInverse=true dim=0 valueOut=FLOAT[4,2] inverseOut=INT64[4]"
        " countsOut=INT64[4]"
    ],
)
def unique_dim(self, _sorted, _return_inverse, dim):
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts


# dim 1000 stands for the elements of all dimensions.
@formula(
    "aclnnUniqueConsecutive",
    calls=[
        f"aclnnUniqueConsecutive self={self} returnInverse=true returnCounts=true dim={dim} valueOut=FLOAT[{size}]"
        f" inverseOut=INT64[{inverse}] countsOut=INT64[6]"
        for self, dim, size, inverse in (
            ("FLOAT[2,3]:3,3,-1,-1,-1,3", 1000, "6", "2,3"),
            ("FLOAT[6,2]:3,-1,3,-1,2,5,3,-1,0,7,0,7", 0, "6,2", "6"),
        )
    ],
)
def unique_consecutive(self, _return_inverse, _return_counts, dim):
    rows = self.reshape(-1) if dim == 1000 else np.moveaxis(self, dim, 0)
    is_first = np.array([i == 0 or np.any(rows[i] != rows[i - 1]) for i in range(len(rows))], bool)
    inverse = np.cumsum(is_first) - 1
    values = rows[is_first] if dim == 1000 else np.moveaxis(rows[is_first], 0, dim)
    return values, inverse.reshape(self.shape if dim == 1000 else -1), np.bincount(inverse)


# ops-math: conversion/coalesce_sparse/README.md. The kernel adds to newValuesOut, which the caller fills with zeros.
@formula(
    "aclnnCoalesceSparse",
    calls=[
        "aclnnCoalesceSparse uniqueLen=INT32[3] uniqueIndices=INT32[4]:0,1,0,2 indices=INT64[4,2]:0,1,2,2,0,1,3,0 "
        "values=FLOAT[4,2]:-0.125,-0.25,0.75,-1.5,1.5,-0.625,0.25,1.875 newIndicesOut=INT64[3,2]:0 "
        "newValuesOut=FLOAT[3,2]:0",
        "aclnnCoalesceSparse uniqueLen=INT64[4] uniqueIndices=INT64[4]:3,0,2,1 indices=INT32[4,2]:0,1,2,2,0,1,3,0 "
        "values=INT32[4]:5,6,7,8 newIndicesOut=INT32[4,2]:0 newValuesOut=INT32[4]:1,0,0,0",
    ],
)
def coalesce(_count, places, indices, values, new_indices, new_values):
    new_indices, new_values = new_indices.copy(), new_values.copy()
    for place, index, value in zip(places, indices, values, strict=True):
        new_indices[place] = index
        new_values[place] += value
    return new_indices, new_values
