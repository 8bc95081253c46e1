"""The text of a release: ``python tools/release.py v1.2.3 [ADDRESS]`` prints CHANGELOG.md's section for that tag.

Exits with 1, and prints the reason, unless the tag is the package's version and the section has its date. Paragraphs
become one line each, because GitHub keeps line breaks in a release's text; links into the tree are prefixed with
ADDRESS.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class NotReady(Exception):
    """The problems to fix before the release."""


def section(tag: str, root: Path = ROOT) -> str:
    """The text of CHANGELOG.md below the heading for a tag."""
    text = (root / "aclnn_torch" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}, and aclnn_torch/__init__.py says that the version is {version}")
    changes = (root / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\] - ([^\n]*)\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NotReady(f"CHANGELOG.md has no section [{version}]")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        raise NotReady(f"CHANGELOG.md says of {version} {found[1]!r}, expected its date, as in 2026-01-31")
    if not found[2].strip():
        raise NotReady(f"CHANGELOG.md has nothing in its section [{version}]")
    return found[2].strip()


def of_a_release(text: str, address: str) -> str:
    """A section in GitHub's form: without line breaks in its paragraphs, and with links relative to the repository."""
    joined = re.sub(r"(?<=\S)\n *(?!\s|#|[-*] )", " ", text)
    return re.sub(r"\]\((?!\w+:|#)", f"]({address}/", joined) if address else joined


def main(tag: str, address: str = "") -> int:
    """Prints the text; returns 1 if the tree is not ready for the tag."""
    try:
        print(of_a_release(section(tag), address))
    except NotReady as reason:
        print(f"tools/release.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
