"""The operators that are one call of ATen: what the documents say there is."""

from __future__ import annotations

import re
from pathlib import Path

from aclnn_torch import host

from .aten_ops.report import FUNCTIONS, functions_page
from .cabi import exported_operators

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "csrc" / "host_cann" / "include" / "aclnnop"


def with_headers() -> set[str]:
    text = "".join(path.read_text() for path in HEADERS.glob("*.h"))
    return set(re.findall(r"(aclnn\w+)GetWorkspaceSize\(", text))


def test_the_document_lists_them() -> None:
    """`make conformance` writes docs/functions.md."""
    assert FUNCTIONS.read_text() == functions_page()


def test_the_embedded_library_has_none_of_them() -> None:
    assert exported_operators(host.PREFIX.parent / "lib" / "libaclnn_host.so") == with_headers()
