"""The installed CANN through ctypes; its functions are attributes, as in a ctypes.CDLL."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from tests import cabi

# In order of dependency. The last come with newer releases, in addition to the others.
LIBRARIES = ("libascendcl.so", "libnnopbase.so", "libopapi.so")
SPLIT = "libopapi_*.so"


class MissingFunction(AttributeError):
    """A function that the installed CANN does not have."""


class Installed:
    """The libraries of the installed CANN, found as a program's loader finds them."""

    def __init__(self) -> None:
        home = os.environ.get("ASCEND_HOME_PATH")
        if not home:
            raise OSError("ASCEND_HOME_PATH is not set: source set_env.sh of the CANN that is to be compared")
        split = sorted(path.name for path in (Path(home) / "lib64").glob(SPLIT))
        self._libraries = [ctypes.CDLL(name, ctypes.RTLD_GLOBAL) for name in (*LIBRARIES, *split)]

    def __getattr__(self, name: str) -> Any:
        for library in self._libraries:
            try:
                function = getattr(library, name)
            except AttributeError:
                continue
            function.restype, function.argtypes = cabi.prototypes()[name]
            setattr(self, name, function)
            return function
        raise MissingFunction(name)
