"""Quantisation on ATen beside its formulas in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aten_ops.sweep import run_call
from tests.cabi import SUCCESS


def text(values: np.ndarray) -> str:
    return f"{list(values.shape)}:{','.join(map(str, values.flatten()))}".replace(" ", "")


@pytest.mark.parametrize("clip_ratio", [1.0, 0.5])
def test_flat_quant(clip_ratio: float) -> None:
    """quantScale is clipRatio / 7 of the largest element of P1 x P2, out the quotient, rounded, as INT4 saturates it.

    CANN's document of aclnnFlatQuant. The matrices are small integers, whose products FLOAT16 has exactly.
    """
    random = np.random.default_rng(3)
    x, left, right = random.integers(-4, 5, (2, 3, 8)), random.integers(-1, 2, (3, 3)), random.integers(-1, 2, (8, 8))
    product = np.einsum("ij,bjk,kl->bil", left, x, right).astype(float)
    scale = np.abs(product).max((1, 2)) * clip_ratio / 7
    quotient = product / scale[:, None, None]
    assert np.abs(quotient % 1 - 0.5).min() > 1e-3  # no element is a tie
    expected = np.clip(np.round(quotient), -8, 7)
    assert len(np.unique(expected)) > 8

    stage1, stage2, message, (out, scales) = run_call(
        f"aclnnFlatQuant x=FLOAT16{text(x)} kroneckerP1=FLOAT16{text(left)} kroneckerP2=FLOAT16{text(right)} "
        f"clipRatio={clip_ratio} out=INT4[2,3,8] quantScale=FLOAT[2]"
    )
    assert (stage1, stage2, message) == (SUCCESS, SUCCESS, "")
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_allclose(scales, scale, rtol=2**-22)
