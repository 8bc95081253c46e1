"""The declaration of each operator's tests: see _info.py. Each module has its name in aclnn_torch."""

from __future__ import annotations

import importlib
import pkgutil

import torch

from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo

OPERATORS: dict[str, OperatorInfo] = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").INFO
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}

ELEMENTWISE = {name: info for name, info in OPERATORS.items() if info.kernels}
# Functions that torch has, too; an older torch lacks some.
FUNCTIONS: list[FunctionCase] = [
    case for info in OPERATORS.values() for case in info.functions if hasattr(torch.nn.functional, case.name)
]
MODULES: list[ModuleCase] = [
    case for info in OPERATORS.values() for case in info.modules if hasattr(torch.nn, case.name)
]


def kernels_for(user: str) -> list[Kernel]:
    """The elementwise kernels for one of EVERYONE."""
    return [kernel for info in ELEMENTWISE.values() for kernel in info.kernels_for(user)]
