"""The operators that are one call of ATen: what the documents say there is."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from aclnn_torch import host

from .cabi import exported_operators

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "csrc" / "host_cann" / "include" / "aclnnop"


def with_headers() -> set[str]:
    text = "".join(path.read_text() for path in HEADERS.glob("*.h"))
    return set(re.findall(r"aclnn(\w+)GetWorkspaceSize\(", text))


def test_the_document_lists_them() -> None:
    """In docs/emulation.md, as this test writes them."""
    names = sorted(exported_operators(host.PREFIX / "lib64" / "libopapi.so") - with_headers())
    expected = textwrap.fill(" ".join(names), 120, break_on_hyphens=False)
    document = (ROOT / "docs" / "emulation.md").read_text()
    listed = re.search(r"<!-- the functions, without the prefix aclnn -->\n```text\n(.*?)```", document, re.DOTALL)
    assert listed
    assert listed[1].strip() == expected


def test_the_embedded_library_has_none_of_them() -> None:
    assert exported_operators(host.PREFIX.parent / "lib" / "libaclnn_host.so") == with_headers()
