from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

INTEGERS = "5,-4,3,-2,1,9,8,-7,6,10,-11,12"


@formula(
    "aclnnIndex",
    calls=[
        "aclnnIndex self=FLOAT[4,5] indices={INT64[3]:3,-4,1 INT64[3]:0,4,-2} out=FLOAT[3]",
        "aclnnIndex self=FLOAT[4,5] indices={INT64[0] INT64[2,2]:3,0,4,-4} out=FLOAT[4,2,2]",
        f"aclnnIndex self=INT32[3,4]:{INTEGERS} indices={{INT64[2,1]:2,0 INT64[3]:1,3,0}} out=INT32[2,3]",
    ],
)
def index(self, indices):
    return self[tuple(each if each.size else slice(None) for each in indices)]


@formula(
    "aclnnIndexAdd",
    calls=[
        "aclnnIndexAdd self=FLOAT[3,4] dim=1 index=INT64[3]:3,0,3 source=FLOAT[3,3]:1.5,-2,3.25,-4,5,6.75,-7,8,9"
        " alpha=FLOAT(-0.5) out=FLOAT[3,4]",
        f"aclnnIndexAdd self=INT32[3,4]:{INTEGERS} dim=0 index=INT64[2]:2,2 source=INT32[2,4]:-1,2,3,-4,5,6,-7,8"
        " alpha=INT64(3) out=INT32[3,4]",
    ],
)
def index_add(self, dim, index, source, alpha):
    result = np.moveaxis(self.copy(), dim, 0)
    for i, row in zip(index, np.moveaxis(source, dim, 0), strict=True):
        result[i] += (alpha * row).astype(self.dtype)
    return np.moveaxis(result, 0, dim)


# ops-nn: aclnnIndexAddV2.md. In mode 0, alpha does not take part.
@formula(
    "aclnnIndexAddV2",
    calls=[
        "aclnnIndexAddV2 self=FLOAT[3,2] dim=-2 index=INT64[3]:2,0,2 source=FLOAT[3,2]:1.5,-2,3.25,-4,5,6.75 "
        f"alpha=DOUBLE(2.5) mode={mode} out=FLOAT[3,2]"
        for mode in (0, 1)
    ]
    + [
        "aclnnIndexAddV2 self=FLOAT[2,2,3] dim=2 index=INT32[2]:2,0 source=FLOAT[2,2,2]:1.5,-2,3.25,-4,5,6.75,-7,8 "
        "alpha=DOUBLE(-0.5) mode=1 out=FLOAT[2,2,3]",
    ],
)
def index_add_v2(self, dim, index, source, alpha, mode):
    return index_add(self, dim, index, source, 1 if mode == 0 else alpha)


@formula(
    "aclnnIndexCopy",
    "aclnnInplaceIndexCopy",
    calls=[
        "aclnnIndexCopy selfRef=FLOAT[3,4] dim=1 index=INT64[2]:3,0 source=FLOAT[3,2]:1.5,-2,3.25,-4,5,6.75"
        " outRef=FLOAT[3,4]",
        f"aclnnIndexCopy selfRef=INT32[3,4]:{INTEGERS} dim=0 index=INT64[1]:2 source=INT32[1,4]:-1,2,3,-4"
        " outRef=INT32[3,4]",
    ],
)
def index_copy(self, dim, index, source):
    result = np.moveaxis(self.copy(), dim, 0)
    result[index] = np.moveaxis(source, dim, 0)
    return np.moveaxis(result, 0, dim)


@formula(
    *("aclnnIndexFill", "aclnnInplaceIndexFill", "aclnnIndexFillTensor", "aclnnInplaceIndexFillTensor"),
    calls=[
        f"aclnnIndexFill self=INT32[3,4]:{INTEGERS} dim=1 index=INT64[2]:3,0 value=INT64(-20) out=INT32[3,4]",
        f"aclnnIndexFillTensor self=INT32[3,4]:{INTEGERS} dim=1 index=[2,1] value=INT64(-20) out=INT32[3,4]",
        "aclnnInplaceIndexFillTensor selfRef=FLOAT[2,3]:1,2,3,4,5,6 dim=1 index=[2,0] value=FLOAT(9)",
        "aclnnInplaceIndexFillTensor selfRef=INT32[3]:1,2,3 dim=0 index=[-1] value=INT32(7)",
    ],
)
def index_fill(self, dim, index, value):
    count, index = self.shape[dim], np.asarray(index, np.int64)
    is_filled = np.isin(np.arange(count), np.where(index < 0, index + count, index))
    return np.moveaxis(np.where(is_filled, value, np.moveaxis(self, dim, -1)), -1, dim)


@formula(
    "aclnnIndexSelect",
    calls=[f"aclnnIndexSelect self=INT32[3,4]:{INTEGERS} dim=0 index=INT64[4]:2,0,2,1 out=INT32[4,4]"],
)
def index_select(self, dim, index):
    return np.moveaxis(np.moveaxis(self, dim, 0)[index], 0, dim)


@formula(
    "aclnnIndexPutImpl",
    calls=[
        f"aclnnIndexPutImpl selfRef=FLOAT[3,4] indices={{INT64[4]:2,0,-1,1 INT64[4]:3,1,0,3}} "
        f"values=FLOAT[4]:1.5,-2,3.25,-4 accumulate={flag} unsafe=false"
        for flag in ("false", "true")
    ]
    + [
        "aclnnIndexPutImpl selfRef=FLOAT[3,4] indices={INT64[3]:2,0,2} "
        "values=FLOAT[3,4]:1.5,-2,3.25,-4,5,6,-7,8,9.5,-11,12,13 accumulate=true unsafe=false",
    ]
    # Few of many elements: the row looks at these only.
    + [
        f"aclnnIndexPutImpl selfRef={dtype}[40,30] indices={{{indices}}} values={dtype}{values} "
        "accumulate=true unsafe=false"
        for dtype in ("FLOAT", "BFLOAT16")
        for indices, values in (
            ("INT64[5]:0,7,-1,7,39", "[5,30]:1.5,-2,3.25"),
            ("INT32[2,1]:3,-37 INT32[3]:1,1,-1", "[2,3]:1.5,-2,3.25"),
        )
    ],
)
def index_put(self, indices, values, accumulate, unsafe):
    result = self.copy()
    if self.size == 0 or any(index.size == 0 for index in indices):
        return result  # where there is nothing to select, an index may be any
    if accumulate:
        np.add.at(result, tuple(indices), values)
    else:
        result[tuple(indices)] = values
    return result


@formula(
    "aclnnTake",
    calls=[
        "aclnnTake self=FLOAT[2,3]:1.5,-4.25,3,-2,1,9 index=INT64[2,2]:5,0,3,1 out=FLOAT[2,2]",
        "aclnnTake self=INT32[2,3]:5,-4,3,-2,1,9 index=INT64[3]:5,0,-3 out=INT32[3]",
    ],
)
def take(self, index):
    return self.reshape(-1)[index]


# ops-nn: aclnnInplacePut.md. self is read as if it had one dimension; with accumulate, equal indices add up.
@formula(
    "aclnnInplacePut",
    calls=[
        "aclnnInplacePut selfRef=FLOAT[2,3] index=INT64[4]:5,0,-2,0 source=FLOAT[4]:3,-5,7,2.5 accumulate=true",
        "aclnnInplacePut selfRef=FLOAT[2,3] index=INT32[2,2]:5,0,-2,1 source=FLOAT[2,2]:3,-5,7,2.5 accumulate=false",
        "aclnnInplacePut selfRef=BFLOAT16[40,30] index=INT64[4]:5,0,-1200,-1 source=BFLOAT16[4]:3,-5,7,2.5 "
        "accumulate=true",
    ],
)
def put(self, index, source, accumulate):
    result = self.reshape(-1).copy()
    if accumulate:
        np.add.at(result, index, source)
    else:
        result[index] = source
    return result.reshape(self.shape)
