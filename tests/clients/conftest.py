"""These tests belong to the environment of `make clients`, in a process that runs on the host CANN."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import torch

HERE = "torch_npu" in sys.modules and importlib.util.find_spec("accelerate") is not None
collect_ignore_glob = [] if HERE else ["test_*.py"]

if HERE:
    # Convolutions multiply in float32, as on the CPU; torch_npu's default is HFLOAT32.
    torch.npu.conv.allow_hf32 = False
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        # PyPI's builds of it are for CUDA. Elsewhere their operators are absent, which models of timm do not call, and
        # torchvision is not imported because this module registers shapes for them.
        sys.modules["torchvision._meta_registrations"] = ModuleType("torchvision._meta_registrations")
