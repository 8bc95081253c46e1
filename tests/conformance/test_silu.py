"""Values of aclnnSilu and aclnnSiluBackward, through the C ABI."""

from __future__ import annotations

import pytest

from tests.cabi import Dtype
from tests.conformance.machinery import Operator, Tensor, succeeds, sweep
from tests.conformance.silu_table import DTYPES, TABLES, VALUES

OPERATORS = [table.operator for table in TABLES]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)
def test_values(operator: Operator, dtype: Dtype) -> None:
    x = sweep(dtype)
    tensors = {name: VALUES["gradOutput"] if name == "gradOutput" else x for name in operator.tensors}
    succeeds(operator, {name: Tensor(dtype, x.shape, values=numbers) for name, numbers in tensors.items()})
