"""Importing torchvision beside a torch for CPUs, as timm and Lightning do."""

from __future__ import annotations

import sys
from types import ModuleType

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # PyPI's builds are for CUDA. Elsewhere their operators are absent, which neither library calls here. The module
    # that registers their shapes is replaced, so that the import works.
    sys.modules["torchvision._meta_registrations"] = ModuleType("torchvision._meta_registrations")
