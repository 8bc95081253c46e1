"""Writes the C++ of the functions that the host CANN refuses: each reports its name and the reason.

``write_refusals.py OUTPUT``: the published functions of functions.tsv that have a reason in its column "refused", and
those of refusals.tsv. refusals.tsv has functions that torch_npu looks up, without parameters, which a refusal does not
need. It omits functions for which torch_npu calls an older one if they are missing.
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
FUNCTION = """\
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {name}GetWorkspaceSize({types}) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: the host CANN does not have this function, because {reason}");
}}
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {name}(void*, uint64_t, aclOpExecutor*, aclrtStream) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: stage 1 has refused this function; run it on a device");
}}
"""


def rows(table: str) -> list[dict[str, str]]:
    """The rows of a table that have a reason."""
    with Path(__file__).with_name(table).open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["refused"]]


def main(output: str) -> None:
    """Writes all refusals to a file."""
    text = HEAD
    for row in rows("functions.tsv"):
        types = [re.sub(r"\s*\w+$", "", parameter) for parameter in row["parameters"].split(", ")]
        types += ["uint64_t*", "aclOpExecutor**"]
        text += FUNCTION.format(name=row["function"], types=", ".join(types), reason=row["refused"])
    for row in rows("refusals.tsv"):
        text += FUNCTION.format(name=row["function"], types="", reason=row["refused"])
    Path(output).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
