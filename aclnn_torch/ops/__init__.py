"""The operators of ``torch.ops.aclnn``: each module defines one operator, for all parts of the package."""

from __future__ import annotations

import importlib
import pkgutil

from .. import _C  # noqa: F401  (defines the operators)
from .._after_import import after_import
from ._operator import Operator, Overload

OPERATORS: dict[str, Operator] = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").OPERATOR
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}

_OVERLOADS: list[Overload] = [overload for operator in OPERATORS.values() for overload in operator.overloads]

for _overload in _OVERLOADS:
    _overload.register()


def _register_flops() -> None:
    for overload in _OVERLOADS:
        overload.register_flops()


# Where triton is, the flop counter imports it, and triton 3.6 makes a free-threaded Python enable the GIL.
after_import("torch.utils.flop_counter", _register_flops)
