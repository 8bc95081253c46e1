"""Refuses ``torch.jit.script``, which would otherwise fail somewhere inside the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def not_scriptable(name: str) -> Callable[..., NoReturn]:
    """``torch.jit.script`` calls this, by the name ``__prepare_scriptable__``, before it compiles anything."""

    def refuse(*_: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.jit.script: {name} cannot be scripted, expected operators such as torch.ops.aclnn.elu; call these, "
            "or use torch.compile, torch.export or torch.jit.trace: torch itself has deprecated torch.jit.script"
        )

    return refuse
