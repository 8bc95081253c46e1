"""Random numbers whose seed and offset stand in tensors: those of the function that takes them as numbers."""

from __future__ import annotations

import pytest

from tests.aten_ops.sweep import run_calls
from tests.cabi import SUCCESS

# The function with numbers, its arguments beside seed and offset, and the one with tensors.
PAIRS = {
    "aclnnInplaceNormal": ("mean=1.5 std=2", "aclnnInplaceNormalTensor"),
    "aclnnInplaceUniform": ("from=-1 to=3", "aclnnInplaceUniformTensor"),
    "aclnnInplaceRandom": ("from=3 to=900", "aclnnInplaceRandomTensor"),
    "aclnnInplaceRandomWithoutFromTo": ("", "aclnnInplaceRandomWithoutFromToTensor"),
}


@pytest.mark.parametrize("function", PAIRS)
def test_the_same_numbers(function: str) -> None:
    arguments, by_tensors = PAIRS[function]
    first, second, other = run_calls(
        [
            f"{function} selfRef=FLOAT[50] {arguments} seed=5 offset=12",
            f"{by_tensors} selfRef=FLOAT[50] {arguments} seedTensor=INT64[1]:5 offsetTensor=INT64[1]:8 offset=4",
            f"{by_tensors} selfRef=FLOAT[50] {arguments} seedTensor=INT64[1]:6 offsetTensor=INT64[1]:8 offset=4",
        ]
    )
    assert (first[:2], second[:2], other[:2]) == ((SUCCESS, SUCCESS),) * 3
    assert first[3] == second[3] != other[3]
