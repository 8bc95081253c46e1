from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# Only the probabilities 0 and 1 leave nothing to chance (ops-math: aclnnBernoulli&aclnnInplaceBernoulli.md,
# aclnnBernoulliTensor&aclnnInplaceBernoulliTensor.md).
@formula(
    "aclnnBernoulli",
    "aclnnBernoulliTensor",
    calls=[
        "aclnnBernoulli self=INT32[2,2] prob=FLOAT(0) seed=1 offset=4 out=INT32[2,2]",
        "aclnnBernoulliTensor self=FLOAT[3,3] prob=FLOAT[3,3]:1,0,0,1,0,1,1,1,0 seed=1 offset=0 out=FLOAT[3,3]",
    ],
)
def certain(self, probability, _seed, _offset):
    return np.broadcast_to(probability, self.shape)
