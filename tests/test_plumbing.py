"""The functions that ATen computes exist only in the prefix's library, which has every published function."""

from __future__ import annotations

import re
from pathlib import Path

from aclnn_torch import host

from .aten_ops.sweep import LIBRARY
from .cabi import exported_operators
from .published import functions

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "csrc" / "host_cann" / "include" / "aclnnop"


def with_headers() -> set[str]:
    text = "".join(path.read_text() for path in HEADERS.glob("*.h"))
    return set(re.findall(r"(aclnn\w+)GetWorkspaceSize\(", text))


def test_every_published_function_is_here() -> None:
    """Functions that functions.tsv refuses fail stage 1 with the reason: test_aten_limits.py."""
    assert functions().keys() - exported_operators(LIBRARY) == set()


def test_the_embedded_library_has_none_of_them() -> None:
    assert exported_operators(host.PREFIX.parent / "lib" / "libaclnn_host.so") == with_headers()
