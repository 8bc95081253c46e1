"""Imports torch before anything else of the package does, also where torch_npu is installed and no CANN is.

There torch must not load torch_npu by itself, for that fails: `aclnn_torch.host.enable()`, which brings the host CANN,
could never be reached.
"""

from __future__ import annotations

import importlib.util
import os
import sys

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def _import_torch() -> None:
    if "torch" in sys.modules or "ASCEND_HOME_PATH" in os.environ or importlib.util.find_spec("torch_npu") is None:
        import torch

        return
    before = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    try:
        import torch  # noqa: F401
    finally:
        if before is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = before


_import_torch()
