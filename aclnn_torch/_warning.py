"""Warnings that point to the line of the user's program, not one of the package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def warn(message: str) -> None:
    """Warns at the nearest caller outside the package; during an import, at the line that imports the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not (file.startswith(_PACKAGE) or file.startswith("<frozen importlib") or file == contextlib.__file__):
            break
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, frame.f_lineno, module=module, registry=registry
    )
