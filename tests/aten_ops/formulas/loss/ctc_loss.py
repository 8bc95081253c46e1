from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# logAlpha[n, t, s] is the logarithm of the probability to be at place s of the targets, with blanks around each, at
# step t (ops-nn: aclnnCtcLoss.md).
@formula(
    "aclnnCtcLoss",
    calls=[
        "aclnnCtcLoss logProbs=FLOAT[5,2,4]:-0.5,-1.75,-2,-1.25,-3,-0.25,-1.5,-2.5,-0.75,-2.25,-1 "
        f"targets=INT64[2,2]:{targets} inputLengths=[5,4] targetlengths=[2,{length}] blank={blank} zeroInfinity={flag} "
        "negLogLikelihoodOut=FLOAT[2] logAlphaOut=FLOAT[2,5,5]"
        for targets, length, blank, flag in (("1,2,3,3", 2, 0, "false"), ("1,1,3,2", 1, 2, "true"))
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
