"""Imports torch before the rest of the package, even if torch_npu is installed and finds no CANN.

By default torch loads torch_npu automatically. If no CANN is set up, torch_npu is not loaded: its import would fail,
and with it that of `aclnn_torch.host.enable()`, which provides the host CANN. If a CANN is set up, torch_npu is loaded
after torch, so that torch remains usable if that fails, and the error can say what to do.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from ._problem import TorchNpuError, other_torch, subinterpreter

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def _import_torch() -> None:
    """Imports torch.

    Raises:
        ImportError: the binary part is not built for this series of torch, or torch_npu cannot be loaded.
    """
    if "torch" in sys.modules or importlib.util.find_spec("torch_npu") is None:
        import torch

        return
    before = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    try:
        import torch
    finally:
        if before is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = before
    if before in (None, "1") and "ASCEND_HOME_PATH" in os.environ:
        try:
            torch._import_device_backends()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise TorchNpuError(error.__cause__ or error) from error


if _problem := subinterpreter():
    raise ImportError(_problem)
_import_torch()
if _problem := other_torch(sys.modules["torch"].__version__):
    raise ImportError(_problem)
