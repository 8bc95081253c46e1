"""These tests need the environment of `make clients`, in a process that runs on the host CANN."""

from __future__ import annotations

import importlib.util
import sys

import torch

HERE = "torch_npu" in sys.modules and importlib.util.find_spec("accelerate") is not None
collect_ignore_glob = [] if HERE else ["test_*.py"]

if HERE:
    # Convolutions multiply in float32, as on the CPU; torch_npu's default is HFLOAT32.
    torch.npu.conv.allow_hf32 = False
    import tests.clients.vision  # noqa: F401 (before a test imports torchvision)
