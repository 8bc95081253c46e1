"""Results on difficult inputs are never worse than torch's (benchmarks/torture.py, docs/precision.md)."""

from __future__ import annotations

import pytest
import torch

from benchmarks import torture
from benchmarks.torture import Condition, Operator

# Below this many units in the last place, errors are a formula's own few roundings and chance. 16-bit results are exact
# to 0.01 and rounded once; y of RmsNorm has seven roundings, of up to one unit each.
ROUNDINGS = {torch.float16: 0.51, torch.bfloat16: 0.51, torch.float32: 5.0, torch.float64: 5.0}
# The longest path to dx of a norm has twelve roundings and, three times, those of rstd; FLOAT is summed in DOUBLE.
ROUNDINGS_OF_DX = 8.0
STATISTICS = ("mean", "rstd")  # FLOAT for 16-bit inputs


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
