from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# logAlpha[n, t, s] is the logarithm of the probability to be at place s of the targets, with blanks around each, at
# step t (ops-nn: aclnnCtcLoss.md).
@formula(
    "aclnnCtcLoss",
    calls=[
        "aclnnCtcLoss "
        "logProbs=FLOAT[3,1,3]:-0.693147,-1.203973,-1.609438,-1.609438,-0.693147,-1.203973,-1.386294,-1.386294,"
        "-0.693147 "
        "targets=INT64[1,4]:1,2,-1,99 inputLengths=[3] targetlengths=[2] blank=0 zeroInfinity=false "
        "negLogLikelihoodOut=FLOAT[1] logAlphaOut=FLOAT[1,3,5]",
        "aclnnCtcLoss "
        "logProbs=FLOAT[3,1,3]:-0.693147,-1.203973,-1.609438,-1.609438,-0.693147,-1.203973,-1.386294,-1.386294,"
        "-0.693147 "
        "targets=INT64[1,2]:1,2 inputLengths=[3] targetlengths=[2] blank=0 zeroInfinity=false "
        "negLogLikelihoodOut=FLOAT[1] logAlphaOut=FLOAT[1,3,5]",
        "aclnnCtcLoss logProbs=FLOAT[2,1,3]:-0.693147,-1.203973,-1.609438,-1.609438,-0.693147,-1.203973 "
        "targets=INT64[1,2]:1,1 inputLengths=[2] targetlengths=[2] blank=0 zeroInfinity=true "
        "negLogLikelihoodOut=FLOAT[1] logAlphaOut=FLOAT[1,2,5]",
        *(
            "aclnnCtcLoss logProbs=FLOAT[5,2,4]:-0.5,-1.75,-2,-1.25,-3,-0.25,-1.5,-2.5,-0.75,-2.25,-1 "
            f"targets=INT64[2,2]:{targets} inputLengths=[5,4] targetlengths=[2,{length}] blank={blank} "
            f"zeroInfinity={flag} "
            "negLogLikelihoodOut=FLOAT[2] logAlphaOut=FLOAT[2,5,5]"
            for targets, length, blank, flag in (("1,2,3,3", 2, 0, "false"), ("1,1,3,2", 1, 2, "true"))
        ),
    ],
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    width = 2 * max(target_lengths, default=0) + 1
    log_alpha = np.full((log_probs.shape[1], log_probs.shape[0], width), -np.inf)
    losses = np.zeros(len(log_alpha))
    starts = np.cumsum([0, *target_lengths])
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        labels = [blank] * (2 * length + 1)
        labels[1::2] = targets[n, :length] if targets.ndim == 2 else targets[starts[n] : starts[n] + length]
        for t in range(steps):
            for s, label in enumerate(labels):
                before = [0.0] if t == 0 and s < 2 else [-np.inf]
                if t > 0:
                    may_skip = s > 1 and label not in (blank, labels[s - 2])
                    before = log_alpha[n, t - 1, max(s - 1 - may_skip, 0) : s + 1]
                log_alpha[n, t, s] = np.logaddexp.reduce(before) + log_probs[t, n, label]
        losses[n] = -np.logaddexp.reduce(log_alpha[n, steps - 1, max(2 * length - 1, 0) : 2 * length + 1])
    return np.where(np.isinf(losses) & zero_infinity, 0, losses), log_alpha


ALPHA = "-0.75,-1.25,-2,-1.5,-3,-0.5,-2.25,-1.75,-0.875,-2.5,-1.125"
OF_STEPS = "inputLengths=[4,3] targetLengths=[2,1] negLogLikelihood=FLOAT[2]:2.5,1.25"


# The gradient of the loss by the logarithms, before a softmax: exp(logProbs) minus the share of the paths with a label
# at a step. logAlpha and negLogLikelihood are read as they are given. With zeroInfinity the gradient of an impossible
# sample is 0, and so is that of a step after the end (ops-nn: aclnnCtcLossBackward.md).
@formula(
    "aclnnCtcLossBackward",
    calls=[
        *(
            f"aclnnCtcLossBackward gradOut=FLOAT[2]:2,-1.5 logProbs=FLOAT[4,2,3]:-0.5,-1.5,-2,-0.25,-1,-2.5,-0.75 "
            f"targets={targets} {OF_STEPS} logAlpha=FLOAT[2,4,5]:{ALPHA} blank={blank} zeroInfinity=false "
            "out=FLOAT[4,2,3]"
            for targets, blank in (("INT64[2,2]:1,2,2,1", 0), ("INT64[3]:1,1,0", 2), ("INT32[2,2]:2,2,1,0", 0))
        ),
        "aclnnCtcLossBackward gradOut=FLOAT[1]:2 logProbs=FLOAT[2,1,3]:-0.693147,-1.203973,-1.609438,-1.609438,"
        "-0.693147,-1.203973 targets=INT64[1,2]:1,1 inputLengths=[2] targetLengths=[2] negLogLikelihood=FLOAT[1]:0 "
        "logAlpha=FLOAT[1,2,5]:-0.693147,-1.203973,-inf,-inf,-inf,-2.302585,-0.91629051,-2.813411,-inf,-inf blank=0 "
        "zeroInfinity=true out=FLOAT[2,1,3]",
    ],
    error=2e-6,  # differences of exponentials
)
def ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, nll, log_alpha, blank, zero_infinity):
    result, starts = np.zeros(log_probs.shape), np.cumsum([0, *target_lengths])
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        labels = np.full(2 * length + 1, blank)
        labels[1::2] = targets[n, :length] if targets.ndim == 2 else targets[starts[n] : starts[n] + length]
        last = log_alpha[n, steps - 1, max(2 * length - 1, 0) : 2 * length + 1]
        if zero_infinity and np.isneginf(last).all():
            continue
        # The places that may follow a place, and the logarithms of the probability of the steps after this one.
        count = len(labels)
        followers = [
            [s, *range(s + 1, min(s + 2, count))]
            + [s + 2] * (s + 2 < count and labels[s] not in (blank, labels[min(s + 2, count - 1)]))
            for s in range(count)
        ]
        rest = np.where(np.arange(count) >= count - 2, 0.0, -np.inf)
        for t in reversed(range(steps)):
            with_step = rest + log_probs[t, n, labels]
            for label in range(log_probs.shape[2]):
                paths = (log_alpha[n, t, :count] + with_step)[labels == label]
                share = np.exp(np.logaddexp.reduce([-np.inf, *paths]) + nll[n] - log_probs[t, n, label])
                result[t, n, label] = grad[n] * (np.exp(log_probs[t, n, label]) - share)
            rest = np.array([np.logaddexp.reduce(with_step[places]) for places in followers])
    return result
