"""vllm-ascend's own operators, ``torch.ops._C_ascend``, on simulated NPUs.

vllm-ascend defines them in its compiled module ``vllm_ascend.vllm_ascend_C``, which needs Huawei's compiler. Where it
was installed without, this plugin, which vLLM finds by the entry points in this folder's parent, answers the import.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

PREFIX = Path(__file__).resolve().parents[3]
BINDING = "vllm_ascend.vllm_ascend_C"


class Binding(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module; importing it defines the operators, as with the compiled one."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's specification."""
        return importlib.machinery.ModuleSpec(name, self) if name == BINDING else None

    def exec_module(self, module: ModuleType) -> None:
        """Defines the operators, and gives the module the functions of sleep mode's allocator."""
        from . import allocator, operators  # noqa: F401

        for name in ("init_module", "python_create_and_map", "python_unmap_and_release"):
            setattr(module, name, getattr(allocator, name))


def register() -> None:
    """Answers the import on simulated NPUs, after all other finders: a compiled module is preferred.

    It is a platform plugin, too, one without a platform, because programs that do not start an engine load these only,
    and pytest's, because tests of operators load neither.
    """
    is_simulated = os.environ.get("ASCEND_HOME_PATH") == str(PREFIX)
    if is_simulated and not any(isinstance(finder, Binding) for finder in sys.meta_path):
        sys.meta_path.append(Binding())
