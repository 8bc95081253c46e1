"""Writes the C++ of the functions that the host CANN refuses: each reports its name and the reason.

``write_refusals.py OUTPUT``: the published functions of functions.tsv that have a reason in its column "refused", and
those of refusals.tsv. refusals.tsv has functions that torch_npu looks up, without parameters, which a refusal does not
need; one whose name ends with GetMaxWorkspaceSize is another form of stage 1. It omits functions for which torch_npu
calls an older one if they are missing.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

HEAD = """\
// Written by write_refusals.py.
#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"

using aclnn_host::fail;

"""
STAGE_1 = """\
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {symbol}({types}) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: the host CANN does not have this function, because {reason}");
}}
"""
STAGE_2 = """\
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {name}(void*, uint64_t, aclOpExecutor*, aclrtStream) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: stage 1 has refused this function; run it on a device");
}}
"""


def rows(table: str) -> list[dict[str, str]]:
    """The rows of a table that have a reason."""
    with Path(__file__).with_name(table).open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["refused"]]


def refusal(name: str, types: str, reason: str) -> str:
    """The definitions of a function."""
    if name.endswith("GetMaxWorkspaceSize"):
        return STAGE_1.format(symbol=name, name=name, types=types, reason=reason)
    first = STAGE_1.format(symbol=f"{name}GetWorkspaceSize", name=name, types=types, reason=reason)
    return first + STAGE_2.format(name=name)


def main(output: str) -> None:
    """Writes all refusals to a file."""
    text = HEAD
    for row in rows("functions.tsv"):
        types = [re.sub(r"\s*\w+$", "", parameter) for parameter in row["parameters"].split(", ")]
        types += ["uint64_t*", "aclOpExecutor**"]
        text += refusal(row["function"], ", ".join(types), row["refused"])
    for row in rows("refusals.tsv"):
        text += refusal(row["function"], "", row["refused"])
    Path(output).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
