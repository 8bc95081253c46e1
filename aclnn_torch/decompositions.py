"""The operators in terms of ATen's, for compilers and backends that know nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from .ops import OPERATORS

__all__ = ["decompositions"]


def decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """What each operator of ``torch.ops.aclnn`` computes, written with ATen's operators.

    A new table, to be changed and merged at will::

        program = torch.export.export(model, inputs)
        program.run_decompositions(torch.export.default_decompositions() | aclnn_torch.decompositions())

    Results have the operators' shapes, dtypes and branches (SELU's gradient at 0, CrossEntropyLoss's ignored rows); 16
    bits are computed in FLOAT and rounded once, except within those of ATen's operators that an operator is replaced by
    as a whole: its activations, its ``convolution`` and their gradients. ``cube_math_type``, which chooses among a
    device's ways to multiply, and the checks with their status codes are aclnn's alone and left out. SELU of integers
    has no counterpart and is not decomposed.

    Returns:
        Operator -> function of the same arguments, as ``make_fx`` and ``run_decompositions`` want it.
    """
    stated = {
        overload.operator: overload.decomposition for operator in OPERATORS.values() for overload in operator.overloads
    }
    return {
        operator: getattr(torch.ops.aten, what).default if isinstance(what, str) else what
        for operator, what in stated.items()
    }
