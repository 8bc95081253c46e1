"""The operators of ``torch.ops.aclnn``: each module defines one operator, for all parts of the package."""

from __future__ import annotations

import importlib
import pkgutil

from .. import _C  # noqa: F401  (defines the operators)
from ._operator import Operator

OPERATORS: dict[str, Operator] = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").OPERATOR
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}

for _operator_of_a_module in OPERATORS.values():
    for _overload in _operator_of_a_module.overloads:
        _overload.register()
