from __future__ import annotations

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas.reduction.sums_and_norms import over

X = "FLOAT[2,3,2]:-2.5,0.75,-3,1.5,-0.5,1.25,-4,3,2,-1.75,0.25,-1"
INTEGERS = "INT32[2,3]:-3,2,5,-1,4,-6"


@formula(
    "aclnnMax",
    calls=[f"aclnnMax self={X} out=FLOAT[]", "aclnnMax self=INT32[4]:-3,-7,-2,-5 out=INT32[]"],
)
def largest(self):
    return self.max()


@formula(
    "aclnnMin",
    calls=[f"aclnnMin self={X} out=FLOAT[]", f"aclnnMin self={INTEGERS} out=INT32[]"],
)
def smallest(self):
    return self.min()


@formula(
    "aclnnMaxDim",
    calls=[
        f"aclnnMaxDim self={X} dim=1 keepdim=true out=FLOAT[2,1,2] indices=INT64[2,1,2]",
        f"aclnnMaxDim self={INTEGERS} dim=0 keepdim=false out=INT32[3] indices=INT64[3]",
    ],
)
def max_dim(self, dim, keep):
    return self.max(dim, keepdims=keep), self.argmax(dim, keepdims=keep)


@formula(
    "aclnnMinDim",
    calls=[
        f"aclnnMinDim self={X} dim=1 keepdim=false out=FLOAT[2,2] indices=INT64[2,2]",
        f"aclnnMinDim self={INTEGERS} dim=0 keepdim=true out=INT32[1,3] indices=INT64[1,3]",
    ],
)
def min_dim(self, dim, keep):
    return self.min(dim, keepdims=keep), self.argmin(dim, keepdims=keep)


@formula(
    "aclnnAmax",
    calls=[
        f"aclnnAmax self={X} dim=[0,-1] keepDim=false out=FLOAT[3]",
        f"aclnnAmax self={X} dim=[] keepDim=false out=FLOAT[]",
        f"aclnnAmax self={INTEGERS} dim=[0] keepDim=true out=INT32[1,3]",
    ],
)
def amax(self, dims, keep):
    return self.max(over(dims), keepdims=keep)


@formula(
    "aclnnAmin",
    calls=[
        f"aclnnAmin self={X} dim=[0,-1] keepDim=false out=FLOAT[3]",
        f"aclnnAmin self={X} dim=[] keepDim=false out=FLOAT[]",
        f"aclnnAmin self={INTEGERS} dim=[0] keepDim=true out=INT32[1,3]",
    ],
)
def amin(self, dims, keep):
    return self.min(over(dims), keepdims=keep)


@formula(
    "aclnnAminmax",
    calls=[
        f"aclnnAminmax self={X} dim=[0,2] keepDim=false minOut=FLOAT[3] maxOut=FLOAT[3]",
        f"aclnnAminmax self={INTEGERS} dim=[0] keepDim=true minOut=INT32[1,3] maxOut=INT32[1,3]",
    ],
)
def aminmax(self, dims, keep):
    return amin(self, dims, keep), amax(self, dims, keep)


@formula(
    "aclnnAminmaxDim",
    calls=[
        f"aclnnAminmaxDim self={X} dim=-1 keepDim=true minOut=FLOAT[2,3,1] maxOut=FLOAT[2,3,1]",
        f"aclnnAminmaxDim self={INTEGERS} dim=0 keepDim=false minOut=INT32[3] maxOut=INT32[3]",
    ],
)
def aminmax_dim(self, dim, keep):
    return aminmax(self, [dim], keep)


@formula(
    "aclnnAminmaxAll",
    calls=[
        f"aclnnAminmaxAll self={X} minOut=FLOAT[] maxOut=FLOAT[]",
        f"aclnnAminmaxAll self={INTEGERS} minOut=INT32[] maxOut=INT32[]",
    ],
)
def aminmax_all(self):
    return self.min(), self.max()


@formula(
    "aclnnArgMax",
    calls=[
        f"aclnnArgMax self={X} dim=1 keepdim=true out=INT64[2,1,2]",
        f"aclnnArgMax self={INTEGERS} dim=-1 keepdim=false out=INT64[2]",
        "aclnnArgMax self=FLOAT[3,4]:-1,2,3,-4,-2.5,0.5,1,-3,4,-5,0,8 dim=0 keepdim=false out=INT64[4]",
    ],
)
def argmax(self, dim, keep):
    return self.argmax(dim, keepdims=keep)


@formula(
    "aclnnArgMin",
    calls=[
        f"aclnnArgMin self={X} dim=1 keepdim=true out=INT64[2,1,2]",
        f"aclnnArgMin self={INTEGERS} dim=-1 keepdim=false out=INT64[2]",
        "aclnnArgMin self=FLOAT[3,4]:1,-2,-3,4,2.5,-0.5,-1,3,-4,5,0,-8 dim=0 keepdim=false out=INT64[4]",
    ],
)
def argmin(self, dim, keep):
    return self.argmin(dim, keepdims=keep)


# Without dims all are reduced, or with noopWithEmptyDims none (ops-math: aclnnMaxV2.md).
@formula(
    "aclnnMaxV2",
    calls=[
        f"aclnnMaxV2 self={X} dims=[1] keepDims=false noopWithEmptyDims=false out=FLOAT[2,2]",
        f"aclnnMaxV2 self={X} dims=[0,-1] keepDims=true noopWithEmptyDims=true out=FLOAT[1,3,1]",
        f"aclnnMaxV2 self={X} dims=[] keepDims=false noopWithEmptyDims=false out=FLOAT[]",
        f"aclnnMaxV2 self={X} dims=[] keepDims=false noopWithEmptyDims=true out=FLOAT[2,3,2]",
        f"aclnnMaxV2 self={INTEGERS} dims=[1] keepDims=false noopWithEmptyDims=false out=INT32[2]",
        "aclnnMaxV2 self=INT32[2,2]:1,4,3,2 dims=[-1] keepDims=false noopWithEmptyDims=false out=INT32[2]",
        "aclnnMaxV2 self=INT32[2,2]:1,4,3,2 dims=[] keepDims=false noopWithEmptyDims=false out=INT32[]",
        "aclnnMaxV2 self=INT32[2,2]:1,4,3,2 dims=[] keepDims=false noopWithEmptyDims=true out=INT32[2,2]",
    ],
)
def max_v2(self, dims, keep, noop_with_empty_dims):
    return self if noop_with_empty_dims and not dims else self.max(over(dims), keepdims=keep)


# ops-math: aclnnReduceMinV2.md
@formula(
    "aclnnReduceMinV2",
    calls=[
        f"aclnnReduceMinV2 x=FLOAT[2,3]:3,1,2,-1,5,0 axes={axis} keepdims={keep} y=FLOAT{out}"
        for axis, keep, out in ((0, 1, "[1,3]"), (0, 0, "[3]"), (1, 0, "[2]"), (1, 1, "[2,1]"))
    ],
)
def reduce_min(x, axis, keep):
    return x.min(axis, keepdims=bool(keep))
