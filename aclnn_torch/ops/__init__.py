"""What the operators of ``torch.ops.aclnn`` need from Python: one module per operator, each registering itself."""

from __future__ import annotations

import importlib
import pkgutil

from .. import _C  # noqa: F401  (defines the operators)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
