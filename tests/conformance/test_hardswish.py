"""The ends of the curve of aclnnHardswish and the two gradients, through the C ABI."""

from __future__ import annotations

import numpy as np

from tests.conformance.hardswish_table import HARDSWISH, HARDSWISH_BACKWARD, HARDSWISH_BACKWARD_V2
from tests.conformance.machinery import Tensor, succeeds


def test_minus_infinity_is_minus_zero() -> None:
    """With the single formula x * clamp(x + 3, 0, 6) / 6, it would be nan."""
    x = Tensor(shape=(3,), values=(-np.inf, -3.0, np.inf))
    got = succeeds(HARDSWISH, {"self": x, "out": Tensor(shape=(3,))}).view()
    assert got.tobytes() == np.array([-0.0, -0.0, np.inf], np.float32).tobytes()


def test_the_gradients_differ_at_the_ends_of_the_curve() -> None:
    """The document of aclnnHardswishBackward has -3 and 3 on the curve, that of its V2 does not."""
    tensors = {"gradOutput": Tensor(shape=(3,), values=(2.0,)), "out": Tensor(shape=(3,))}
    x = {"self": Tensor(shape=(3,), values=(-3.0, 3.0, np.nan))}
    assert succeeds(HARDSWISH_BACKWARD, tensors | x).view().tolist() == [-1.0, 3.0, 2.0]
    assert succeeds(HARDSWISH_BACKWARD_V2, tensors | x).view().tolist() == [0.0, 2.0, 2.0]
