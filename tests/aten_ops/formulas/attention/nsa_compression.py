from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formulas import formula


def windows(lengths, size, stride):
    """The starts of the windows in all sequences, whose lengths are added up, with or without a 0 before them."""
    ends = [0, *(lengths[1:] if lengths[:1] == [0] else lengths)]
    return [start for a, b in itertools.pairwise(ends) for start in range(a, b - size + 1, stride)]


# A window's sum has a weight for each position and head (ops-transformer: aclnnNsaCompress.md).
@formula("aclnnNsaCompressGrad")
def nsa_compress_grad(grad, x, weight, lengths, size, stride, _type, _layout):
    of_x, of_weight = np.zeros(x.shape), np.zeros(weight.shape)
    for dy, start in zip(grad, windows(lengths, size, stride), strict=True):
        of_x[start : start + size] += weight[:, :, None] * dy
        of_weight += (x[start : start + size] * dy).sum(-1)
    return of_x, of_weight
