"""``doctor --coverage``: the aclnn functions that the installed torch_npu calls, and the host CANN's support of each.

Both lists are read from the libraries' files, without loading them: torch_npu's contains the names that it looks up,
the host CANN's the names that it defines and the reasons for those that it refuses.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path

from ..host import PREFIX
from .prefix import is_built

COMPUTED, REFUSED, MISSING, NOT_PUBLISHED = "computed", "refused", "missing", "not published"
# Functions that torch_npu looks up and nothing public declares, each with what torch_npu does where it finds none. The
# host CANN must not have them, not even to refuse them: torch_npu would call them.
UNDECLARED = {
    "aclnnLessScalar": "no document of CANN has it; torch_npu takes GreaterEqual by name",
    "aclnnMhcPreBackwardV2": "no document of CANN has it; torch_npu needs it where inner_precise is 1",
    "aclnnROIAlign": "no document of CANN has it; torch_npu takes ROIAlign by name",
    "aclnnROIAlignBackward": "no document of CANN has it; torch_npu takes ROIAlignGrad by name",
}
# The beginning of the reason for a function that is missing.
NOT_WRITTEN = "it is not written yet"
# torch_npu also looks up, by name, the function that returns a function's largest workspace.
_NAME = re.compile(rb"(?<=\0)(acl\w+?)(?:GetWorkspaceSize|(GetMaxWorkspaceSize))(?=\0)")
# Arbitrary data may precede the first text of its section.
_REASON = re.compile(rb"(acl\w+): the host CANN does not have this function, because ([^\0]+)")


@dataclass(frozen=True)
class Entry:
    """One function."""

    function: str
    state: str
    reason: str = ""


def _names(content: bytes) -> set[str]:
    return {(match[1] + (match[2] or b"")).decode() for match in _NAME.finditer(content)}


def torch_npu_library() -> Path | None:
    """The library of the installed torch_npu; None if there is none."""
    specification = importlib.util.find_spec("torch_npu")
    if specification is None or specification.origin is None:
        return None
    library = Path(specification.origin).parent / "lib" / "libtorch_npu.so"
    return library if library.exists() else None


def asked_for() -> set[str] | None:
    """The functions that the installed torch_npu calls; None if there is none."""
    library = torch_npu_library()
    return _names(library.read_bytes()) if library else None


def coverage(names: set[str] | None) -> list[Entry]:
    """The host CANN's support of each of these functions, or of all that it knows."""
    content = (PREFIX / "lib64" / "libopapi.so").read_bytes()
    here = _names(content)
    reasons = {match[1].decode(): match[2].decode() for match in _REASON.finditer(content)}

    def entry(name: str) -> Entry:
        if name in reasons:
            return Entry(name, MISSING if reasons[name].startswith(NOT_WRITTEN) else REFUSED, reasons[name])
        if name in here:
            return Entry(name, COMPUTED)
        return Entry(name, NOT_PUBLISHED, UNDECLARED[name]) if name in UNDECLARED else Entry(name, MISSING)

    return [entry(name) for name in sorted(here if names is None else names)]


def run(arguments: argparse.Namespace) -> int:
    """Prints the list, and the number of functions in each state."""
    if not is_built():
        return 1
    names = asked_for()
    entries = coverage(names)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(each) for each in entries], indent=2))
        return 0
    counts = collections.Counter(each.state for each in entries)
    found = ", ".join(f"{counts[state]} {state}" for state in (COMPUTED, REFUSED, MISSING, NOT_PUBLISHED))
    if names is None:
        print(f"torch_npu is not installed here. The host CANN has {len(entries)} functions: {found}.")
    else:
        print(f"The installed torch_npu calls {len(entries)} functions: {found}.")
    for each in entries:
        print(f"{each.function:<60} {each.state}{f', because {each.reason}' if each.reason else ''}")
    return 0
