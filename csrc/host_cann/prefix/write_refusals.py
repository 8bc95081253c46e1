"""Writes the C++ of the published functions that the host CANN refuses: each says its name and why.

``write_refusals.py OUTPUT``: the functions of functions.tsv that have a reason in its column "refused".
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

HEAD = """\
// Written by write_refusals.py.
#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error.h"

using aclnn_host::fail;

"""
FUNCTION = """\
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {name}GetWorkspaceSize({types}, uint64_t*, aclOpExecutor**) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: the host CANN does not have this function, because {reason}");
}}
extern "C" ACL_FUNC_VISIBILITY aclnnStatus {name}(void*, uint64_t, aclOpExecutor*, aclrtStream) {{
  return fail(ACLNN_ERR_RUNTIME_ERROR, "{name}: stage 1 has refused this function; run it on a device");
}}
"""


def main(output: str) -> None:
    """Writes them all."""
    with Path(__file__).with_name("functions.tsv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["refused"]]
    text = HEAD
    for row in rows:
        types = ", ".join(re.sub(r"\s*\w+$", "", parameter) for parameter in row["parameters"].split(", "))
        text += FUNCTION.format(name=row["function"], types=types, reason=row["refused"])
    Path(output).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
