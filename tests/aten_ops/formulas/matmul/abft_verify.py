from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def spread(numbers, mean):
    """A bound of the variance of the last dimension: (largest - mean) (mean - smallest)."""
    return (numbers.max(-1) - mean) * (mean - numbers.min(-1))


# The checksums C r and A (B r) of ops-ras: aclnnMatmulAbftVerify.md. The document has no formula of the threshold: it
# is that of the kernel, three terms of the means and variances of the rows of A and B, and a factor for K.
def is_right(a, b, c, r, e_max):
    n, mean_a, mean_b = b.shape[1], a.mean(-1), b @ r / b.shape[1]
    variance_a, variance_b = np.abs(spread(a, mean_a)), np.abs(spread(b, mean_b).sum())
    of_means = n * np.abs(mean_b).sum() * np.abs(mean_a)
    both = 4 * np.sqrt(n * variance_b * mean_a**2 + n**2 * (mean_b**2).sum() * variance_a)
    of_deviations = np.sqrt(n * variance_b * variance_a)
    threshold = 6 * e_max * np.sqrt(a.shape[1] / 1024) * (of_means + both + of_deviations)
    return np.abs(c @ r - a @ (b @ r)) <= threshold


@formula(
    "aclnnMatmulAbftVerify",
    calls=[
        # Two rows that are right, and errors of more and of less than the threshold, with weights.
        "aclnnMatmulAbftVerify a=FLOAT[4,2]:1,2,-3,0.5 b=FLOAT[2,3]:1,-2,0.5,4,3,-1 "
        "c=FLOAT[4,3]:9,4,-1.5,-1,7.5,-2,9.5,4,-1.5,-1,7.625,-2 checksumWeight=FLOAT[3]:1,2,-1 eMax=0.02 "
        "compRow=UINT8[1]",
        # Errors of 0.0625 are too much in 256 columns and not in the last two.
        "aclnnMatmulAbftVerify a=FLOAT[9,2]:1,2 b=FLOAT[2,258]:0.5,1.5 c=FLOAT[9,258]:1.5625,4.5625 "
        "checksumWeight=FLOAT[258]:1 eMax=0.036 compRow=UINT8[4]",
        # Nine rows in two bytes; an error of 1 is too much in row 0 and 2, but not in row 7.
        "aclnnMatmulAbftVerify a=FLOAT[9,1]:1,2,3,4,5,6,7,8,9 b=FLOAT[1,1]:2 c=FLOAT[9,1]:3,4,7,8,10,12,14,17,18 "
        "checksumWeight=FLOAT[1]:1 eMax=0.5 compRow=UINT8[2]",
    ],
)
def matmul_abft_verify(a, b, c, checksum_weight, e_max):
    parts = [slice(first, first + 256) for first in range(0, b.shape[1], 256)]
    bits = np.array([is_right(a, b[:, part], c[:, part], checksum_weight[part], e_max) for part in parts])
    whole = np.pad(bits, [(0, 0), (0, -len(a) % 8)], constant_values=True)
    return np.packbits(whole, axis=-1, bitorder="little").ravel()
