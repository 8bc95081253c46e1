"""The files of csrc/cann/rows, and the rows in each."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from tests.builds import CXX

ROWS = Path(__file__).parents[2] / "csrc" / "cann" / "rows"

# A row's name and its file. The preprocessor expands macros that make several rows.
_ROW = re.compile(r'<<(\w+) "([^"]+)">>')


@functools.cache
def row_files() -> dict[str, list[str]]:
    """The files of csrc/cann/rows that contain each row, by function."""
    headers = ["engine/language.h", "elementwise/write_elementwise.h"]  # with macros that make rows
    files = [*headers, *sorted(str(path.relative_to(ROWS)) for path in ROWS.rglob("*.cpp"))]
    source = ""
    for name in files:
        text = re.sub(r"^#(include|pragma).*$", "", (ROWS / name).read_text(), flags=re.MULTILINE)
        source += f'#line 1 "{name}"\n{text}\n'
        if name == "engine/language.h":
            source += "#undef ACL_STAGES\n#define ACL_STAGES(name, ...) <<name __FILE__>>\n"
    command = [*CXX, "-std=c++20", "-E", "-P", "-x", "c++", "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for name, file in _ROW.findall(result.stdout):
        found.setdefault(name, []).append(file)
    return found
