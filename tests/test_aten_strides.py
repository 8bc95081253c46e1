"""Every function that is a row on ATen, on tensors with gaps: the result is the same, and no gap is written."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aten_ops.sweep import SAMPLES, is_sized_by_data, run_call
from tests.cabi import PARAM_INVALID, SUCCESS

LINES = SAMPLES.read_text().splitlines()


@pytest.mark.parametrize("line", LINES, ids=[line.partition(" ")[0] for line in LINES])
def test_gaps_change_nothing(line: str) -> None:
    *statuses, _, expected = run_call(line)
    *found, text, outputs = run_call(line, strided=True)
    if is_sized_by_data(line.partition(" ")[0]):
        assert found == [PARAM_INVALID, SUCCESS]
        assert "is not contiguous, expected a contiguous output because the shape of the result depends on" in text
        return
    assert found == statuses == [SUCCESS, SUCCESS]
    for output, other in zip(outputs, expected, strict=True):
        # The order of a sum may depend on the strides.
        np.testing.assert_allclose(output, other, rtol=1e-6, atol=1e-6)
