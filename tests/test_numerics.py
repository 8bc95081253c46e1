"""Results on inputs that are hard are never worse than torch's (benchmarks/torture.py, docs/precision.md)."""

from __future__ import annotations

import pytest
import torch

from benchmarks import torture
from benchmarks.torture import Condition, Operator

# Below this many units in the last place, errors are a formula's own few roundings and the luck of the numbers. Of 16
# bits there is one rounding, of a result that is exact to 0.01; y of RmsNorm has seven, of up to one unit each.
ROUNDINGS = {torch.float16: 0.51, torch.bfloat16: 0.51, torch.float32: 5.0, torch.float64: 5.0}
# On the longest path to dx of a norm lie twelve roundings and, thrice, those of rstd; sums of FLOAT are made in DOUBLE.
ROUNDINGS_OF_DX = 8.0
STATISTICS = ("mean", "rstd")  # of 16 bits they are FLOAT


@pytest.mark.parametrize(
    ("operator", "condition", "dtype"),
    [
        pytest.param(
            operator,
            condition,
            dtype,
            id=f"{operator.name}-{condition.name}-{str(dtype).removeprefix('torch.')}",
            marks=[pytest.mark.deep] if condition.large else [],
        )
        for operator in torture.OPERATORS
        for condition in operator.conditions
        for dtype in condition.dtypes
    ],
)
def test_never_worse_than_torch(operator: Operator, condition: Condition, dtype: torch.dtype) -> None:
    for result, (ours, torchs) in torture.errors(operator, condition, dtype).items():
        least = ROUNDINGS[torch.float32 if result in STATISTICS and dtype.itemsize == 2 else dtype]
        if result == "dx" and dtype == torch.float64:
            least = ROUNDINGS_OF_DX
        assert ours <= max(torchs, least), f"{result}: {ours} against torch's {torchs}"
