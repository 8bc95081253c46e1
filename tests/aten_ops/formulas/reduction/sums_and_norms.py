from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula

X = "FLOAT[2,3,2]:-2.5,0.75,-3,1.5,-0.5,1.25,-4,3,2,-1.75,0.25,-1.5"
INTEGERS = "INT32[2,3]:-3,2,5,-1,4,-6"
BOOLEANS = "BOOL[4,2]:1,1,0,1,0,0,1,0"


def over(dims):
    """NumPy's axes: no dimensions are all."""
    return tuple(dims) if dims else None


@formula(
    "aclnnReduceSum",
    calls=[
        f"aclnnReduceSum self={X} dims=[0,-1] keepDims=false dtype=0 out=FLOAT[3]",
        f"aclnnReduceSum self={X} dims=[1] keepDims=true dtype=0 out=FLOAT[2,1,2]",
        f"aclnnReduceSum self={INTEGERS} dims=[0] keepDims=false dtype=9 out=INT64[3]",
    ],
)
def reduce_sum(self, dims, keep, _dtype):
    return self.sum(over(dims), keepdims=keep)


@formula(
    "aclnnReduceNansum",
    calls=[
        "aclnnReduceNansum self=FLOAT[3,2]:-2.5,nan,0.75,-3,nan,1.5 dim=[1] keepDim=false dtype=0 out=FLOAT[3]",
        "aclnnReduceNansum self=FLOAT[3,2]:-2.5,nan,0.75,-3,nan,1.5 dim=[] keepDim=true dtype=0 out=FLOAT[1,1]",
    ],
)
def reduce_nansum(self, dims, keep, _dtype):
    return np.where(np.isnan(self), 0, self).sum(over(dims), keepdims=keep)


@formula(
    "aclnnMean",
    calls=[
        f"aclnnMean self={X} dim=[0,-1] keepDim=false dtype=0 out=FLOAT[3]",
        f"aclnnMean self={X} dim=[] keepDim=false dtype=0 out=FLOAT[]",
    ],
)
def mean(self, dims, keep, _dtype):
    return self.mean(over(dims), keepdims=keep)


# ops-math: aclnnMeanV2.md. Means of integers are truncated (the row's note).
@formula(
    "aclnnMeanV2",
    calls=[
        f"aclnnMeanV2 self={X} dim={dim} keepDim={keep} noopWithEmptyAxes={noop} out=FLOAT{out}"
        for dim, keep, noop, out in (
            *(("[1]", "true", "true", "[2,1,2]"), ("[0,-1]", "false", "false", "[3]")),
            *(("[]", "false", "false", "[]"), ("[]", "true", "true", "[2,3,2]")),
        )
    ]
    + [
        f"aclnnMeanV2 self={INTEGERS} dim=[0] keepDim=false noopWithEmptyAxes=false out=INT32[3]",
        "aclnnMeanV2 self=INT8[3]:127,127,126 dim=[0] keepDim=false noopWithEmptyAxes=false out=INT8[]",
    ],
)
def mean_v2(self, dims, keep, is_left):
    if is_left and not dims:
        return self
    result = self.mean(over(dims), keepdims=keep)
    return np.trunc(result) if self.dtype == np.int64 else result


# ops-math: aclnnReduceLogSum.md, and the row's note on data without elements
@formula(
    "aclnnReduceLogSum",
    calls=[
        f"aclnnReduceLogSum data={positive('2,3,2', 1)} axes={axes} keepDims={keep} noopWithEmptyAxes={noop} "
        f"reduce=FLOAT{out}"
        for axes, keep, noop, out in (
            *(("[0]", "false", "true", "[3,2]"), ("[-1,0]", "true", "false", "[1,3,1]")),
            *(("[]", "true", "false", "[1,1,1]"), ("[]", "true", "true", "[2,3,2]")),
        )
    ],
)
def reduce_log_sum(data, axes, keep, is_left):
    if is_left and not axes:
        return data
    sums = data.sum(over(axes), keepdims=keep)
    return np.log(sums) if data.size else np.zeros(sums.shape)


@formula(
    "aclnnProdDim",
    calls=[
        f"aclnnProdDim self={X} dim=-1 keepDim=true dtype=0 out=FLOAT[2,3,1]",
        f"aclnnProdDim self={INTEGERS} dim=0 keepDim=false dtype=9 out=INT64[3]",
    ],
)
def prod_dim(self, dim, keep, _dtype):
    return self.prod(dim, keepdims=keep)


@formula("aclnnLogSumExp", calls=[f"aclnnLogSumExp self={X} dim=[1] keepDim=true out=FLOAT[2,1,2]"])
def log_sum_exp(self, dims, keep):
    return np.log(np.exp(self).sum(over(dims), keepdims=keep))


@formula(
    "aclnnTrace",
    calls=[
        "aclnnTrace self=FLOAT[2,3]:-2.5,0.75,-3,1.5,-0.5,1.25 out=FLOAT[]",
        "aclnnTrace self=INT32[3,2]:-3,2,5,-1,4,-6 out=INT64[]",
    ],
)
def trace(self):
    return sum(self[i, i] for i in range(min(self.shape)))


@formula(
    "aclnnAll",
    calls=[
        f"aclnnAll self={BOOLEANS} dim=[1] keepdim=false out=BOOL[4]",
        "aclnnAll self=FLOAT[3,2]:0.5,-1,0,2,-0.25,3 dim=[-1] keepdim=true out=BOOL[3,1]",
        "aclnnAll self=BOOL[2,2]:1,1,0,1 dim=[] keepdim=false out=BOOL[]",
    ],
)
def every(self, dims, keep):
    return (self != 0).all(over(dims), keepdims=keep)


@formula(
    "aclnnAny",
    calls=[
        f"aclnnAny self={BOOLEANS} dim=[1] keepdim=false out=BOOL[4]",
        "aclnnAny self=FLOAT[3,2]:0.5,0,0,0,0,-0.25 dim=[-1] keepdim=true out=BOOL[3,1]",
        "aclnnAny self=BOOL[2,2]:0,0,0,1 dim=[] keepdim=false out=BOOL[]",
        "aclnnAny self=BOOL[2,2]:0,0,0,0 dim=[] keepdim=false out=BOOL[]",
    ],
)
def some(self, dims, keep):
    return (self != 0).any(over(dims), keepdims=keep)


@formula(
    "aclnnVarCorrection",
    calls=[
        f"aclnnVarCorrection self={X} dim=[1] correction=1 keepdim=true out=FLOAT[2,1,2]",
        f"aclnnVarCorrection self={X} dim=[0,2] correction=2 keepdim=false out=FLOAT[3]",
        f"aclnnVarCorrection self={X} dim=null correction=0 keepdim=false out=FLOAT[]",
    ],
)
def variance(self, dims, correction, keep):
    distances = self - self.mean(over(dims), keepdims=True)
    sums = (distances**2).sum(over(dims), keepdims=keep)
    count = np.ones(self.shape).sum(over(dims), keepdims=keep)
    return sums / np.maximum(count - correction, 0)


# ops-math: aclnnVar.md
@formula(
    "aclnnVar",
    calls=[
        f"aclnnVar self={X} dim={dim} unbiased={unbiased} keepdim={keep} out=FLOAT{out}"
        for dim, unbiased, keep, out in (
            *(("[1]", "true", "true", "[2,1,2]"), ("[0,2]", "false", "false", "[3]")),
            *(("null", "false", "true", "[1,1,1]"), ("[]", "true", "false", "[]")),
        )
    ]
    + ["aclnnVar self=FLOAT16[2,2]:1,2,3,6.5 dim=[0] unbiased=false keepdim=false out=FLOAT[2]"],
)
def var(self, dims, unbiased, keep):
    return variance(self, dims, int(unbiased), keep)


@formula(
    "aclnnVarMean",
    calls=[
        f"aclnnVarMean self={X} dim=[1] correction=1 keepdim=true varOut=FLOAT[2,1,2] meanOut=FLOAT[2,1,2]",
        f"aclnnVarMean self={X} dim=null correction=0 keepdim=false varOut=FLOAT[] meanOut=FLOAT[]",
    ],
)
def var_mean(self, dims, correction, keep):
    return variance(self, dims, correction, keep), self.mean(over(dims), keepdims=keep)


@formula(
    "aclnnStd",
    calls=[
        f"aclnnStd self={X} dim=[0,-1] correction=2 keepdim=false out=FLOAT[3]",
        f"aclnnStd self={X} dim=null correction=0 keepdim=false out=FLOAT[]",
    ],
)
def std(self, dims, correction, keep):
    return np.sqrt(variance(self, dims, correction, keep))


@formula(
    "aclnnStdMeanCorrection",
    calls=[
        f"aclnnStdMeanCorrection self={X} dim=[1] correction=1 keepdim=true stdOut=FLOAT[2,1,2] meanOut=FLOAT[2,1,2]",
        f"aclnnStdMeanCorrection self={X} dim=null correction=0 keepdim=false stdOut=FLOAT[] meanOut=FLOAT[]",
    ],
)
def std_mean(self, dims, correction, keep):
    return std(self, dims, correction, keep), self.mean(over(dims), keepdims=keep)


def norm_of(self, p, axes, keep):
    sizes = np.abs(self)
    if p == 0:
        return (sizes != 0).sum(axes, keepdims=keep)
    if np.isinf(p):
        return sizes.max(axes, keepdims=keep) if p > 0 else sizes.min(axes, keepdims=keep)
    return (sizes**p).sum(axes, keepdims=keep) ** (1 / p)


@formula(
    "aclnnNorm",
    "aclnnLinalgVectorNorm",
    calls=[
        *(
            f"aclnnNorm self={X} pScalar=FLOAT({p}) dim=[0,-1] keepdim=false out=FLOAT[3]"
            for p in (1, 2, 0.5, "Infinity", "-Infinity")
        ),
        "aclnnNorm self=FLOAT[2,3]:0,-2,3,0,0,-1 pScalar=FLOAT(0) dim=[1] keepdim=true out=FLOAT[2,1]",
        *(
            f"aclnnLinalgVectorNorm self={X} ord=FLOAT({p}) dims=[0,-1] keepDims=false dtype=0 out=FLOAT[3]"
            for p in (1, 2, 0.5, "Infinity", "-Infinity")
        ),
        "aclnnLinalgVectorNorm self=FLOAT[2,3]:0,-2,3,0,0,-1 ord=FLOAT(0) dims=[1] keepDims=true dtype=0 "
        "out=FLOAT[2,1]",
    ],
)
def norm(self, p, dims, keep, _dtype=None):
    return norm_of(self, p, over(dims), keep)


@formula(
    "aclnnRenorm",
    "aclnnInplaceRenorm",
    calls=[
        f"aclnnRenorm self={X} p=FLOAT(1) dim=1 maxNorm=FLOAT(6.5) out=FLOAT[2,3,2]",
        f"aclnnRenorm self={X} p=FLOAT(3) dim=-1 maxNorm=FLOAT(4) out=FLOAT[2,3,2]",
        f"aclnnInplaceRenorm selfRef={X} p=FLOAT(2) dim=0 maxNorm=FLOAT(5)",
        f"aclnnInplaceRenorm selfRef={X} p=FLOAT(2) dim=1 maxNorm=FLOAT(3)",
    ],
)
def renorm(self, p, dim, most):
    norms = norm_of(self, p, tuple(i for i in range(self.ndim) if i != dim % self.ndim), True)
    return np.where(norms > most, self / norms * most, self)


# ops-math: aclnnGroupedBiasAddGrad.md, aclnnGroupedBiasAddGradV2.md. groupIdx has the ends of the groups, or with
# type 1 their sizes.
@formula(
    "aclnnGroupedBiasAddGrad",
    "aclnnGroupedBiasAddGradV2",
    calls=[
        f"aclnnGroupedBiasAddGrad gradY={signed('3,2,4', 1)} groupIdxOptional=null out=FLOAT[3,4]",
        f"aclnnGroupedBiasAddGrad gradY={signed('6,2', 1)} groupIdxOptional=INT64[4]:1,1,4,6 out=FLOAT[4,2]",
        f"aclnnGroupedBiasAddGradV2 gradY={signed('6,2', 1)} groupIdxOptional=INT32[3]:2,3,6 groupIdxType=0 "
        "out=FLOAT[3,2]",
        f"aclnnGroupedBiasAddGradV2 gradY={signed('6,2', 1)} groupIdxOptional=INT32[3]:2,1,3 groupIdxType=1 "
        "out=FLOAT[3,2]",
    ],
)
def grouped_bias_add_grad(grad, groups, group_type=0):
    if groups is None:
        return grad.sum(1)
    ends = np.cumsum(groups) if group_type else groups
    return np.stack([grad[start:end].sum(0) for start, end in zip([0, *ends[:-1]], ends, strict=True)])


@formula("aclnnProd", calls=["aclnnProd self=FLOAT[2,3]:1.5,-2,0.5,3,-1.25,0.75 dtype=0 out=FLOAT[]"])
def prod(self, dtype):
    return np.prod(self)
