"""Defines operators of ``torch.ops._C_ascend``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])
LIBRARY = torch.library.Library("_C_ascend", "DEF")
COMPUTED: list[str] = []
REFUSED: dict[str, str] = {}  # the reasons, by name


def operator(schema: str, key: str = "PrivateUse1") -> Callable[[Function], Function]:
    """Defines an operator that the function computes on NPUs.

    With tensors without memory (meta) the function only makes results, for compilers: ``call`` does nothing then.
    """

    def define(function: Function) -> Function:
        name = LIBRARY.define(schema)
        LIBRARY.impl(name, function, key)
        LIBRARY.impl(name, function, "Meta")
        COMPUTED.append(name)
        return function

    return define


def refuse(reason: str, *schemas: str) -> None:
    """Defines operators that are errors on any device, while a compiler traces them, too."""
    for schema in schemas:
        name = LIBRARY.define(schema)

        def fail(*_: object, name: str = name, **__: object) -> NoReturn:
            raise NotImplementedError(f"torch.ops._C_ascend.{name} is not computed on simulated NPUs: {reason}")

        LIBRARY.impl(name, fail, "CompositeExplicitAutograd")
        REFUSED[name] = reason
