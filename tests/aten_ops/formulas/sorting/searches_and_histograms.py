from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from tests.aten_ops.formulas import formula

SORTED = "FLOAT[5]:-2.5,-0.5,0.25,1.5,3"
ROWS = "FLOAT[2,4]:-2.5,-0.5,0.75,1.5,-4,0.25,1,3"
X = "FLOAT[2,4]:0.75,-0.5,-3,3.5,1.5,-1,0.25,2"
ORDER = "INT64[5]:3,0,4,1,2"
UNSORTED = "FLOAT[5]:-0.5,1.5,3,-2.5,0.25"


def search(sequence, values, right):
    """The places of values in the last dimension of the sequence: before elements that are equal, or after them."""
    place = bisect_right if right else bisect_left
    if sequence.ndim == 1:
        return np.vectorize(lambda value: place(list(sequence), value), otypes=[np.int64])(values)
    if values.size == 0:
        return np.zeros(values.shape, np.int64)
    return np.stack([search(*pair, right) for pair in zip(sequence, values, strict=True)])


@formula(
    "aclnnBucketize",
    calls=[
        f"aclnnBucketize self={X} boundaries={SORTED} outInt32=false right=false out=INT64[2,4]",
        f"aclnnBucketize self={X} boundaries={SORTED} outInt32=true right=true out=INT32[2,4]",
    ],
)
def bucketize(self, boundaries, _int32, right):
    return search(boundaries, self, right)


@formula(
    "aclnnSearchSorted",
    "aclnnSearchSorteds",
    calls=[
        f"aclnnSearchSorted sortedSequence={SORTED} self={X} outInt32=true right=true sorter=null out=INT32[2,4]",
        f"aclnnSearchSorted sortedSequence={ROWS} self={X} outInt32=false right=false sorter=null out=INT64[2,4]",
        f"aclnnSearchSorted sortedSequence={UNSORTED} self={X} outInt32=false right=false sorter={ORDER} "
        "out=INT64[2,4]",
        *(
            f"aclnnSearchSorteds sortedSequence={SORTED} self=DOUBLE(0.25) outInt32=false right={right} sorter=null "
            "out=INT64[]"
            for right in ("false", "true")
        ),
        f"aclnnSearchSorteds sortedSequence={UNSORTED} self=DOUBLE(1.5) outInt32=true right=false sorter={ORDER} "
        "out=INT32[]",
    ],
)
def search_sorted(sequence, values, _int32, right, sorter):
    in_order = sequence if sorter is None else np.take_along_axis(sequence, sorter, -1)
    return search(in_order, np.asarray(values), right)


@formula(
    "aclnnBincount",
    calls=[
        "aclnnBincount self=INT64[7]:3,0,2,3,5,3,2 weights=FLOAT[7]:0.5,-1.25,2,0.75,-1.5,3,1.75 minlength=4 "
        "out=FLOAT[6]",
        "aclnnBincount self=INT64[7]:3,0,2,3,5,3,2 weights=null minlength=8 out=INT64[8]",
    ],
)
def bincount(self, weights, minlength):
    bins = range(max(self.max(initial=-1) + 1, minlength))
    return np.array([((self == i) * (1 if weights is None else weights)).sum() for i in bins])


# ops-math: aclnnHistc.md. Elements outside the range do not count; equal ends mean those of the elements.
@formula(
    "aclnnHistc",
    calls=[
        f"aclnnHistc self={dtype}[2,5]:-3,-1,0,1,1,2,3,3,2,7 bins=4 min=FLOAT({low}) max=FLOAT({high}) out={dtype}[4]"
        for dtype in ("FLOAT", "INT32")
        for low, high in ((-1, 3), (0, 0))
    ],
)
def histc(self, bins, low, high):
    if low == high and self.size:
        low, high = self.min(), self.max()
    return np.histogram(self, bins, (low, high))[0]
