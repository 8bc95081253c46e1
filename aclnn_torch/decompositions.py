"""The operators in terms of ATen's, for compilers and backends that know only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from .ops import OPERATORS

__all__ = ["decompositions"]


def decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """What each operator of ``torch.ops.aclnn`` computes, written with ATen's operators.

    Returns a new table, which may be changed and merged::

        program = torch.export.export(model, inputs)
        program.run_decompositions(torch.export.default_decompositions() | aclnn_torch.decompositions())

    Results have the operators' shapes, dtypes and branches (SELU's gradient at 0, CrossEntropyLoss's ignored rows).
    16-bit tensors are computed in FLOAT and rounded once, except inside operators that ATen has as a whole:
    activations, ``convolution`` and their gradients. ``cube_math_type``, which selects the precision of a device's
    products, and the checks with their status codes exist only in aclnn and are left out. SELU on integers has no
    counterpart and is not decomposed.

    Returns:
        Operator -> function of the same arguments, as ``make_fx`` and ``run_decompositions`` require.
    """
    stated = {
        overload.operator: overload.decomposition for operator in OPERATORS.values() for overload in operator.overloads
    }
    return {
        operator: getattr(torch.ops.aten, what).default if isinstance(what, str) else what
        for operator, what in stated.items()
    }
