"""A refusal is a call with its status and its text; functions here list several that are alike.

A call is a tuple of the function and its arguments. An argument that is a string names an object, "&name" the variable
that holds it, and "name+8" the address 8 bytes behind it; bytes stand for a pointer to them. "name=function" stores
what it returns.
"""

from __future__ import annotations

import functools
import mmap
import re
from collections.abc import Sequence
from typing import NamedTuple

from tests import cabi

Argument = None | int | float | bytes | str
Call = tuple[Argument, ...]

PAGE = mmap.PAGESIZE


class Refusal(NamedTuple):
    """A call that is refused, and the calls around it, which succeed unless their name begins with "?"."""

    call: Call
    status: str
    text: str
    before: Sequence[Call] = ()
    after: Sequence[Call] = ()
    is_status: bool = True  # what the function returns; the others return 0, a null pointer, or nothing


def refused(
    status: str,
    text: str,
    *calls: Call,
    by: str | None = None,
    before: Sequence[Call] = (),
    after: Sequence[Call] = (),
    is_status: bool = True,
) -> list[Refusal]:
    """Calls that are refused alike. The text follows the function's name, or that of the one that finds the fault."""
    return [Refusal(call, status, f"{by or str(call[0])}: {text}", before, after, is_status) for call in calls]


@functools.cache
def parameters() -> dict[str, list[str]]:
    """The names of each function's parameters, in the headers."""
    operators = " ".join(path.read_text() for path in (cabi.INCLUDE.parents[1] / "cann/prefix/include").rglob("*.h"))
    found = re.findall(r"\b(\w+)\s*\(([^()]*)\)\s*;", cabi.header_text() + operators)
    return {
        name: [text.split()[-1].strip("*[]") for text in listed.split(",") if text.strip()] for name, listed in found
    }


def null(
    call: Call, *names: str, status: str = "ACL_ERROR_INVALID_PARAM", text: str = "{} is a null pointer"
) -> list[Refusal]:
    """The call is refused if one of these arguments is a null pointer."""
    listed: list[Refusal] = []
    for name in names:
        at = 1 + parameters()[str(call[0])].index(name)
        listed += refused(status, text.format(name), (*call[:at], None, *call[at + 1 :]))
    return listed


# The statuses that several modules name.
INVALID = "ACL_ERROR_INVALID_PARAM"
RT_INVALID = "ACL_ERROR_RT_PARAM_INVALID"
NO_HANDLE = "ACL_ERROR_RT_INVALID_HANDLE"
UNSUPPORTED = "ACL_ERROR_FEATURE_UNSUPPORTED"
RT_UNSUPPORTED = "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"
NULL, BAD, INNER = "ACLNN_ERR_PARAM_NULLPTR", "ACLNN_ERR_PARAM_INVALID", "ACLNN_ERR_INNER"
POINTER, PARA = "HCCL_E_PTR", "HCCL_E_PARA"
