"""Refuses the kernels that torch_npu's Inductor makes for triton-ascend, with a text that says what runs instead."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

ASCEND = "triton.backends.ascend"
TEXT = (
    f"{ASCEND} is part of triton-ascend, for whose compiler torch_npu's Inductor makes kernels, and the host CANN does "
    "not have it; set NPU_INDUCTOR_FALLBACK_LIST=allfallback, so that Inductor calls NPU operators, or call "
    'torch.compile(..., backend="npugraph_ex")'
)


class _Finder:
    """Stands last, and is asked where no module was found."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raises for triton-ascend's backend."""
        if name == ASCEND:
            raise ModuleNotFoundError(TEXT, name=name)
        return None


def install() -> None:
    """Adds the text to the error that Python raises anyhow."""
    sys.meta_path.append(_Finder())  # type: ignore[arg-type]
