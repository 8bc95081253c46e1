"""Prints the locations of torch, torch_npu, pybind11 and Python's headers as CMake commands.

Imports nothing: torch takes seconds, and with torch_npu it requires a CANN.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path


def folder_of(package: str) -> Path | None:
    """The folder of an installed package."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def main() -> None:
    """Prints the commands; a package that is not installed gives an empty value."""
    pybind11 = folder_of("pybind11")
    values = {
        "TORCH_DIR": folder_of("torch") or "",
        "TORCH_NPU_DIR": folder_of("torch_npu") or "",
        "PYBIND11_INCLUDE": pybind11 / "include" if pybind11 else "",
        "PYTHON_INCLUDE": sysconfig.get_path("include"),
        "PYTHON_MODULE_SUFFIX": sysconfig.get_config_var("EXT_SUFFIX"),
        "PYTHON_PLATLIB": sysconfig.get_path("platlib"),
    }
    for name, value in values.items():
        print(f"set({name} [==[{value}]==])")


main()
