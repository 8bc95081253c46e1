"""Adds what published files define to published_functions.tsv, from a clone of their repository.

    python -m tests.conformance.read_source hicann/ops-nn CLONE activation/mish/op_api/aclnn_mish.cpp...

Functions that are defined at a line's beginning, which those of CANN's checkers are, and macros; at the commit of the
other files of the repository.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.conformance.provenance import PUBLISHED, REVISIONS

_MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
# A type, a name, parameters, and a body.
_FUNCTION = re.compile(
    r"^[\w:][\w:<>,&* ]*?\b(\w+)\s*\((?:[^;{}()]|\([^()]*\))*\)\s*(?:const|noexcept|\s)*\{", re.MULTILINE
)


def definitions(text: str) -> list[str]:
    """The names that a C++ file defines, in order."""
    text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    return sorted({*_FUNCTION.findall(text), *_MACRO.findall(text)})


def line(repository: str, clone: str, file: str) -> str:
    """A line of the list."""
    commit = REVISIONS[repository]
    shown = subprocess.run(
        ["git", "-C", clone, "show", f"{commit}:{file}"], stdout=subprocess.PIPE, text=True, check=True
    )
    return "\t".join((repository, commit, file, " ".join(definitions(shown.stdout))))


def main(repository: str, clone: str, *files: str) -> None:
    """Adds the lines, in order of repository and file."""
    head, *lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    kept = [
        each
        for each in lines
        if not any(each.startswith(f"{repository}\t") and f"\t{file}\t" in each for file in files)
    ]
    kept += [line(repository, clone, file) for file in files]
    kept.sort(key=lambda each: each.split("\t")[::2])
    PUBLISHED.write_text("".join(f"{each}\n" for each in (head, *kept)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
