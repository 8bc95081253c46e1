from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula

X = "FLOAT[2,3,2]:-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125,0.625"
GRAD = "FLOAT[2,3,2]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375,1.125"


@formula(
    "aclnnBatchNormBackward",
    calls=[
        f"aclnnBatchNormBackward gradOut={GRAD} input={X} weight=FLOAT[3]:1.5,-0.75,2 "
        "runningMean=FLOAT[3]:0.25,-1.5,0.75 runningVar=FLOAT[3]:2.5,0.5,1.25 saveMean=FLOAT[3]:-0.5,0.625,1 "
        f"saveInvstd=FLOAT[3]:0.75,1.5,0.375 training={training} eps=0.125 outputMask=[true,true,true] "
        "gradInput=FLOAT[2,3,2] gradWeight=FLOAT[3] gradBias=FLOAT[3]"
        for training in ("true", "false")
    ],
)
def batch_norm_backward(
    grad, x, weight, running_mean, running_var, save_mean, save_invstd, training, eps, _output_mask
):
    axes = tuple(i for i in range(x.ndim) if i != 1)
    shape = [-1 if i == 1 else 1 for i in range(x.ndim)]
    mean, invstd = (save_mean, save_invstd) if training else (running_mean, 1 / np.sqrt(running_var + eps))
    normal = (x - mean.reshape(shape)) * invstd.reshape(shape)
    of_weight, of_bias = (grad * normal).sum(axes), grad.sum(axes)
    inner = grad
    if training:
        # The statistics depend on the input, too.
        count = x.size / x.shape[1]
        inner = grad - of_bias.reshape(shape) / count - normal * of_weight.reshape(shape) / count
    return inner * (weight * invstd).reshape(shape), of_weight, of_bias


def sums(x):
    """The sums of each channel."""
    return x.sum(tuple(i for i in range(x.ndim) if i != 1))


def along(values, x):
    """A number of each channel, broadcastable to x."""
    return values.reshape([-1 if i == 1 else 1 for i in range(x.ndim)])


# ops-math: aclnnBatchNormStats.md. Of an input without elements the mean is 0.
@formula(
    "aclnnBatchNormStats",
    calls=[
        f"aclnnBatchNormStats input={signed('2,3,2', 1)} eps=0.25 mean=FLOAT[3] invstd=FLOAT[3]",
        "aclnnBatchNormStats input=FLOAT16[2,2]:8,0.0078125,8.0078125,2 eps=0 mean=FLOAT[2] invstd=FLOAT[2]",
        "aclnnBatchNormStats input=FLOAT[0,2] eps=0.25 mean=FLOAT[2] invstd=FLOAT[2]",
    ],
)
def batch_norm_stats(x, eps):
    count = np.float64(x.size) / x.shape[1]
    mean = sums(x) / count if x.size else np.zeros(x.shape[1])
    return mean, 1 / np.sqrt(sums((x - along(mean, x)) ** 2) / count + eps)


# ops-nn: aclnnBatchNormElemt.md. invstd stands for 1 / sqrt(Var(x) + eps), so that eps is not read.
@formula(
    "aclnnBatchNormElemt",
    calls=[
        f"aclnnBatchNormElemt input={signed('2,3,2', 1)} {weight} mean={signed('3', 4)} invstd={positive('3', 5)} "
        "eps=0.1 output=FLOAT[2,3,2]"
        for weight in (f"weight={signed('3', 2)} bias={signed('3', 3)}", "weight=null bias=null")
    ],
    error=3e-6,  # ATen computes x * scale + shift, in FLOAT: near 0 the two terms cancel
)
def batch_norm_elemt(x, weight, bias, mean, invstd, _eps):
    normal = (x - along(mean, x)) * along(invstd, x)
    return normal * (1 if weight is None else along(weight, x)) + (0 if bias is None else along(bias, x))


# ops-nn: aclnnBatchNormElemtBackward.md. The counters of all devices are added.
@formula(
    "aclnnBatchNormElemtBackward",
    calls=[
        f"aclnnBatchNormElemtBackward gradOut={signed('2,3,2', 1)} input={signed('2,3,2', 2)} mean={signed('3', 3)} "
        f"invstd={positive('3', 4)} weight={weight} sumDy={signed('3', 5)} sumDyXmu={signed('3', 6)} counter={counter} "
        "gradInput=FLOAT[2,3,2]"
        for weight, counter in ((signed("3", 7), "INT32[2]:3,5"), ("null", "FLOAT[3,1]:2,3,1"))
    ],
)
def batch_norm_elemt_backward(grad, x, mean, invstd, weight, sum_dy, sum_dy_xmu, counter):
    mean_dy, mean_dy_xmu = (along(each / counter.sum(), x) for each in (sum_dy, sum_dy_xmu))
    scale = along(invstd, x)
    result = (grad - mean_dy - (x - along(mean, x)) * scale**2 * mean_dy_xmu) * scale
    return result if weight is None else result * along(weight, x)


@formula(
    "aclnnBatchNormReduce",
    calls=[f"aclnnBatchNormReduce x={positive('2,3,2,2', 1)} sum=FLOAT[3] squareSum=FLOAT[3]"],
)
def batch_norm_reduce(x):
    """ops-nn: aclnnBatchNormReduce.md."""
    return sums(x), sums(x**2)


@formula(
    "aclnnBatchNormReduceBackward",
    calls=[
        f"aclnnBatchNormReduceBackward gradOut={signed('2,3,2', 1)} input={signed('2,3,2', 2)} mean={signed('3', 3)} "
        f"invstd={positive('3', 4)} weight=FLOAT[3] inputG={asked} weightG=true biasG={asked} sumDy={out} "
        f"sumDyXmu={out} gradWeight=FLOAT[3] gradBias={out}"
        for asked, out in (("true", "FLOAT[3]"), ("false", "null"))
    ],
)
def batch_norm_reduce_backward(grad, x, mean, invstd, _weight, of_input, of_weight, of_bias):
    """ops-nn: aclnnBatchNormReduceBackward.md."""
    sum_dy, sum_dy_xmu = sums(grad), sums(grad * (x - along(mean, x)))
    results = (of_input, sum_dy), (of_input, sum_dy_xmu), (of_weight, sum_dy_xmu * invstd), (of_bias, sum_dy)
    return [result for is_asked, result in results if is_asked]


STATISTICS = (
    f"weight={signed('3', 1)} runningMean={signed('3', 2)} runningVar={positive('3', 3)} saveMean={signed('3', 4)} "
    f"saveInvstd={positive('3', 5)}"
)
WITHOUT_STATISTICS = "weight=null runningMean=null runningVar=null saveMean=null saveInvstd=null"


# ops-nn: aclnnFastBatchNormBackward.md. Absent means are 0; absent variances, deviations and weights are 1.
@formula(
    "aclnnFastBatchNormBackward",
    calls=[
        f"aclnnFastBatchNormBackward gradOut={GRAD} input={X} {weights} training={training} eps=0.125 "
        f"outputMask=[true,true,true] version={version} gradInput=FLOAT[2,3,2] gradWeight=FLOAT[3] gradBias=FLOAT[3]"
        for training, version, weights in (
            ("true", 0, STATISTICS),
            ("false", 1, STATISTICS),
            ("false", 1, WITHOUT_STATISTICS.replace("Var=null", f"Var={positive('3', 3)}")),
            ("true", 1, WITHOUT_STATISTICS),
            ("false", 0, WITHOUT_STATISTICS),
        )
    ],
)
def fast_batch_norm_backward(grad, x, *arguments):
    *given, training, eps, mask, _version = arguments
    absent = zip(given, (1, 0, 1, 0, 1), strict=True)
    statistics = (np.full(x.shape[1], number) if each is None else each for each, number in absent)
    results = batch_norm_backward(grad, x, *statistics, training, eps, mask)
    return [result for is_asked, result in zip(mask, results, strict=True) if is_asked]


def running(old, new, momentum):
    return [] if old is None else [old * (1 - momentum) + new * momentum]


# ops-nn: aclnnBatchNormGatherStatsWithCounts.md. The running variance is that of the sample: it divides by one less.
@formula(
    "aclnnBatchNormGatherStatsWithCounts",
    calls=[
        f"aclnnBatchNormGatherStatsWithCounts input=FLOAT[2,3,1] mean={signed('2,3', 1)} invstd={positive('2,3', 2)} "
        f"{statistics} momentum=0.3 eps=0.1 counts=FLOAT[2]:5,3 meanAll=FLOAT[3] invstdAll=FLOAT[3]"
        for statistics in (
            f"runningMean={positive('3', 3)} runningVar={positive('3', 4)}",
            "runningMean=null runningVar=null",
        )
    ],
)
def gather_stats_with_counts(_x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    counts, total = counts[:, None], counts.sum()
    mean_all = (mean * counts).sum(0) / total
    squares = ((1 / invstd**2 - eps + (mean - mean_all) ** 2) * counts).sum(0)
    new_mean = running(running_mean, mean_all, momentum)
    new_var = running(running_var, squares / (total - 1), momentum)
    return *new_mean, *new_var, mean_all, 1 / np.sqrt(squares / total + eps)


@formula(
    "aclnnSyncBatchNormGatherStats",
    calls=[
        f"aclnnSyncBatchNormGatherStats totalSum={signed('2,3', 1)} totalSquareSum=FLOAT[2,3]:3,4,5.5,1.25,6.5,3.75 "
        f"sampleCount=INT32[2]:5,3 mean={signed('3', 2)} variance={positive('3', 3)} momentum=0.3 eps=0.1 "
        "batchMean=FLOAT[3] batchInvstd=FLOAT[3]"
    ],
)
def sync_gather_stats(total_sum, total_squares, counts, mean, variance, momentum, eps):
    """ops-nn: aclnnSyncBatchNormGatherStats.md."""
    count = counts.sum()
    batch_mean = total_sum.sum(0) / count
    batch_var = total_squares.sum(0) / count - batch_mean**2
    new_var = running(variance, batch_var * count / (count - 1), momentum)
    return *running(mean, batch_mean, momentum), *new_var, batch_mean, 1 / np.sqrt(batch_var + eps)


@formula(
    "aclnnInstanceNorm",
    calls=[
        f"aclnnInstanceNorm x={signed('2,2,2,3', 1)} gamma={signed('2', 2)} beta={signed('2', 3)} "
        'dataFormat="NCHW" eps=0.1 y=FLOAT[2,2,2,3] mean=FLOAT[2,2,1,1] variance=FLOAT[2,2,1,1]',
        f"aclnnInstanceNorm x={signed('2,2,2,3', 4)} gamma={signed('3', 2)} beta={signed('3', 3)} "
        'dataFormat="NHWC" eps=0.1 y=FLOAT[2,2,2,3] mean=FLOAT[2,1,1,3] variance=FLOAT[2,1,1,3]',
    ],
)
def instance_norm(x, gamma, beta, data_format, eps):
    """ops-nn: aclnnInstanceNorm.md."""
    axes, shape = ((2, 3), (-1, 1, 1)) if data_format == "NCHW" else ((1, 2), (-1,))
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gamma.reshape(shape) + beta.reshape(shape), mean, variance


# ops-nn: aclnnBatchNorm.md. Training takes the statistics of the batch, and updates the running ones, the variance by
# the unbiased one.
@formula(
    "aclnnBatchNorm",
    calls=[
        "aclnnBatchNorm input=FLOAT[2,2,3]:1.5,-2,0.5,3,-1,0.75,2.5,-0.25,4,-3.5,1.25,5 weight=FLOAT[2]:1.5,-0.5 "
        f"bias=FLOAT[2]:0.25,-1 runningMean=FLOAT[2]:0.5,-0.75 runningVar=FLOAT[2]:2,0.5 training={training} "
        f"momentum=0.25 eps=0.5 output=FLOAT[2,2,3] saveMean={saved} saveInvstd={saved}"
        for training, saved in (("true", "FLOAT[2]"), ("false", "null"))
    ]
    + [
        "aclnnBatchNorm input=FLOAT[3,2]:1.5,-2,0.5,3,-1,0.75 weight=null bias=null runningMean=null runningVar=null "
        f"training={training} momentum=0.25 eps=0.5 output=FLOAT[3,2] saveMean={saved} saveInvstd={saved}"
        for training, saved in (("true", "FLOAT[2]"), ("false", "null"))
    ],
)
def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if x.size == 0:  # the row says what the statistics of nothing are
        kept = [each for each in (running_mean, running_var) if each is not None]
        return *kept, x, *((np.zeros(x.shape[1]), np.full(x.shape[1], np.nan)) if training else ())
    axes = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    mean, variance = x.mean(axes), x.var(axes)
    updated = []
    if running_mean is not None:
        updated.append((1 - momentum) * running_mean + momentum * mean if training else running_mean)
    if running_var is not None:
        unbiased = variance * count / (count - 1)
        updated.append((1 - momentum) * running_var + momentum * unbiased if training else running_var)
    if not training:
        mean = np.zeros(x.shape[1]) if running_mean is None else running_mean
        variance = np.ones(x.shape[1]) if running_var is None else running_var
    invstd = 1 / np.sqrt(variance + eps)
    result = along(invstd if weight is None else invstd * weight, x) * (x - along(mean, x))
    result = result + (0 if bias is None else along(bias, x))
    return *updated, result, *((mean, invstd) if training else ())
